package api

import "time"

// What the watchdogs see and say; their rules are in package watchdog.

// WatchdogOff, as a time-out or a limit of a watchdog, switches it off where 0 means that
// nobody said anything.
const WatchdogOff time.Duration = -1

// Watch is which watchdogs a gang is under, resolved when it was submitted. Zero times are
// watchdogs that are off.
type Watch struct {
	StallTimeout time.Duration `json:"stall_timeout_ns,omitempty"` // from the last beat of a rank
	HangWindow   time.Duration `json:"hang_window_ns,omitempty"`
	HangGrace    time.Duration `json:"hang_grace_ns,omitempty"` // from the start, not judged
	IdleLimit    time.Duration `json:"idle_limit_ns,omitempty"` // to the warning
	IdleEnd      time.Duration `json:"idle_end_ns,omitempty"`   // from the warning to the end
	NoStacks     bool          `json:"no_stacks,omitempty"`     // nobody wants to know where its processes are when the time limit ends it
}

// CardsState is what readings of cards, or of the processes that have them, say together.
type CardsState string

// The states, strongest first: what was seen for certain on one card outweighs what could
// not be seen on another. Only quiet ever ends anything.
const (
	CardsBusy    CardsState = "busy"    // the gang used a card above the site's idle percentage
	CardsMoving  CardsState = "moving"  // memory moved, or bytes were read and written, by more than the site calls static
	CardsUnknown CardsState = "unknown" // a figure was missing, or it can't be told whose it is
	CardsQuiet   CardsState = "quiet"   // every card idle and everything static in every reading
)

// MaxFindingCards bounds the cards that a finding names, and its hosts, the least quiet first.
const MaxFindingCards = 16

// Finding is what a series of readings of a member, or of a gang, showed.
type Finding struct {
	State    CardsState    `json:"state"`
	Count    int           `json:"count"`    // cards looked at
	Readings int           `json:"readings"` // of each
	Cards    []CardFinding `json:"cards,omitempty"`
	Hosts    []HostFinding `json:"hosts,omitempty"` // none: a card was not quiet, or the rule is about cards alone
}

// CardFinding is the part of one card.
type CardFinding struct {
	Node        string     `json:"node,omitempty"`
	UUID        string     `json:"uuid"`
	State       CardsState `json:"state"`
	Utilization int        `json:"utilization" bound:"-1.."`              // by the gang's own processes, the highest, percent; -1: unknown
	MovedBytes  int64      `json:"moved_bytes" bound:"-1.."`              // of its memory, highest less lowest; -1: unknown
	AtMost      int        `json:"at_most,omitempty"`                     // of an unknown utilization
	Others      string     `json:"others,omitempty" bound:"len=256 text"` // who else is on a card whose use can't be told apart
}

// HostFinding is the part of the processes on one node.
type HostFinding struct {
	Node        string     `json:"node,omitempty"`
	State       CardsState `json:"state"`
	MemoryBytes int64      `json:"memory_bytes" bound:"-1.."` // that moved, either way; -1: unknown
	IOBytes     int64      `json:"io_bytes" bound:"-1.."`     // read and written; -1: unknown
}

// Check asks a node to look at a member and its cards: so many readings, so far apart. The
// first is taken at once. A Round is carried out once.
type Check struct {
	Round    int64         `json:"round"`
	Readings int           `json:"readings"`
	Interval time.Duration `json:"interval_ns"`
}

// WatchNote is what a node sees of a member and its cards, beside what its ranks say.
type WatchNote struct {
	// Round, when not 0, is the check that Finding answers.
	Round   int64    `json:"round,omitempty"`
	Finding *Finding `json:"finding,omitempty"`
	// Hung: quiet for the whole window of gpu-hang, in which Window was seen.
	Hung   bool     `json:"hung,omitempty"`
	Window *Finding `json:"window,omitempty"`
	// Idle is how far the idle limit got: 1 the limit, 2 the end behind it. IdleFor is how
	// long the cards had been quiet then.
	Idle    int           `json:"idle,omitempty"`
	IdleFor time.Duration `json:"idle_for_ns,omitempty"`
	// Blind is set once nothing could be told of a card for so long, which is too long for a
	// watchdog. Unseen is what was seen instead.
	Blind  time.Duration `json:"blind_ns,omitempty"`
	Unseen *Finding      `json:"unseen,omitempty"`
}
