package kept

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestEarliestIsTheFirstEnd: a gang that does not fit now has places from the first known end on after which it does, as a
// look at the nodes after each minute finds: with ends that are overdue or come sooner because their gang is being stopped,
// on nodes that just failed it only where no others ever do, as a role, and around a reservation that is in nobody's way.
func TestEarliestIsTheFirstEnd(t *testing.T) {
	found := 0
	see := func(rt *rapid.T) int {
		nodes := plantest.Nodes(rapid.IntRange(1, 4).Draw(rt, "nodes"), 6, 3, 80)
		for i := range nodes {
			if rapid.Bool().Draw(rt, "featured") {
				nodes[i].Features = rapid.SampledFrom([][]string{{"ib"}, {"ib", "big"}}).Draw(rt, "features")
			}
			nodes[i].Ready = rapid.IntRange(0, 9).Draw(rt, "ready") > 0
		}
		job, running, ends := int64(0), []*order.Running(nil), slices.Clone(nodes)
		for at := range nodes {
			cards := rapid.Permutation([]int{0, 1, 2}).Draw(rt, "cards")
			for _, n := range rapid.SampledFrom([][]int{nil, {1}, {1, 1}, {1, 1, 1}, {3}, {2, 1}, {2}}).Draw(rt, "held") {
				job++
				until := rapid.SampledFrom([]int{-1, 0, 1, 2, 3, 4, 5, 6, 7, 8}).Draw(rt, "until")
				nodes[at] = plantest.Run(nodes[at], job, until, cards[:n]...)
				by := max(1, until)
				if stop := rapid.IntRange(-9, 9).Draw(rt, "stop"); stop > 0 {
					running = append(running, &order.Running{Job: job, Epoch: 1, Ending: order.Ending{Stopping: true, StopBy: plantest.Epoch0.Add(time.Duration(stop) * time.Minute)}})
					if until == 0 || until > stop {
						until, by = stop, stop
					}
				}
				if until == 0 {
					by = 0
				}
				ends[at] = plantest.Run(ends[at], job, by, cards[:n]...)
				cards = cards[n:]
			}
		}
		s := api.Spec{Size: rapid.IntRange(1, 5).Draw(rt, "ranks"), CPUsPerRank: rapid.IntRange(1, 2).Draw(rt, "cpus")}
		switch rapid.IntRange(0, 4).Draw(rt, "asks") {
		case 0:
			s.GPUsPerNode = rapid.IntRange(1, 3).Draw(rt, "per node")
		case 1:
		default:
			s.GPUsPerRank = rapid.IntRange(1, 3).Draw(rt, "per rank")
		}
		role := s
		switch rapid.IntRange(0, 5).Draw(rt, "layout") {
		case 0:
			s.RanksPerNode = rapid.IntRange(1, 3).Draw(rt, "ranks per node")
		case 1:
			s.MinNodes = rapid.IntRange(1, min(3, s.Size)).Draw(rt, "min")
		case 2:
			s.MaxNodes = rapid.IntRange(1, 3).Draw(rt, "max")
		case 3:
			s.Constraint = rapid.SampledFrom([]string{"ib", "[ib|big]", "ib*2", "big*1"}).Draw(rt, "constraint")
		}
		c := plantest.Candidate(1000, s)
		c.TimeLimit = time.Hour
		if rapid.IntRange(0, 3).Draw(rt, "failed") == 0 {
			c.Avoid = []string{"n00001"}
		}
		rest := slices.Clone(ends)
		if len(c.Avoid) > 0 {
			n := *rest[0]
			n.Ready = false
			rest[0] = &n
		}
		want, late := plantest.EarliestOf(c, rest), false
		if want.IsZero() {
			want, late = plantest.EarliestOf(c, ends), true
		}
		if plantest.BruteForce(c, rest) || plantest.BruteForce(c, ends) {
			return 0
		}
		v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(c), Running: running}
		at := func(c *order.Candidate, m *plans, before time.Time, reservations ...given.Reservation) (*Backfills, []cluster.Slot, time.Time) {
			v.Reservations = reservations
			pl := m.plan(plantest.Epoch0, v, &order.Policy{})
			slots, at := pl.earliest(c, pl.fit.ClassOf(c.Ask), c.Avoid, before)
			return pl, slots, at
		}
		pl, slots, got := at(c, new(plans), time.Time{})
		if !got.Equal(want) || (slots == nil) != want.IsZero() {
			t.Fatalf("at %v, want %v: %+v", got.Sub(plantest.Epoch0), want.Sub(plantest.Epoch0), s)
		}
		if _, all, when := at(c, &plans{mem: Memory{VisitsAll: true}}, time.Time{}); !when.Equal(got) || !slices.EqualFunc(all, slots, sameSlot) {
			t.Fatalf("%v on %v, and on %v at %v where each end is looked at", got.Sub(plantest.Epoch0), slots, all, when.Sub(plantest.Epoch0))
		}
		if _, _, when := at(c, new(plans), time.Time{}, window("later", 1000*time.Hour, time.Hour, "n00001")); !when.Equal(want) {
			t.Fatalf("beside a reservation at %v, want %v: %+v", when.Sub(plantest.Epoch0), want.Sub(plantest.Epoch0), s)
		}
		if s.GPUsPerNode == 0 && s.RanksPerNode+s.MinNodes+s.MaxNodes == 0 && s.Constraint == "" {
			role.Roles = []api.Role{{Name: "a", Count: s.Size, CPUsPerRank: s.CPUsPerRank, GPUsPerRank: s.GPUsPerRank}}
			role.CPUsPerRank, role.GPUsPerRank = 0, 0
			one := plantest.Candidate(1000, role)
			one.Avoid = c.Avoid
			if _, _, when := at(one, new(plans), time.Time{}); !when.Equal(want) {
				t.Fatalf("as a role at %v, want %v: %+v", when.Sub(plantest.Epoch0), want.Sub(plantest.Epoch0), s)
			}
		}
		if slots == nil {
			return 0
		}
		found++
		if late != slices.ContainsFunc(slots, func(s cluster.Slot) bool { return slices.Contains(c.Avoid, s.Node) }) && len(c.Avoid) > 0 {
			t.Fatalf("on %v, at last: %t", slots, late)
		}
		if _, no, _ := at(c, new(plans), got); (no == nil) != (len(c.Avoid) == 0) {
			t.Fatalf("sooner than it is: %v", no)
		}
		if _, yes, when := at(c, new(plans), got.Add(1)); yes == nil || !when.Equal(got) {
			t.Fatalf("sooner than that: %v at %v", yes, when.Sub(plantest.Epoch0))
		}
		// The places are free as soon as what is on them has ended, by then at the latest.
		grants := pl.fit.Grants(c, slots, given.EpochBackfill, time.Time{})
		free := pl.freeAt(grants)
		if free.After(got) || !fitsBy(ends, grants, free) || free.After(plantest.Epoch0) && fitsBy(ends, grants, free.Add(-1)) {
			t.Fatalf("free at %v, served at %v", free.Sub(plantest.Epoch0), got.Sub(plantest.Epoch0))
		}
		return 0
	}
	for i := range 120 {
		rapid.Custom(see).Example(i)
	}
	if found < 10 {
		t.Errorf("only %d gangs were served later", found)
	}
}

func sameSlot(a, b cluster.Slot) bool { return a.Node == b.Node && slices.Equal(a.Cards, b.Cards) }

// fitsBy reports whether grants fit when all has ended that ends by then.
func fitsBy(nodes []*cluster.Node, grants []fit.Grant, by time.Time) bool {
	for i := range grants {
		n := nodes[grants[i].At]
		for _, g := range n.Grants {
			if !g.Until.IsZero() && !g.Until.After(by) {
				n = n.Release(g.MemberKey)
			}
		}
		if !n.Fits(&grants[i].Grant) {
			return false
		}
	}
	return true
}

// TestManyEnds: a timeline of more than one piece has all ends in their order, made at once or one by one, and loses those that go.
func TestManyEnds(t *testing.T) {
	nodes := plantest.Nodes(30, 64, 0, 0)
	for i := range nodes {
		for k := range 30 {
			nodes[i] = plantest.Run(nodes[i], int64(100*k+i), 1+(i*7+k*13)%60)
		}
	}
	var all, one timeline
	all.reset(nodes)
	count := func(tl *timeline) []ending {
		var out []ending
		for _, p := range tl.pieces {
			if len(p) == 0 || len(p) > pieceEnds {
				t.Fatalf("a piece of %d", len(p))
			}
			out = append(out, p...)
		}
		return out
	}
	for at := range nodes {
		one.node(at, nil, nodes[at])
		count(&one)
	}
	for k := pieceEnds - 1; k < pieceEnds+3; k++ { // around where a piece is cut
		tl := timeline{}
		for i := range k {
			tl.add(ending{at: i})
		}
		if n := len(count(&tl)); n != k {
			t.Fatalf("%d of %d", n, k)
		}
	}
	if a, b := count(&all), count(&one); len(a) != 900 || !slices.IsSortedFunc(a, compareEnding) || !slices.Equal(a, b) {
		t.Errorf("%d ends, one by one %d", len(a), len(b))
	}
	if len(all.pieces) < 900/pieceEnds || len(one.pieces) < 900/pieceEnds {
		t.Errorf("%d pieces, one by one %d", len(all.pieces), len(one.pieces))
	}
	// A plan goes through them piece by piece; what should have ended by now ends in a minute.
	for _, minutes := range []int{0, 1, 20, 59, 60, 61} {
		now := plantest.Epoch0.Add(time.Duration(minutes) * time.Minute)
		var m plans
		pl := m.plan(now, &given.View{Nodes: nodes, Queue: plantest.QueueOf()}, &order.Policy{})
		var got, want []ending
		for s := pl.ends.byEnd(); ; {
			e, more := s.next()
			if !more {
				break
			}
			got = append(got, e)
		}
		for _, e := range count(&all) {
			if e.t.Before(now) {
				e.t = now.Add(overdue)
			}
			want = append(want, e)
		}
		slices.SortFunc(want, compareEnding)
		if !slices.Equal(got, want) {
			t.Errorf("after %d minutes: %d ends, want %d", minutes, len(got), len(want))
		}
	}
	for at := range nodes {
		less := nodes[at].Release(nodes[at].Grants[at].MemberKey)
		for _, tl := range []*timeline{&all, &one} {
			tl.node(at, nodes[at], less)
			tl.node(at, less, nodes[at])
			if at > 0 {
				tl.node(at, nodes[at], nil)
			}
		}
	}
	if a, b := count(&all), count(&one); len(a) != 30 || !slices.Equal(a, b) {
		t.Errorf("of one node %d ends are left, and %d", len(a), len(b))
	}
}
