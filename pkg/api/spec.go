package api

import (
	"reflect"
	"strings"
	"time"

	"gangd/pkg/api/rlimit"
)

// MaxScriptBytes is the largest script accepted, as in Slurm (max_script_size).
const MaxScriptBytes = 4 << 20

// MaxGangSize bounds the ranks of one gang; far above any site, low enough that a typo
// (10^9) is refused before anything is allocated for it.
const MaxGangSize = 65536

// MaxArraySize bounds the elements of one array (ten times Slurm's default MaxArraySize).
const MaxArraySize = 10000

// Spec is what a person asked for. It is immutable once accepted, shared by all elements
// of an array, and stored once, by hash; what may be changed later (priority, hold, time
// limit, name) is copied into the job.
type Spec struct {
	Name      string `json:"name" bound:"len=1024"`
	Partition string `json:"partition,omitempty"` // one name or a comma list; empty: the site's default
	Account   string `json:"account,omitempty"`
	AsAsked

	Size   int    `json:"size"` // ranks, 1..MaxGangSize
	Launch Launch `json:"launch"`
	Roles  []Role `json:"roles,omitempty"` // none: all ranks do the same

	CPUsPerRank   int   `json:"cpus_per_rank" bound:"..65536"`                      // >= 1: a rank without figures still takes a slot
	MemoryPerRank int64 `json:"memory_per_rank,omitempty" bound:"..70368744177664"` // bytes, 0: no figure
	MemoryPerNode int64 `json:"memory_per_node,omitempty" bound:"..70368744177664"` // bytes for each member, 0: no figure
	// bytes of temporary space for each member, 0: what its node gives to each
	TmpPerNode  int64 `json:"tmp_per_node,omitempty" bound:"..70368744177664"`
	GPUsPerRank int   `json:"gpus_per_rank,omitempty" bound:"..65536"`
	GPUsPerNode int   `json:"gpus_per_node,omitempty" bound:"..65536"` // cards of each member as a whole; excludes GPUsPerRank
	// "", "a100" or "a100|h100", matched without case as part of the model's name
	GPUType    string `json:"gpu_type,omitempty"`
	MinCompute string `json:"min_compute,omitempty"`                         // least CUDA compute capability of a card: "8.0"
	VRAMBytes  int64  `json:"vram_bytes,omitempty" bound:"..70368744177664"` // per card, 0: no figure
	Share      bool   `json:"share,omitempty"`                               // may share a card while VRAM fits; needs VRAMBytes

	// CPUBind is which of its member's CPUs a rank may use: "" or [BindCores], its own; [BindNUMA],
	// those at the same NUMA nodes; [BindNone], all. ThreadsPerCore 1: one thread of each core, 0: all.
	CPUBind        string `json:"cpu_bind,omitempty"`
	ThreadsPerCore int    `json:"threads_per_core,omitempty" bound:"..65536"`

	// Shape is what each of its nodes has at least.
	Shape CPUShape `json:"shape,omitzero"`

	// CardNames is how its processes find its cards named: [CardsByUUID], [CardsByNumber] or "", as the site says.
	CardNames string `json:"card_names,omitempty"`

	// Container is what the job runs in; nil: in what the node has.
	Container *Container `json:"container,omitempty"`

	// Asked repeats figures of a batch job in the words they were asked for in, nil: nobody
	// asked in such words. The figures above are what counts.
	Asked *Asked `json:"asked,omitempty"`

	// Words are the options that its size, resources and nodes were asked for with, as --NAME=VALUE: what waits is asked for
	// anew from them when one of them is changed. Nil: they are not known.
	Words []string `json:"words,omitzero" bound:"n=64 len=131071"`

	RanksPerNode int      `json:"ranks_per_node,omitempty" bound:"..65536"` // exactly so many on each node (the last may have fewer), 0: any
	MinNodes     int      `json:"min_nodes,omitempty" bound:"..65536"`      // 0: any
	MaxNodes     int      `json:"max_nodes,omitempty" bound:"..65536"`      // 0: any
	Exclusive    bool     `json:"exclusive,omitempty"`                      // no other gang on its nodes
	NodeList     []string `json:"node_list,omitempty" bound:"len=255"`      // only these (expanded)
	Exclude      []string `json:"exclude,omitempty" bound:"len=255"`        // never these (expanded)
	Constraint   string   `json:"constraint,omitempty"`                     // node features: "a&b", "a|b", "[a|b]", "a*2"
	Prefer       string   `json:"prefer,omitempty"`                         // node features that are tried before Constraint
	// Switches is below how many switches its nodes shall be, 0: any number. It waits for that
	// at most SwitchWait and what the site allows; nil: as long as the site does.
	Switches   int            `json:"switches,omitempty" bound:"..65536"`
	SwitchWait *time.Duration `json:"switch_wait_ns,omitempty"`
	// Ports are reserved for the gang on each of its nodes: so many, or [PortEach].
	Ports       int    `json:"ports,omitempty" bound:"-1..65535"`
	Reservation string `json:"reservation,omitempty"` // only on the nodes of this one, while it lasts; empty: of none

	TimeLimit time.Duration `json:"time_limit_ns,omitempty"` // 0: the partition's default
	TimeMin   time.Duration `json:"time_min_ns,omitempty"`   // the time limit may be cut down to this at a start; 0: it is never cut
	Notice    *Notice       `json:"notice,omitempty"`
	Grace     time.Duration `json:"grace_ns,omitempty"`     // TERM to KILL; 0: the site's
	GraceMax  time.Duration `json:"grace_max_ns,omitempty"` // how far a rank may extend the grace by itself; 0: not at all
	// ReadyTimeout is how long after the start each rank has to have said READY=1; 0: nobody
	// waits for it.
	ReadyTimeout time.Duration `json:"ready_timeout_ns,omitempty"`
	StopSignal   string        `json:"stop_signal,omitempty"` // default TERM
	// Checkpoint: "" accepts checkpoints while the gang runs and while it is stopped,
	// [CheckpointDrain] only then.
	Checkpoint string `json:"checkpoint,omitempty"`

	MaxRetries    *int          `json:"max_retries,omitempty"`   // crash re-runs
	BackoffLimit  *int          `json:"backoff_limit,omitempty"` // node-lost re-runs, and crash when given alone
	StallRetries  *int          `json:"stall_retries,omitempty"`
	MinRun        time.Duration `json:"min_run_ns,omitempty"` // not preempted before it has run so long
	NoRequeue     bool          `json:"no_requeue,omitempty"`
	RequeueCauses []Cause       `json:"requeue_causes,omitempty" bound:"n=32"` // empty: all that the defaults allow
	// MaxTimeTotal is how long all runs together may last, of a job that is run again after its
	// time limit; 0: it is not.
	MaxTimeTotal time.Duration `json:"max_time_total_ns,omitempty"`

	// StallTimeout is how long a rank that has begun to beat may be silent; 0: the
	// site's, [WatchdogOff]: for ever. The controller fills in what the partition says.
	StallTimeout time.Duration `json:"stall_timeout_ns,omitempty" bound:"-1ns.."`
	GPUWatch     bool          `json:"gpu_watch,omitempty"` // end it when its cards are idle and still for a window
	// IdleLimit is the controller's alone: 0: the site's, [WatchdogOff]: exempt.
	IdleLimit time.Duration `json:"idle_limit_ns,omitempty" bound:"-1ns.."`

	Priority *int64    `json:"priority,omitempty" bound:"-2147483648..2147483647"`
	Nice     int64     `json:"nice,omitempty" bound:"-2147483648..2147483647"`
	Hold     bool      `json:"hold,omitempty"`
	Begin    time.Time `json:"begin,omitzero"`
	Cron     *Cron     `json:"cron,omitempty"`    // it comes again under its number; set by the controller alone
	Deadline time.Time `json:"deadline,omitzero"` // it has ended by then, or does not start any more; zero: none
	// Dependency is what the job waits for.
	Dependency *Dependency `json:"dependency,omitempty"`
	// InvalidDependency is what becomes of a job whose dependency can never be met: ""
	// (the site's choice), [InvalidCancel] or [InvalidWait].
	InvalidDependency string `json:"invalid_dependency,omitempty"`

	WorkDir  string   `json:"work_dir" bound:"text"`
	Output   string   `json:"output,omitempty" bound:"text"` // pattern; empty: gang-%j.out, or gang-%j.%t.out for more ranks
	Error    string   `json:"error,omitempty" bound:"text"`  // pattern; empty: with the output
	Input    string   `json:"input,omitempty" bound:"text"`  // path; empty: /dev/null
	OpenMode string   `json:"open_mode,omitempty"`           // "append" (default) or "truncate"
	Umask    int      `json:"umask,omitempty" bound:"0..511"`
	Args     []string `json:"args,omitempty" bound:"len=131071 text"` // behind the script
	Env      []string `json:"env,omitempty" bound:"len=131071 text"`  // NAME=value, as exported at submit

	// Limits are soft resource limits of the submitting process, for the ranks: as the site passes them on, or, LimitsAsked, as
	// their user chose. None: the node's.
	Limits      rlimit.Soft `json:"limits,omitempty" bound:"-1..9223372036854775807"`
	LimitsAsked bool        `json:"limits_asked,omitempty"`

	// LastWords: an end from outside is said in the output of its script, and to the clients of
	// its steps, in the line of Slurm that tools look for. By Slurm's names it is set.
	LastWords bool `json:"last_words,omitempty"`

	ScriptName string `json:"script_name,omitempty" bound:"text"` // as the person named it, for display
	Script     []byte `json:"script" bound:"n=8388608"`
	SubmitHost string `json:"submit_host,omitempty"`
}

// AsAsked is the part of what was asked for that a job shows as it is: a [Spec] and its [Job] have it both, and neither names it
// a second time.
type AsAsked struct {
	Comment string `json:"comment,omitempty" bound:"len=1024 text"`
	Extra   string `json:"extra,omitempty" bound:"len=1024 text"` // what programs of the site's write down with a job
	// Notify says who is told of what. The controller fills in addresses, and takes away what nothing is sent for.
	Notify []Notify `json:"notify,omitempty" bound:"n=8"`
	// Allocation: it holds nodes for srun, salloc or grun, and has no script of its user's.
	Allocation bool `json:"allocation,omitempty"`
	// Report: behind the output of rank 0 stands in the end what was used of what was asked for.
	Report bool `json:"report,omitempty"`
	// Fail says which failure of a part ends the job: "" (that of its script, or of a rank), or [FailAny].
	Fail string `json:"fail,omitempty"`
	// Pools are what it asks for of what the site has altogether.
	Pools []Pool `json:"pools,omitempty" bound:"n=64"`
	// Ruled is what the site's rule for submissions has made of what was asked for; set by the controller alone.
	Ruled []RuleChange `json:"ruled,omitempty" bound:"n=64"`
}

// FailAny in [AsAsked.Fail] ends the job with the first step of it that fails.
const FailAny = "any"

// RuleChange is a field of a [Spec] that the site's rule for submissions has changed. From and To are its values as people
// read them, cut short where they are long; empty: it was not asked for.
type RuleChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// RuleText is what a rule has changed, in a line; empty: nothing.
func RuleText(changes []RuleChange) string {
	var parts []string
	for _, c := range changes {
		switch {
		case c.From == "":
			parts = append(parts, c.Field+" to "+c.To)
		case c.To == "":
			parts = append(parts, c.Field+" from "+c.From+" to nothing")
		default:
			parts = append(parts, c.Field+" from "+c.From+" to "+c.To)
		}
	}
	return strings.Join(parts, ", ")
}

// TextBytes is about what it comes to: all that is written in it, and each entry of its lists. The name is the job's.
func (s *Spec) TextBytes() int64 {
	n := len(s.Script)
	for _, list := range [][]string{s.Args, s.Env} {
		for _, v := range list {
			n += len(v)
		}
	}
	return int64(n) + s.OptionBytes()
}

// OptionBytes is TextBytes of what is neither script, argument nor environment, beyond what every specification is
// taken to have.
func (s *Spec) OptionBytes() int64 {
	c := *s
	c.Name, c.Script, c.Args, c.Env = "", nil, nil, nil
	return max(0, written(reflect.ValueOf(&c).Elem())-plainBytes)
}

// plainBytes are what the options of a job come to that asks for nothing unusual.
const plainBytes = 1 << 10

// entryBytes is about what an entry of a list takes beside what is written in it.
const entryBytes = 16

// written adds up texts, and the entries of lists.
func written(v reflect.Value) (n int64) {
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len())
	case reflect.Pointer:
		if !v.IsNil() {
			return written(v.Elem())
		}
	case reflect.Slice:
		n = entryBytes * int64(v.Len())
		for i := range v.Len() {
			n += written(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() { // exported: its type would tell too, at ten times the cost
				n += written(f)
			}
		}
	}
	return n
}

// WithoutTexts is the specification without its script, arguments and environment, and without the mounts and names of
// variables of its container: they are nearly all of its size, and nobody but the nodes that run it looks at them.
func (s *Spec) WithoutTexts() *Spec {
	c := *s
	c.Script, c.Args, c.Env = nil, nil, nil
	if c.Container != nil && len(c.Container.Mounts)+len(c.Container.Env) > 0 {
		box := *c.Container
		box.Mounts, box.Env = nil, nil
		c.Container = &box
	}
	return &c
}

// Asked is how sbatch's options counted memory, cards and CPUs: the environment of the script
// says it so, whatever the figures were derived to.
type Asked struct {
	MemoryPerNode int64  `json:"memory_per_node,omitempty" bound:"..70368744177664"` // bytes, as all memory
	MemoryPerCPU  int64  `json:"memory_per_cpu,omitempty" bound:"..70368744177664"`
	MemoryPerGPU  int64  `json:"memory_per_gpu,omitempty" bound:"..70368744177664"`
	GPUs          string `json:"gpus,omitempty"` // [TYPE:]N as written, as the next two
	GPUsPerNode   string `json:"gpus_per_node,omitempty"`
	GPUsPerTask   string `json:"gpus_per_task,omitempty"`
	GPUsPerSocket string `json:"gpus_per_socket,omitempty"`
	GPUBind       string `json:"gpu_bind,omitempty"` // as written; shown alone, as the next
	GPUFreq       string `json:"gpu_freq,omitempty"`
	CardsBy       string `json:"cards_by,omitempty"` // the option that counted the cards: gres, gpus-per-task
	CPUsPerGPU    int    `json:"cpus_per_gpu,omitempty" bound:"..65536"`
	CPUsPerTask   int    `json:"cpus_per_task,omitempty" bound:"..65536"`
	// where ranks are not its tasks: more of them (--overcommit), or fewer that share out cards unevenly
	Tasks int `json:"tasks,omitempty" bound:"..65536"`
	// ByWords: of what was asked for its script, and the command of salloc, are told what Told says and no more. Clients before
	// did not say; their scripts are told what the figures come to.
	ByWords bool     `json:"by_words,omitempty"`
	Told    []string `json:"told,omitempty" bound:"n=64"` // NAME=value, in Slurm's words
	// TasksLeft: nobody asked for a number of tasks, so that a node has one for each CPUsPerTask of its CPUs.
	TasksLeft bool `json:"tasks_left,omitempty"`
	// cards in all, and no word of nodes or tasks: where no node has so many they may be of several
	Spread  bool  `json:"spread,omitempty"`
	TmpDisk int64 `json:"tmp_disk,omitempty" bound:"..70368744177664"` // of clients before [Spec].TmpPerNode: not counted
}

// TasksOf is how many tasks a batch job of so many ranks on so many nodes has, as its script is told.
func (s *Spec) TasksOf(ranks, nodes int) int { return s.Asked.tasksOf(ranks, nodes) }

// Tasks is how many tasks the job has, as its script is told.
func (j *Job) Tasks() int { return j.Asked.tasksOf(j.Size, len(j.Nodes)) }

func (a *Asked) tasksOf(ranks, nodes int) int {
	switch {
	case a != nil && a.Tasks > 0:
		return a.Tasks
	case a != nil && a.Spread && ranks > 1:
		return max(nodes, 1) // its ranks are its cards
	}
	return ranks
}

// Container is an image and what of the node is shown in it. A node that can't do it takes no such
// job: it has the feature [FeatureContainer].
type Container struct {
	// as pkg/core/container writes it: the absolute path of an unpacked or packed image, docker://HOST/NAME:TAG, docker-archive:FILE;
	// of a step that has a Name it may be empty
	Image string `json:"image,omitempty" bound:"text"`
	// Name is kept with what is written in it until the job's end, for later steps on the same node. Use says which they are.
	Name     string           `json:"name,omitempty" bound:"len=64"`
	Use      string           `json:"use,omitempty" bound:"len=16"`
	Mounts   []ContainerMount `json:"mounts,omitempty" bound:"n=256"`
	WorkDir  string           `json:"work_dir,omitempty" bound:"text"` // where ranks start, inside; empty: the job's working directory
	Home     bool             `json:"home,omitempty"`                  // the user's home directory is shown
	ReadOnly bool             `json:"read_only,omitempty"`             // nothing can be written but what is mounted
	// names of variables that keep the job's value where the image has one
	Env []string `json:"env,omitempty" bound:"n=512 len=255"`
}

// Which container a step with the name of one wants ([Container.Use]).
const (
	UseAny   = ""       // the one that is there, else a new one
	UseNew   = "create" // a new one
	UseThere = "exec"   // one that is there
)

// ContainerMount shows a directory or file of the node inside.
type ContainerMount struct {
	Source   string `json:"source" bound:"text"` // absolute
	Target   string `json:"target" bound:"text"` // absolute
	ReadOnly bool   `json:"read_only,omitempty"`
}

// FeatureContainer is the feature of nodes that run jobs in containers.
const FeatureContainer = "container-dir"

// What a rank is bound to ([Spec.CPUBind]).
const (
	BindNone  = "none"
	BindCores = "cores"
	BindNUMA  = "ldoms"
)

// Notice is the early signal of --signal=[B:|A:]SIG@lead. It goes to those in its scope who have
// a handler for it.
type Notice struct {
	Signal string        `json:"signal"` // "USR1": without SIG
	Lead   time.Duration `json:"lead_ns"`
	Scope  SignalScope   `json:"scope"`
}

// SignalScope says which processes of a rank a signal reaches.
type SignalScope string

const (
	// ScopeRanks reaches all processes of the ranks but not the script's own shell.
	ScopeRanks SignalScope = "ranks"
	// ScopeSteps reaches the tasks of steps alone, and of a batch script nobody: what Slurm's names mean. Ranks that
	// run the script each are such tasks, as with ScopeRanks.
	ScopeSteps SignalScope = "steps"
	// ScopeNamed is ScopeRanks of the ranks of [SignalOrder].Named alone. A node of an older release signals nobody.
	ScopeNamed SignalScope = "named"
	// ScopeBatch reaches the script's shell alone (B:, gcancel --batch).
	ScopeBatch SignalScope = "batch"
	// ScopeFull reaches both (gcancel --full).
	ScopeFull SignalScope = "full"
)

// Array is the --array of a submission: 0-15%4 is Indices 0..15, Limit 4.
type Array struct {
	Indices []int `json:"indices"`
	Limit   int   `json:"limit,omitempty" bound:"0..1073741824"` // at most so many at once, 0: no limit
}

// SubmitRequest is the body of POST /v1/jobs.
type SubmitRequest struct {
	// Key is made by the client, unique to one intent to submit: a retry with the same
	// key gives the same id and queues nothing.
	Key      string `json:"key" bound:"len=256"`
	Spec     Spec   `json:"spec"`
	Array    *Array `json:"array,omitempty"`
	TestOnly bool   `json:"test_only,omitempty"`
	// Warned is what the client has to say of the words that it was asked in, for the job's record.
	Warned []string `json:"warned,omitempty" bound:"n=64 text"`
}

// MaxShown bounds what a job keeps of its command line for show.
const MaxShown = 4096

// SubmitReply answers it.
type SubmitReply struct {
	SchemaVersion int      `json:"schema_version"`
	JobID         int64    `json:"job_id"`              // of an array: its first element's, which is the array's id
	Count         int      `json:"count"`               // jobs queued by this submission
	Why           string   `json:"why,omitempty"`       // with test_only: when and where it would start
	StartsOn      []string `json:"starts_on,omitempty"` // with test_only: the nodes on which it would start now
	Warnings      []string `json:"warnings,omitempty"`
}

// NamesCards is how processes of the job find its cards named, at a site that says so.
func (s *Spec) NamesCards(site string) string {
	switch {
	case s.CardNames != "":
		return s.CardNames
	case site != CardsAuto && site != "":
		return site
	case s.LastWords: // by Slurm's names
		return CardsByNumber
	}
	return CardsByUUID
}
