package gang

import (
	"fmt"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// The ready gate: a job that was submitted with a ready time-out has come up when each of its
// ranks has said READY=1, or has ended well before it could. The rank of an allocation is its batch
// script; every task of its widest step saying so is as good. Until then it runs and is shown
// as not ready; what is not ready in time has failed to launch. Who has said so is not
// stored, the nodes say it again to a new controller; that the gate was passed is.

// Ready: these ranks of an epoch, and tasks of its steps, have said READY=1.
type Ready struct {
	Job   int64
	Epoch int
	Ranks []int
	Tasks []api.TaskKey
}

func (Ready) event() {}

// AwaitsReady reports whether the ready gate of a job is still to be passed.
func AwaitsReady(j *Job) bool {
	return j.Spec.ReadyTimeout > 0 && j.ReadyAt.IsZero() && j.Drain == nil && admitted(j) && !reserved(j)
}

func (ln *launches) saidReady(ev Ready) Outcome {
	e := ln.jobs.byID[ev.Job]
	if e == nil || e.job.Epoch != ev.Epoch || !AwaitsReady(e.job) {
		return ignored("no ready gate waits for it")
	}
	more := false
	for _, r := range ev.Ranks {
		if r < 0 || r >= len(e.job.Ranks) || !hasProcess(e.job, r) {
			continue
		}
		if _, known := e.ready[r]; !known {
			if e.ready == nil {
				e.ready = map[int]struct{}{}
			}
			e.ready[r] = struct{}{}
			more = true
		}
	}
	for _, k := range ev.Tasks {
		if _, known := e.readyTasks[k]; !known && TaskNode(e.job, k) != "" {
			if e.readyTasks == nil {
				e.readyTasks = map[api.TaskKey]struct{}{}
			}
			e.readyTasks[k] = struct{}{}
			more = true
		}
	}
	if !more {
		return ignored("known to be ready")
	}
	ln.passReady(e)
	return applied()
}

// passReady opens the ready gate when nobody is waited for any more.
func (ln *launches) passReady(e *entry) {
	if !AwaitsReady(e.job) {
		return
	}
	size := Processes(e.job)
	if late, of := unreadyTasks(e); of > 0 && len(late) == 0 {
		size = of
	} else if len(unready(e)) > 0 {
		return
	}
	j := ln.jobs.edit(e)
	ln.clock.timers.cancel(timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
	j.ReadyAt = ln.clock.now.Wall
	ln.record.emitJob(j, api.Event{Type: api.EventReady, Size: size, Seconds: seconds(ln.clock.now.Wall.Sub(j.Start))})
}

// unreadyTasks lists the tasks that have not said READY=1 of the step that answers for an
// allocation, of how many; none where no such step runs.
func unreadyTasks(e *entry) (late []int, of int) {
	s := StepOf(e.job, Widest(e.job).Step)
	if Widest(e.job).Tasks == 0 || s == nil || e.job.Spec.Launch != api.LaunchBatch {
		return nil, 0
	}
	for i := range s.Parts {
		for _, t := range s.Parts[i].Tasks {
			if _, ok := e.readyTasks[api.TaskKey{Step: s.ID, Task: t}]; !ok {
				late = append(late, t)
			}
		}
		of += len(s.Parts[i].Tasks)
	}
	slices.Sort(late)
	return late, of
}

// unready lists the ranks that the ready gate waits for.
func unready(e *entry) []int {
	var out []int
	for r := range Processes(e.job) {
		if _, ok := e.ready[r]; !ok && e.job.Ranks[r].State == api.RankRunning {
			out = append(out, r)
		}
	}
	return out
}

func (ln *launches) armReady(j *Job) {
	if AwaitsReady(j) && j.Presumed == nil {
		ln.clock.in(j.Spec.ReadyTimeout, timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
	}
}

// readyTimeout: not every rank was ready in time. Ranks on nodes without a session are not
// judged: what they said may be on its way, and their node comes back or is lost.
func (ln *launches) readyTimeout(e *entry) {
	if e == nil || !AwaitsReady(e.job) {
		return
	}
	j, late := e.job, unready(e)
	away := func(r int) bool { return !ln.nodes.byName[j.Ranks[r].Slot.Node].node.Connected }
	if tasks, _ := unreadyTasks(e); slices.ContainsFunc(late, away) || slices.ContainsFunc(tasks, func(t int) bool {
		h := ln.nodes.byName[TaskNode(j, api.TaskKey{Step: Widest(j).Step, Task: t})]
		return h != nil && !h.node.Connected
	}) {
		ln.clock.in(ln.set.NodeTimeout, timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
		return
	}
	who, were, of := rankList(j, late), Processes(j)-len(late), Processes(j)
	if tasks, n := unreadyTasks(e); n > 0 {
		who, were, of = numbers("task", tasks)+" of step "+api.StepText(j.ID, Widest(j).Step), n-len(tasks), n
	}
	ln.stops.accident(e, Report{Cause: api.CauseLaunch, Trigger: late[0], Text: fmt.Sprintf("%s not ready within %s (%d of %d were)", who,
		when.Words(j.Spec.ReadyTimeout), were, of)})
}
