package rankenv

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/container"
	"gangd/pkg/core/hostlist"
)

// Step is what the environments of a step's tasks on one node are made from.
type Step struct {
	Reply  *api.StepReply
	Part   int      // index of the node in the step
	Env    []string // of the client
	Host   string   // of the client: IP address
	Port   int
	Name   string   // of the job as the client gave it; empty: the job's
	Extra  []string // NAME=value, of the client's options
	Marker string   // NAME=value, for the scan
	Status string   // GANG_STATUS_FILE
	// Sockets gives the paths of a task's sockets, empty where it has none; nil: nobody has.
	Sockets func(task int) (notify, http string)
	// Watchdog is how long a task that has begun to beat may be silent; 0: for ever.
	Watchdog time.Duration
	// Checkpoints are what is handed over to the tasks on this node.
	Checkpoints map[int]Checkpoint
	// CheckpointDir is GANG_CHECKPOINT_DIR.
	CheckpointDir string
	// Image names what the tasks run in; empty: the machine.
	Image string
	// CardNames is what CUDA_VISIBLE_DEVICES calls cards, by UUID; nil: by their UUIDs.
	CardNames map[string]string
	// PerTask: each task sees so many cards of its own; 0: all of the step's on the node.
	PerTask int
	// CardsOf are places among the cards of the step on the node, for its tasks in turn; a place without a card is none.
	CardsOf [][]int
}

// notOfStep are variables of the client's own that mean something else, or nothing, to a task:
// the client runs in the batch script, say, and a task speaks for itself.
var notOfStep = map[string]bool{"NOTIFY_SOCKET": true, "GANG_SOCKET": true, "WATCHDOG_USEC": true, "WATCHDOG_PID": true,
	"GANG_CHECKPOINT_FILE": true, "CHECKPOINT_DATA": true, TaskPID: true, container.EnvName: true}

// TaskPID is the variable in which a task of a step and a batch script find their own pid. It
// is set where they are started: an environment is made before there is a process.
const TaskPID = "SLURM_TASK_PID"

// Environ is the environment of each task on the node, in the order of its tasks.
func (s *Step) Environ() [][]string {
	n := &s.Reply.Nodes[s.Part]
	e := newEnv(s.Env, func(name string) bool { return !notOfStep[name] })
	s.allocation(e)
	s.step(e)
	s.node(e)
	for _, kv := range s.Extra {
		if name, value, ok := strings.Cut(kv, "="); ok {
			e.set(name, value)
		}
	}
	if name, value, ok := strings.Cut(s.Marker, "="); ok {
		e.set(name, value)
	}
	e.setGiven("GANG_STATUS_FILE", s.Status)
	e.setGiven("GANG_CHECKPOINT_DIR", s.CheckpointDir)
	e.setGiven(container.EnvName, s.Image)
	var out [][]string
	for local, task := range n.Tasks {
		out = append(out, s.task(e, local, task))
	}
	return out
}

// allocation sets what a task knows of its job, also when the client is outside of it.
func (s *Step) allocation(e *env) {
	a := &s.Reply.Allocation
	id := strconv.FormatInt(a.JobID, 10)
	var names []string
	var cpus []int
	for i := range a.Nodes {
		if a.Groups > 0 && !slices.ContainsFunc(s.Reply.Nodes, func(n api.StepNode) bool { return a.Nodes[n.Index].Group == a.Nodes[i].Group }) {
			continue // of a heterogeneous job those components are told of that the step runs on
		}
		names = append(names, a.Nodes[i].Name)
		cpus = append(cpus, a.Nodes[i].CPUs)
	}
	list := hostlist.Compress(names)
	for _, kv := range [][2]string{
		{"SLURM_JOB_ID", id}, {"SLURM_JOBID", id}, {"SLURM_JOB_USER", a.User}, {"SLURM_JOB_UID", strconv.FormatUint(uint64(a.UID), 10)},
		{"SLURM_JOB_GID", strconv.FormatUint(uint64(a.GID), 10)}, {"SLURM_JOB_PARTITION", a.Partition},
		{"SLURM_JOB_NODELIST", list}, {"SLURM_NODELIST", list}, {"SLURM_JOB_NUM_NODES", strconv.Itoa(len(names))},
		{"SLURM_JOB_CPUS_PER_NODE", api.PerNode(cpus)}, {"GANG_JOB_ID", id}, {"GANG_EPOCH", strconv.Itoa(s.Reply.Epoch)}, {"GANG_NODELIST", list},
	} {
		e.set(kv[0], kv[1])
	}
	e.setGiven("SLURM_JOB_ACCOUNT", a.Account)
	e.add(api.PoolVariables(a.Pools))
	if s.Name != "" { // said of the step itself, over what its environment says of the job
		e.set("SLURM_JOB_NAME", s.Name)
	}
	e.preset("SLURM_JOB_NAME", a.Name)
	e.preset("GANG_JOB_NAME", a.Name)
	e.preset("SLURM_SUBMIT_DIR", a.WorkDir)
	e.preset("SLURM_SUBMIT_HOST", a.SubmitHost)
	e.preset("SLURM_CLUSTER_NAME", ClusterName)
	if !a.StartTime.IsZero() {
		e.set("SLURM_JOB_START_TIME", strconv.FormatInt(a.StartTime.Unix(), 10))
	}
	if !a.EndTime.IsZero() {
		e.set("SLURM_JOB_END_TIME", strconv.FormatInt(a.EndTime.Unix(), 10))
	}
	e.preset("MASTER_ADDR", s.Reply.Nodes[0].Address)
	if a.MasterPort > 0 {
		e.preset("MASTER_PORT", strconv.Itoa(a.MasterPort))
	}
}

// step sets what all tasks of the step share.
func (s *Step) step(e *env) {
	r := s.Reply
	var names []string
	var tasks []int
	for i := range r.Nodes {
		names = append(names, r.Nodes[i].Name)
		tasks = append(tasks, len(r.Nodes[i].Tasks))
	}
	id, n, nodes, list, per :=
		strconv.Itoa(r.StepID), strconv.Itoa(r.Tasks), strconv.Itoa(len(r.Nodes)), hostlist.Compress(names), api.PerNode(tasks)
	port := strconv.Itoa(s.Port)
	for _, kv := range [][2]string{
		{"SLURM_STEP_ID", id}, {"SLURM_STEPID", id}, {"SLURM_STEP_NODELIST", list}, {"SLURM_STEP_NUM_NODES", nodes},
		{"SLURM_STEP_NUM_TASKS", n}, {"SLURM_STEP_TASKS_PER_NODE", per}, {"SLURM_STEP_LAUNCHER_PORT", port},
		{"SLURM_NTASKS", n}, {"SLURM_NPROCS", n}, {"SLURM_NNODES", nodes}, {"SLURM_TASKS_PER_NODE", per},
		{"SLURM_SRUN_COMM_HOST", s.Host}, {"SLURM_SRUN_COMM_PORT", port}, {"SLURM_LAUNCH_NODE_IPADDR", s.Host},
		{"GANG_STEP_ID", id}, {"GANG_SIZE", n}, {"GANG_NNODES", nodes},
	} {
		e.set(kv[0], kv[1])
	}
	distribution := "block"
	if r.Tasks <= len(r.Nodes) { // which it is as well
		distribution = "cyclic"
	}
	e.set("SLURM_DISTRIBUTION", distribution)
	e.drop("SLURM_STEP_RESV_PORTS") // of the step that the client runs in
	if r.Ports != "" {
		e.set("SLURM_STEP_RESV_PORTS", r.Ports)
		e.set("GANG_PORTS", r.Ports)
	}
	e.preset("SLURM_PRIO_PROCESS", "0")
	e.preset("SLURM_NODE_ALIASES", "(null)")
	e.preset("SLURM_UMASK", "0022")
}

// node sets what differs between nodes.
func (s *Step) node(e *env) {
	n := &s.Reply.Nodes[s.Part]
	e.setInt("SLURM_NODEID", s.Part)
	e.set("SLURMD_NODENAME", n.Name)
	e.set("HOSTNAME", n.Name)
	e.set("SLURM_TOPOLOGY_ADDR", n.Name)
	e.set("SLURM_TOPOLOGY_ADDR_PATTERN", "node")
	e.setInt("SLURM_CPUS_ON_NODE", n.CPUs)
	gtids := make([]string, len(n.Tasks))
	for i, t := range n.Tasks {
		gtids[i] = strconv.Itoa(t)
	}
	e.set("SLURM_GTIDS", strings.Join(gtids, ","))
	e.setInt("GANG_NODE_RANK", s.Part)
	e.setInt("GANG_LOCAL_SIZE", len(n.Tasks))
}

// task is a copy of e with what differs between the tasks of a node.
func (s *Step) task(e *env, local, task int) []string {
	e = e.clone()
	e.setInt("SLURM_PROCID", task)
	e.setInt("SLURM_LOCALID", local)
	e.setInt("GANG_RANK", task)
	e.setInt("GANG_LOCAL_RANK", local)
	speak(e, task, s.Sockets, s.Watchdog, s.Checkpoints)
	cards := s.Reply.Nodes[s.Part].Cards
	if n := s.PerTask; n > 0 {
		cards = cards[min(local*n, len(cards)):min((local+1)*n, len(cards))]
	}
	if n := len(s.CardsOf); n > 0 {
		var own []api.StepCard
		for _, at := range s.CardsOf[local%n] {
			if at < len(cards) {
				own = append(own, cards[at])
			}
		}
		cards = own
	}
	uuids, indexes := make([]string, len(cards)), make([]string, len(cards))
	for i, c := range cards {
		uuids[i], indexes[i] = c.UUID, strconv.Itoa(c.Index)
	}
	visible(e, uuids, s.CardNames)
	if len(s.Reply.Nodes[s.Part].Cards) > 0 {
		e.set("SLURM_STEP_GPUS", strings.Join(indexes, ","))
		e.setInt("SLURM_GPUS_ON_NODE", len(s.Reply.Nodes[s.Part].Cards))
	}
	return e.list
}

// ClusterName is what tools that ask for SLURM_CLUSTER_NAME are told.
const ClusterName = "gangd"
