package rankenv

import (
	"cmp"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// slurm sets what sbatch scripts and libraries read. A figure that the job did not give is
// left out, as Slurm does.
func (m *Member) slurm(e *env, l *layout) {
	b, s := m.Body, m.Spec
	partition := ""
	id, ranks, names := strconv.FormatInt(m.Job, 10), len(b.Ranks), m.NodeList
	if s.Components() > 0 { // the script is of the first component, and finds the others by number
		all := m.components(l)
		e.add(Heterogeneous(m.Job, s.Account, all))
		s, ranks, names, partition = s.Part(0), s.Roles[0].Count, hostlist.Compress(all[0].Nodes), all[0].Partition
		l = &layout{counts: all[0].Tasks, cpus: l.cpus}
	}
	nodes, counts := strconv.Itoa(len(l.counts)), TasksOn(s.Asked, ranks, l.counts, l.cpus[:len(l.counts)])
	for _, kv := range [][2]string{
		{"SLURM_JOB_ID", id}, {"SLURM_JOBID", id}, {"SLURM_JOB_NAME", b.Name},
		{"SLURM_JOB_USER", b.User}, {"SLURM_JOB_UID", strconv.FormatUint(uint64(b.UID), 10)},
		{"SLURM_JOB_GID", strconv.FormatUint(uint64(b.GID), 10)}, {"SLURM_JOB_PARTITION", cmp.Or(partition, b.Partition)},
		{"SLURM_NNODES", nodes}, {"SLURM_JOB_NUM_NODES", nodes},
		{"SLURM_JOB_NODELIST", names}, {"SLURM_NODELIST", names},
		{"SLURM_NODEID", strconv.Itoa(m.Node)}, {"SLURMD_NODENAME", b.Nodes[m.Node].Name}, {"HOSTNAME", b.Nodes[m.Node].Name},
		{"SLURM_TASKS_PER_NODE", api.PerNode(counts)},
		{"SLURM_JOB_CPUS_PER_NODE", api.PerNode(l.cpus[:len(l.counts)])},
		{"SLURM_CPUS_ON_NODE", strconv.Itoa(l.cpus[m.Node])},
		{"SLURM_CLUSTER_NAME", ClusterName}, {"SLURM_PRIO_PROCESS", "0"},
	} {
		e.set(kv[0], kv[1])
	}
	address, pattern := b.Nodes[m.Node].Name, "node"
	if above := b.Nodes[m.Node].Switches; above != "" {
		address = above + "." + address
		pattern = strings.Repeat("switch.", strings.Count(above, ".")+1) + pattern
	}
	e.set("SLURM_TOPOLOGY_ADDR", address)
	e.set("SLURM_TOPOLOGY_ADDR_PATTERN", pattern)
	// As Slurm's batch scripts find them: not at all where they would say nothing.
	batch := s.Launch == api.LaunchBatch
	asked(e, s, ranks, len(l.counts))
	if !batch || b.RestartCount > 0 {
		e.setInt("SLURM_RESTART_COUNT", b.RestartCount)
	}
	if batch {
		e.set("SLURM_GTIDS", "0")
		e.set("SLURM_NODE_ALIASES", "(null)")
		e.set("ENVIRONMENT", "BATCH")
	}
	e.setGiven("SLURM_JOB_ACCOUNT", s.Account)
	e.setGiven("SLURM_JOB_RESERVATION", s.Reservation)
	e.add(api.PoolVariables(s.Pools))
	e.setGiven("SLURM_SUBMIT_HOST", s.SubmitHost)
	array(e, b)
}

// asked says what was asked for: in Slurm's words where it was asked for in them, else in the figures that the scheduler
// counts with. A step in a script goes by these, so that one that nobody asked for is a wrong number of its tasks.
func asked(e *env, s *api.Spec, ranks, nodes int) {
	if s.Asked != nil && s.Asked.ByWords {
		e.add(s.Asked.Told)
		return
	}
	tasks := s.TasksOf(ranks, nodes)
	e.setInt("SLURM_NTASKS", tasks)
	e.setInt("SLURM_NPROCS", tasks)
	if tasks > ranks {
		e.set("SLURM_OVERCOMMIT", "1")
	}
	if n := cpusPerTask(s); n > 0 {
		e.setInt("SLURM_CPUS_PER_TASK", n)
	}
	figures(e, s)
	if s.RanksPerNode > 0 {
		e.setInt("SLURM_NTASKS_PER_NODE", s.RanksPerNode)
	}
}

// TasksOn is how many tasks each node of a job has, as SLURM_TASKS_PER_NODE says, by how many of its ranks and CPUs are there.
func TasksOn(a *api.Asked, size int, ranks, cpus []int) []int {
	if a == nil {
		return ranks
	}
	out := make([]int, len(ranks))
	tasks := (&api.Spec{Asked: a}).TasksOf(size, len(ranks))
	switch {
	case a.TasksLeft && !(a.Spread && size > 1): // as many as its CPUs are for
		for i := range out {
			out[i] = max(1, cpus[i]/max(1, a.CPUsPerTask))
		}
	case tasks < size, tasks > size && a.ByWords: // dealt out
		for i := range out {
			out[i] = (tasks + len(out) - 1 - i) / len(out)
		}
	default:
		return ranks
	}
	return out
}

// cpusPerTask is what a script is told, as it was asked for; 0: nothing, as nobody did.
func cpusPerTask(s *api.Spec) int {
	switch {
	case s.Asked != nil && s.Asked.CPUsPerTask > 0:
		return s.Asked.CPUsPerTask
	case s.Launch == api.LaunchBatch && s.CPUsPerRank == 1:
		return 0
	}
	return s.CPUsPerRank
}

// figures says how memory and cards were counted: in the words they were asked for in, or,
// where a job has none (all of --size), as the scheduler counts them.
func figures(e *env, s *api.Spec) {
	setCount := func(name string, n int) {
		if n > 0 {
			e.setInt(name, n)
		}
	}
	setMemory := func(name string, bytes int64) {
		if bytes > 0 {
			e.set(name, strconv.FormatInt((bytes-1)>>20+1, 10)) // MiB, a begun one is a whole one, as in Slurm
		}
	}
	a := s.Asked
	if a == nil {
		setCount("SLURM_GPUS_PER_NODE", s.GPUsPerNode)
		setCount("SLURM_GPUS_PER_TASK", s.GPUsPerRank)
		setMemory("SLURM_MEM_PER_NODE", s.MemoryPerNode)
		return
	}
	setMemory("SLURM_MEM_PER_NODE", a.MemoryPerNode)
	setMemory("SLURM_MEM_PER_CPU", a.MemoryPerCPU)
	setMemory("SLURM_MEM_PER_GPU", a.MemoryPerGPU)
	e.setGiven("SLURM_GPUS", a.GPUs)
	e.setGiven("SLURM_GPUS_PER_NODE", a.GPUsPerNode)
	e.setGiven("SLURM_GPUS_PER_TASK", a.GPUsPerTask)
	setCount("SLURM_CPUS_PER_GPU", a.CPUsPerGPU)
}

func array(e *env, b *api.AssignmentBody) {
	if b.ArrayIndex == nil {
		return
	}
	e.set("SLURM_ARRAY_JOB_ID", strconv.FormatInt(b.ArrayJobID, 10))
	e.setInt("SLURM_ARRAY_TASK_ID", *b.ArrayIndex)
	e.setInt("SLURM_ARRAY_TASK_COUNT", b.ArrayCount)
	e.setInt("SLURM_ARRAY_TASK_MIN", b.ArrayMin)
	e.setInt("SLURM_ARRAY_TASK_MAX", b.ArrayMax)
	e.setInt("SLURM_ARRAY_TASK_STEP", b.ArrayStep)
}

// layout is where the ranks of a gang sit, seen from one node.
type layout struct {
	counts    []int // ranks by node
	cpus      []int // of them, by node
	local     int   // of this node
	localRank map[int]int
	cards     []string // of this node, each once, in the order of the ranks
	peers     string   // address of each rank
	master    string   // address of rank 0
}

func newLayout(s *api.Spec, b *api.AssignmentBody, node int) *layout {
	l := &layout{counts: make([]int, len(b.Nodes)), cpus: make([]int, len(b.Nodes)), localRank: map[int]int{},
		master: b.Nodes[b.Ranks[0].Node].Address}
	seen := map[string]bool{}
	var peers strings.Builder
	for r, p := range b.Ranks {
		if peers.Len() < maxPeersBytes {
			if r > 0 {
				peers.WriteByte(',')
			}
			peers.WriteString(b.Nodes[p.Node].Address)
		}
		if p.Node == node {
			l.localRank[r] = l.counts[node]
			for _, c := range p.Cards {
				if !seen[c] {
					seen[c] = true
					l.cards = append(l.cards, c)
				}
			}
		}
		l.counts[p.Node]++
		l.cpus[p.Node] += s.FiguresOf(r).CPUs
	}
	for i := range b.Nodes {
		l.cpus[i] = max(l.cpus[i], b.Nodes[i].CPUs)
	}
	l.local = l.counts[node]
	if peers.Len() < maxPeersBytes {
		l.peers = peers.String()
	}
	return l
}
