package sim

import (
	"time"

	"gangd/pkg/api"
)

// Scenario is one run as data. The zero values of its parts are sensible.
type Scenario struct {
	Name   string
	Seed   uint64 // of all dice: delays, and whatever else is left open
	Nodes  []Node
	Jobs   []Job
	Faults []Fault
	// Controllers are how many there are on one database; 0 and 1: one, without.
	Controllers int
	// Calm is when everything is healed; 0: when the last fault is over.
	Calm time.Duration
	// Lean is for runs of days: what has left the controller's memory is forgotten here too, and
	// what is recounted is recounted at each hundredth turn.
	Lean bool
	// FirstID is the id of the first job, 0: 1.
	FirstID int64
	// History says what is forgotten of what has ended.
	History History
	// Licences are how many the site has of the one kind that jobs ask for.
	Licences int
	// Settings of the site; nil: [Settings].
	Settings *api.Settings
}

// Settings are those of a small impatient site: the time-outs in their proportions, short,
// so that a run is a few virtual minutes.
func Settings() *api.Settings {
	s := api.DefaultSettings()
	s.StartTimeout = 10 * time.Second
	s.Grace = 4 * time.Second
	s.DrainSlack = 6 * time.Second
	s.NodeTimeout = 8 * time.Second
	s.RebootTimeout = 30 * time.Second
	s.Lease = 40 * time.Second
	s.RetryBackoff = time.Second
	s.RetryBackoffMax = 8 * time.Second
	s.Ports = "12000-12003"
	s.HistoryJobs = 0 // see History
	s.StallTimeout = 0
	s.LaunchStrikes = 0 // see random: refused launches would take every node out
	return &s
}

// Node is a machine.
type Node struct {
	Name  string
	CPUs  int // 0: 8
	Cards int // of 80G each
	// Epilog is how long the site's epilog takes after each member; 0: there is none.
	Epilog time.Duration
	Waits  bool // its gnoded, of an older release, opens no gate before it is told to
}

// Job is one submission. Names in violations are job ids, which are not indexes of
// Scenario.Jobs; faults name jobs by index.
type Job struct {
	At    time.Duration
	Ranks int // 0: 1
	GPUs  int // each rank
	Ports int // of the gang on each of its nodes
	Nodes int // exactly so many, 0: any
	Batch bool
	// Licences are of the site's, whichever nodes it has.
	Licences int
	// Array is the number of elements, 0: no array; at most Limit of them at once, 0: all.
	Array, Limit int

	// Reserved: it runs only where a fault has reserved a node.
	Reserved  bool
	TimeLimit time.Duration
	TotalTime time.Duration // of all runs, of a job that is run again after its time limit; 0: it is not
	Grace     time.Duration // 0: the site's
	Lead      time.Duration // of a notice by USR1, 0: none
	// Scope is who the notice is for; empty: what the ranks and tasks run.
	Scope      api.SignalScope
	MaxRetries int
	NoRequeue  bool
	Priority   int64
	Hold       bool
	Import     time.Duration // how long a node imports its image for, the first time; 0: it has none
	Stalls     bool          // the import of the first epoch stops on its way
	AfterOK    int           // index+1 of an earlier job that has to complete first, 0: none
	Lead0      bool          // rank 0 is a role of its own, whose end is that of the gang

	// ReadyTimeout makes a gate of READY=1, 0: none.
	ReadyTimeout time.Duration
	Deadline     time.Duration // after At, 0: none

	// StallTimeout is how long one that has begun to beat may be silent, 0: nobody judges it.
	StallTimeout time.Duration

	Runs Behaviour
	// Steps are what the script of a Batch job starts: its Runs is the script's.
	Steps []Step
}

// Step is one step that a script starts, in the background.
type Step struct {
	After     time.Duration // the start of the script
	Tasks     int           // 0: 1
	Nodes     int           // exactly so many, 0: any
	Overlap   bool
	KeepGoing bool // a task that fails does not end the others
	Runs      Behaviour
}

// Behaviour is what the processes of a job do.
type Behaviour struct {
	For  time.Duration // until they end by themselves; 0: 5 s
	Skew time.Duration // each rank so much later than the one before
	Exit int           // with this code
	// FailEpochs is in how many started epochs rank FailRank ends with FailCode at half
	// time instead.
	FailEpochs, FailRank, FailCode int
	OnTerm                         TermReaction
	Ready                          time.Duration // after its start a rank says READY=1; 0: never
	// Daemon: each rank leaves a child in the background, which only KILL ends.
	Daemon bool
	// Checkpoints: each rank puts one when it is told to stop, and each third of For.
	Checkpoints bool
	// Saves is how long one that saves does so, 0: a second.
	Saves time.Duration
	// OnNotice other than NoticeDeaf is a handler for USR1.
	OnNotice NoticeReaction
	// Hangs: in the first epoch FailRank does nothing any more from so long after its start on,
	// and the cards of its gang stand still with it. Those with Beats beat until then.
	Hangs time.Duration
	Beats bool
	// Peers: a rank leaves with peerLeft when another of its epoch has ended other than well, or its machine has.
	Peers bool
	// Awaits, of a script: it ends with the last of its steps, by the worst of their codes.
	Awaits bool
}

// NoticeReaction is what a process makes of a notice.
type NoticeReaction int

// Reactions to a notice: without a handler it would die of it.
const (
	NoticeDeaf  NoticeReaction = iota
	NoticeSaves                // goes on, and says soon that it has saved
	NoticeEnds                 // ends with 0 when it has saved
	NoticeHeard                // goes on
)

// TermReaction is what a process makes of the stop signal.
type TermReaction int

// Reactions to the stop signal: the default is to end at once with 143.
const (
	TermDies    TermReaction = iota
	TermSaves                // ends with 0 when it has saved
	TermIgnored              // goes on
	TermLate                 // ends with 143 after most of the grace
)

// Fault is something that happens: an accident, or people.
type Fault struct {
	At   time.Duration // with When: after it
	When Point         // zero: at At
	Do   Kind
	Node string        // of kinds that need one
	Job  int           // index of Scenario.Jobs, of kinds that need one
	For  time.Duration // how long it lasts, or how long what crashed stays away
	N    int           // see the kinds
}

// Kind is what a fault does.
type Kind string

// Faults of the controller.
const (
	CrashGangd  Kind = "crash-gangd"  // kill -9, started again after For
	FreezeGangd Kind = "freeze-gangd" // SIGSTOP for For
	DiskFull    Kind = "disk-full"    // new jobs find no room; N 1: nothing does
	DiskBroken  Kind = "disk-broken"  // the next commit fails; N 1: after it was written. Started again after For
	// At: a copy is made. After For the controller runs on the copy, for For again; then on the newest. N 1: also when only some nodes can
	// tell
	OldStore    Kind = "old-store"
	CrashSender Kind = "crash-sender" // of a send point: the daemon that sends
)

// Faults of nodes.
const (
	CrashNoded  Kind = "crash-noded"
	FreezeNoded Kind = "freeze-noded"
	CrashShim   Kind = "crash-shim" // of Job on Node (empty: on any); N 1: of any job when that has none
	CrashRank   Kind = "crash-rank" // a rank of Job dies of a signal; N 1: of any job when that has none
	CrashStep   Kind = "crash-step" // of Job: what starts the tasks on a node; N 1: what started the step
	Reboot      Kind = "reboot"     // power off, on with a new boot id after For
	ShutDown    Kind = "shut-down"  // all on it get TERM, its gnoded among them; then as Reboot
	Suspend     Kind = "suspend"    // the machine and all on it stand still for For
	Unkillable  Kind = "unkillable" // what gets KILL on this node stays for For
	Refuse      Kind = "refuse"     // launches on this node are refused for For; N says whose fault, see blames
	SlowLaunch  Kind = "slow-launch"
)

// Faults of the network, between the controller and Node.
const (
	Cut     Kind = "cut"      // both ways
	CutUp   Kind = "cut-up"   // nothing of the node arrives
	CutDown Kind = "cut-down" // nothing arrives at the node
	Flap    Kind = "flap"     // N cuts of a second or two within For
	Reset   Kind = "reset"    // the connection breaks
	Slow    Kind = "slow"     // a second and more each way
	Twice   Kind = "twice"    // what the node says is taken in twice
)

// Faults of several controllers, and of their database. N is the controller, from 1 on; 0: the leader.
const (
	CrashController  Kind = "crash-controller"  // kill -9, started again after For
	FreezeController Kind = "freeze-controller" // SIGSTOP for For
	Term             Kind = "term"              // it resigns and ends, and is started again after For
	CrashAll         Kind = "crash-all"         // all are away for For
	CutNodes         Kind = "cut-nodes"         // it from all nodes
	CutNode          Kind = "cut-node"          // it from Node
	CutDatabase      Kind = "cut-database"      // it from the database
	DatabaseDown     Kind = "database-down"
	DatabaseSlow     Kind = "database-slow"
	AddController    Kind = "add-controller"
	DropController   Kind = "drop-controller" // the last of the list; its process is ended later
)

// People.
const (
	Cancel     Kind = "cancel"    // N 1: --now
	Requeue    Kind = "requeue"   // N 1: without its notice, 2: also what has ended
	StopStep   Kind = "stop-step" // the newest of Job
	Preempt    Kind = "preempt"
	HoldJob    Kind = "hold"
	ReleaseJob Kind = "release"
	Update     Kind = "update"      // what is changed of Job: see update
	Resubmit   Kind = "resubmit"    // the same submission with the same key
	LoseAnswer Kind = "lose-answer" // the client of Job's submission does not get its next answers for For
	AskReboot  Kind = "ask-reboot"  // N 0: when the node is idle, 1: as soon as possible, 2: taken back
	DrainNode  Kind = "drain-node"
	ResumeNode Kind = "resume-node"
	// ReserveNode keeps a node for For, from 15 s on; N 0: gangs that would still be there stay,
	// 1: they are stopped in time, 2: with them there is no reservation.
	ReserveNode Kind = "reserve-node"
	FenceNode   Kind = "fence-node" // by somebody who looked: only when nothing of it lives
)

// Point is a moment that is counted, not timed. The zero value is none.
type Point struct {
	On    Site
	N     int           // the how manieth, from 1
	After bool          // of a commit or a send: after it was done
	Event api.EventType // of an event
	Job   int           // of an event: index of Scenario.Jobs
}

// Site is where a point is.
type Site string

// The sites.
const (
	AtCommit Site = "commit" // of the controller's store
	AtSend   Site = "send"   // of a frame, an order to a shim, or a shim's word
	AtEvent  Site = "event"  // committed
)

// OnEvent is the commit of the n-th event of a type of a job (index of Scenario.Jobs).
func OnEvent(t api.EventType, job, n int) Point {
	return Point{On: AtEvent, Event: t, Job: job, N: n}
}
