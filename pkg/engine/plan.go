package engine

import (
	"time"

	"gangd/pkg/cluster"
	"gangd/pkg/gang"
	"gangd/pkg/sched"
)

// requeue brings the queue into line with what the core says of one job.
func (e *Engine) requeue(id int64) {
	if c := e.world.Candidate(id); c != nil {
		e.queue.Insert(c)
	} else {
		e.queue.Remove(id)
	}
	e.view.setClass(id, e.queue.Class(id))
}

// planStarts plans when something changed and hands each start to the core, which checks
// it whole against the newest state. What it admits travels in the same commit as what
// made it possible: a submission that can start at once costs one fsync, not two.
func (e *Engine) planStarts(now gang.Instant) {
	ids, nodes := e.world.TakeQueue()
	for _, id := range ids {
		e.requeue(id)
	}
	if !e.replan && len(ids) == 0 && !nodes || e.view.onHold() != "" {
		e.replan = false
		return
	}
	e.replan = false
	t := time.Now()
	e.plan = e.planner.Make(now.Wall, e.schedView(), &e.opt.Policy)
	e.opt.Record.Plan(time.Since(t), now.Wall)
	for _, s := range e.plan.Starts {
		e.world.Step(now, gang.Reserve{Job: s.Job, Slots: s.Slots})
	}
	ids, _ = e.world.TakeQueue()
	for _, id := range ids {
		e.requeue(id)
	}
	// A plan cut short by its bound goes on in the next round, after others had theirs.
	e.replan = e.opt.Policy.MaxStarts > 0 && len(e.plan.Starts) >= e.opt.Policy.MaxStarts
}

// schedView is the scheduler's snapshot of the live state; it must not outlive the round.
func (e *Engine) schedView() *sched.View {
	nodes := e.world.Nodes()
	v := &sched.View{Nodes: make([]*cluster.Node, len(nodes)), Queue: e.queue, Claims: e.plan.Claims}
	for i, n := range nodes {
		v.Nodes[i] = n.Res
	}
	return v
}

// keptView is a snapshot that may be kept: its queue is a copy.
func (e *Engine) keptView() *sched.View {
	v := e.schedView()
	v.Queue = v.Queue.Clone()
	return v
}
