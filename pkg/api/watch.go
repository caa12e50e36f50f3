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
}

// CardsState is what readings of cards say together.
type CardsState string

// The states, strongest first: what was seen for certain on one card outweighs what could
// not be seen on another. Only quiet ever ends anything.
const (
	CardsBusy    CardsState = "busy"    // a card was used above the site's idle percentage
	CardsMoving  CardsState = "moving"  // a card's memory moved by the site's static bytes or more
	CardsUnknown CardsState = "unknown" // a figure was missing
	CardsQuiet   CardsState = "quiet"   // every card idle and its memory static in every reading
)

// MaxFindingCards bounds the cards that a finding names, the least quiet first.
const MaxFindingCards = 16

// Finding is what a series of readings of some cards showed.
type Finding struct {
	State    CardsState    `json:"state"`
	Count    int           `json:"count"`    // cards looked at
	Readings int           `json:"readings"` // of each
	Cards    []CardFinding `json:"cards,omitempty"`
}

// CardFinding is the part of one card.
type CardFinding struct {
	Node        string     `json:"node,omitempty"`
	UUID        string     `json:"uuid"`
	State       CardsState `json:"state"`
	Utilization int        `json:"utilization" bound:"-1.."` // the highest, percent; -1: unknown
	MovedBytes  int64      `json:"moved_bytes" bound:"-1.."` // of its memory, highest less lowest; -1: unknown
}

// Check asks a node to look at the cards of a member: so many readings, so far apart. The
// first is taken at once. A Round is carried out once.
type Check struct {
	Round    int64         `json:"round"`
	Readings int           `json:"readings"`
	Interval time.Duration `json:"interval_ns"`
}

// WatchNote is what a node sees of the cards of a member, beside what its ranks say.
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
	// Blind is set once no figure could be had for so long, which is too long for a watchdog.
	Blind time.Duration `json:"blind_ns,omitempty"`
}
