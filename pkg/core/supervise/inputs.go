package supervise

import (
	"time"

	"gangd/pkg/api"
)

// Timing of the proof that a containment is empty. Processes are gone about 0.2 ms after
// cgroup.kill, so the first look comes soon and later ones are cheap to do rarely.
const (
	StuckAfter = 2 * time.Second // after KILL, before what is left is called stuck
	probeFirst = time.Millisecond
	probeSlow  = 25 * time.Millisecond
	probeStuck = 250 * time.Millisecond
	// lookBefore is how long before the time limit it is looked where the ranks are: a look takes half of that at the most.
	lookBefore = time.Second
)

// Instant is a reading of the two clocks, each since an origin of no meaning.
type Instant struct {
	Mono time.Duration // CLOCK_MONOTONIC
	Boot time.Duration // CLOCK_BOOTTIME
}

// Config is what is known before the gate opens.
type Config struct {
	Ranks      []int         // of this node; none: the member only holds its containment, for steps
	TimeLimit  time.Duration // from Go; 0: none
	Look       bool          // shortly before that, see [Look]
	Notice     *api.Notice
	StopSignal string // of the ends that nobody ordered
	Grace      time.Duration
	GraceMax   time.Duration // how long ranks may extend the grace to, from the stop signal; 0: not at all
	// Lease is how long the ranks may go on without a controller, 0: for ever. The stop that
	// it brings is over, KILL and all, when Grace has passed on the boot clock too: the
	// controller counts the member gone a little later, whatever slept here.
	Lease time.Duration
}

// Input is what can happen to a member.
type Input interface{ input() }

// Go opens the gate.
type Go struct{}

// Exited: the process of a rank has ended.
type Exited struct{ Rank int }

// Order is a stop ordered from outside.
type Order struct{ api.Stop }

// Renewed: the controller was reached; the lease has so much left from now.
type Renewed struct{ Left time.Duration }

// Limit: the time limit is so much now, from the opening of the gate; 0: none.
type Limit struct{ TimeLimit time.Duration }

// Extend: a rank asks not to be killed for so long from now.
type Extend struct{ By time.Duration }

// Dumped answers [Dump]: the stacks are written, or can't be had.
type Dumped struct{}

// Empty answers [Prove]: no process of the member is left.
type Empty struct{}

// Occupied answers [Prove]: processes are left. Steps: what steps run, or who waits for it, is
// among them.
type Occupied struct{ Steps bool }

// StepsOver: the last step that ran here has ended.
type StepsOver struct{}

// Passed: the notice is for the script alone, and the script has no handler for it, wherever
// it runs: what its steps run gets it instead.
type Passed struct{}

// Tick: a timer may be due.
type Tick struct{}

func (Go) input()        {}
func (Exited) input()    {}
func (Order) input()     {}
func (Renewed) input()   {}
func (Extend) input()    {}
func (Dumped) input()    {}
func (Limit) input()     {}
func (Empty) input()     {}
func (Occupied) input()  {}
func (StepsOver) input() {}
func (Passed) input()    {}
func (Tick) input()      {}

// Act is what the shim must do, in order.
type Act struct {
	Kind   ActKind
	Signal string          // Notify, Stop
	Scope  api.SignalScope // Notify
}

// ActKind names an act.
type ActKind string

// The acts. Tell asks to write the state and tell it once the whole list is done.
const (
	Start  ActKind = "start"  // the ranks, all at once
	Notify ActKind = "notify" // the early signal to its scope
	Dump   ActKind = "dump"   // begin to write the ranks' stacks; answer Dumped. A stop comes all the same when its time is over
	Look   ActKind = "look"   // see where the ranks are, without waiting for it: their time limit is near
	Stop   ActKind = "stop"   // CONT and the stop signal, default scope of design 03
	Prove  ActKind = "prove"  // look whether the containment is empty; answer Empty or Occupied
	Kill   ActKind = "kill"   // everything in the containment
	Stuck  ActKind = "stuck"  // name the survivors
	Finish ActKind = "finish" // the member is over: record it
	Tell   ActKind = "tell"
	// Recant takes back what the ranks were told of their end: the time limit was moved away.
	Recant ActKind = "recant"
)

// State is how far a member is.
type State string

// The states, see the package comment.
const (
	Holding  State = "holding"
	Running  State = "running"
	Leading  State = "leading"
	Stopping State = "stopping"
	Killing  State = "killing"
	Stopped  State = "stopped"
)
