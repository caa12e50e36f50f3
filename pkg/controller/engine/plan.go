package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// planning is what the engine keeps for the scheduler.
type planning struct {
	queue   *order.Queue
	ledger  *order.Ledger
	planner sched.Planner
	running []*order.Running // by job
	last    sched.Plan
	kept    []given.Backfill // as the store has them
	again   bool             // something changed since the last plan, or that one was cut short
	parts   []api.Partition  // as of the last look at their tiers
	next    time.Duration    // when the plan is to be made again though nothing happens; 0: never
}

// learnFrom bounds what of the past is read at start: beyond it nothing weighs enough to
// change an order.
const (
	learnJobs      = 10000
	learnHalfLives = 4
)

// initPlanning makes the queue from the state, and the ledger from the history that is
// stored: what an order goes by is the same after a restart.
func (e *Engine) initPlanning(ctx context.Context, now time.Time) error {
	p := e.policy()
	e.plan.ledger = order.NewLedger(p.HalfLife)
	e.plan.queue = order.NewQueue(p, e.plan.ledger)
	span := p.HalfLife
	if span <= 0 {
		span = order.DefaultHalfLife
	}
	past, err := e.store.Jobs(ctx, store.HistoryFilter{EndedAfter: now.Add(-learnHalfLives * span), Limit: learnJobs})
	if err != nil {
		return err
	}
	for _, j := range slices.Backward(past) {
		if j.Verdict != nil {
			e.relearn(j)
		}
	}
	for j := range e.world.Jobs() {
		if j.Verdict == nil {
			e.relearn(j)
		}
	}
	return nil
}

// learn tells the ledger of an attempt that has ended.
func (e *Engine) learn(j *gang.Job, start, end time.Time) {
	if start.IsZero() || !end.After(start) {
		return
	}
	u := order.Usage{Peer: peerOf(j), Account: j.Spec.Account, Ran: end.Sub(start), Ended: end}
	switch v := j.Verdict; {
	case v == nil:
		u.Before, u.Alive, u.Limit = j.Kept-keptIn(j, start), j.Kept, j.TimeLimit
	case v.State == api.JobCompleted || v.State == api.JobTimeout:
		u.Before, u.Whole, u.Limit = j.Kept, j.Kept+u.Ran, j.TimeLimit
	}
	e.plan.ledger.Add(u)
}

// peerOf is a job as those like it are looked for.
func peerOf(j *gang.Job) order.Peer {
	ask := cluster.AskOf(j.Spec, strings.Split(j.Partition, ","))
	return order.Peer{User: j.User, Name: j.Name, Cards: order.CardsOf(ask), Job: j.ID}
}

// keptIn is how much of what is kept of a job is of the attempt that began at start.
func keptIn(j *gang.Job, start time.Time) time.Duration {
	if saved := gang.LastSaved(j, 0); saved.After(start) {
		return min(j.Kept, saved.Sub(start).Round(time.Millisecond))
	}
	return 0
}

// relearn tells the ledger at start of one job: what was learnt of its earlier attempts, and
// is kept, with its last one.
func (e *Engine) relearn(j *gang.Job) {
	if j.Kept > 0 && (j.Verdict == nil || j.Verdict.State == api.JobCompleted || j.Verdict.State == api.JobTimeout) {
		of := peerOf(j)
		of.Job = 0 // it has not ended so
		e.plan.ledger.Add(order.Usage{Peer: of, Account: j.Spec.Account, Alive: j.Kept, Limit: j.TimeLimit, Ended: j.Submit})
	}
	if j.Verdict != nil {
		e.learn(j, j.Start, j.End)
	}
}

// learnFrom takes in the attempts that ended in a batch.
func (e *Engine) learnFrom(ch *gang.Changes) {
	for i := range ch.Epochs {
		r := &ch.Epochs[i]
		if j := e.world.Job(r.Job); j != nil && !r.Ended.IsZero() {
			e.learn(j, r.Started, r.Ended)
		}
	}
}

// requeue brings the queue and what runs into line with what the core says of the jobs that
// changed, and reports whether anything did.
func (e *Engine) requeue() bool {
	ids, nodes := e.world.TakeQueue()
	var waiting []*order.Candidate
	var gone []int64
	tiers := map[string]int64{}
	all := e.world.Partitions()
	tier := func(id int64) int64 {
		in := e.world.Job(id).Partition
		t, known := tiers[in]
		if !known {
			t = tierOf(all, in)
			tiers[in] = t
		}
		return t
	}
	for _, id := range ids {
		if c := e.world.Candidate(id); c != nil {
			c.Tier = tier(id)
			waiting = append(waiting, c)
		} else {
			gone = append(gone, id)
		}
		r := e.world.Running(id)
		if r != nil {
			r.Tier = tier(id)
		}
		e.plan.running = order.PutRunning(e.plan.running, id, r)
	}
	e.plan.queue.Update(waiting, gone)
	if !sameList(all, e.plan.parts) {
		e.plan.parts = all
		e.plan.queue.Retier(tier)
		for i, r := range e.plan.running {
			if t := tier(r.Job); t != r.Tier {
				own := *r
				own.Tier, e.plan.running[i] = t, &own
			}
		}
	}
	e.view.setClasses(ids, e.plan.queue)
	return nodes || len(ids) > 0
}

// sameList: both are one list, not only alike.
func sameList(a, b []api.Partition) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// tierOf is the highest tier of the partitions that a job may run in, of all there are.
func tierOf(all []api.Partition, partitions string) int64 {
	tier, first := 0, true
	for name := range strings.SplitSeq(partitions, ",") {
		for i := range all {
			if p := &all[i]; p.Name == name && (first || p.Tier > tier) {
				tier, first = p.Tier, false
			}
		}
	}
	return int64(tier)
}

// planStarts plans when something changed and hands each decision to the core, which checks
// it whole against the newest state. What it admits travels in the same commit as what
// made it possible: a submission that can start at once costs one fsync, not two.
func (e *Engine) planStarts(now gang.Instant) {
	changed := e.requeue()
	due := e.plan.next > 0 && now.Mono >= e.plan.next
	if !e.plan.again && !due && !changed || e.view.onHold() != "" {
		e.plan.again = false
		return
	}
	began := e.opt.Clock.Now().Mono
	e.plan.queue.Refresh(now.Wall)
	plan := e.plan.planner.Make(now.Wall, e.schedView(), e.roundPolicy())
	e.opt.Record.Plan(e.opt.Clock.Now().Mono-began, now.Wall)
	e.plan.last = plan
	for _, s := range plan.Starts {
		e.world.Step(now, gang.Admit{Job: s.Job, Slots: s.Slots, TimeLimit: s.TimeLimit, Turn: s.Turn})
	}
	for _, s := range plan.Stops {
		e.world.Step(now, gang.Preempt{Job: s.Job, For: fmt.Sprintf("job %d", s.For)})
	}
	e.requeue()
	// A plan cut short by its bound goes on in the next round, after others had theirs.
	most := e.own.Policy.MaxStarts
	e.plan.again = most > 0 && len(plan.Starts) >= most
	// A gang that is stopped before it has started waits again at once, and may start elsewhere.
	e.plan.again = e.plan.again || len(plan.Stops) > 0
	if e.plan.next = 0; !plan.Next.IsZero() {
		e.plan.next = now.Mono + max(time.Millisecond, plan.Next.Sub(now.Wall))
	}
}

// deadline is when something is to be done though nothing happens: the core's next timer,
// or the next plan's.
func (e *Engine) deadline() (mono time.Duration, ok bool) {
	mono, ok = e.world.NextDeadline()
	if next := e.plan.next; next > 0 && (!ok || next < mono) {
		return next, true
	}
	return mono, ok
}

// schedView is the scheduler's snapshot of the live state; it must not outlive the round.
func (e *Engine) schedView() *given.View {
	nodes := e.world.Nodes()
	v := &given.View{Nodes: make([]*cluster.Node, len(nodes)), Queue: e.plan.queue, Running: e.plan.running, Backfills: e.plan.last.Backfills,
		Reservations: e.world.SchedReservations(), Names: e.jobName}
	for i, n := range nodes {
		v.Nodes[i] = n.Res
	}
	return v
}

// keptView is a snapshot that may be kept: its lists are copies.
func (e *Engine) keptView() *given.View {
	v := e.schedView()
	v.Queue, v.Running = v.Queue.Clone(), slices.Clone(v.Running)
	return v
}
