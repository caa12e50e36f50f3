package sched

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

func limited(job int64, limit time.Duration, s api.Spec) *order.Candidate {
	c := plantest.Candidate(job, s)
	c.TimeLimit, c.Stop = limit, 15*time.Second
	return c
}

func TestReservationsAreKept(t *testing.T) {
	one := api.Spec{Size: 1, GPUsPerRank: 1}
	in := func(name string) api.Spec { s := one; s.Reservation = name; return s }
	graceful := one
	graceful.GraceMax = 20 * time.Minute
	talk := window("talk", time.Hour, time.Hour, "n00001")
	daily := talk
	daily.Every = 24 * time.Hour
	for _, tt := range []struct {
		name    string
		windows []given.Reservation
		c       *order.Candidate
		node    string // where it starts; empty: it does not
		word    string
		text    string
		claim   time.Duration // from when it has a backfill; -1: not known, 0: none
	}{
		{"it ends before", []given.Reservation{talk}, limited(1, 59*time.Minute, one), "n00001", "", "", 0},
		{"it would reach into it by its stop", []given.Reservation{talk}, limited(1, 59*time.Minute+30*time.Second, one), "", given.WordNodes,
			"would fit, but n00001 is reserved from 01:00:00 to 02:00:00 for reservation talk; it may run for 59 min 30 s, and its stop takes up to 15 s: at most --time=59 would end before", 2 * time.Hour},
		{"it would reach into it by the most grace that it may take", []given.Reservation{talk}, limited(1, 50*time.Minute, graceful), "", given.WordNodes,
			"would fit, but n00001 is reserved from 01:00:00 to 02:00:00 for reservation talk; it may run for 50 min, and its stop takes up to 20 min: at most --time=39 would end before", 2 * time.Hour},
		{"it ends before with the most grace that it may take", []given.Reservation{talk}, limited(1, 39*time.Minute, graceful), "n00001", "", "", 0},
		{"without a limit", []given.Reservation{talk}, plantest.Candidate(1, one), "", given.WordNodes,
			"would fit, but n00001 is reserved from 01:00:00 to 02:00:00 for reservation talk; it has no time limit, and its stop takes up to 0 s: at most --time=59 would end before", 2 * time.Hour},
		{"it goes on", []given.Reservation{window("talk", -time.Hour, 2*time.Hour, "n00001")}, limited(1, time.Minute, one), "", given.WordNodes,
			"would fit, but n00001 is reserved until 01:00:00 for reservation talk", time.Hour},
		{"it is over", []given.Reservation{window("talk", -2*time.Hour, time.Hour, "n00001")}, limited(1, time.Hour, one), "n00001", "", "", 0},
		{"its own", []given.Reservation{window("talk", -time.Hour, 2*time.Hour, "n00001")}, limited(1, 9*time.Hour, in("talk")), "n00001", "", "", 0},
		{"its own, and maintenance after", []given.Reservation{window("talk", -time.Hour, 2*time.Hour, "n00001"), window("fans", time.Hour, time.Hour, "n00001")},
			limited(1, 9*time.Hour, in("talk")), "", given.WordReservation,
			"its nodes are free, but n00001 is reserved from 01:00:00 to 02:00:00 for reservation fans; it may run for 9 h, and its stop takes up to 15 s: at most --time=59 would end before", 2 * time.Hour},
		{"nodes of its own are others", []given.Reservation{window("talk", -time.Hour, 2*time.Hour, "n00002")}, limited(1, time.Minute, in("talk")), "", given.WordReservation,
			"its nodes are free, but not those of its reservation talk", 0},
		{"each day", []given.Reservation{daily}, limited(1, 22*time.Hour, one), "", given.WordNodes,
			"would fit, but n00001 is reserved from 01:00:00 to 02:00:00 for reservation talk; it may run for 22 h, and its stop takes up to 15 s: at most --time=59 would end before", 2 * time.Hour},
		{"each day, and it never fits between", []given.Reservation{daily}, limited(1, 23*time.Hour, one), "", given.WordNodes,
			"would fit, but n00001 is reserved from 01:00:00 to 02:00:00 for reservation talk; it may run for 23 h, and its stop takes up to 15 s: at most --time=59 would end before", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &given.View{Nodes: plantest.Nodes(1, 8, 2, 80), Queue: plantest.QueueOf(tt.c), Reservations: tt.windows}
			plan := planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})
			if tt.node != "" {
				if len(plan.Starts) != 1 || plan.Starts[0].Slots[0].Node != tt.node {
					t.Fatalf("starts %+v, want %s; %+v", plan.Starts, tt.node, plan.Reasons(v.Queue))
				}
				return
			}
			if len(plan.Starts) != 0 {
				t.Fatalf("starts %+v", plan.Starts)
			}
			r, _ := plan.Reason(1, v.Queue.JobClass(1))
			if r.Word != tt.word || r.Text != tt.text {
				t.Errorf("%s %q\nwant %s %q", r.Word, r.Text, tt.word, tt.text)
			}
			switch {
			case tt.claim == 0 && len(plan.Backfills) > 0:
				t.Errorf("claim %+v", plan.Backfills)
			case tt.claim > 0 && (len(plan.Backfills) != 1 || !plan.Backfills[0].At.Equal(plantest.Epoch0.Add(tt.claim))):
				t.Errorf("backfills %+v, want one at %s", plan.Backfills, tt.claim)
			}
		})
	}
}

// TestMaintenanceBesideOthers: maintenance may be at the same time as other reservations, and who is of it is kept off by none;
// who is of another one is kept off by maintenance, as Slurm has it.
func TestMaintenanceBesideOthers(t *testing.T) {
	now, later := window("a", -time.Hour, 2*time.Hour, "n00001"), window("a", time.Hour, time.Hour, "n00001")
	as := func(r given.Reservation, name string, maint bool) given.Reservation {
		r.Name, r.Maint = name, maint
		return r
	}
	for name, x := range map[string]struct {
		own, other given.Reservation
		asks       string
		starts     bool
	}{
		"maintenance beside maintenance":         {as(now, "all", true), as(now, "val", true), "all", true},
		"and the other way round":                {as(now, "val", true), as(now, "all", true), "val", true},
		"maintenance beside a user's":            {as(now, "all", true), as(now, "talk", false), "all", true},
		"a user's beside maintenance":            {as(now, "talk", false), as(now, "all", true), "talk", false},
		"maintenance, and maintenance to come":   {as(now, "all", true), as(later, "val", true), "all", true},
		"maintenance, and a user's to come":      {as(now, "all", true), as(later, "talk", false), "all", true},
		"a user's, and maintenance to come":      {as(now, "talk", false), as(later, "all", true), "talk", false},
		"maintenance to come, beside one of now": {as(later, "all", true), as(now, "val", true), "val", true},
		"neither, beside maintenance":            {as(now, "all", true), as(now, "val", true), "", false},
		"neither, beside maintenance to come":    {as(later, "all", true), as(later, "val", true), "", false},
		"neither, beside a user's":               {as(now, "talk", false), as(now, "other", false), "", false},
		"one that is not there":                  {as(now, "all", true), as(now, "val", true), "nosuch", false},
	} {
		c := limited(1, 9*time.Hour, api.Spec{Size: 1, GPUsPerRank: 1, Reservation: x.asks})
		v := &given.View{Nodes: plantest.Nodes(1, 8, 2, 80), Queue: plantest.QueueOf(c), Reservations: []given.Reservation{x.own, x.other}}
		if got := len(planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1}).Starts) == 1; got != x.starts {
			t.Errorf("%s: it starts: %t", name, got)
		}
	}
}

// The rest of a cluster is used around a reservation, and the backfill of a gang that needs the
// reserved node too is served when that is over.
func TestPlansAroundAReservation(t *testing.T) {
	fifo := &order.Policy{BackfillDepth: 1, Order: order.OrderFIFO}
	wide, long := limited(1, 3*time.Hour, api.Spec{Size: 4, GPUsPerRank: 1, RanksPerNode: 2}), limited(2, 3*time.Hour, api.Spec{Size: 1, GPUsPerRank: 1})
	short := limited(3, 30*time.Minute, api.Spec{Size: 1, GPUsPerRank: 2})
	v := &given.View{Nodes: plantest.Nodes(2, 8, 2, 80), Queue: order.NewQueue(fifo, nil), Reservations: []given.Reservation{window("talk", time.Hour, time.Hour, "n00002")}}
	for _, c := range []*order.Candidate{wide, long, short} {
		v.Queue.Insert(c)
	}
	plan := planned(t, plantest.Epoch0, v, fifo)
	if len(plan.Backfills) != 1 || !plan.Backfills[0].At.Equal(plantest.Epoch0.Add(2*time.Hour)) {
		t.Fatalf("backfills %+v", plan.Backfills)
	}
	var started []int64
	for _, s := range plan.Starts {
		started = append(started, s.Job)
		if s.Job == 3 && s.Slots[0].Node != "n00001" && s.Slots[0].Node != "n00002" {
			t.Error(s)
		}
	}
	if !slices.Equal(started, []int64{3}) {
		t.Errorf("started %v: the long one would be in the way of the claim, the short one of nobody", started)
	}
	got := Explain(plantest.Epoch0, v, fifo, 1)
	if want := "n[00001-00002] are kept for it; starts there at the latest at 02:00:00"; !strings.Contains(got.Text, want) {
		t.Errorf("%s\nlacks %s", got.Text, want)
	}
	if f := Forecast(plantest.Epoch0, v, fifo)[1]; !f.At.Equal(plantest.Epoch0.Add(2*time.Hour)) || !f.Sure {
		t.Errorf("forecast %+v", f)
	}
}

// Who waits for the end of a reservation does not keep off whom it is for.
func TestBackfillsYieldToTheReservation(t *testing.T) {
	v := &given.View{Nodes: plantest.Nodes(1, 8, 2, 80), Queue: plantest.QueueOf(plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 1}), plantest.Candidate(2, api.Spec{Size: 1, GPUsPerRank: 1, Reservation: "talk"})),
		Reservations: []given.Reservation{window("talk", -time.Hour, 2*time.Hour, "n00001")}}
	plan := planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})
	if len(plan.Backfills) != 1 || len(plan.Starts) != 1 || plan.Starts[0].Job != 2 {
		t.Errorf("starts %+v, backfills %+v", plan.Starts, plan.Backfills)
	}
}

// A limit that may be cut is cut so that the gang has ended by the reservation.
func TestLimitsAreCutForReservations(t *testing.T) {
	c := limited(1, 5*time.Hour, api.Spec{Size: 1, GPUsPerRank: 1})
	c.TimeMin = 10 * time.Minute
	v := &given.View{Nodes: plantest.Nodes(1, 8, 2, 80), Queue: plantest.QueueOf(c), Reservations: []given.Reservation{window("talk", time.Hour, time.Hour, "n00001")}}
	plan := planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})
	if want := time.Hour - 45*time.Second; len(plan.Starts) != 1 || plan.Starts[0].TimeLimit != want {
		t.Errorf("%+v, want a limit of %s", plan.Starts, want)
	}
}

// Whatever is planned, nobody who is not of a reservation is on its nodes in its time.
func TestNobodyStartsIntoAReservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := plantest.DrawNodes(t)
		names := nodeNames(nodes)
		v := &given.View{Nodes: nodes, Queue: new(order.Queue)}
		for i := range rapid.IntRange(1, 3).Draw(t, "reservations") {
			w := window(string(rune('a'+i)), time.Duration(rapid.IntRange(-60, 120).Draw(t, "from"))*time.Minute,
				time.Duration(rapid.IntRange(1, 120).Draw(t, "length"))*time.Minute, rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(t, "on")...)
			slices.Sort(w.Nodes)
			if rapid.IntRange(0, 3).Draw(t, "daily") == 0 {
				w.Every = 24 * time.Hour
			}
			v.Reservations = append(v.Reservations, w)
		}
		for i := range rapid.IntRange(1, 8).Draw(t, "waiting") {
			c := plantest.DrawCandidate(t, int64(i+1))
			s := *c.Ask.Spec
			s.Reservation = rapid.SampledFrom([]string{"", "", "a", "b", "gone"}).Draw(t, "in")
			*c = *plantest.Candidate(c.Job, s)
			c.TimeLimit = time.Duration(rapid.IntRange(0, 200).Draw(t, "limit")) * time.Minute
			c.TimeMin = time.Duration(rapid.IntRange(0, 1).Draw(t, "least")) * c.TimeLimit / 4
			v.Queue.Insert(c)
		}
		p := &order.Policy{BackfillDepth: rapid.IntRange(1, 3).Draw(t, "backfills"), Preempt: rapid.SampledFrom(order.Preempts).Draw(t, "preempt")}
		for now := plantest.Epoch0; now.Before(plantest.Epoch0.Add(4 * time.Hour)); now = now.Add(time.Duration(rapid.IntRange(20, 90).Draw(t, "later")) * time.Minute) {
			plan := Make(now, v, p)
			for _, s := range plan.Starts {
				c := v.Queue.Get(s.Job)
				end := given.Never
				if limit := max(s.TimeLimit, 0); limit > 0 {
					end = now.Add(limit)
				} else if c.TimeLimit > 0 {
					end = now.Add(c.TimeLimit)
				}
				for _, slot := range s.Slots {
					for _, w := range v.Reservations {
						_, on := slices.BinarySearch(w.Nodes, slot.Node)
						if w.Name != given.ReservationOf(c) && on && w.End.After(now) && end.After(w.ClearBy) {
							t.Fatalf("job %d starts on %s at %s and ends at %s, in %+v", s.Job, slot.Node, now, end, w)
						}
						if w.Name == given.ReservationOf(c) && !on {
							t.Fatalf("job %d starts on %s, outside of its reservation", s.Job, slot.Node)
						}
					}
				}
				if given.ReservationOf(c) == "gone" {
					t.Fatal("started without its reservation")
				}
			}
			for _, r := range plan.Reasons(v.Queue) {
				if r.Word == "" || r.Text == "" {
					t.Fatalf("no reason: %+v", r)
				}
			}
			Explain(now, v, p, v.Queue.Slice()[0].Job)
			Forecast(now, v, p)
			v.Backfills = plan.Backfills
			for i := range v.Reservations {
				// As the core does: those that are over are gone, or the next one.
				if w := &v.Reservations[i]; w.Every > 0 && !w.End.After(now) {
					w.Start, w.End, w.ClearBy = w.Start.Add(w.Every), w.End.Add(w.Every), w.ClearBy.Add(w.Every)
				}
			}
		}
	})
}

// TestAMoveIsNotKeptIntoAReservation: whose victims are being stopped, but whose nodes have been reserved meanwhile, does not get them.
func TestAMoveIsNotKeptIntoAReservation(t *testing.T) {
	n := plantest.Run(plantest.Node("n00001", 32, 4, 80), 90, 600, 0, 1, 2, 3)
	victim := &order.Running{Job: 90, Epoch: 1, Cards: 4, Start: plantest.Epoch0.Add(-time.Hour), TimeLimit: 11 * time.Hour, Ending: order.Ending{Stopping: true, StopBy: plantest.Epoch0.Add(5 * time.Minute)}}
	v := &given.View{Nodes: []*cluster.Node{n}, Running: []*order.Running{victim}, Queue: plantest.QueueOf(plantest.Lasting(1, 4, 60))}
	move := planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills[0]
	move.Victims, move.Until = []given.Victim{{Job: 90, Epoch: 1, Notified: true}}, plantest.Epoch0.Add(65*time.Minute)
	v.Backfills = []given.Backfill{move}
	if got := planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills; len(got) != 1 || got[0].Until.IsZero() {
		t.Fatalf("without a reservation the move is %+v", got)
	}
	if got := Forecast(plantest.Epoch0, v, &order.Policy{})[1]; !got.At.Equal(victim.StopBy) || !got.Sure {
		t.Errorf("the move is expected to start at %s (%t), want when its victim has stopped", got.At, got.Sure)
	}
	v.Reservations = []given.Reservation{window("talk", 30*time.Minute, time.Hour, "n00001")}
	if got := planned(t, plantest.Epoch0, v, &order.Policy{}).Backfills; len(got) != 1 || !got[0].Until.IsZero() || !got[0].At.Equal(plantest.Epoch0.Add(90*time.Minute)) {
		t.Errorf("%+v, want places kept from the end of the reservation on", got)
	}
}

// TestPlacesBesideAReservation: a gang waits for the node that is free first of those that did not just fail it.
func TestPlacesBesideAReservation(t *testing.T) {
	nodes := []*cluster.Node{plantest.Run(plantest.Node("n00001", 32, 4, 80), 90, 30, 0), plantest.Run(plantest.Node("n00002", 32, 4, 80), 91, 60, 0), plantest.Node("n00003", 32, 4, 80)}
	v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(plantest.Lasting(1, 4, 600)), Reservations: []given.Reservation{window("talk", time.Hour, 24*time.Hour, "n00003")}}
	if got := claimed(planned(t, plantest.Epoch0, v, &order.Policy{})); got != "[1@n00001+30]" {
		t.Error(got)
	}
	c := plantest.Lasting(1, 4, 600)
	c.Avoid = []string{"n00001"}
	v.Queue = plantest.QueueOf(c)
	if got := claimed(planned(t, plantest.Epoch0, v, &order.Policy{})); got != "[1@n00002+60]" {
		t.Errorf("around the node that failed it: %s", got)
	}
}

// TestReservationsOpen: a node is open from the first minute on from which a gang is in the way of no occurrence, minute by minute.
func TestReservationsOpen(t *testing.T) {
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	rapid.Check(t, func(t *rapid.T) {
		var list []given.Reservation
		for i := range rapid.IntRange(1, 3).Draw(t, "reservations") {
			begin := rapid.IntRange(-5, 20).Draw(t, "begin")
			length := rapid.IntRange(max(1, 1-begin), 12).Draw(t, "length")
			w := window(string(rune('a'+i)), minutes(begin), minutes(length), rapid.SampledFrom([][]string{{"n1"}, {"n2"}, {"n1", "n2"}}).Draw(t, "nodes")...)
			w.ClearBy = w.Start
			if rapid.Bool().Draw(t, "again") {
				w.Every = minutes(rapid.SampledFrom([]int{15, 30, 60}).Draw(t, "every"))
			}
			list = append(list, w)
		}
		nodes := []*cluster.Node{plantest.Node("n1", 4, 0, 0), plantest.Node("n2", 4, 0, 0)}
		w := given.NewWindows(&given.View{Nodes: nodes, Reservations: list}, plantest.Epoch0)
		own := rapid.SampledFrom([]string{"", "", "a", "lost"}).Draw(t, "own")
		c := limited(1, 0, api.Spec{Size: 1, Reservation: own, GraceMax: minutes(rapid.IntRange(0, 2).Draw(t, "grace"))})
		c.Stop = minutes(rapid.IntRange(0, 2).Draw(t, "stop"))
		length := minutes(rapid.IntRange(0, 20).Draw(t, "span"))
		from := plantest.Epoch0.Add(minutes(rapid.IntRange(0, 70).Draw(t, "from")))
		inWay := func(x *given.Reservation, at time.Time) bool {
			for n := range 200 {
				begin, end := x.ClearBy.Add(time.Duration(n)*x.Every), x.End.Add(time.Duration(n)*x.Every)
				if at.Before(end) && (length == 0 || at.Add(length).After(begin)) {
					return true
				}
				if x.Every == 0 {
					break
				}
			}
			return false
		}
		for at, n := range nodes {
			mine, never := own == "", false
			for i := range list {
				mine = mine || list[i].Name == own && slices.Contains(list[i].Nodes, n.Name)
			}
			for i := range list { // who does not fit between two occurrences is not looked for before the first either
				x := &list[i]
				if x.Name != own && slices.Contains(x.Nodes, n.Name) && x.Every > 0 && (length == 0 || length > x.Every-x.End.Sub(x.ClearBy)) {
					never = true
				}
			}
			var want time.Time
			for minute := 0; mine && !never && want.IsZero() && minute < 600; minute++ {
				t := from.Add(minutes(minute))
				if !slices.ContainsFunc(list, func(x given.Reservation) bool {
					return x.Name != own && slices.Contains(x.Nodes, n.Name) && inWay(&x, t)
				}) {
					want = t
				}
			}
			if got := w.OpensAt(c, at, from, length); !got.Equal(want) {
				t.Fatalf("%s opens at %v, want %v, of span %v from %v: %+v", n.Name, got, want, length, from, list)
			}
			gone := from.Add(max(c.Ask.Spec.GraceMax, c.Stop) - c.Stop)
			shut := !mine || slices.ContainsFunc(list, func(x given.Reservation) bool {
				return x.Name != own && slices.Contains(x.Nodes, n.Name) && x.ClearBy.Before(gone)
			})
			for range 2 { // the second time it is remembered
				if got := w.ClosedTo(c, from); got[at] != shut {
					t.Fatalf("%s is shut %t to who ends at %v: %+v", n.Name, got[at], from, list)
				}
			}
		}
	})
}

// reservation reserves nodes of [testNodes] from so long after plantest.Epoch0, for so long.
func window(name string, from, length time.Duration, nodes ...string) given.Reservation {
	return given.Reservation{Name: name, Nodes: nodes, Start: plantest.Epoch0.Add(from), End: plantest.Epoch0.Add(from + length), ClearBy: plantest.Epoch0.Add(from - 30*time.Second)}
}
