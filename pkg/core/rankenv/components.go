package rankenv

import (
	"cmp"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// Component is what is told of a component of a heterogeneous job.
type Component struct {
	Spec        *api.Spec // as if it were all of the job
	Partition   string
	JobID       int64 // its own; 0: the job's
	Nodes       []string
	Tasks, CPUs []int // by node
}

func (m *Member) components(l *layout) []Component {
	out := make([]Component, m.Spec.Components())
	for i := range out {
		part := m.Spec.Part(i)
		part.Name = cmp.Or(m.Spec.Roles[i].Component.JobName, m.Body.Name)
		out[i] = Component{Spec: part, Partition: m.Spec.Roles[i].Component.Partition}
		if m.Spec.Roles[i].Component.Numbered {
			out[i].JobID = m.Job + int64(i)
		}
	}
	first := 0
	for i, n := range m.Body.Nodes {
		// Nodes stand in the order of their first ranks, and none has ranks of two components.
		c := &out[max(0, m.Spec.ComponentAt(first))]
		c.Nodes, c.Tasks, c.CPUs = append(c.Nodes, n.Name), append(c.Tasks, l.counts[i]), append(c.CPUs, l.cpus[i])
		first += l.counts[i]
	}
	return out
}

// Heterogeneous is what the script of a heterogeneous job and its steps are told of the components, each
// variable by the newer and the older name.
func Heterogeneous(job int64, account string, all []Component) []string {
	size := strconv.Itoa(len(all))
	out := []string{"SLURM_HET_SIZE=" + size, "SLURM_PACK_SIZE=" + size}
	for i, c := range all {
		add := func(variable, value string) {
			if value == "" {
				return
			}
			for _, group := range []string{"_HET_GROUP_", "_PACK_GROUP_"} {
				out = append(out, variable+group+strconv.Itoa(i)+"="+value)
			}
		}
		nodes := strconv.Itoa(len(c.Nodes))
		add("SLURM_JOB_ID", strconv.FormatInt(cmp.Or(c.JobID, job), 10))
		add("SLURM_JOB_NAME", c.Spec.Name)
		add("SLURM_JOB_ACCOUNT", account)
		add("SLURM_JOB_PARTITION", c.Partition)
		add("SLURM_JOB_NODELIST", hostlist.Compress(c.Nodes))
		add("SLURM_JOB_NUM_NODES", nodes)
		add("SLURM_JOB_CPUS_PER_NODE", api.PerNode(c.CPUs))
		add("SLURM_TASKS_PER_NODE", api.PerNode(TasksOn(c.Spec.Asked, c.Spec.Size, c.Tasks, c.CPUs)))
		e := newEnv(nil, nil)
		asked(e, c.Spec, c.Spec.Size, len(c.Nodes))
		for _, kv := range e.list {
			variable, value, _ := strings.Cut(kv, "=")
			add(variable, value)
		}
	}
	return out
}
