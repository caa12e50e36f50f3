package api

import "time"

// NodeState is what a node can be used for.
type NodeState string

// The states of a node.
const (
	NodeUp       NodeState = "up"
	NodeSuspect  NodeState = "suspect"  // its session is cut: no new work
	NodeLost     NodeState = "lost"     // silent for node_timeout
	NodeDraining NodeState = "draining" // no new work, running work ends by itself
	NodeDrained  NodeState = "drained"
	// told to reboot, and not back under another run of its kernel
	NodeRebooting NodeState = "rebooting"
	NodeUnknown   NodeState = "unknown" // known by name, never seen by this controller since its start
)

// RebootThen is how a node is when it is back from a reboot.
type RebootThen string

// In the second and third of these whatever it was before.
const (
	RebootAsBefore RebootThen = ""       // in service, unless a person had drained it
	RebootResume   RebootThen = "resume" // in service
	RebootDown     RebootThen = "down"   // out of it, until somebody resumes it
)

// RebootPending is a reboot of a node that was asked for.
type RebootPending struct {
	By     string     `json:"by,omitempty"`
	Reason string     `json:"reason,omitempty"`
	Asked  time.Time  `json:"asked"`
	Asap   bool       `json:"asap,omitempty"`  // the node takes no new work until then
	Then   RebootThen `json:"then,omitempty"`  // empty: as it was before
	Issued time.Time  `json:"issued,omitzero"` // it was told to; zero: it waits until nothing runs there
}

// CardState is what a card can be used for.
type CardState string

const (
	CardOK          CardState = "ok"
	CardQuarantined CardState = "quarantined"
)

// Card is one GPU as `ginfo --json` prints it.
type Card struct {
	Index          int       `json:"index"`
	UUID           string    `json:"uuid"`
	Model          string    `json:"model"`
	VRAMBytes      int64     `json:"vram_bytes"`
	ReservedBytes  int64     `json:"reserved_bytes"`
	UsedBytes      int64     `json:"used_bytes"`
	StrangersBytes int64     `json:"strangers_bytes"`
	Utilization    int       `json:"utilization"` // percent, -1: unknown
	State          CardState `json:"state"`
	Reason         string    `json:"reason,omitempty"`
	Jobs           []int64   `json:"jobs"`
	MIG            bool      `json:"mig,omitempty"`
	Compute        string    `json:"compute,omitempty"` // CUDA compute capability, "9.0"
	NUMA           int       `json:"numa"`              // -1: unknown
}

// Node is a node as `ginfo --json` prints it.
type Node struct {
	Name   string    `json:"name"`
	State  NodeState `json:"state"`
	Reason string    `json:"reason"`
	Silent bool      `json:"silent,omitempty"` // it is lost, and Reason says nothing else
	// launches that failed there and speak against it; Reason names the last one where nothing else is wrong
	Strikes     int            `json:"strikes,omitempty"`
	DrainUser   string         `json:"drain_user,omitempty"` // who drained it, "gangd" after failed launches
	DrainTime   time.Time      `json:"drain_time,omitzero"`
	DrainBy     time.Time      `json:"drain_by,omitzero"` // what runs there is stopped then, to run elsewhere
	Down        bool           `json:"down,omitempty"`    // a person counts it as lost: what ran there failed with the node
	Reboot      *RebootPending `json:"reboot,omitempty"`  // nil: none is asked for
	Address     string         `json:"address"`
	BootID      string         `json:"boot_id"`
	LostSince   time.Time      `json:"lost_since,omitzero"`
	LastSeen    time.Time      `json:"last_seen,omitzero"`
	Containment string         `json:"containment"`
	// what brings images to jobs there, with versions: "dir", "podman 4.3.1"; empty: jobs run in none
	Containers  []string   `json:"containers,omitempty"`
	Devices     string     `json:"devices,omitempty"` // "enforced", or why other gangs' cards can be opened; empty: no cards
	Limits      NodeLimits `json:"limits,omitzero"`
	Version     string     `json:"version"`
	Partitions  []string   `json:"partitions"`
	Features    []string   `json:"features"`
	CPUs        int        `json:"cpus"`
	Shape       CPUShape   `json:"shape"` // of its CPUs
	CPUsUsed    int        `json:"cpus_used"`
	Exclusive   bool       `json:"exclusive,omitempty"` // a gang has it to itself, whatever it uses of it
	MemoryBytes int64      `json:"memory_bytes"`
	MemoryUsed  int64      `json:"memory_used_bytes"` // reserved by gangs
	TmpBytes    int64      `json:"tmp_bytes"`         // temporary space for jobs
	TmpUsed     int64      `json:"tmp_used_bytes"`    // reserved by gangs
	Load        *NodeLoad  `json:"load,omitempty"`    // nil: it has not said
	Cards       []Card     `json:"cards"`
	Jobs        []int64    `json:"jobs"`
	// Reservation is the one that is on the node now, nil: none.
	Reservation *NodeReservation `json:"reservation,omitempty"`
}

// CPUShape is how many sockets a node has, cores each of them, and threads each core: together its CPUs.
// In an ask it is the least of each, 0: any.
type CPUShape struct {
	Sockets int `json:"sockets,omitempty" bound:"..65536"`
	Cores   int `json:"cores,omitempty" bound:"..65536"`
	Threads int `json:"threads,omitempty" bound:"..65536"`
}

// OrFlat is the shape, or one socket of so many cores where it is not known.
func (s CPUShape) OrFlat(cpus int) CPUShape {
	if s.Sockets*s.Cores*s.Threads != cpus {
		return CPUShape{Sockets: 1, Cores: cpus, Threads: 1}
	}
	return s
}

// Has reports whether each of its figures is as least asks.
func (s CPUShape) Has(least CPUShape) bool {
	return s.Sockets >= least.Sockets && s.Cores >= least.Cores && s.Threads >= least.Threads
}

// Drained is who took a node out of service and when, of one that is out of it for that
// reason: where it is lost, the silence is the reason and nobody's word. Empty: nobody did.
func (n *Node) Drained() (user string, at time.Time) {
	if n.State != NodeDraining && n.State != NodeDrained {
		return "", time.Time{}
	}
	return n.DrainUser, n.DrainTime
}

// Partition is a set of nodes with defaults.
type Partition struct {
	Name        string        `json:"name" mapstructure:"name"`
	Nodes       []string      `json:"nodes" mapstructure:"nodes"` // empty: every node
	Default     bool          `json:"default" mapstructure:"default"`
	DefaultTime time.Duration `json:"default_time_ns" mapstructure:"default_time"` // 0: unlimited
	MaxTime     time.Duration `json:"max_time_ns" mapstructure:"max_time"`         // 0: unlimited
	Tier        int           `json:"tier" mapstructure:"tier"`                    // larger first, before any priority
	// State is whether jobs may be queued for it and started in it; empty: both.
	State PartitionState `json:"state,omitempty" mapstructure:"state"`
	// Who may run jobs in it: these users, and those of these groups of the controller's host. Both empty: everybody.
	AllowUsers  []string `json:"allow_users,omitempty" mapstructure:"allow_users"`
	AllowGroups []string `json:"allow_groups,omitempty" mapstructure:"allow_groups"`
	// Under which accounts; empty: any but those that are denied, which are not looked at where some are allowed.
	AllowAccounts []string `json:"allow_accounts,omitempty" mapstructure:"allow_accounts"`
	DenyAccounts  []string `json:"deny_accounts,omitempty" mapstructure:"deny_accounts"`
	// How many nodes a gang may have in it; 0: any.
	MinNodes int `json:"min_nodes,omitempty" mapstructure:"min_nodes"`
	MaxNodes int `json:"max_nodes,omitempty" mapstructure:"max_nodes"`
	// What its jobs get that do not say; nil: what the site says. A zero duration is off.
	StallTimeout *time.Duration `json:"stall_timeout_ns,omitempty" mapstructure:"stall_timeout"`
	StallRetries *int           `json:"stall_retries,omitempty" mapstructure:"stall_retries"`
	GPUWatch     bool           `json:"gpu_watch,omitempty" mapstructure:"gpu_watch"` // as if every job with cards had asked
	IdleLimit    *time.Duration `json:"idle_limit_ns,omitempty" mapstructure:"idle_limit"`
}

// PartitionState says what a partition takes.
type PartitionState string

// The states, as Slurm has them. What runs in a partition runs on in each of them.
const (
	PartitionUp       PartitionState = ""         // jobs are queued and started
	PartitionDown     PartitionState = "down"     // queued, and not started
	PartitionDrain    PartitionState = "drain"    // started, and no more of them queued
	PartitionInactive PartitionState = "inactive" // neither
)

// Starts reports whether jobs may be started in it, Queues whether they may be queued for it.
func (s PartitionState) Starts() bool { return s == PartitionUp || s == PartitionDrain }

// Queues is described at [PartitionState.Starts].
func (s PartitionState) Queues() bool { return s == PartitionUp || s == PartitionDown }

// PartitionRequest is the body of POST /v1/partitions and of
// POST /v1/partitions/{name}/update. Of an update fields that are not there stay.
type PartitionRequest struct {
	Name        string          `json:"name,omitempty"`  // of a new one
	Nodes       *[]string       `json:"nodes,omitempty"` // "ALL" or none: every node
	Default     *bool           `json:"default,omitempty"`
	DefaultTime *time.Duration  `json:"default_time_ns,omitempty"` // 0: unlimited
	MaxTime     *time.Duration  `json:"max_time_ns,omitempty"`     // 0: unlimited
	Tier        *int            `json:"tier,omitempty" bound:"-1000..1000"`
	State       *PartitionState `json:"state,omitempty"`
	// "ALL" or none: everybody, any account; see [Partition].
	AllowUsers    *[]string `json:"allow_users,omitempty" bound:"n=1000"`
	AllowGroups   *[]string `json:"allow_groups,omitempty" bound:"n=1000"`
	AllowAccounts *[]string `json:"allow_accounts,omitempty" bound:"n=1000"`
	DenyAccounts  *[]string `json:"deny_accounts,omitempty" bound:"n=1000"` // "ALL" or none: no account is
	MinNodes      *int      `json:"min_nodes,omitempty" bound:"..65536"`    // 0: any number
	MaxNodes      *int      `json:"max_nodes,omitempty" bound:"..65536"`
}

// PartitionChange is what was made of a partition at run time.
type PartitionChange struct {
	Name      string     `json:"name"`
	Partition *Partition `json:"partition,omitempty"` // as it is since; nil: deleted
	// File is what the configuration said of it then; nil: nothing. When it says something else, that holds.
	File *Partition `json:"file,omitempty"`
	By   string     `json:"by,omitempty"`
	Time time.Time  `json:"time"`
}

// NodesReply is `ginfo --json`.
type NodesReply struct {
	SchemaVersion int         `json:"schema_version"`
	Nodes         []Node      `json:"nodes"`
	Partitions    []Partition `json:"partitions"`
	// Changes are what was made of partitions at run time, over the configuration.
	Changes  []PartitionChange `json:"partition_changes,omitempty"`
	Switches []Switch          `json:"switches,omitempty"` // the lowest first; none: not known
	Pools    []PoolState       `json:"pools,omitempty"`    // of the site altogether
	Preempt  string            `json:"preempt,omitempty"`  // who may be preempted: "off", "tier", "service"
}

// Site is what the site has set of the things that people's tools ask a controller for.
type Site struct {
	Preempt           string        `json:"preempt"`
	PreemptMinRun     time.Duration `json:"preempt_min_run_ns"`
	Grace             time.Duration `json:"grace_ns"`
	DrainSlack        time.Duration `json:"drain_slack_ns"`
	NodeTimeout       time.Duration `json:"node_timeout_ns"`
	StartTimeout      time.Duration `json:"start_timeout_ns"`
	KeepEnded         time.Duration `json:"keep_ended_ns"`
	InvalidDependency string        `json:"invalid_dependency"` // "cancel" or "wait"
	SlurmVersion      string        `json:"slurm_version"`      // one of [SlurmVersions]
	Pools             []Pool        `json:"pools,omitempty"`    // what there is altogether, in the order of the configuration
	// who may do all, besides root: the first of `admins`, or who the cluster is for
	Operator string `json:"operator,omitempty"`
	MaxJobs  int    `json:"max_jobs,omitempty"` // of all users that have not ended; 0: any number
}

// PingReply is `gctl ping --json`.
type PingReply struct {
	SchemaVersion int       `json:"schema_version"`
	Version       string    `json:"version"`
	PID           int       `json:"pid"`
	StartTime     time.Time `json:"start_time"`
	Time          time.Time `json:"time,omitzero"`         // now, on its host
	Lineage       uint64    `json:"lineage"`               // number of the last commit
	NextJobID     int64     `json:"next_job_id,omitempty"` // the smallest id that no job has had
	Hold          string    `json:"hold,omitempty"`        // why it starts and stops nothing
	NodesUp       int       `json:"nodes_up"`
	Nodes         int       `json:"nodes"`
	Site          *Site     `json:"site,omitempty"`
	Figures       *Figures  `json:"figures,omitempty"`
	// Of several controllers: who leads, and in which term. Controllers are in the answer of the command alone,
	// which asks for them by GET /v1/controllers.
	Leader      string            `json:"leader,omitempty"`
	Term        uint64            `json:"term,omitempty"`
	Controllers []ControllerState `json:"controllers,omitempty"`
}

// ControllersReply is `gangd controller list --json`: those on the site's list.
type ControllersReply struct {
	SchemaVersion int               `json:"schema_version"`
	Version       uint64            `json:"version"` // of the list
	Term          uint64            `json:"term"`
	Controllers   []ControllerState `json:"controllers"`
}

// The states of controllers.
const (
	ControllerLeads    = "leads"
	ControllerStandsBy = "stands by"
	ControllerJoins    = "joins" // stands by, and may not lead before all nodes go by the list that has it
	ControllerSilent   = "silent"
	ControllerRemoved  = "removed"
)

// ControllerState is one of several controllers as the one that leads sees it.
type ControllerState struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Addresses []string `json:"addresses"`
	// Of one that stands by: the newest commit that it has in memory, how many it lacks, and how long ago it
	// lacked none.
	Lineage       uint64  `json:"lineage,omitempty"`
	BehindCommits uint64  `json:"behind_commits"`
	BehindSeconds float64 `json:"behind_seconds"`
	Why           string  `json:"why,omitempty"` // it is silent, or may not lead yet
}

// Figures is what a controller did since it started.
type Figures struct {
	Submitted    int64         `json:"submitted"`
	Started      int64         `json:"started"` // each run of a job is one
	Completed    int64         `json:"completed"`
	Cancelled    int64         `json:"cancelled"`
	Failed       int64         `json:"failed"` // ended in any other way
	Plans        int64         `json:"plans"`
	LastPlan     time.Duration `json:"last_plan_ns"`
	LongestPlan  time.Duration `json:"longest_plan_ns"`
	AllPlans     time.Duration `json:"all_plans_ns"`
	LastPlanTime time.Time     `json:"last_plan_time"`
}
