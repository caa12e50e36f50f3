package sched

import (
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/victims"
	"gangd/pkg/core/sched/why"
)

// Plan is the decision. The engine re-checks each start against the newest state.
type Plan struct {
	Starts    []Start
	Stops     []victims.Stop   // gangs to preempt now
	Backfills []given.Backfill // for the next view
	// Next is when a plan would decide otherwise though nothing has happened: a victim is to
	// be told, a minimum run is over, a gang has waited too long. Zero: never.
	Next     time.Time
	verdicts why.Verdicts
	names    given.Names
}

// Reason is why a candidate that did not start stays, from this plan; false when it was not
// looked at. It may be called from any goroutine.
func (p *Plan) Reason(job int64, cl *order.JobClass) (why.Reason, bool) {
	return p.verdicts.Reason(job, cl, p.names)
}

// Word is that of Reason alone: the texts of ten thousand gangs, of which a list shows none,
// cost more than the plan did.
func (p *Plan) Word(job int64, cl *order.JobClass) (string, bool) { return p.verdicts.Word(job, cl) }

// Brief is the text of Reason for a line of a table.
func (p *Plan) Brief(job int64, cl *order.JobClass) string { return p.verdicts.Brief(job, cl, p.names) }

// Reasons are those of all candidates of a queue that stay, in its order.
func (p *Plan) Reasons(q *order.Queue) []why.Reason {
	starts := make(map[int64]bool, len(p.Starts))
	for _, s := range p.Starts {
		starts[s.Job] = true
	}
	var out []why.Reason
	for _, c := range q.Slice() {
		if r, ok := p.Reason(c.Job, q.JobClass(c.Job)); ok && !starts[c.Job] {
			out = append(out, r)
		}
	}
	return out
}

// Start is one gang with a place for each rank.
type Start struct {
	Job       int64
	Slots     []cluster.Slot // by rank
	TimeLimit time.Duration  // to what its time limit is cut; 0: it is not
	Turn      order.Turn     // why it was at the front of its tier
}
