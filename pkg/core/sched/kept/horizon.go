package kept

import (
	"slices"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
)

// horizon is what ends when: what holds nodes, and the starts planned so far.
type horizon struct {
	*given.Facts
	mem *Memory
	// others are ends that the timeline does not have as they are, made when first asked
	// for, with as many grants of starts as othersAt says; started is these.
	others   []ending
	othersAt int
	started  []fit.Grant
	stopBy   map[int64]time.Time
}

// overdue is how soon something is expected to end that should have ended by now.
const overdue = time.Minute

// endOf is when a grant ends at the latest; zero: not known. A gang that is being stopped
// ends sooner than its time limit says, and also without one.
func (hz *horizon) endOf(g *cluster.Grant) time.Time {
	t := g.Until
	if by, stopping := hz.stopping()[g.Job]; stopping && (t.IsZero() || by.Before(t)) {
		t = by
	}
	if !t.IsZero() && t.Before(hz.Now) {
		t = hz.Now.Add(overdue)
	}
	return t
}

// stopping is until when the gangs that are being stopped have ended.
func (hz *horizon) stopping() map[int64]time.Time {
	if hz.stopBy == nil {
		hz.stopBy = make(map[int64]time.Time)
		for _, r := range hz.View.Running {
			if r.Stopping {
				hz.stopBy[r.Job] = r.StopBy
			}
		}
	}
	return hz.stopBy
}

// byEnd is everything on the ready nodes whose end is known, with the starts planned so
// far, the first to end first.
func (hz *horizon) byEnd() *ends {
	if hz.others == nil || hz.othersAt != len(hz.started) {
		hz.others, hz.othersAt = hz.otherEnds(hz.others[:0]), len(hz.started)
	}
	s := &ends{pieces: hz.mem.ends.pieces, other: hz.others, not: hz.stopping()}
	// What is overdue is among the others.
	for len(s.pieces) > 0 {
		p := s.pieces[0]
		if s.i, _ = slices.BinarySearchFunc(p, hz.Now, func(e ending, now time.Time) int { return e.t.Compare(now) }); s.i < len(p) {
			break
		}
		s.pieces, s.i = s.pieces[1:], 0
	}
	return s
}

// otherEnds lists what ends at another time than the timeline has it: what is overdue or is
// being stopped, and the starts planned so far.
func (hz *horizon) otherEnds(out []ending) []ending {
	stopping := hz.stopping()
	for _, p := range hz.mem.ends.pieces {
		if len(p) == 0 || !p[0].t.Before(hz.Now) {
			break
		}
		for _, e := range p {
			if by, stops := stopping[e.key.Job]; e.t.Before(hz.Now) && !(stops && by.Before(e.t)) {
				e.t = hz.Now.Add(overdue)
				out = append(out, e)
			}
		}
	}
	if len(stopping) > 0 {
		out = hz.stoppedEnds(out)
	}
	for _, g := range hz.started {
		if !g.Until.IsZero() {
			out = append(out, endingOf(g.At, hz.endOf(&g.Grant), &g.Grant))
		}
	}
	if out == nil {
		out = []ending{}
	}
	slices.SortFunc(out, compareEnding)
	return out
}

// stoppedEnds are those that come sooner because their gang is being stopped.
func (hz *horizon) stoppedEnds(out []ending) []ending {
	for at, n := range hz.View.Nodes {
		for _, g := range endsOn(n) {
			if by, stops := hz.stopping()[g.Job]; stops && (g.Until.IsZero() || by.Before(g.Until)) {
				if t := hz.endOf(&g); !t.IsZero() {
					out = append(out, endingOf(at, t, &g))
				}
			}
		}
	}
	return out
}
