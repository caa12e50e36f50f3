package sched

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
)

// View is the snapshot a plan is made from.
type View struct {
	Nodes []*cluster.Node // by name; the expected end of a grant is its Until
	Queue *order.Queue    // what waits
	// Running is what holds nodes, by job. Needed for preemption, caps and quotas; without
	// it none of these is done.
	Running []*order.Running
	// Backfills are those of the plan before, nil at first. A backfill that still holds is kept
	// where it is: one that moved to whatever looks emptiest now would meet, at each new
	// place, small gangs that were let in while it stood elsewhere.
	Backfills []Backfill
	// Reservations are the reservations: nodes that are for a time only for some.
	Reservations []Reservation
	// Names is what texts call the jobs, nil: by their numbers. Texts of a plan are made when
	// somebody asks, from any goroutine.
	Names Names
}

// Names is what a person calls a job: 20_4 for an element of an array.
type Names func(job int64) string

func (f Names) of(job int64) string {
	if f != nil {
		return f(job)
	}
	return strconv.FormatInt(job, 10)
}

// list is "job 12" or "jobs 12, 20_4 and 3 more".
func (f Names) list(ids []int64) string {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	const most = 5
	var parts []string
	for _, id := range ids[:min(most, len(ids))] {
		parts = append(parts, f.of(id))
	}
	if more := len(ids) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if len(ids) == 1 {
		return "job " + parts[0]
	}
	return "jobs " + join(parts)
}

// Plan is the decision. The engine re-checks each start against the newest state.
type Plan struct {
	Starts    []Start
	Stops     []Stop     // gangs to preempt now
	Backfills []Backfill // for the next view
	// Next is when a plan would decide otherwise though nothing has happened: a victim is to
	// be told, a minimum run is over, a gang has waited too long. Zero: never.
	Next     time.Time
	verdicts verdictList
	names    Names
}

// Reason is why a candidate that did not start stays, from this plan; false when it was not
// looked at. It may be called from any goroutine.
func (p *Plan) Reason(job int64, cl *order.JobClass) (Reason, bool) {
	v := p.verdicts.of(cl)
	if v == nil {
		return Reason{}, false
	}
	return v.reason(job, p.names), true
}

// Word is that of Reason alone: the texts of ten thousand gangs, of which a list shows none,
// cost more than the plan did.
func (p *Plan) Word(job int64, cl *order.JobClass) (string, bool) {
	v := p.verdicts.of(cl)
	if v == nil {
		return "", false
	}
	return v.wordFor(job), true
}

// Reasons are those of all candidates of a queue that stay, in its order.
func (p *Plan) Reasons(q *order.Queue) []Reason {
	starts := make(map[int64]bool, len(p.Starts))
	for _, s := range p.Starts {
		starts[s.Job] = true
	}
	var out []Reason
	for _, c := range q.Slice() {
		if r, ok := p.Reason(c.Job, q.JobClass(c.Job)); ok && !starts[c.Job] {
			out = append(out, r)
		}
	}
	return out
}

// Backfill is the places that are kept for a gang that can't start now, its taker: it will have
// them when what runs there has ended, and lower ones leave them alone but those that have
// ended by then. The store keeps it under the keys of the first release.
type Backfill struct {
	Job   int64
	Slots []cluster.Slot // by rank
	// At is when these places are free at the latest, by the time limits of what is there;
	// zero: not known. Lower gangs that end before it may use them meanwhile.
	At time.Time
	// SearchedAt is when an earlier place was last looked for.
	SearchedAt time.Time `json:"Looked"`
	// Victims are preempted for it, which makes it a move.
	Victims []Victim
	// Until is when the taker of a move ends at the latest; zero: this is not a move, or
	// not known. Until the taker starts the places are its alone, but for backfills of later.
	Until time.Time
}

// Victim is a gang that makes room for a backfill.
type Victim struct {
	Job      int64
	Epoch    int
	At       time.Time // when it is to be told: those with a shorter notice are told later
	Notified bool      `json:"Told"`
}

// Start is one gang with a place for each rank.
type Start struct {
	Job       int64
	Slots     []cluster.Slot // by rank
	TimeLimit time.Duration  // to what its time limit is cut; 0: it is not
	Turn      order.Turn     // why it was at the front of its tier
}

// Stop is one gang to be preempted.
type Stop struct {
	Job   int64
	Epoch int
	For   int64 // the gang that takes its place
}

// Reason says why a candidate stays.
type Reason struct {
	Job  int64
	Word string // Slurm's: Resources, Priority, ReqNodeNotAvail ...
	Text string // the arithmetic, for people
}
