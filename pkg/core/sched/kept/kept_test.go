package kept

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestGrantsAreOfTheirBackfill: what is remembered of one is not said of it when it has other places, ends at another time or its gang asks for something else.
func TestGrantsAreOfTheirBackfill(t *testing.T) {
	pl := new(plans).plan(plantest.Epoch0, &given.View{Nodes: plantest.Nodes(2, 8, 4, 80), Queue: plantest.QueueOf()}, &order.Policy{})
	slots := []cluster.Slot{{Node: "n00001"}, {Node: "n00002"}}
	of := func(cpus, n int, until time.Time) Backfill {
		return Backfill{Backfill: given.Backfill{Job: 1, Slots: slots[:n], Until: until}, Taker: plantest.Candidate(1, api.Spec{Size: n, CPUsPerRank: cpus})}
	}
	first := of(1, 2, time.Time{})
	was := pl.GrantsOf(&first)
	pl.mem.backfillGrants[1].heldAt = pl.fit.AtCapacity()
	if again := pl.GrantsOf(&first); &again[0] != &was[0] || !pl.stands(&first) {
		t.Error("the same backfill is not known again")
	}
	for name, b := range map[string]Backfill{"other CPUs": of(2, 2, time.Time{}), "fewer places": of(1, 1, time.Time{}), "another end": of(1, 2, plantest.Epoch0.Add(time.Hour))} {
		pl.GrantsOf(&first)
		got := pl.GrantsOf(&b)
		if len(got) != len(b.Slots) || got[0].Takes[cluster.CPUs] != int64(b.Taker.Ask.Spec.CPUsPerRank) || !got[0].Until.Equal(b.Until) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	moved := of(1, 2, time.Time{})
	pl.GrantsOf(&first)
	moved.Slots = []cluster.Slot{slots[1], slots[0]}
	if got := pl.GrantsOf(&moved); got[0].At != 1 || pl.stands(&moved) {
		t.Errorf("other places: %+v", got)
	}
	pl.mem.backfillGrants[1].heldAt = pl.fit.AtCapacity()
	if pl.mem.backfillGrants[1].heldAt--; pl.stands(&moved) {
		t.Error("it stands though the nodes are others")
	}
}

// TestTimesOfABackfill: from when it is in the way, and of whom.
func TestTimesOfABackfill(t *testing.T) {
	at := func(minutes int) time.Time { return plantest.Epoch0.Add(time.Duration(minutes) * time.Minute) }
	plain, move, open, away := Backfill{Backfill: given.Backfill{At: at(10)}}, Backfill{Backfill: given.Backfill{At: at(10), Until: at(60)}}, Backfill{}, Backfill{Away: true}
	for _, tt := range []struct {
		name           string
		b              Backfill
		from           time.Time
		open, isMove   bool
		ten, eleven    bool // in the way of who ends then
		without, limit bool
	}{
		{"plain", plain, at(10), false, false, false, true, true, true},
		{"move", move, time.Time{}, false, true, true, true, true, true},
		{"open", open, given.BeyondLimits, true, false, false, false, true, false},
		{"away", away, time.Time{}, false, false, true, true, true, true},
	} {
		b := &tt.b
		if !b.From().Equal(tt.from) || b.isOpen() != tt.open || b.IsMove() != tt.isMove || b.inWayOf(at(10)) != tt.ten || b.inWayOf(at(11)) != tt.eleven ||
			b.inWayOf(given.Never) != tt.without || b.inWayOf(at(1<<20)) != tt.limit {
			t.Errorf("%s: from %v, open %t, move %t", tt.name, b.From(), b.isOpen(), b.IsMove())
		}
	}
	for minutes, want := range map[int]bool{59: false, 60: true, 61: true} {
		if o := (&Backfill{Backfill: given.Backfill{At: at(minutes)}}); move.over(o) != want {
			t.Errorf("a move until 60 is over by %d: %t", minutes, !want)
		}
	}
	if move.over(&open) || move.over(&move) {
		t.Error("it is not known when the other starts")
	}
	c := plantest.Lasting(1, 1, 60)
	c.Stop, c.TimeMin = time.Minute, 10*time.Minute
	pl := &given.Facts{Now: plantest.Epoch0}
	for _, tt := range []struct {
		change     func(c *order.Candidate)
		end, least time.Time
	}{
		{func(c *order.Candidate) {}, at(61), at(11)},
		{func(c *order.Candidate) { c.TimeMin = 0 }, at(61), at(61)},
		{func(c *order.Candidate) { c.TimeLimit, c.TimeMin = 0, 0 }, given.Never, given.Never},
		{func(c *order.Candidate) { c.TimeLimit = 0 }, given.Never, at(11)},
		{func(c *order.Candidate) { c.Deadline = at(30) }, at(31), at(11)},
		{func(c *order.Candidate) { c.Deadline = at(5) }, at(6), at(6)},
		{func(c *order.Candidate) { c.Deadline = at(90) }, at(61), at(11)},
		{func(c *order.Candidate) { c.Deadline, c.TimeLimit = at(90), 0 }, at(91), at(11)},
	} {
		own := c.Apart()
		tt.change(own)
		if end, least := pl.End(own), pl.LeastEnd(own); !end.Equal(tt.end) || !least.Equal(tt.least) {
			t.Errorf("%+v: ends by %v, %v at the least", *own.Terms, end.Sub(plantest.Epoch0), least.Sub(plantest.Epoch0))
		}
	}
}

// TestViewsOfATaker: what is kept for others is in its way until they are served, but for its own; in the time of its
// reservation only what others of that have, and moves.
func TestViewsOfATaker(t *testing.T) {
	in := func(job int64, reservation string) *order.Candidate {
		return plantest.QueueOf(plantest.Candidate(job, api.Spec{Size: 1, CPUsPerRank: 2, Reservation: reservation})).Get(job)
	}
	for _, tt := range []struct {
		name         string
		c            *order.Candidate
		reservations bool
		Backfills    int
		own          int64
		minutes      int
		want         string // which nodes are full
	}{
		{"another", in(9, ""), false, 4, 0, 5, "1 2 3"},
		{"one that takes long", in(9, ""), false, 4, 0, 11, "1 2 3 4"},
		{"the taker of the first", in(1, ""), false, 4, 1, 5, "2 3"},
		{"the taker of the last", in(4, ""), false, 4, 4, 11, "1 2 3"},
		{"the only one", in(1, ""), false, 1, 1, 5, ""},
		{"of two", in(1, ""), false, 2, 1, 5, "2"},
		{"beside reservations", in(9, ""), true, 4, 0, 5, "1 2 3"},
		{"of a reservation", in(9, "w"), true, 4, 0, 11, "2 3"},
		{"the taker of a reservation", in(3, "w"), true, 4, 3, 11, "2"},
		{"of a reservation that is gone", in(9, "w"), false, 4, 0, 5, "1 2 3"},
	} {
		v := &given.View{Nodes: plantest.Nodes(4, 2, 0, 0), Queue: plantest.QueueOf()}
		if tt.reservations {
			v.Reservations = []given.Reservation{window("w", 0, time.Hour, "n00001", "n00002", "n00003", "n00004")}
		}
		pl := new(plans).plan(plantest.Epoch0, v, &order.Policy{})
		for i, c := range []*order.Candidate{in(1, ""), in(2, ""), in(3, "w"), in(4, "")}[:tt.Backfills] {
			b := Backfill{Backfill: given.Backfill{Job: c.Job, At: plantest.Epoch0, Slots: []cluster.Slot{{Node: v.Nodes[i].Name}}}, Taker: c}
			switch c.Job {
			case 2:
				b.Until = plantest.Epoch0.Add(time.Hour)
			case 4:
				b.At = plantest.Epoch0.Add(10 * time.Minute)
			}
			b.Grants = pl.GrantsOf(&b)
			pl.Add(b)
		}
		end := plantest.Epoch0.Add(time.Duration(tt.minutes) * time.Minute)
		full := func(l *fit.NodeView) string {
			var out []string
			for at := range v.Nodes {
				if l.Node(at).FreeCPUs() == 0 {
					out = append(out, fmt.Sprint(at+1))
				}
			}
			return strings.Join(out, " ")
		}
		if got := full(pl.ViewWithout(tt.c, pl.Of(tt.own), end)); got != tt.want {
			t.Errorf("%s: full are %q, want %q", tt.name, got, tt.want)
		}
		if got := full(pl.ViewFor(tt.c, end)); tt.own == 0 && got != tt.want {
			t.Errorf("%s: without a backfill full are %q, want %q", tt.name, got, tt.want)
		}
		for len(pl.List) > 0 {
			pl.Remove(0)
		}
		if got := full(pl.TopView()); got != "" {
			t.Errorf("%s: none is left, and full are %q", tt.name, got)
		}
	}
}

// TestVictimsLeft: of those of a move who is gone or came back, is protected now or was stopped by somebody else.
func TestVictimsLeft(t *testing.T) {
	running := []*order.Running{
		{Job: 1, Epoch: 1}, {Job: 2, Epoch: 2}, {Job: 3, Epoch: 1, Ending: order.Ending{Stopping: true}}, {Job: 4, Epoch: 1, Ending: order.Ending{Done: true}}, {Job: 5, Epoch: 1, Ending: order.Ending{Done: true, Stopping: true}},
	}
	pl := new(plans).plan(plantest.Epoch0, &given.View{Nodes: plantest.Nodes(1, 8, 4, 80), Queue: plantest.QueueOf(), Running: running}, &order.Policy{Preempt: order.PreemptTier, ProtectDone: true})
	if pl.victimsLeft(nil) != nil {
		t.Error("none are left of none")
	}
	for _, told := range []bool{false, true} {
		var all []given.Victim
		for job := range int64(6) {
			all = append(all, given.Victim{Job: job + 1, Epoch: 1, Notified: told})
		}
		clear(pl.Moved)
		want := map[bool]string{false: "1:false 3:true 5:true ", true: "3:true 5:true "}[told]
		got := ""
		for _, v := range pl.victimsLeft(all) {
			got += fmt.Sprintf("%d:%t ", v.Job, v.Notified)
		}
		if got != want || len(pl.Moved) != 4 || pl.Moved[2] || pl.Moved[6] {
			t.Errorf("told %t: %s, want %s; of a move %v", told, got, want, pl.Moved)
		}
	}
}
