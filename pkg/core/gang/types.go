package gang

import (
	"cmp"
	"reflect"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// Instant is the engine's clock reading handed to a step. Mono arms and fires timers (a
// jump of the wall clock changes nothing); Wall is what is recorded and shown.
type Instant struct {
	Wall time.Time
	Mono time.Duration // CLOCK_BOOTTIME, since an origin of no meaning
}

// Job is one job: the gang, its ranks, its current epoch. Values reachable from a
// published *Job are never changed; Step clones before it writes.
type Job struct {
	ID         int64      `json:"id"`
	ArrayID    int64      `json:"array_id,omitempty"` // 0: not of an array
	ArrayIndex int        `json:"array_index"`        // -1: not of an array
	Array      *ArrayInfo `json:"array,omitempty"`
	User       string     `json:"user"`
	UID        uint32     `json:"uid"`
	GID        uint32     `json:"gid"`
	Spec       *api.Spec  `json:"spec"`          // shared, immutable, without name and texts: see [api.Spec.WithoutTexts]
	SpecHash   string     `json:"spec_hash"`     // of it whole, as the store has it
	TextBytes  int64      `json:"text_bytes"`    // of its texts
	Key        string     `json:"key,omitempty"` // submission key, on the first job of a submission

	// What may change after the submission.
	Name      string        `json:"name"`
	Partition string        `json:"partition"`
	Priority  int64         `json:"priority"`
	TimeLimit time.Duration `json:"time_limit,omitempty"`
	Submit    time.Time     `json:"submit,omitzero"`
	Eligible  time.Time     `json:"eligible,omitzero"`
	Ranks     []Rank        `json:"ranks"`

	*Wishes
	*Past
}

// Wishes are what few jobs ask for, or somebody of them. Jobs without any share one.
type Wishes struct {
	Held       string          `json:"held,omitempty"`    // "", "user", "admin", "special"
	Deadline   time.Time       `json:"deadline,omitzero"` // it has ended by then; zero: none
	Dependency *api.Dependency `json:"dependency,omitempty"`
	// Waits: the part of its dependency that is not met, as squeue writes it; empty: all is
	Waits    string  `json:"waits,omitempty"`
	Hopeless bool    `json:"hopeless"`          // that part can never be met; not stored: it is judged anew after a restart
	Comment  *string `json:"comment,omitempty"` // nil: as submitted
	Nice     *int64  `json:"nice,omitempty"`    // nil: as submitted; [NiceOf]
	// Constraint and Prefer stand for those of the spec, and of roles that have the same; nil: as
	// submitted. [SpecOf] is the spec with them.
	Constraint *string `json:"constraint,omitempty"`
	Prefer     *string `json:"prefer,omitempty"`
}

// Past is what admissions, stops and the end of a job have left. Jobs that have had none share one:
// it is more than what else each of a hundred thousand that wait takes.
type Past struct {
	Attempt
	Setbacks
	Progress
	Allocation
}

// Attempt is when a job runs, and where: its current or last epoch.
type Attempt struct {
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// ReadyAt: when the ready gate of the current epoch was passed; zero: not, or there is none
	ReadyAt    time.Time `json:"ready_at,omitzero"`
	Epoch      int       `json:"epoch,omitempty"`    // admissions so far
	Restarts   int       `json:"restarts,omitempty"` // epochs that really started, less one
	Members    []Member  `json:"members,omitempty"`  // of the current epoch, in the order of their first rank; empty while blocked
	ReservedAt time.Time `json:"reserved_at,omitzero"`
	// CutTimeLimit: time limit that its epoch was planned with, where it is below TimeLimit; 0: not cut
	CutTimeLimit time.Duration `json:"cut_to,omitempty"`
	Turn         order.Turn    `json:"turn,omitempty"`  // that the current epoch was planned with
	Drain        *Drain        `json:"drain,omitempty"` // the drain under way
	// Presumed: its node opens the gate by itself, and has not said yet whether it did; nil: what is on record is known
	Presumed *Presumed `json:"presumed,omitempty"`
}

// Setbacks are what has kept a job from its work, up to its end.
type Setbacks struct {
	Used         map[api.Cause]int `json:"used,omitempty"`
	BackoffUntil time.Time         `json:"backoff_until,omitzero"` // not a candidate before
	Avoid        []string          `json:"avoid,omitempty"`        // nodes that failed this gang last
	Refusals     []Refusal         `json:"refusals,omitempty"`     // by nodes since its last start, each in its last form
	Elsewhere    bool              `json:"elsewhere,omitempty"`    // it is not placed on those, because others could hold it
	Cancelled    bool              `json:"cancelled,omitempty"`    // an acknowledged cancel: no new epoch
	CancelledBy  string            `json:"cancelled_by,omitempty"` // the user who first did, empty: nobody, or not known
	Rollbacks    int               `json:"rollbacks,omitempty"`    // admissions in a row that came to nothing; a start resets it
	Verdict      *Verdict          `json:"verdict,omitempty"`      // set once, at the end
}

// Progress is what the epochs of a job hand on.
type Progress struct {
	Checkpoint     *Checkpoint     `json:"checkpoint,omitempty"`      // newest set; nil: none
	TaskCheckpoint *TaskCheckpoint `json:"task_checkpoint,omitempty"` // newest set of the tasks of a step; nil: none
	// Acked: ranks that said they heard of a notice of the current epoch before its drain
	Acked int           `json:"acked,omitempty"`
	Kept  time.Duration `json:"kept,omitempty"` // run by past epochs, as far as a checkpoint handed it over
	Ran   time.Duration `json:"ran,omitempty"`  // run by past epochs of a job with a bound on all of them
	// Queued: since when it counts as submitted, after a run that its time limit ended; zero: Submit
	Queued time.Time `json:"queued,omitzero"`
}

// Allocation is what a job does with its nodes, and what it comes to in the ledger.
type Allocation struct {
	Steps    []Step  `json:"steps,omitempty"`     // of the current epoch that have not ended, by id
	Ports    []int   `json:"ports,omitempty"`     // of the current epoch, the same on all its nodes
	NextStep int     `json:"next_step,omitempty"` // the smallest step id of the current epoch never given out
	Widest   StepSet `json:"widest,omitzero"`     // see [Widest]
	LastRun  bool    `json:"last_run,omitempty"`  // its line is not in the cron table any more, so that it does not come again
	// TimeTold: percent of the time limit of the current or last epoch that was told of, see [record.tellPart]
	TimeTold int `json:"time_told,omitempty"`
	// Image: digest of its container's image, as the first epoch found it; empty: not known
	Image      string      `json:"image,omitempty"`
	StepImages []StepImage `json:"step_images,omitempty"` // of its steps, likewise
	StepFault  *StepFault  `json:"step_fault,omitempty"`  // the last step that failed; nil: none did
	Booking    *Booking    `json:"booking,omitempty"`     // of the current or last epoch in the ledger; nil: none started
}

// noPast and noWishes are shared, and never written to: a job gets its own with the clone that is.
var (
	noPast   = new(Past)
	noWishes = new(Wishes)
)

func isZero[T any](v *T) bool { return reflect.ValueOf(v).Elem().IsZero() }

// Copy is a job that may be written to, but for what its slices and maps hold.
func (j *Job) Copy() *Job {
	c, past, wishes := *j, *j.Past, *j.Wishes
	c.Past, c.Wishes = &past, &wishes
	return &c
}

// Share ends the writing to a job: one that nothing has happened to needs no past of its own.
func (j *Job) Share() {
	if j.Past == nil || isZero(j.Past) {
		j.Past = noPast
	}
	if j.Wishes == nil || isZero(j.Wishes) {
		j.Wishes = noWishes
	}
}

// ArrayInfo is what the elements of an array share.
type ArrayInfo struct {
	Count int `json:"count"`
	Min   int `json:"min"`
	Max   int `json:"max"`
	Step  int `json:"step"`
	Limit int `json:"limit,omitempty"` // at most so many admitted at once, 0: no limit
}

// Rank is one process slot.
type Rank struct {
	State  api.RankState `json:"state"`
	Slot   cluster.Slot  `json:"slot,omitzero"` // current or last epoch
	PID    int           `json:"pid,omitempty"`
	Start  time.Time     `json:"start,omitzero"`
	End    time.Time     `json:"end,omitzero"`
	Exited bool          `json:"exited,omitempty"`
	// Own: its end, by itself, was heard of after its gang had given it up, see [stops.lateResult]
	Own      bool  `json:"own,omitempty"`
	ExitCode int   `json:"exit_code,omitempty"`
	Signal   int   `json:"signal,omitempty"`
	OutStart int64 `json:"out_start,omitempty"` // how much the output file had when the epoch began
	ErrStart int64 `json:"err_start,omitempty"`
	VRAMPeak int64 `json:"vram_peak,omitempty"` // of the current or last epoch: the most on one card, bytes; 0: not known
}

// MemberState is how far one member is in the controller's eyes.
type MemberState string

// The states of a member.
const (
	MemberPreparing MemberState = "preparing" // reserved; who is prepared only the node knows for good
	MemberStarting  MemberState = "starting"  // the gate is open; the node has not said yet that the ranks run
	MemberRunning   MemberState = "running"
	MemberStopping  MemberState = "stopping"
	MemberStopped   MemberState = "stopped" // acked: nothing of it lives
	MemberFenced    MemberState = "fenced"  // forced out without proof: its grant stays until known gone
)

// Member is the part of a gang on one node.
type Member struct {
	Node   string      `json:"node"`
	State  MemberState `json:"state"`
	Ranks  []int       `json:"ranks,omitempty"`
	Port   int         `json:"port,omitempty"`
	Forced bool        `json:"forced,omitempty"`
	// Noticed: its ranks were sent the early signal. Passed: that was for the script alone, which
	// does not take it, so that the tasks of its steps get it on all nodes.
	Noticed   bool       `json:"noticed,omitempty"`
	Passed    bool       `json:"passed,omitempty"`
	Importing api.Import `json:"import,omitzero"` // how far the import of its image is; zero: none is under way
	CPUs      int        `json:"cpus,omitempty"`  // of its node, where the gang has it to itself; 0: what its ranks ask for
	// Heeded: it has said that it is being stopped, so that it lived after what its drain was begun for.
	Heeded bool `json:"heeded,omitempty"`
	// Killed is how many of its processes the kernel has killed for want of memory, Kills those before a stop of it,
	// KillText what is to be said of these.
	Killed   int    `json:"killed,omitempty"`
	Kills    int    `json:"kills,omitempty"`
	KillText string `json:"kill_text,omitempty"`
}

// CPUs is how many CPUs the nodes have that a job has to itself; 0: they are shared, and it has what its ranks ask for.
func CPUs(j *Job) (n int) {
	for i := range j.Members {
		n += j.Members[i].CPUs
	}
	return n
}

// Drain is the coordinated stop of one epoch.
type Drain struct {
	Cause   api.Cause     `json:"cause"`
	Trigger int           `json:"trigger"` // rank, -1: none
	Text    string        `json:"text,omitempty"`
	Started time.Time     `json:"started,omitzero"`
	Lead    time.Duration `json:"lead,omitempty"`  // notice before the stop signal; shortened when someone can't wait
	Spent   time.Duration `json:"spent,omitempty"` // of a notice that was called off; Lead is 0 from then on
	Moved   int           `json:"moved,omitempty"` // ranks moved running -> preempting
	Later   []api.Cause   `json:"later,omitempty"` // causes that came after the first, for the record
	Acked   int           `json:"acked,omitempty"` // ranks that said they heard of it
	// Reports are what an accident is judged by when the drain is complete, the one that began it first; none of a drain
	// that is no accident. Cause, Trigger and Text are those of the first until then.
	Reports []Report `json:"reports,omitempty"`
	// Stacks is where the processes of the gang were, compared; nil: not yet, or nobody has looked.
	Stacks *api.Stacks `json:"stacks,omitempty"`
	// Over is since when nothing of the gang lives, where the verdict waits for more than that, see [stops.unsure].
	Over time.Time `json:"over,omitzero"`
}

// Verdict is how a job ended.
type Verdict struct {
	State    api.JobState `json:"state"`
	Cause    api.Cause    `json:"cause,omitempty"`
	Trigger  int          `json:"trigger"` // rank, -1: none
	ExitCode int          `json:"exit_code,omitempty"`
	Signal   int          `json:"signal,omitempty"`
	Text     string       `json:"text,omitempty"`
}

// Event is what can happen. The concrete types are below.
type Event interface{ event() }

// Submit queues a job, or one for each index of Array.
type Submit struct {
	Key       string
	Spec      *api.Spec
	SpecHash  string // of equal specs the same, of others another
	Array     *api.Array
	UID, GID  uint32
	User      string
	Partition string        // resolved: the site's default filled in
	TimeLimit time.Duration // resolved
	Priority  int64         // resolved
	Groups    []string      // of the partitions' groups, those that the user is of; nil: nobody has looked
	Recalled  []*Job        // jobs that it depends on and that had left memory
	Warned    []string      // what its user was warned of, for the record of its first job
}

// Admit asks to admit a gang as planned. It is re-checked whole.
type Admit struct {
	Job       int64
	Slots     []cluster.Slot // by rank
	TimeLimit time.Duration  // the time limit that it is planned with, below its own; 0: its own
	Turn      order.Turn     // why it was at the front of its tier
}

// NodeHello: a node opened a session and said all that it has.
type NodeHello struct {
	Hello      api.Hello
	Partitions []string
}

// NodeReport: what changed on a node since its last report.
type NodeReport struct {
	Node   string
	Actual api.Actual
}

// NodeSample: what the cards of a node were seen doing.
type NodeSample struct {
	Node  string
	Cards []api.CardSample
}

// CardDrain takes a card out of service (what runs on it goes on), CardResume back in.
type CardDrain struct{ Node, UUID, Reason string }

// CardResume puts a card back into service. What its node still finds wrong with it stays.
type CardResume struct{ Node, UUID string }

// NodeGone: the session of a node broke. By itself it ends nothing.
type NodeGone struct{ Node string }

// NodeDrain takes a node out of service, NodeResume back in.
type NodeDrain struct {
	Node, Reason string
	User         string // who said so
	// By is when gangs that are still there are stopped, to run elsewhere: their notice, where
	// they asked for one, comes before. Zero: running work may end by itself.
	By time.Time
	// Down says that what runs there is lost with the node: it is stopped at once, without its notice, and
	// its cause is the loss of a node.
	Down bool
}

// NodeFeatures gives a node other features than its configuration does, until that is edited.
type NodeFeatures struct {
	Node, By string
	Features []string
}

// NodeResume puts a node back into service.
type NodeResume struct{ Node string }

// NodeReboot asks for a reboot of a node. Asap: it takes no new work until then; else it is told when it happens to be idle.
type NodeReboot struct {
	Node, By, Reason string
	Asap             bool
	Then             api.RebootThen
}

// NodeRebootCancel takes that back, until the node was told.
type NodeRebootCancel struct{ Node, By string }

// NodeFence is the word of a person, or of the site's fence hook (By), that nothing runs on a lost node any more.
type NodeFence struct{ Node, By string }

// NodeForget takes a lost node that is not coming back out of the cluster's memory.
type NodeForget struct{ Node, By string }

// Cancel ends a job.
type Cancel struct {
	Job int64
	By  string // user name, for the record
	Now bool   // skip the notice

	Asker api.Asker // who hears the answer before the stop
}

// Hold keeps a waiting job from being admitted, Release lets it.
type Hold struct {
	Job   int64
	Admin bool
	Lower bool // a hold of an admin becomes the owner's
}

// Release lets a held job be admitted. Admin: the hold of an admin too.
type Release struct {
	Job   int64
	Admin bool
}

// Requeue drains a running gang and queues it again.
type Requeue struct {
	Job   int64
	By    string
	Now   bool   // skip the notice
	Hold  string // who holds it then, [HeldUser], [HeldAdmin] or [HeldSpecial]; empty: nobody
	Ended bool   // also one that has ended, as long as it is in memory

	Asker api.Asker // who hears the answer before the stop
}

// Preempt drains a running gang for the sake of another; it is queued again.
type Preempt struct {
	Job int64
	For string // whom, for the record: "job 12"
}

// Stalled: the controller itself stood still for so long (its disk did), told no node anything
// and heard nothing. No member is late for that.
type Stalled struct{ For time.Duration }

// Tick: timers may be due.
type Tick struct{}

func (Submit) event()           {}
func (Admit) event()            {}
func (NodeHello) event()        {}
func (NodeReport) event()       {}
func (NodeSample) event()       {}
func (CardDrain) event()        {}
func (CardResume) event()       {}
func (NodeGone) event()         {}
func (NodeDrain) event()        {}
func (NodeResume) event()       {}
func (NodeFeatures) event()     {}
func (NodeReboot) event()       {}
func (NodeRebootCancel) event() {}
func (NodeFence) event()        {}
func (NodeForget) event()       {}
func (Cancel) event()           {}
func (Hold) event()             {}
func (Release) event()          {}
func (Requeue) event()          {}
func (Preempt) event()          {}
func (Stalled) event()          {}
func (Tick) event()             {}

// Outcome answers one event.
type Outcome struct {
	Applied bool
	Ignored string     // why nothing was to be done (a repeat)
	Refused *api.Error // why it was not allowed; nothing changed
	JobIDs  []int64    // of a Submit: in order
	Step    *Step      // of a StepBegin
}

// Changes is what steps changed since they were last taken: one commit's worth. Each
// list holds each object once, in its newest form, in a deterministic order.
type Changes struct {
	Jobs   []*Job     // header and members
	Ranks  []RankRow  // only the ranks that changed
	Epochs []EpochRow // attempts, newest form
	Steps  []api.Step // that have ended
	// Measures are of members that have ended, Ledger is what has to be added to it, each key once.
	Measures  []MeasureRow
	Ledger    []api.LedgerRow
	Specs     map[string]*api.Spec // of new jobs by hash, whole, and of those that ask for something else now
	LeftSpecs []string             // hashes of those that jobs asked for before, which others may still
	Nodes     []*Node
	Forgot    []string // nodes that are known no more; one may be in Nodes again
	// Letters that changed, by id; a nil one is gone.
	Letters []LetterRow

	Events  []api.Event // Seq is assigned by Step, from World.NextSeq
	Purged  []int64     // jobs that left memory; they stay in the store
	Revived []int64     // those of Jobs that had ended before and wait again
	NextID  int64       // the smallest id never given out
	NextSeq int64
	Claims  []byte // what the planner keeps for waiting gangs, which is its own matter; nil: as before

	SiteChanges
	Hints
}

// SiteChanges are those of what the site has set up beside jobs.
type SiteChanges struct {
	// Reservations that changed, by name; a nil one is gone.
	Reservations []ReservationRow
	// Partitions that were changed at run time, by name; a nil one is as configured again.
	Partitions []PartitionRow
	// Groups: users are of other groups than before, see [World.Groups].
	Groups bool
	// Crontabs that changed, by user.
	Crontabs []CrontabRow
}

// Hints say whom a change concerns; they are not stored.
type Hints struct {
	Seen  []*Node  // nodes of which only card samples and the session changed, for the snapshot; none that is in Nodes
	Dirty []string // nodes whose desired set changed
	Queue []int64  // jobs whose candidacy may have changed
	// Prepared is how many ranks are, of reserved gangs of which that changed: nodes say it again after a restart.
	Prepared map[int64]int
}

// Rows counts what a store has to write; beside them there may be counters to raise.
func (ch *Changes) Rows() int {
	n := len(ch.Jobs) + len(ch.Ranks) + len(ch.Epochs) + len(ch.Steps) + len(ch.Measures) + len(ch.Ledger) + len(ch.Nodes) + len(ch.Forgot) +
		len(ch.Reservations) + len(ch.Partitions) + len(ch.Crontabs) + len(ch.Letters) + len(ch.Events)
	if ch.Claims != nil {
		n++
	}
	return n
}

// PartitionRow is a change of a partition in its newest form, nil: it is gone.
type PartitionRow struct {
	Name string
	C    *api.PartitionChange
}

// ReservationRow is a reservation in its newest form, nil: it is gone.
type ReservationRow struct {
	Name string
	R    *api.Reservation
}

// RankRow is one rank in its newest form.
type RankRow struct {
	Job   int64
	Index int
	Rank  Rank
}

// EpochRow is an attempt: what an epoch used and how it ended.
type EpochRow struct {
	Job       int64          `json:"job"`
	Epoch     int            `json:"epoch"`
	Slots     []cluster.Slot `json:"slots,omitempty"`
	Started   time.Time      `json:"started,omitzero"` // zero: never started
	Ended     time.Time      `json:"ended,omitzero"`
	Cause     api.Cause      `json:"cause,omitempty"`
	Trigger   int            `json:"trigger"`
	ExitCodes []int          `json:"exit_codes,omitempty"` // by rank; -1: unknown
	Signals   []int          `json:"signals,omitempty"`    // by rank, that ended it, 0: none; none: of no rank
	OutStarts []int64        `json:"out_starts,omitempty"` // by rank: how much the output file had before; none: nothing, or not known
	ErrStarts []int64        `json:"err_starts,omitempty"`
	VRAMPeak  int64          `json:"vram_peak,omitempty"` // the most that a rank was seen using on one card, bytes; 0: not known
	Booking   *Booking       `json:"booking,omitempty"`
	Text      string         `json:"text,omitempty"`       // what ended it, where that was an accident
	Tied      []int          `json:"tied,omitempty"`       // ranks that may as well be the trigger
	StartedBy *Report        `json:"started_by,omitempty"` // what its drain was begun for, where that is not what has ended it
	Ends      []EpochEnd     `json:"ends,omitempty"`       // when its ranks ended, where that was an accident
	// Stacks: where its processes were before a stop for a hang or at the time limit; nil: nobody has looked
	Stacks *api.Stacks `json:"stacks,omitempty"`
}

// EpochEnd is when one rank ended.
type EpochEnd struct {
	Rank   int           `json:"rank"`
	After  time.Duration `json:"after"`            // the first of all
	Within time.Duration `json:"within,omitempty"` // what the clocks of two nodes may be wrong by
	Own    bool          `json:"own,omitempty"`    // by itself, and not stopped
}

// MeasureRow is what one member of an attempt used, by the member's place in the gang.
type MeasureRow struct {
	Job     int64
	Epoch   int
	Member  int
	Measure *api.Measure
}

// Node is a node in the controller's eyes.
type Node struct {
	Name   string        `json:"name"`
	State  api.NodeState `json:"state"`
	Reason string        `json:"reason,omitempty"`
	Admin  string        `json:"admin,omitempty"` // reason of an admin's (or the breaker's) drain; empty: in service
	// DrainUser: who drained it, [Breaker] after failed launches; empty: in service, or not recorded
	DrainUser string        `json:"drain_user,omitempty"`
	DrainTime time.Time     `json:"drain_time,omitzero"` // when
	DrainBy   time.Time     `json:"drain_by,omitzero"`   // what runs there under that drain is stopped then; zero: it may end by itself
	Down      bool          `json:"down,omitempty"`      // a person counts it as lost
	BootID    string        `json:"boot_id,omitempty"`
	LastSeen  time.Time     `json:"last_seen,omitzero"`
	LostSince time.Time     `json:"lost_since,omitzero"`
	Strikes   []Strike      `json:"launch_strikes,omitempty"` // failed launches, no good start since that speaks against them
	Hello     api.Hello     `json:"hello"`                    // last one, as far as it is of the node itself
	Connected bool          `json:"connected,omitempty"`
	Reboot    *Reboot       `json:"reboot,omitempty"` // asked for; nil: none is
	Sick      string        `json:"sick,omitempty"`   // what the node's own checks say is wrong; empty: nothing
	Left      []Left        `json:"left,omitempty"`   // what is over here but not known gone; each holds its grant
	Res       *cluster.Node `json:"res,omitempty"`    // capacity and grants, immutable
}

// Left is a member of an epoch that is over for its gang (rolled back, or forced out of
// a drain) and that this node has not reported gone. Ordered by job, epoch.
type Left struct {
	api.MemberKey
	Ran  bool   `json:"ran,omitempty"`  // its gate was opened: its gang must not be admitted again while it may live
	Text string `json:"text,omitempty"` // why it is still here, for people
	// Ports were given to the gang and to those of its steps that were here.
	Ports []int `json:"ports,omitempty"`
	// Epilog: it ran, nothing of it lives, and the site's epilog runs before what it has is given on. Its gang waits
	// for that too: what the epilog undoes may be of the job. Member is its place in the gang.
	Epilog bool `json:"epilog,omitempty"`
	Member int  `json:"member,omitempty"`
}

// Snapshot is what a store gives back at start.
type Snapshot struct {
	Jobs         []*Job // live, and ended ones young enough to be kept
	Nodes        []*Node
	Keys         map[string]int64 // submission keys still remembered, also of ended jobs that are not kept
	NextID       int64
	NextSeq      int64
	Claims       []byte // as committed last; nil: never
	Reservations []*api.Reservation
	Partitions   []*api.PartitionChange
	Crontabs     []*api.Crontab
	Letters      []*api.Letter
}

func applied() Outcome { return Outcome{Applied: true} }

func ignored(why string) Outcome { return Outcome{Ignored: why} }

func refused(e *api.Error) Outcome { return Outcome{Refused: e} }

// merge: applied when anything was, else the last reason.
func merge(a, b Outcome) Outcome {
	if a.Applied {
		return a
	}
	return b
}

func unique[T cmp.Ordered](s []T) []T {
	slices.Sort(s)
	return slices.Compact(s)
}
