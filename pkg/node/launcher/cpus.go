package launcher

import (
	"fmt"
	"runtime"
	"strings"

	"gangd/pkg/core/cpus"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/stepwire"
)

// bindings are the CPUs of each task here, and how Slurm says it; nil where CPUs are not bound.
func (l *launcher) bindings(tasks int) (sets []cpus.Set, env []string, err error) {
	t := l.start.Machine
	if t == nil || tasks == 0 {
		if l.body.Bind.Kind != cpus.ByDefault && l.body.Bind.Kind != cpus.ByNone {
			_ = l.conn.Send(stepwire.Say, 0, fmt.Appendf(nil, "gstep: warning: --cpu-bind has no effect on %s: CPUs are not bound there",
				l.start.Node))
		}
		return nil, nil, nil
	}
	sets, err = l.body.Bind.Tasks(t, tasks, max(l.body.Reply.CPUsPerTask, 1))
	if err != nil {
		return nil, nil, err
	}
	told := sets
	if l.body.Bind.Kind == cpus.ByNone {
		told = nil
	}
	return sets, cpus.Environ(told, l.body.Bind.Verbose), nil
}

// startBound starts a task on its CPUs; bad is why there are none for it.
func (l *launcher) startBound(t *task, sets []cpus.Set, bad error, dir string, env []string) error {
	if bad != nil {
		return bad
	}
	if sets == nil {
		return l.startTask(t, dir, env)
	}
	set := sets[t.local]
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	restore, err := proc.Bound(set)
	if err != nil {
		return fmt.Errorf("bind to CPUs %s: %w", set, err)
	}
	defer restore()
	if l.body.Bind.Verbose { // as slurmstepd says it
		_ = l.conn.Send(stepwire.Errors, uint32(t.number), fmt.Appendf(nil, "cpu-bind=MASK - %s, task %2d %2d: mask %s set\n", l.start.Node,
			t.number, t.local, strings.ToLower(set.Mask())))
	}
	return l.startTask(t, dir, env)
}
