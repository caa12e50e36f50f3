package api

import (
	"cmp"
	"time"
)

// The node session: one WebSocket, opened by the node at [SessionPath], one JSON [Frame]
// a message, both ways. It is level-triggered: the controller sends what it desires, the
// node what it has; either may be repeated, and after a reconnect both are sent whole.

// SessionPath is where a node opens its session.
const SessionPath = "/v1/session"

// WitnessPath is where a node whose session is open over a network opens a second WebSocket
// that stays silent. Only its end tells something: whether the controller's process ended.
const WitnessPath = "/v1/session/witness"

// LinePath is where a node opens a silent WebSocket with each other controller of its site, and
// WordPath where it asks one for its [Word].
const (
	LinePath = "/v1/session/line"
	WordPath = "/v1/session/word"
	// FollowPath is where the controller that leads has another read its configuration.
	FollowPath = "/v1/controllers/follow"
)

// ControllersHeader is with each answer of a leader of several: the version of the site's list, for relays,
// which ask for it where theirs is older.
const ControllersHeader = "Gang-Controllers"

// SessionProtocol is the version of the frames; another one is refused by name.
const SessionProtocol = 1

// Frame is one message of a session. Any set of fields may be present in one frame, so
// that a busy sender coalesces; they are applied in the order of this struct.
type Frame struct {
	// Node to controller.
	Hello   *Hello        `json:"hello,omitempty"`
	Actual  *Actual       `json:"actual,omitempty"`
	Samples []CardSample  `json:"samples,omitempty"`
	Load    *NodeLoad     `json:"load,omitempty"`
	Replies []StreamReply `json:"replies,omitempty"`
	Notes   []MemberNote  `json:"notes,omitempty"`
	// Controller to node.
	Welcome *Welcome `json:"welcome,omitempty"`
	// Settings are the site's from now on, where they are others than those of the Welcome. Heartbeat and Lease are as they were.
	Settings *Settings `json:"settings,omitempty"`
	Desired  *Desired  `json:"desired,omitempty"`
	// Reboot goes to nodes that say [Hello].Reboots.
	Reboot  *RebootOrder    `json:"reboot,omitempty"`
	Streams []StreamRequest `json:"streams,omitempty"`
	// Both ways: pieces of calls, which the node opens (see [CallPiece]).
	Calls   []CallPiece `json:"calls,omitempty"`
	Lineage uint64      `json:"lineage,omitempty"` // with a Beat of the controller and with assignments: its newest commit
	// LineageProof is the controller's word for Lineage, see [Hello].
	LineageProof string `json:"lineage_proof,omitempty"`
	// Both ways. A beat is answered with an Echo of its number: the node's at once, with a Beat, the controller's with
	// the node's next.
	Beat uint64 `json:"beat,omitempty"`
	Echo uint64 `json:"echo,omitempty"`
	// EchoTimes are of the node, with its Echo.
	EchoTimes *EchoTimes `json:"echo_times,omitempty"`
	// Controllers is the site's list: from its controller with the welcome and when it has changed.
	// Listed is the version that the node keeps, with each of its beats once it has one.
	Controllers *Controllers `json:"controllers,omitempty"`
	Listed      uint64       `json:"listed,omitempty"`
}

// EchoTimes are when a beat came and when its echo was sent, by the wall clock of who echoes, in microseconds since 1970.
type EchoTimes struct {
	Got  int64 `json:"got"`
	Sent int64 `json:"sent"`
}

// Controllers are those of a site that has several. A higher version replaces a lower one.
type Controllers struct {
	Version uint64       `json:"version"`
	List    []Controller `json:"list"`
}

// Controller is one of a site's: its name, unlike those of the others, and where it is reached, by
// "host:port" or "unix:/path".
type Controller struct {
	Name      string   `json:"name" bound:"len=255"`
	Addresses []string `json:"addresses"`
}

// Word is what one of several controllers says of itself and of who leads.
type Word struct {
	Name   string      `json:"name"`             // of the controller that was asked
	Leads  bool        `json:"leads,omitempty"`  // it leads, in Term
	Term   uint64      `json:"term"`             // the highest that it knows of
	Leader *Controller `json:"leader,omitempty"` // of that term; nil: nobody that it knows of
	// Of one that stands by: the newest commit that it has in memory, and how long ago it had all of them.
	Lineage    uint64 `json:"lineage,omitempty"`
	BehindMsec int64  `json:"behind_ms,omitempty"`
}

// Repeatable says whether a call changes nothing, so that one whose answer was lost may be made again.
func Repeatable(method, path string) bool {
	return method == "GET" || path == "/v1/query" || path == "/v1/history"
}

// Hello opens a session: who the node is and all that it has.
type Hello struct {
	Protocol int    `json:"protocol"`
	Node     string `json:"node" bound:"len=255"`
	// of the node's state directory, made once: tells a restart from an impostor
	StateID     string     `json:"state_id,omitempty" bound:"len=255"`
	Version     string     `json:"version" bound:"len=256"`
	BootID      string     `json:"boot_id"`
	Address     string     `json:"address"` // where ranks of other nodes reach this one
	Containment string     `json:"containment"`
	CPUs        int        `json:"cpus" bound:"..65536"`
	Shape       CPUShape   `json:"shape,omitzero"` // of these CPUs; zero: of a node that does not say
	MemoryBytes int64      `json:"memory_bytes" bound:"..1125899906842624"`
	TmpBytes    int64      `json:"tmp_bytes,omitempty" bound:"..1125899906842624"` // temporary space for jobs, together
	TmpEach     int64      `json:"tmp_each,omitempty" bound:"..1125899906842624"`  // taken by each that asks for no more
	Features    []string   `json:"features,omitempty"`
	Cards       []CardInfo `json:"cards"`
	CardsUnread bool       `json:"cards_unread,omitempty"` // the driver did not answer: Cards says nothing of those that were there before
	Layouts     bool       `json:"layouts,omitempty"`      // it reads [GangPart]
	Opens       bool       `json:"opens,omitempty"`        // it opens a [Gate] that is Alone
	LineageSeen uint64     `json:"lineage_seen"`           // highest lineage any controller told this node
	RunSeen     string     `json:"run_seen,omitempty"`     // [Welcome].Run of the controller that told it
	// LineageProof came with LineageSeen: a node can repeat what it was told, and make up nothing.
	LineageProof string         `json:"lineage_proof,omitempty"`
	Devices      string         `json:"devices,omitempty" bound:"any"` // [DevicesEnforced], or why a rank can open cards that are not its own
	Limits       NodeLimits     `json:"limits,omitzero"`
	Containers   []string       `json:"containers,omitempty" bound:"len=16"` // as [Node.Containers]
	Health       NodeHealth     `json:"health,omitzero"`
	Reboots      bool           `json:"reboots,omitempty"` // it has a program that reboots it
	Reboot       *RebootActual  `json:"reboot,omitempty"`  // what came of the last order; nil: it had none, or it is under way
	Load         *NodeLoad      `json:"load,omitempty"`
	Members      []MemberActual `json:"members"` // complete
	// Made is when, on the node's CLOCK_BOOTTIME. What was sent on a connection that the node gave up may come after
	// what it sent on the next; 0: of a node that does not say.
	Made time.Duration `json:"made,omitempty"`
}

// DevicesEnforced: the kernel keeps a member from the cards of others.
const DevicesEnforced = "enforced"

// NodeLimits says how far a member is held to what it asked for on a node: [LimitEnforced],
// [LimitSampled] or [LimitNone]. Empty: the node does not say.
type NodeLimits struct {
	Memory    string `json:"memory,omitempty" bound:"any"`
	Processes string `json:"processes,omitempty" bound:"any"`
	CPUs      string `json:"cpus,omitempty" bound:"any"`   // a weight: who asked for more gets more where there are not enough
	Reason    string `json:"reason,omitempty" bound:"any"` // why not all are enforced
	// CPUSets is whether each member has CPUs of its own: enforced, [LimitAdvised] or none.
	CPUSets string `json:"cpu_sets,omitempty" bound:"any"`
}

// How a limit holds on a node.
const (
	LimitEnforced = "enforced" // by the kernel
	LimitSampled  = "sampled"  // by looking at what is used: who is above it is ended
	LimitAdvised  = "advised"  // it is started so, and may change it
	LimitNone     = "none"     // not at all
)

// NodeHealth is what the site's health program said last, and what lacks of that which the node must
// have. The zero value is a node that is well.
type NodeHealth struct {
	Sick string `json:"sick,omitempty" bound:"any"` // why the node takes no new work, in the program's words
}

// RebootOrder tells a node to reboot. It is the same one as long as both fields are, whoever sends it.
type RebootOrder struct {
	Boot  string    `json:"boot"`  // the run of its kernel that is to end: one that has another boot id is done
	Asked time.Time `json:"asked"` // when somebody did
}

// Same reports whether it is the same order.
func (o *RebootOrder) Same(other *RebootOrder) bool {
	return o.Boot == other.Boot && o.Asked.Equal(other.Asked)
}

// RebootActual is the word of a node that could not.
type RebootActual struct {
	RebootOrder
	Failed string `json:"failed" bound:"any"` // why
}

// Welcome answers a Hello.
type Welcome struct {
	Version      string `json:"version"`
	Lineage      uint64 `json:"lineage"` // 0: on hold
	LineageProof string `json:"lineage_proof,omitempty"`
	// Run names this process of the controller; the lineages of the session are of it.
	Run      string   `json:"run,omitempty"`
	Settings Settings `json:"settings"`
	// Term is that in which this controller leads, Name its name among several; 0 and empty: it is the only one.
	Term uint64 `json:"term,omitempty"`
	Name string `json:"name,omitempty"`
}

// CardInfo is the inventory of one card: what does not change while the node is up.
type CardInfo struct {
	Index     int    `json:"index" bound:"..65535"`
	UUID      string `json:"uuid"`
	Model     string `json:"model"`
	VRAMBytes int64  `json:"vram_bytes" bound:"..70368744177664"`
	MIG       bool   `json:"mig,omitempty"`
	PCI       string `json:"pci,omitempty"`
	NUMA      int    `json:"numa" bound:"-1.."` // -1: unknown
	Peers     []int  `json:"peers,omitempty"`   // indexes of cards linked by NVLink
	Compute   string `json:"compute,omitempty"` // "9.0"
	Driver    string `json:"driver,omitempty"`
	Device    string `json:"device,omitempty"` // path of its device file; empty: none that could be kept from anyone
}

// NodeLoad is how busy a node's machine is, whoever uses it. It is told in the hello
// and every half minute, and kept in memory alone.
type NodeLoad struct {
	Hundredths int   `json:"hundredths" bound:"..1000000000"`          // of the load average of the last minute
	FreeBytes  int64 `json:"free_bytes" bound:"..1152921504606846976"` // memory that nothing uses
	// Findings are what the node finds wrong with its own configuration and host.
	Findings []DoctorFinding `json:"findings,omitempty" bound:"n=64"`
}

// CardSample is what a card was seen doing.
type CardSample struct {
	UUID           string `json:"uuid"`
	UsedBytes      int64  `json:"used_bytes"`                      // by gangs
	StrangersBytes int64  `json:"strangers_bytes"`                 // by anyone else
	Utilization    int    `json:"utilization" bound:"-1.."`        // percent, -1: unknown
	Unhealthy      string `json:"unhealthy,omitempty" bound:"any"` // why it must not be used; empty: fine
	// Held: what an attempt that is over has not given back, and who holds it. No gang is put
	// on the card before that is gone; those that share it already go on.
	Held string `json:"held,omitempty" bound:"any"`
}

// Desired is what the controller wants of a node.
type Desired struct {
	Revision uint64 `json:"revision"`
	// Full: Assignments is everything; what else the node has must go at once. Otherwise
	// Assignments are changes to what was sent before in this session.
	Full        bool         `json:"full,omitempty"`
	Assignments []Assignment `json:"assignments,omitempty"`
	// Forget: recorded for good (or never to be): end it if it lives, then drop its files.
	Forget []MemberKey `json:"forget,omitempty"`
	// Specs not sent before in this session, by hash.
	Specs map[string]*Spec `json:"specs,omitempty"`
}

// MemberKey names one member on a node.
type MemberKey struct {
	Job   int64 `json:"job"`
	Epoch int   `json:"epoch"`
}

// Compare orders by job, then epoch.
func (k MemberKey) Compare(o MemberKey) int {
	return cmp.Or(cmp.Compare(k.Job, o.Job), cmp.Compare(k.Epoch, o.Epoch))
}

// Assignment is one member that a node shall have. Body is absent in a change of an
// assignment that was sent before in the same session.
type Assignment struct {
	MemberKey
	Body  *AssignmentBody `json:"body,omitempty"`
	Gate  *Gate           `json:"gate,omitempty"`  // nil: closed
	Stop  *Stop           `json:"stop,omitempty"`  // nil: run
	Check *Check          `json:"check,omitempty"` // look at its cards; nil: nobody asks
	Steps []StepOrder     `json:"steps,omitempty"` // that it shall have, by id; counts while the gate is open
	// Passed: the script of the job, on another node, does not take its notice, so what its steps
	// run here shall have it.
	Passed bool `json:"passed,omitempty"`
}

// AssignmentBody is what a node needs to prepare a member.
type AssignmentBody struct {
	SpecHash     string        `json:"spec_hash"`
	Name         string        `json:"name"`
	User         string        `json:"user"`
	UID          uint32        `json:"uid"`
	GID          uint32        `json:"gid"`
	Partition    string        `json:"partition"`
	ArrayJobID   int64         `json:"array_job_id,omitempty"`
	ArrayIndex   *int          `json:"array_index,omitempty"`
	ArrayMin     int           `json:"array_min,omitempty"`
	ArrayMax     int           `json:"array_max,omitempty"`
	ArrayStep    int           `json:"array_step,omitempty"`
	ArrayCount   int           `json:"array_count,omitempty"`
	RestartCount int           `json:"restart_count"`
	TimeLimit    time.Duration `json:"time_limit_ns,omitempty"` // 0: none
	Grace        time.Duration `json:"grace_ns"`
	Checkpoint   int           `json:"checkpoint_epoch,omitempty"` // whose checkpoints are handed over; 0: none
	// digest of the image that the first epoch ran; empty: whatever its name means now
	Image string      `json:"image,omitempty"`
	Watch Watch       `json:"watch,omitzero"`
	Ports string      `json:"ports,omitempty"` // reserved for the gang on each node: "12000-12003"
	Nodes []Place     `json:"nodes,omitempty"` // the gang's nodes in the order of their first rank
	Ranks []RankPlace `json:"ranks,omitempty"` // the whole gang, by rank
	// Part takes the place of Nodes and Ranks on the way to a node that says [Hello].Layouts.
	Part *GangPart `json:"part,omitempty"`
	// Layout is what a Part of it begins with, made once for all nodes; nil: Nodes and Ranks are sent.
	Layout *Layout `json:"-"`
}

// GangPart is what one node is sent of a gang: where all sit, and its own cards.
type GangPart struct {
	*Layout
	Node  int        `json:"node" bound:"..65535"` // its index
	Cards [][]string `json:"cards,omitempty"`      // UUIDs, of its ranks by number
}

// Place is a node of a gang.
type Place struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Switches string `json:"switches,omitempty"` // above it, the top first: "spine.leaf1"
	CPUs     int    `json:"cpus,omitempty"`     // of the node, where the gang has it to itself; 0: what its ranks ask for
}

// RankPlace says where a rank sits; Node indexes AssignmentBody.Nodes.
type RankPlace struct {
	Node  int      `json:"node"`
	Cards []string `json:"cards,omitempty"` // UUIDs
}

// NoLimit is a time limit that was taken away.
const NoLimit time.Duration = -1

// Gate opens the start barrier.
type Gate struct {
	MasterPort int `json:"master_port"`
	// TimeLimit is the time limit as it is now, which may have been changed since the body
	// was made; [NoLimit]: none, 0: as in the body.
	TimeLimit time.Duration `json:"time_limit_ns,omitempty" bound:"-1ns.."`
	// Alone: the node has all of the gang, and opens it as soon as the member is prepared, which it may not have been told of before.
	// MasterPort is the one that it picked.
	Alone bool `json:"alone,omitempty"`
}

// Stop orders the end of a member. Repeated orders change nothing, but a shorter Grace
// shortens it.
type Stop struct {
	Cause  Cause  `json:"cause"`
	Text   string `json:"text,omitempty" bound:"any"` // for the reason file
	Signal string `json:"signal"`                     // "TERM"
	// Trigger is the rank that a stop of the node's own is about; nil: none.
	Trigger *int          `json:"trigger,omitempty"`
	Lead    time.Duration `json:"lead_ns,omitempty"` // notice first, so long before Signal
	Grace   time.Duration `json:"grace_ns"`          // Signal to KILL
	Dump    time.Duration `json:"dump_ns,omitempty"` // first write the ranks' stacks to their logs, which may take so long
	// Asker is who asked for it. Where that is a process of the job it hears its answer first.
	Asker Asker `json:"asker,omitzero"`
}

// EndsJobs says whether a call may end what its caller is part of.
func EndsJobs(path string) bool { return path == "/v1/cancel" || path == "/v1/requeue" }

// Asker is the process that made a call, as the kernel of its machine named it. The zero value is
// none that is known.
type Asker struct {
	PID  int    `json:"pid" bound:"0.."`
	Boot string `json:"boot_id"` // of that machine
	// Above are its ancestors when it asked, the nearest first: "4711 4700". It may have ended with its answer before the
	// stop comes, and who waits for it is to see that.
	Above string `json:"above,omitempty" bound:"len=512"`
}

// SignalOrder is a one-shot signal (gcancel --signal), or a message for what the job's script
// writes its errors to (scontrol notify). Number grows with each order to a node; an order is
// applied once.
type SignalOrder struct {
	Number uint64 `json:"number"`
	MemberKey
	Signal string      `json:"signal"`
	Scope  SignalScope `json:"scope"`
	Named  []int       `json:"named,omitempty"` // ranks, of ScopeNamed
	Step   *int        `json:"step,omitempty"`  // to the tasks of this step alone
	// Message is written in place of a signal, where the job has [Spec.LastWords].
	Message string `json:"message,omitempty" bound:"any"`
}

// MemberPhase is how far a member is on its node.
type MemberPhase string

const (
	PhasePreparing MemberPhase = "preparing"
	PhaseReady     MemberPhase = "ready"   // prepared; no process of the script exists
	PhaseRefused   MemberPhase = "refused" // could not be prepared; nothing of it is left
	PhaseRunning   MemberPhase = "running" // the gate was opened and the ranks were started
	PhaseStopped   MemberPhase = "stopped" // every rank has ended and the containment is proven empty
	PhaseStuck     MemberPhase = "stuck"   // killed, but Survivors remain
	PhaseLost      MemberPhase = "lost"    // its shim died; its processes were killed, results unknown
)

// MemberActual is what a node has of one member.
type MemberActual struct {
	MemberKey
	Phase    MemberPhase  `json:"phase"`
	Port     int          `json:"port,omitempty"` // rendezvous port, from the node of rank 0
	Refusal  *Refusal     `json:"refusal,omitempty"`
	Ranks    []RankActual `json:"ranks,omitempty"`            // those of this node that were started
	Stopping Cause        `json:"stopping,omitempty"`         // the stop that is under way, also one of its own (timeout)
	Text     string       `json:"text,omitempty" bound:"any"` // why it is being stopped, in words
	Trigger  *int         `json:"trigger,omitempty"`          // the rank that a stop of the node's own is about
	Noticed  bool         `json:"noticed,omitempty"`
	// the notice was given, and no process of it has had a handler for it or looks for its reason
	Deaf bool `json:"deaf,omitempty"`
	// the notice was for the script alone, which does not take it: what its steps run shall have it
	Passed    bool         `json:"passed,omitempty"`
	Forced    bool         `json:"forced,omitempty"` // KILL was needed
	Survivors []Survivor   `json:"survivors,omitempty"`
	Found     string       `json:"found,omitempty" bound:"any"` // what of its node's record of it is missing or damaged; empty: nothing
	Steps     []StepActual `json:"steps,omitempty"`             // that it has and that are still ordered
	// Epilog is the phase of its end, which is told, while the site's epilog runs: nothing of it lives, and what it
	// has on its node is not free yet. Phase is then one before the end, which is all that an older controller knows.
	Epilog    MemberPhase `json:"epilog,omitempty"`
	Importing Import      `json:"import,omitzero"` // while it is being prepared: how far the import of its image is; zero: none is under way
	Image     string      `json:"image,omitempty"` // digest of the image that it was prepared with; empty: none, or not known
	// Cards is how its cards were seen at its end, when it was refused because of one, and when
	// a rank failed. It counts before everything else that is said here: a card that is bad
	// explains an exit, and a card is free only as it is said to be.
	Cards []CardSample `json:"cards,omitempty"`
	// Kills is what the kernel killed of it for want of memory; nil: nothing.
	Kills *MemoryKills `json:"kills,omitempty"`
	// Used is what its supervisor read of its containment at the end, Measure what came of all that the node
	// has seen of it: both only of a member that is over.
	Used    *MemberUsed `json:"used,omitempty"`
	Measure *Measure    `json:"measure,omitempty"`
	// Stacks is where its processes were when it was stopped for a stall, or shortly before its time limit; nil: nobody has looked.
	Stacks *MemberStacks `json:"stacks,omitempty"`
}

// Import is how far the import of an image is; the zero value is none.
type Import struct {
	Bytes int64 `json:"bytes"`           // that have been fetched or, where Total is not known, that are on the node; at least 1
	Total int64 `json:"total,omitempty"` // to be fetched; 0: not known
	// Unpacking: everything is fetched.
	Unpacking bool `json:"unpacking,omitempty"`
}

// MemoryKills are processes of a member that the kernel killed for want of memory. What those that waited for
// them made of it is their own matter: a shell goes on, a pool starts another worker.
type MemoryKills struct {
	Count  int   `json:"count" bound:"1.."`
	Before int   `json:"before,omitempty"` // so many of them before a stop of the member had begun
	Asked  int64 `json:"asked,omitempty"`  // that its member had asked for on this node, bytes; 0: nothing
	Used   int64 `json:"used,omitempty"`   // the most that it was seen using, bytes; 0: not known
	Host   bool  `json:"host,omitempty"`   // not its own limit was reached, the memory of the machine had run out
}

// RankUsed is what the kernel said of the processes of a rank: of its own one and of those that this had waited
// for, and of those that were left when the one that should have waited for them had ended.
type RankUsed struct {
	CPU    time.Duration `json:"cpu_ns" bound:"0ns.."` // user and system
	MaxRSS int64         `json:"max_rss"`              // bytes, of the largest process
}

// MemberUsed is what all processes of a member have used.
type MemberUsed struct {
	CPU        time.Duration `json:"cpu_ns" bound:"-1ns.."`    // user and system, -1: not known
	MemoryPeak int64         `json:"memory_peak" bound:"-1.."` // bytes, -1: not known
}

// Refusal says why a member can't be prepared.
type Refusal struct {
	Blame Blame  `json:"blame"`
	Text  string `json:"text" bound:"any"` // for people
}

// Blame says whose fault it is, as far as the node can know, that a member can't be started
// there. What the controller makes of it is in docs/design/ends.md.
type Blame string

// Whose fault a refusal is.
const (
	// BlameJob: it would be the same on every node (a path that is too long).
	BlameJob Blame = "job"
	// BlameFiles: the user's files as this node sees them (no such directory, a full quota). They
	// may be the same elsewhere, or not be mounted here.
	BlameFiles Blame = "files"
	// BlameSite: what the site provides is not there on this node: the user's home directory, his
	// entry in the user database.
	BlameSite Blame = "site"
	// BlameUser: the node's own rules do not let the user in, or it knows him by another uid.
	BlameUser Blame = "user"
	// BlameCard: a card can't be given on now, as [MemberActual].Cards says. The rest of the
	// node is as good as before.
	BlameCard Blame = "card"
	// BlameUnfit: the node lacks what it must have, and says so as its health. It counts against
	// nobody: the node is out of service with the same word.
	BlameUnfit Blame = "unfit"
	// BlameNode: it failed before anything of the user's was touched.
	BlameNode Blame = "node"
	// BlameUnknown: the user's processes and files and the node were all in it (the check as the
	// user died, a file server does not answer).
	BlameUnknown Blame = "unknown"
)

// RankActual is one started rank.
type RankActual struct {
	Rank     int       `json:"rank"`
	PID      int       `json:"pid,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Exited   bool      `json:"exited,omitempty"`
	ExitCode int       `json:"exit_code,omitempty"` // 128+signal when a signal ended it
	Signal   int       `json:"signal,omitempty"`
	OOM      bool      `json:"oom,omitempty"`
	// With OOM: what its member had asked for on this node (0: nothing), what it was seen using at most (0: not
	// known), in bytes, and that not its own limit ended it but the memory of the machine.
	MemoryAsked int64 `json:"memory_asked,omitempty"`
	MemoryUsed  int64 `json:"memory_used,omitempty"`
	HostOOM     bool  `json:"host_oom,omitempty"`
	// ForksRefused: so many forks of its member were refused, because it had ProcessesMax.
	ForksRefused int   `json:"forks_refused,omitempty"`
	ProcessesMax int64 `json:"processes_max,omitempty"`
	// it ended because a card had no memory left for it, by the last lines of its output
	CUDAOOM  bool      `json:"cuda_oom,omitempty"`
	Warning  string    `json:"warning,omitempty" bound:"any"` // what it was warned of and still does
	VRAMPeak int64     `json:"vram_peak,omitempty"`           // the most VRAM that it was seen using on one card, bytes
	Used     *RankUsed `json:"used,omitempty"`                // by itself and what it waited for; nil: not known
	Ended    time.Time `json:"ended,omitzero"`
	// Late is how long its supervisor was kept waiting for a CPU before it saw the end: it may have been so much earlier.
	Late time.Duration `json:"late_ns,omitempty" bound:"0ns.."`
	Own  bool          `json:"own,omitempty"` // it ended before a stop of its member had begun: a true result
	// ProgramFailed: when the stop came its shell ran a program that had just failed, and had not seen it yet.
	ProgramFailed bool   `json:"program_failed,omitempty"`
	Error         string `json:"error,omitempty" bound:"any"` // why it could not be started (ExitCode 127 or 126)
	// OutStart, ErrStart: how much the files already had when the attempt began.
	OutStart int64 `json:"out_start,omitempty"`
	ErrStart int64 `json:"err_start,omitempty"`
}

// Survivor is a process that KILL did not end.
type Survivor struct {
	PID     int    `json:"pid"`
	Command string `json:"command" bound:"any"`
	State   string `json:"state" bound:"any"` // D, T ...
}

// Actual reports members that changed since the last report of this session.
type Actual struct {
	Revision uint64         `json:"revision"` // of the newest Desired that was applied
	Members  []MemberActual `json:"members,omitempty"`
	Gone     []MemberKey    `json:"gone,omitempty"` // nothing of these is left, process or file
	Health   *NodeHealth    `json:"health,omitempty"`
	Reboot   *RebootActual  `json:"reboot,omitempty"`
	// Clock is the node's, as measured in its session by who took this in.
	Clock NodeClock `json:"-"`
}

// NodeClock is the wall clock of a node against that of its controller.
type NodeClock struct {
	Ahead  time.Duration // it shows so much more
	Within time.Duration // what that may be wrong by; 0: it is not known
}

// StreamRequest asks a node for something that is answered in pieces. Only one field
// besides ID is set.
type StreamRequest struct {
	ID     uint64       `json:"id"`
	Log    *LogRead     `json:"log,omitempty"`
	Append *LogAppend   `json:"append,omitempty"` // answered when it was written; a node of an older release does not answer
	Signal *SignalOrder `json:"signal,omitempty"` // answered with how many processes got it
	// CardResume is a person's word that the card with this UUID is good again; refused while
	// the node can see that it is not.
	CardResume string `json:"card_resume,omitempty"`
	// Stacks asks where the processes of a member are just now; answered with a [MemberStacks] as JSON in Data. A node of an
	// older release does not answer.
	Stacks *MemberKey `json:"stacks,omitempty"`
	Cancel bool       `json:"cancel,omitempty"` // end the stream ID
	// Credit lets the node send so many more bytes of Data; a stream begins with StreamWindow.
	Credit int64 `json:"credit,omitempty"`
}

// StreamWindow is how many bytes of a stream may be on the way unread.
const StreamWindow = 256 << 10

// LogRead asks for a file of a job, read as the job's user.
type LogRead struct {
	Path   string `json:"path" bound:"text"` // absolute
	UID    uint32 `json:"uid"`
	GID    uint32 `json:"gid"`
	User   string `json:"user"`
	Offset int64  `json:"offset" bound:"-9007199254740992.."` // from the end when negative
	Follow bool   `json:"follow"`
}

// LogAppend asks for a text to be written behind a file of a job, as the job's user. It is not written where it
// stands near the file's end already, nor where there is no file any more.
type LogAppend struct {
	Path string `json:"path" bound:"text"` // absolute
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	User string `json:"user"`
	Text string `json:"text" bound:"any"`
}

// StreamReply is a piece of an answer.
type StreamReply struct {
	ID        uint64 `json:"id"`
	Data      []byte `json:"data,omitempty"`
	Began     *int64 `json:"began,omitempty"` // of a log: the offset of the first byte that follows
	Processes int    `json:"processes,omitempty"`
	EOF       bool   `json:"eof,omitempty"`
	Error     *Error `json:"error,omitempty"`
}
