package script

import (
	"slices"
	"strconv"
	"time"

	"gangd/pkg/api"
)

// A heterogeneous job of Slurm's ("sbatch -n1 : -n4", "#SBATCH hetjob") becomes one gang: each
// component is a role of it on nodes of its own, and all start and end together. What a component
// may have of its own is what it needs and where; all else is the gang's, and is component 0's.

// inherited are the options that hold for the components after the one they are written for, as in
// Slurm. Others are as if they had not been given there.
var inherited = []string{"account", "acctg-freq", "begin", "cluster-constraint", "clusters", "comment", "deadline", "delay-boot",
	"dependency", "disable-status",
	"distribution", "error", "exclude", "export", "export-file", "get-user-env", "gid", "hold", "ignore-pbs", "immediate", "input", "job-name",
	"kill-on-bad-exit",
	"label", "mcs-label", "mem", "mpi", "no-kill", "no-requeue", "nice", "open-mode", "output", "parsable", "priority", "profile", "propagate",
	"pty", "qos", "quiet",
	"quit-on-interrupt", "reboot", "requeue", "reservation", "signal", "task-epilog", "task-prolog", "test-only", "time", "time-min", "uid",
	"unbuffered", "verbose",
	"wait", "wait-all-nodes", "wckey", "chdir"}

// Inherited reports whether an option, by its main name, holds for later components too.
func Inherited(long string) bool { return slices.Contains(inherited, long) }

// componentOptions are those that each component has for itself.
var componentOptions = []string{"nodes", "ntasks", "ntasks-per-node", "ranks-per-node", "gpus-per-rank", "gpus-per-node", "gpus", "gres",
	"vram", "min-compute",
	"cpus-per-task", "cpus-per-gpu", "mincpus", "threads-per-core", "sockets-per-node", "cores-per-socket", "extra-node-info", "mem",
	"mem-per-cpu", "mem-per-gpu", "mem-per-rank", "tmp", "overcommit", "constraint", "nodelist", "exclude", "partition",
	"exclusive", "time", "job-name"}

// gangOptions are those in which components can not differ: a gang has one, and to take another
// than was asked for would not do.
var gangOptions = []string{"account", "reservation", "share", "container-image", "switches"}

// notHeterogeneous are those that a job of components can not have at all.
var notHeterogeneous = []string{"size", "role", "launch", "array"}

// components is how many there are.
func components(settings []Setting) (n int) {
	for i := range settings {
		n = max(n, settings[i].Component+1)
	}
	return n
}

// ofComponent are the settings that hold for one component: its own, those of the environment, and
// what it inherits.
func ofComponent(settings []Setting, c int) []Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool {
		env := s.Source == FromEnv || s.Source == FromSbatchEnv
		return s.Component != c && !env && (s.Component > c || !Inherited(s.Option.Long))
	})
}

// heterogeneous builds each component as if it were a job, and of them one gang.
func heterogeneous(settings []Setting, n int, now time.Time) (*Ask, []Warning, error) {
	for i := range settings {
		if s := &settings[i]; slices.Contains(notHeterogeneous, s.Option.Long) {
			e := s.refuse(s.String()+": a heterogeneous job has components instead", "leave it out, or submit without \":\" and hetjob")
			e.Bad = s
			return nil, nil, e
		}
	}
	var whole *Ask
	var warn []Warning
	for c := range n {
		one := ofComponent(settings, c)
		a, w, err := build(one, now)
		if err != nil {
			if e, ok := err.(*Error); ok {
				e.Msg = "component " + strconv.Itoa(c) + ": " + e.Msg
			}
			return nil, nil, err
		}
		warn = append(warn, w...)
		role := componentOf(&a.Spec, c)
		if c == 0 {
			whole = a
			onlyWhole(&whole.Spec)
		} else if w, err = whole.differ(one, c); err != nil {
			return nil, nil, err
		} else {
			warn = append(warn, w...)
			if t := a.Spec.TimeLimit; whole.Spec.TimeLimit > 0 && (t == 0 || t > whole.Spec.TimeLimit) {
				whole.Spec.TimeLimit = t // a gang ends as one: when the last component may
			}
			if a.Spec.Name != whole.Spec.Name {
				role.Component.JobName = a.Spec.Name
			}
			whole.Spec.Exclusive = whole.Spec.Exclusive || a.Spec.Exclusive
			whole.Spec.Pools = api.AddPools(whole.Spec.Pools, a.Spec.Pools)
		}
		whole.Spec.Roles = append(whole.Spec.Roles, role)
		whole.Spec.Size += role.Count
	}
	if whole.Spec.Size > api.MaxGangSize {
		return nil, nil, &Error{Msg: "the components come to " + strconv.Itoa(whole.Spec.Size) + " ranks, at most " +
			strconv.Itoa(api.MaxGangSize) + " are accepted", Hint: "ask for fewer"}
	}
	return whole, warn, nil
}

// differ looks at what component c asks for otherwise than component 0 and can not have for itself.
func (a *Ask) differ(settings []Setting, c int) (warn []Warning, err error) {
	for i := range settings {
		s := &settings[i]
		long := s.Option.Long
		if s.Component != c || s.Option.Set == nil || s.Option.OnLine || slices.Contains(componentOptions, long) {
			continue // what belongs on the command line is of the submission, wherever it stands
		}
		if by := a.By(long); by != nil && by.Value == s.Value {
			continue
		}
		text := "component " + strconv.Itoa(c) + ": " + s.String()
		if slices.Contains(gangOptions, long) {
			return nil, s.refuse(text+": the components are one gang, which has one --"+long, "write it for component 0 alone")
		}
		warn = append(warn, Warning{s.Pos, text + " has no effect: the components are one gang, and component 0 says it"})
	}
	return warn, nil
}

// componentOf is what a spec that was derived as a job's comes to as a component.
func componentOf(s *api.Spec, c int) api.Role {
	return api.Role{Name: api.ComponentName(c), Count: s.Size, CPUsPerRank: s.CPUsPerRank, MemoryPerRank: s.MemoryPerRank,
		GPUsPerRank: s.GPUsPerRank,
		GPUType:     s.GPUType, VRAMBytes: s.VRAMBytes, Constraint: s.Constraint,
		Component: &api.Component{Partition: s.Partition, MinNodes: s.MinNodes, MaxNodes: s.MaxNodes, RanksPerNode: s.RanksPerNode,
			GPUsPerNode:   s.GPUsPerNode,
			MemoryPerNode: s.MemoryPerNode, MinCompute: s.MinCompute, Shape: s.Shape, NodeList: s.NodeList, Exclude: s.Exclude, Asked: s.Asked}}
}

// onlyWhole leaves of the spec of component 0 what the gang as a whole asks for.
func onlyWhole(s *api.Spec) {
	s.Launch, s.Size, s.CPUsPerRank, s.MemoryPerRank, s.MemoryPerNode = api.LaunchBatch, 0, 1, 0, 0
	s.GPUsPerRank, s.GPUsPerNode, s.GPUType, s.VRAMBytes, s.MinCompute = 0, 0, "", 0, ""
	s.Shape = api.CPUShape{}
	s.RanksPerNode, s.MinNodes, s.MaxNodes, s.NodeList, s.Exclude = 0, 0, 0, nil, nil
	s.Constraint, s.Partition, s.Asked = "", "", nil
}
