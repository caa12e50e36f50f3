package shim

import (
	"gangd/pkg/core/cpus"
	"gangd/pkg/node/proc"
)

// bind has what is forked until restore use some of the member's CPUs; none are all of them. Without
// a cpuset of the containment this is all that keeps it to them.
func (m *member) bind(s cpus.Set) (restore func()) {
	if len(s) == 0 {
		s = m.spec.CPUSet()
	}
	restore, err := proc.Bound(s)
	if err != nil {
		logf("bind to CPUs %s: %v", s, err)
	}
	return restore
}

// bindAgain binds what was forked: kernels before 6.2 give a process that is cloned into a group
// all CPUs of that group.
func (m *member) bindAgain(pid int, s cpus.Set, forked error) {
	if forked == nil && len(s) > 0 && m.spec.Containment == proc.Cgroup2 {
		_ = proc.SetAffinity(pid, s) // it may have ended
	}
}

// shareCPUs gives a step CPUs of the member: of its own where it asked for a part of them (--exact),
// else all. Nil: CPUs are not bound here.
func (m *member) shareCPUs(step, tasks, want int) *cpus.Topology {
	all := m.spec.Machine
	if all == nil || want <= 0 || want >= len(all.CPUs) || tasks <= 0 {
		return all
	}
	if m.cpus == nil {
		m.cpus = cpus.NewPool[int](all, nil)
	}
	asks := make([]cpus.Ask, tasks)
	for i := range asks {
		asks[i].CPUs = want / tasks
		if i < want%tasks {
			asks[i].CPUs++
		}
	}
	if _, ok := m.cpus.Take(step, asks); !ok {
		return all // others overlap with it
	}
	return all.Only(m.cpus.Held(step))
}

// giveCPUs takes back what a step had.
func (m *member) giveCPUs(step int) {
	if m.cpus != nil {
		m.cpus.Give(step)
	}
}
