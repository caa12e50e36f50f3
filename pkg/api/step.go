package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A step is a set of tasks that a client (grun) starts inside the allocation of a job. Its
// processes belong to the job's members: what ends an epoch ends its steps.

// The step ids that are not numbers, as sacct writes them.
const (
	StepBatch  = "batch"  // the batch script itself
	StepExtern = "extern" // the allocation as a whole
)

// Step is a step as `gqueue --json` and `gctl show job --json` print it. In [Job.Steps] are
// those of the current epoch that run; in [Attempt.Steps] all of the attempt: batch, extern,
// then 0, 1 ... in the order of their start.
type Step struct {
	JobID     int64     `json:"job_id"`
	StepID    string    `json:"step_id"` // "0", "1" ..., [StepBatch], [StepExtern]
	Epoch     int       `json:"epoch"`
	Name      string    `json:"name"`
	State     JobState  `json:"state"`           // RUNNING, COMPLETED, FAILED, CANCELLED, TIMEOUT, OUT_OF_MEMORY, NODE_FAIL
	Cause     Cause     `json:"cause,omitempty"` // of what ended it from outside: the drain of its epoch, or cancelled
	Nodes     []string  `json:"nodes"`
	Tasks     int       `json:"tasks"`
	CPUs      int       `json:"cpus"` // taken on all its nodes
	GPUs      int       `json:"gpus"`
	Memory    int64     `json:"memory_bytes"` // taken on each node, 0: no figure
	Overlap   bool      `json:"overlap,omitempty"`
	Command   string    `json:"command,omitempty"`
	Layout    string    `json:"layout,omitempty"` // tasks by node in Slurm's way: "2(x3),1"
	TimeLimit int64     `json:"time_limit_seconds,omitempty"`
	StartTime time.Time `json:"start_time,omitzero"`
	EndTime   time.Time `json:"end_time,omitzero"`
	ExitCode  *int      `json:"exit_code"`        // the highest of its tasks; null while it runs, and where it is not known
	Signal    int       `json:"signal,omitempty"` // that ended the task with it, 0: none
	User      string    `json:"user"`
	Partition string    `json:"partition"`
	Client    string    `json:"client,omitempty"` // host:pid of the grun that started it
	Ports     string    `json:"ports,omitempty"`  // reserved on each of its nodes: "12000-12003"
	// Image is what its tasks run in; empty: in what the job runs in. ImageDigest is that of the image; empty: not known.
	Image       string `json:"container_image,omitempty"`
	ImageDigest string `json:"container_image_digest,omitempty"`
	Status      string `json:"status,omitempty"` // how far the import of its image is, in words
	Error       string `json:"error,omitempty"`  // why a node could not start it
	// Text is which of its tasks ended first by itself, and how, where the step failed. TriggerTask is that task,
	// TiedTasks those that may as well be it.
	Text        string  `json:"text,omitempty"`
	TriggerTask *int    `json:"trigger_task,omitempty"`
	TiedTasks   []int   `json:"tied_tasks,omitempty"`
	MaxRSS      int64   `json:"max_rss_bytes"` // of its largest process, 0: not known
	CPUTime     float64 `json:"cpu_seconds"`   // user and system, of all its processes that were waited for
	// TaskList is what tasks of a step that runs have said about themselves; who has said nothing
	// is not in it.
	TaskList []Task `json:"task_list,omitempty"`
}

// Task is a task of a running step as it is shown.
type Task struct {
	Task     int       `json:"task"`
	Node     string    `json:"node"`
	LastBeat time.Time `json:"last_beat,omitzero"`
	Status   string    `json:"status,omitempty"`
	Ready    bool      `json:"ready,omitempty"`
	Stopping bool      `json:"stopping,omitempty"`
	Ended    bool      `json:"ended,omitempty"` // its process has
}

// StepRef names a step as a person does: 12.0, 12_3.1, 12.batch.
type StepRef struct {
	Job  JobRef
	Step string // as [Step.StepID]
}

func (r StepRef) String() string { return r.Job.String() + "." + r.Step }

// Number is the step's number, -1 of batch and extern.
func (r StepRef) Number() int {
	n, err := strconv.Atoi(r.Step)
	if err != nil {
		return -1
	}
	return n
}

// ParseStepRef reads JOB.STEP; ok is false when s has no dot and so is no step's name.
func ParseStepRef(s string) (r StepRef, ok bool, err error) {
	job, step, found := strings.Cut(s, ".")
	if !found {
		return r, false, nil
	}
	if r.Job, err = ParseJobRef(job); err != nil {
		return r, true, err
	}
	if step != StepBatch && step != StepExtern {
		if n, err := parseID(step); err != nil || n > 1<<30 {
			return r, true, Errorf(CodeInvalid, "invalid step %q in %q: want 12.0, 12.batch or 12.extern", step, s)
		}
	}
	r.Step = step
	return r, true, nil
}

// StepAsk is what a client wants of the allocation. Zero figures are defaults.
type StepAsk struct {
	Name    string `json:"name,omitempty" bound:"len=1024 text"`
	Command string `json:"command,omitempty" bound:"len=65536 text"`
	// The component is all of the step, or the first where More names further ones, each on nodes of its own.
	StepComponent
	More []StepComponent `json:"more,omitempty" bound:"n=31"`
	// Overlap shares everything with other steps.
	Overlap   bool          `json:"overlap,omitempty"`
	TimeLimit time.Duration `json:"time_limit_ns,omitempty"`           // 0: the job's
	Ports     int           `json:"ports,omitempty" bound:"-1..65535"` // reserved on each of its nodes, or [PortEach]
	Client    string        `json:"client,omitempty"`                  // host:pid, for people
	// Container is what its tasks run in; nil: in what the job runs in. Dir is where they run then, which is
	// shown there.
	Container *Container `json:"container,omitempty"`
	Dir       string     `json:"dir,omitempty" bound:"text"`
	// Hosts are where the client listens, host:port, the likeliest first; Fingerprint is the
	// SHA-256 of its certificate in hex: nodes talk to nobody else.
	Hosts       []string `json:"hosts"`
	Fingerprint string   `json:"fingerprint"`
}

// StepComponent is what the tasks of a step, or of one of its components, are and where they run.
type StepComponent struct {
	Tasks    int `json:"tasks,omitempty" bound:"..65536"`     // 0: TasksPerNode on each node, else one on each
	MinNodes int `json:"min_nodes,omitempty" bound:"..65536"` // 0: as many as the tasks need, at most all
	MaxNodes int `json:"max_nodes,omitempty" bound:"..65536"` // 0: as MinNodes
	// CPUsPerTask 0 is one; TasksPerNode 0 is any.
	CPUsPerTask  int `json:"cpus_per_task,omitempty" bound:"..65536"`
	TasksPerNode int `json:"tasks_per_node,omitempty" bound:"..65536"`
	// Cards: of all tasks together, of each task, or of each node; at most one is given. None of
	// them: all cards of its nodes, unless NoGPUs.
	GPUs        int  `json:"gpus,omitempty" bound:"..65536"`
	GPUsPerTask int  `json:"gpus_per_task,omitempty" bound:"..65536"`
	GPUsPerNode int  `json:"gpus_per_node,omitempty" bound:"..65536"`
	NoGPUs      bool `json:"no_gpus,omitempty"`
	// Memory on each node, or for each CPU, in bytes; 0: no figure, and none is counted.
	MemoryPerNode int64    `json:"memory_per_node,omitempty" bound:"..70368744177664"`
	MemoryPerCPU  int64    `json:"memory_per_cpu,omitempty" bound:"..70368744177664"`
	NodeList      []string `json:"node_list,omitempty"` // these at least
	Exclude       []string `json:"exclude,omitempty"`
	Relative      int      `json:"relative,omitempty"` // first node, counted from the allocation's first
	// Exact takes only the CPUs that the tasks ask for; else all of its nodes' are taken.
	Exact bool `json:"exact,omitempty"`
	// Overcommit: tasks need not have a CPU each.
	Overcommit bool `json:"overcommit,omitempty"`
	// Distribution is "" or "block", "cyclic", "plane=N" or [Arbitrary].
	Distribution string `json:"distribution,omitempty"`
	// Group is the component of a heterogeneous job on whose nodes the tasks are, nil: the first.
	Group *int `json:"group,omitempty" bound:"..31"`
}

// Arbitrary is a distribution: NodeList has a node for each task, by its number.
const Arbitrary = "arbitrary"

// Components are the step's, the first of all included, each as if it were all of the step.
func (a *StepAsk) Components() []StepAsk {
	one := *a
	one.More = nil
	out := []StepAsk{one}
	for _, one.StepComponent = range a.More {
		out = append(out, one)
	}
	return out
}

// MaxSteps bounds the steps of a job that run at a time.
const MaxSteps = 4096

// MaxStepTasks bounds the tasks of one step.
const MaxStepTasks = MaxGangSize

// StepRequest is the body of POST /v1/jobs/{ref}/steps.
type StepRequest struct {
	// Key is the client's own for this intent: sent again, it gives the same step.
	Key   string  `json:"key"`
	Epoch int     `json:"epoch,omitempty"` // of the allocation that the caller is in; 0: the current one
	Ask   StepAsk `json:"ask"`
	// Within is the step of the job that the caller runs in, nil: none.
	Within *int `json:"within,omitempty" bound:"0..1073741824"`
	// Wait is how long the call may wait for free resources of the allocation before it
	// answers [CodeBusy].
	Wait time.Duration `json:"wait_ns,omitempty"`
}

// StepReply answers it: the step has begun, its nodes are being told.
type StepReply struct {
	SchemaVersion int        `json:"schema_version"`
	JobID         int64      `json:"job_id"`
	Epoch         int        `json:"epoch"`
	StepID        int        `json:"step_id"`
	Secret        string     `json:"secret"` // proves nodes and other clients of the owner to the client
	Nodes         []StepNode `json:"nodes"`
	Tasks         int        `json:"tasks"`
	CPUsPerTask   int        `json:"cpus_per_task"`
	Ports         string     `json:"ports,omitempty"`       // as [Step.Ports]
	MPIDefault    string     `json:"mpi_default,omitempty"` // what a step is served that says nothing: [MPIPMI2], [MPIPMIx]; none: nothing
	Fail          string     `json:"fail,omitempty"`        // as its job's [AsAsked.Fail]
	Allocation    Allocation `json:"allocation"`
}

// What the launchers of a step serve its tasks, for them to find each other.
const (
	MPINone = "none"
	MPIPMI2 = "pmi2" // PMI-1 and PMI-2
	MPIPMIx = "pmix"
)

// StepNode is the part of a step on one node.
type StepNode struct {
	Name    string     `json:"name"`
	Address string     `json:"address"`
	Index   int        `json:"index"`           // of the node in the allocation
	Group   int        `json:"group,omitempty"` // its component: of the step, and in an [Allocation] of the job
	Tasks   []int      `json:"tasks"`           // numbers of the tasks there
	CPUs    int        `json:"cpus"`
	Cards   []StepCard `json:"cards,omitempty"`
}

// StepCard is a card of a step.
type StepCard struct {
	UUID  string `json:"uuid"`
	Index int    `json:"index"` // on its node
}

// Allocation is what a client has to know of the job around a step.
type Allocation struct {
	JobID      int64         `json:"job_id"`
	Name       string        `json:"name"`
	User       string        `json:"user"`
	UID        uint32        `json:"uid"`
	GID        uint32        `json:"gid"`
	Account    string        `json:"account,omitempty"`
	Pools      []Pool        `json:"pools,omitempty"` // that it holds of what the site has altogether
	Partition  string        `json:"partition"`
	Nodes      []StepNode    `json:"nodes"`            // of the whole allocation: Tasks are its ranks
	Groups     int           `json:"groups,omitempty"` // components of a heterogeneous job
	StartTime  time.Time     `json:"start_time,omitzero"`
	EndTime    time.Time     `json:"end_time,omitzero"` // by its time limit; zero: none
	WorkDir    string        `json:"work_dir"`
	SubmitHost string        `json:"submit_host,omitempty"`
	MasterPort int           `json:"master_port,omitempty"`
	Grace      time.Duration `json:"grace_ns"` // from a stop signal to KILL
}

// StepAttachReply answers GET /v1/jobs/{ref}/steps/{step}/attach: where the step's client
// listens, for its owner alone.
type StepAttachReply struct {
	SchemaVersion int      `json:"schema_version"`
	Step          Step     `json:"step"`
	Hosts         []string `json:"hosts"`
	Fingerprint   string   `json:"fingerprint"`
	Secret        string   `json:"secret"`
}

// StepSignal is the body of POST /v1/jobs/{ref}/steps/{step}/signal. Without a signal the
// step is cancelled: TERM, the grace, KILL.
type StepSignal struct {
	Signal string `json:"signal,omitempty"`
	Cause  Cause  `json:"cause,omitempty"` // timeout: it is ended because its own time limit is over
}

// StepSignalReply answers it.
type StepSignalReply struct {
	SchemaVersion int `json:"schema_version"`
	Processes     int `json:"processes"` // tasks that got the signal
	Nodes         int `json:"nodes"`
}

// StepsReply is GET /v1/jobs/{ref}/steps: all steps of all attempts, oldest first.
type StepsReply struct {
	SchemaVersion int    `json:"schema_version"`
	Steps         []Step `json:"steps"`
}

// StepOrder is a step that a member shall have. Steps are started once, in the order of
// their ids; one that a member has and that is not ordered any more is ended there.
type StepOrder struct {
	ID          int      `json:"id"`
	Hosts       []string `json:"hosts"`
	Fingerprint string   `json:"fingerprint"`
	Secret      string   `json:"secret"`
	Part        int      `json:"part"`              // index of the node in the step
	Tasks       int      `json:"tasks"`             // there
	CPUs        int      `json:"cpus,omitempty"`    // that it has for itself there; 0: all of the member's, with others
	Numbers     []int    `json:"numbers,omitempty"` // of the tasks there
	Size        int      `json:"size,omitempty"`    // tasks of the whole step
	From        *TaskSet `json:"from,omitempty"`    // checkpoints that its tasks start from
	// Container is what its tasks run in, Dir where they are, and Image the digest of its image, where an earlier
	// step of the job has found it; nil: in what the job runs in.
	Container *Container `json:"container,omitempty"`
	Dir       string     `json:"dir,omitempty" bound:"text"`
	Image     string     `json:"image,omitempty"`
	Refused   string     `json:"refused,omitempty"` // the node's own: why it can't be started
	Held      bool       `json:"held,omitempty"`    // the node's own: not to be started yet, while later ones may be
	Stop      bool       `json:"stop,omitempty"`    // TERM, the grace, KILL
	// Grace is from TERM to KILL.
	Grace time.Duration `json:"grace_ns,omitempty"`
}

// TaskSet names checkpoints that the tasks of a step have put.
type TaskSet struct {
	Epoch int `json:"epoch"`
	Step  int `json:"step"`
}

// StepActual is what a node has of a step.
type StepActual struct {
	ID       int       `json:"id"`
	PID      int       `json:"pid,omitempty"` // of its launcher
	Started  time.Time `json:"started,omitzero"`
	Over     bool      `json:"over,omitempty"`      // no process of its tasks is left that the launcher could find
	ExitCode int       `json:"exit_code,omitempty"` // the highest of its tasks here; 128+signal when a signal ended it
	Signal   int       `json:"signal,omitempty"`
	OOM      bool      `json:"oom,omitempty"`
	Error    string    `json:"error,omitempty" bound:"any"` // why it could not be started, or was lost
	Ended    time.Time `json:"ended,omitzero"`
	MaxRSS   int64     `json:"max_rss,omitempty"` // bytes, of the largest task
	CPUTime  float64   `json:"cpu_seconds,omitempty"`
	// Ends are those tasks of it here that ended by themselves and not well, in that order: the first [MaxTaskEnds] of them.
	Ends []TaskEnd `json:"ends,omitempty" bound:"n=8"`
	// Importing is how far the import of its image is, before it is started; zero: none is under way. Image is the
	// digest of the image that it runs; empty: none, or not known.
	Importing Import `json:"import,omitzero"`
	Image     string `json:"image,omitempty"`
}

// MaxTaskEnds is how many ends of tasks of a step a node tells: what comes after them did not begin it.
const MaxTaskEnds = 8

// TaskEnd is how a task of a step ended by itself.
type TaskEnd struct {
	Task     int           `json:"task"` // its number in the step
	Time     time.Time     `json:"time"`
	Late     time.Duration `json:"late_ns,omitempty"` // it may have been so long before it was seen
	ExitCode int           `json:"exit_code"`         // 128+signal when a signal ended it
	Signal   int           `json:"signal,omitempty"`
	Aborted  string        `json:"aborted,omitempty"` // what it said when it aborted the step at that time, which ended it and the others
}

// StepText names a step in messages: 12.0.
func StepText(job int64, step int) string { return fmt.Sprintf("%d.%d", job, step) }

// PerNode writes figures by node in Slurm's way: "2(x3),1".
func PerNode(figures []int) string {
	var b strings.Builder
	for i := 0; i < len(figures); {
		run := i + 1
		for run < len(figures) && figures[run] == figures[i] {
			run++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(figures[i]))
		if run-i > 1 {
			fmt.Fprintf(&b, "(x%d)", run-i)
		}
		i = run
	}
	return b.String()
}

// FromPerNode reads what [PerNode] wrote; nil where it can't be read.
func FromPerNode(s string) []int {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		figure, times := part, 1
		if f, t, ok := strings.Cut(strings.TrimSuffix(part, ")"), "(x"); ok {
			n, err := strconv.Atoi(t)
			if err != nil || n < 1 || n > MaxGangSize {
				return nil
			}
			figure, times = f, n
		}
		n, err := strconv.Atoi(figure)
		if err != nil {
			return nil
		}
		for range times {
			out = append(out, n)
		}
	}
	return out
}
