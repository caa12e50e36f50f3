package script

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

type word struct {
	option, variable string
	as               func(value string) string // nil: as written; empty: not told
}

// words are the variables in which a script of Slurm's finds an option as it was written, by the option. What
// a job came to (its nodes, their CPUs, its cards) is told where it runs.
var words = []word{
	{"ntasks-per-node", "SLURM_NTASKS_PER_NODE", nil},
	{"ntasks-per-socket", "SLURM_NTASKS_PER_SOCKET", nil},
	{"ntasks-per-core", "SLURM_NTASKS_PER_CORE", nil},
	{"ntasks-per-gpu", "SLURM_NTASKS_PER_GPU", nil},
	{"cpus-per-task", "SLURM_CPUS_PER_TASK", nil},
	{"cpus-per-gpu", "SLURM_CPUS_PER_GPU", nil},
	{"gpus", "SLURM_GPUS", nil},
	{"gpus-per-node", "SLURM_GPUS_PER_NODE", nil},
	{"gpus-per-socket", "SLURM_GPUS_PER_SOCKET", nil},
	{"gpus-per-rank", "SLURM_GPUS_PER_TASK", nil},
	{"gpu-bind", "SLURM_GPU_BIND", nil},
	{"gpu-freq", "SLURM_GPU_FREQ", nil},
	{"hint", "SLURM_HINT", strings.ToLower},
	{"distribution", "SLURM_DISTRIBUTION", func(v string) string { kind, _, _ := strings.Cut(v, "="); return plainDistribution(kind) }},
	{"distribution", "SLURM_DIST_PLANESIZE", func(v string) string { _, size, _ := strings.Cut(v, "="); return size }},
	{"overcommit", "SLURM_OVERCOMMIT", func(string) string { return "1" }},
	{"acctg-freq", "SLURM_ACCTG_FREQ", nil},
	{"cpu-freq", "SLURM_CPU_FREQ_REQ", clockOf},
	{"profile", "SLURM_PROFILE", profileOf},
	{"mem-bind", "SLURM_MEM_BIND", nil},
	{"mem-bind", "SLURM_MEM_BIND_VERBOSE", func(v string) string {
		if strings.HasPrefix(v, "verbose") {
			return "verbose"
		}
		return "quiet"
	}},
}

// IsTold reports whether an option, by its main name, is among what the script and the command of salloc are told as written.
func IsTold(long string) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.option == long })
}

// told says, in Slurm's variables, what was asked for.
func (a *Ask) told() (out []string) {
	add := func(variable, value string) {
		if value != "" {
			out = append(out, variable+"="+value)
		}
	}
	if n := a.tasks(); n > 0 {
		add("SLURM_NTASKS", strconv.Itoa(n))
		add("SLURM_NPROCS", strconv.Itoa(n))
	}
	for _, w := range words {
		by := a.By(w.option)
		if by == nil {
			continue
		}
		value := strings.TrimSpace(by.Value)
		if w.as != nil {
			value = w.as(value)
		}
		add(w.variable, value)
	}
	if d, list := a.By("distribution"), a.By("nodelist"); d != nil && list != nil && plainDistribution(d.Value) == api.Arbitrary {
		if names, err := hostlist.Expand(list.Value); err == nil {
			add("SLURM_ARBITRARY_NODELIST", hostlist.Compress(names))
		}
	}
	if n := a.threads(); n > 0 {
		add("SLURM_THREADS_PER_CORE", strconv.Itoa(n))
	}
	memory := func(variable string, bytes int64) {
		if bytes > 0 {
			add(variable, strconv.FormatInt((bytes-1)>>20+1, 10)) // MiB, a begun one is a whole one
		}
	}
	memory("SLURM_MEM_PER_NODE", a.memNode)
	memory("SLURM_MEM_PER_CPU", a.memCPU)
	memory("SLURM_MEM_PER_GPU", a.memGPU)
	return out
}

// tasks is how many tasks were asked for, or follow from what was; 0: nobody said.
func (a *Ask) tasks() int {
	switch {
	case a.ntasks > 0:
		return a.ntasks
	case a.perNodeSaid:
		if a.slots > 0 {
			return a.slots
		}
		return a.Spec.Size
	}
	return 0
}

// threads is how many threads of a core are used, by --threads-per-core or by a hint; 0: nobody said.
func (a *Ask) threads() int {
	if hint := a.By("hint"); hint != nil && a.Spec.ThreadsPerCore == 0 && !strings.EqualFold(hint.Value, "multithread") {
		return 1
	}
	return max(a.Spec.ThreadsPerCore, a.Spec.Shape.Threads)
}

// tasksOfShape is how many tasks a node has where only nodes and their sockets, cores and threads are asked for: as
// sbatch counts, one for each of the threads. 0: nobody said.
func (a *Ask) tasksOfShape() int {
	shape := a.Spec.Shape
	if threads := a.threads(); shape.Threads == 0 {
		shape.Threads = threads
	}
	if a.By("nodes") == nil || a.nodesMin != a.nodesMax || shape == (api.CPUShape{}) {
		return 0
	}
	return max(1, shape.Sockets) * max(1, shape.Cores) * max(1, shape.Threads)
}

func plainDistribution(kind string) string {
	kind, _, _ = strings.Cut(strings.ToLower(kind), ",")
	if kind == "*" {
		return ""
	}
	return kind
}

// clockOf is a CPU frequency as Slurm tells it: words begin with a capital.
func clockOf(v string) string {
	parts := strings.FieldsFunc(v, func(r rune) bool { return r == '-' || r == ':' })
	for _, p := range parts {
		word := strings.ToLower(p)
		for _, known := range []string{"Low", "Medium", "High", "HighM1"} {
			if word == strings.ToLower(known) {
				v = strings.Replace(v, p, known, 1)
			}
		}
	}
	return v
}

func profileOf(v string) string {
	return strings.ToUpper(v[:min(1, len(v))]) + strings.ToLower(v[min(1, len(v)):])
}
