package shim

import (
	"encoding/json"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/api/rlimit"
	"gangd/pkg/core/cpus"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/sitehook"
)

// MembersDir, in gnoded's state directory, has a directory for each member; the name is short because sockets lie
// below it.
const MembersDir = "m"

// Files in a member's directory, which gnoded makes and removes.
const (
	SpecFile   = "spec.json"  // written by gnoded before the shim starts: a [Spec]
	ScriptFile = "script"     // the user's script, readable by the user
	StateFile  = "state.json" // written by the shim (temporary name, fsync, rename): a [State]
	SocketFile = "s"          // unix socket; the name is short because paths end at 107 bytes
	StatusFile = "status"     // GANG_STATUS_FILE: why the ranks are to end, from the notice on; for them to read. status.4 is that of step 4
	LogFile    = "shim.log"   // what the shim itself had to say
)

// Spec is what a shim is started with. The rendezvous port is the one thing it learns
// only from [Go].
type Spec struct {
	api.MemberKey
	Node string `json:"node"`
	Dir  string `json:"dir"` // absolute

	// User to become; SwitchUser false runs as whoever started the shim.
	SwitchUser bool     `json:"switch_user"`
	User       string   `json:"user"`
	UID        uint32   `json:"uid"`
	GID        uint32   `json:"gid"`
	Groups     []uint32 `json:"groups,omitempty"`
	Home       string   `json:"home,omitempty"` // of the user, by this node's user database; empty: not known

	WorkDir string `json:"work_dir"`
	// CheckpointDir is made as the user, for all epochs of the job; empty: none.
	CheckpointDir string `json:"checkpoint_dir,omitempty"`
	// Whole: this member is all of its gang.
	Whole bool `json:"whole,omitempty"`

	Umask int `json:"umask"`
	// Limits are soft resource limits of its ranks; nil: the node's. Propagate is which limits of the clients of steps
	// their tasks have, where these do not say.
	Limits    rlimit.Soft `json:"limits,omitempty"`
	Propagate string      `json:"propagate,omitempty"`
	OpenMode  string      `json:"open_mode"` // "append" or "truncate"
	Args      []string    `json:"args,omitempty"`
	Ranks     []RankSpec  `json:"ranks"` // of this node; none: hold the containment only (LaunchBatch)
	// JobName and Restarts are for who asks gnoded who it is.
	JobName  string `json:"job_name,omitempty"`
	Restarts int    `json:"restarts,omitempty"`

	// Batch: its rank is a script that starts steps, and is told its pid.
	Batch bool `json:"batch,omitempty"`
	// LastWords: a stop is said in the output, in the line that Slurm's users and tools look for.
	LastWords bool `json:"last_words,omitempty"`

	Containment string `json:"containment"`          // "cgroup2", "cgroup1", "group"
	CgroupDir   string `json:"cgroup_dir,omitempty"` // absolute path of the cgroup to make, fresh for this epoch
	// Sides are its groups in hierarchies of cgroup v1 that limit what that one can't, by controller.
	Sides  map[string]string `json:"sides,omitempty"`
	Port   int               `json:"port,omitempty"` // rendezvous port chosen here, kept for gnoded; 0: rank 0 is elsewhere
	Marker string            `json:"marker"`         // GANG_MEMBER=...: in the environment of every process, for the scan

	TimeLimit  time.Duration `json:"time_limit_ns,omitempty"` // from the opening of the gate; 0: none
	Notice     *api.Notice   `json:"notice,omitempty"`
	StopSignal string        `json:"stop_signal"` // "TERM"
	// Traps are those of the notice's and the stop's signals that the script's text sets a trap for.
	Traps    []string      `json:"traps,omitempty"`
	Grace    time.Duration `json:"grace_ns"`
	GraceMax time.Duration `json:"grace_max_ns,omitempty"` // how far ranks may extend it; 0: not at all
	Lease    time.Duration `json:"lease_ns,omitempty"`     // 0: off
	// Watch is what its watchdogs go by. The shim itself watches the silence of the ranks;
	// the cards are gnoded's to watch.
	Watch api.Watch `json:"watch,omitzero"`
	// MemoryMax and PidsMax are limits of the containment; 0: none. Those that it can't hold are
	// held by looking.
	MemoryMax int64 `json:"memory_max,omitempty"`
	PidsMax   int64 `json:"pids_max,omitempty"`
	CPUs      int   `json:"cpus,omitempty"` // asked for: its weight against other members
	// Machine is the CPUs that gnoded has given to the member, and where they are, kept here for a
	// gnoded to come; nil: it may use all.
	Machine *cpus.Topology `json:"machine,omitempty"`
	// MemoryNodes are the NUMA nodes that its memory is taken of; empty: all.
	MemoryNodes cpus.Set `json:"memory_nodes,omitempty"`
	// Private are directories that the member alone sees; nil: none.
	Private *Private `json:"private,omitempty"`
	// Container is what its processes see as their root; nil: the machine's.
	Container *Container `json:"container,omitempty"`
	// CardNames is what the environment calls cards, by UUID; nil: by their UUIDs.
	CardNames map[string]string `json:"card_names,omitempty"`
	// TaskHooks are the site's programs around each rank and each task of steps; nil: none.
	TaskHooks *sitehook.Task `json:"task_hooks,omitempty"`
	// StartDir is where ranks start; empty: WorkDir.
	StartDir string `json:"start_dir,omitempty"`
	// Cards are what gnoded has given to the member, kept here for a gnoded to come.
	Cards []Card `json:"cards,omitempty"`
	// LoginLimits and Nice are those of a login of the user, which ranks and all else of the job start with.
	LoginLimits []proc.Rlimit `json:"login_limits,omitempty"`
	Nice        int           `json:"nice,omitempty"`
	// Deny are the device files of other cards, which no process of the member may open.
	Deny []proc.Device `json:"deny,omitempty"`
}

// MarshalJSON and UnmarshalJSON carry the bytes of texts that are no UTF-8.
func (s Spec) MarshalJSON() ([]byte, error) {
	type plain Spec
	s.pack(api.Pack, api.PackAll)
	return json.Marshal((*plain)(&s))
}

func (s *Spec) UnmarshalJSON(b []byte) error {
	type plain Spec
	if err := json.Unmarshal(b, (*plain)(s)); err != nil {
		return err
	}
	s.pack(api.Unpack, api.UnpackAll)
	return nil
}

func (s *Spec) pack(one func(string) string, all func([]string) []string) {
	s.WorkDir, s.StartDir, s.Args = one(s.WorkDir), one(s.StartDir), all(s.Args)
	s.Ranks = slices.Clone(s.Ranks)
	for i := range s.Ranks {
		r := &s.Ranks[i]
		r.Env, r.Output, r.Error, r.Input = all(r.Env), one(r.Output), one(r.Error), one(r.Input)
	}
}

// Place is where the member's processes are held.
func (s *Spec) Place() proc.Place {
	return proc.Place{Kind: s.Containment, Dir: s.CgroupDir, Sides: s.Sides, Marker: s.Marker}
}

// SetPlace is [Spec.Place] written.
func (s *Spec) SetPlace(p proc.Place) {
	s.Containment, s.CgroupDir, s.Sides, s.Marker = p.Kind, p.Dir, p.Sides, p.Marker
}

// CPUSet is the CPUs that the member was given; empty: it may use all.
func (s *Spec) CPUSet() cpus.Set {
	if s.Machine == nil {
		return nil
	}
	return s.Machine.All()
}

// CardUUIDs names the member's cards.
func (s *Spec) CardUUIDs() []string {
	out := make([]string, len(s.Cards))
	for i := range s.Cards {
		out[i] = s.Cards[i].UUID
	}
	return out
}

// Card is a card of the member.
type Card struct {
	UUID      string `json:"uuid"`
	VRAMBytes int64  `json:"vram_bytes,omitempty"` // asked for; 0: no figure
	Shared    bool   `json:"shared,omitempty"`     // with other gangs, within that figure
	Ranks     []int  `json:"ranks"`                // that have it
	Base      int64  `json:"base"`                 // VRAM in use without any gang when it was given, -1: not known
}

// RankSpec is one rank of this node.
type RankSpec struct {
	Rank   int      `json:"rank"`
	Env    []string `json:"env"`             // complete but for MASTER_PORT
	Output string   `json:"output"`          // absolute path
	Error  string   `json:"error,omitempty"` // empty: with the output
	Input  string   `json:"input,omitempty"` // empty: /dev/null
	CPUs   cpus.Set `json:"cpus,omitempty"`  // of the member's, that it may use; empty: all
}

// Command is one line (JSON) from gnoded to the shim over its socket. All are idempotent.
type Command struct {
	Go     *Go              `json:"go,omitempty"`
	Stop   *api.Stop        `json:"stop,omitempty"`
	Signal *api.SignalOrder `json:"signal,omitempty"`   // applied once by Number; answered with Answer
	Passed bool             `json:"passed,omitempty"`   // the script, on another node, does not take its notice: see [supervise.Passed]
	Limit  time.Duration    `json:"limit_ns,omitempty"` // the time limit is so much now, from the opening of the gate; [api.NoLimit]: none
	Stacks string           `json:"stacks,omitempty"`   // [TakeStacks] or [DropStacks]
	// Look asks where its processes are; answered with the number.
	Look uint64 `json:"look,omitempty"`
	// LeaseUntil renews the lease: it ends then, on CLOCK_BOOTTIME, which is the same for
	// everyone on this machine. What is left of it would be counted from when it is read, and a
	// machine may sleep before that for longer than the whole lease.
	LeaseUntil time.Duration `json:"lease_until_ns,omitempty"`
	Warn       *Warning      `json:"warn,omitempty"`
	// Steps are all that the member shall have; nil: no word on them.
	Steps *[]api.StepOrder `json:"steps,omitempty"`
	Bye   bool             `json:"bye,omitempty"`   // results are recorded: let go of the member, on disk or not
	Serve string           `json:"serve,omitempty"` // directory of the next member; for a spare, see [Spare]
}

// Warning is what a rank will be stopped for when it goes on, told through [StatusFile].
type Warning struct {
	Rank  int           `json:"rank"`
	Cause api.Cause     `json:"cause"`
	Text  string        `json:"text"`    // empty: it is over
	Left  time.Duration `json:"left_ns"` // until the stop
}

// Go opens the gate.
type Go struct {
	MasterPort int `json:"master_port"`
}

// Answer is one line from the shim to gnoded: the whole state after each change, and at
// once after a connection is made.
type Answer struct {
	State     *State `json:"state,omitempty"`
	Signal    uint64 `json:"signal,omitempty"`    // number of the order answered
	Processes int    `json:"processes,omitempty"` // that got it
	// Look is the number of the look that was asked for, Stacks what it showed.
	Look   uint64            `json:"look,omitempty"`
	Stacks *api.MemberStacks `json:"stacks,omitempty"`
	Spare  bool              `json:"spare,omitempty"` // nothing of the member is held any more, and another may come
	// Notes is what the ranks have said, at most about once a second and again to whoever connects.
	Notes *api.MemberNote `json:"notes,omitempty"`
}

// State is what StateFile holds.
type State struct {
	api.MemberActual
	ShimPID int    `json:"shim_pid"`
	BootID  string `json:"boot_id"`
}
