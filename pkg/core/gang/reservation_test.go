package gang

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

func (b *bench) reservation(name string, from, length time.Duration, nodes []string, flags ...api.ReservationFlag) api.Reservation {
	start := b.now.Wall.Add(from)
	r := api.Reservation{Name: name, Start: start, End: start.Add(length), Nodes: nodes, Users: []string{"bob"}, Flags: flags}
	return r
}

func timed(size int, limit time.Duration) *api.Spec {
	s := specOf(size)
	s.TimeLimit = limit
	return s
}

func TestAReservationBarsOthers(t *testing.T) {
	b := newBench(t, 2)
	b.must(PutReservation{R: b.reservation("talk", time.Hour, time.Hour, []string{"n1"})})
	short, long, none := b.submit(timed(1, 50*time.Minute)), b.submit(timed(1, time.Hour)), b.submit(specOf(1))
	for _, id := range []int64{long, none} {
		out := b.step(b.spread(id))
		if want := "node n1 is reserved: talk from 2026-03-01T13:00:00Z to 2026-03-01T14:00:00Z"; out.Refused == nil || out.Refused.Message != want {
			t.Errorf("job %d: %+v, want %q", id, out.Refused, want)
		}
	}
	b.start(short)
	// It could be in the way then.
	out := b.step(Update{Job: short, TimeLimit: new(2 * time.Hour)})
	if want := "job 1 is on n1, which is reserved from 2026-03-01T13:00:00Z on: talk"; out.Refused == nil || out.Refused.Message != want || out.Refused.Hint != "at most --time=59 (minutes)" {
		t.Errorf("%+v", out.Refused)
	}
	b.must(Update{Job: short, TimeLimit: new(40 * time.Minute)})
	b.must(DropReservation{Name: "talk"})
	b.must(Update{Job: short, TimeLimit: new(2 * time.Hour)})
}

func TestWaitingForAReservation(t *testing.T) {
	b := newBench(t, 2)
	b.must(PutReservation{R: b.reservation("talk", time.Hour, time.Hour, []string{"n1"}, api.FlagDaily)})
	s := specOf(1)
	s.Reservation = "talk"
	mine := b.must(Submit{Spec: s, SpecHash: hashOf(s), User: "bob", Partition: "main"}).JobIDs[0]
	other := b.submit(s)
	if b.w.Candidate(mine) != nil {
		t.Error("a candidate before its reservation begins")
	}
	b.after(time.Hour)
	if b.w.Candidate(mine) == nil || b.w.Candidate(other) != nil {
		t.Error("who is of it may start when it begins, nobody else")
	}
	ids, room := b.w.TakeQueue()
	if !room || len(ids) != 2 {
		t.Errorf("a planner is told of %v, %v", ids, room)
	}
	b.after(time.Hour)
	r := b.w.Reservations()[0]
	if b.w.Candidate(mine) != nil || !r.Start.Equal(epoch0.Add(25*time.Hour)) || !r.End.Equal(epoch0.Add(26*time.Hour)) {
		t.Errorf("after its end the next day's: %+v", r)
	}
	// A restart in the middle of the next one.
	b.after(23*time.Hour + time.Minute)
	b.reborn(0)
	b.hello("n1")
	b.hello("n2")
	if b.w.Candidate(mine) == nil {
		t.Error("a restarted controller has forgotten that it goes on")
	}
	b.must(b.spread(mine))
	b.must(DropReservation{Name: "talk"})
	if b.w.Candidate(other) != nil {
		t.Error("a candidate without its reservation")
	}
}

func TestReservationsThatCanNotBe(t *testing.T) {
	b := newBench(t, 2)
	forever, hour := b.submit(specOf(1)), b.submit(timed(2, time.Hour))
	b.start(forever)
	b.start(hour)
	b.must(PutReservation{R: b.reservation("night", 2*time.Hour, time.Hour, []string{"n2"}, api.FlagDaily)})
	with := func(r api.Reservation, change func(*api.Reservation)) api.Reservation { change(&r); return r }
	soon := b.reservation("talk", time.Minute, time.Hour, []string{"n1", "n2"})
	for _, tt := range []struct {
		r    api.Reservation
		want string
	}{
		{soon, "jobs 1, 2 are on these nodes and may run without a limit"},
		{with(soon, func(r *api.Reservation) { r.Nodes = []string{"n2"} }), "job 2 is on these nodes and may run until 2026-03-01T13:00:15Z"},
		{with(soon, func(r *api.Reservation) { r.End = r.Start }), "reservation talk would end at 2026-03-01T12:01:00Z, which is not after its start at 2026-03-01T12:01:00Z"},
		{with(soon, func(r *api.Reservation) { r.Users = nil }), "reservation talk is for nobody"},
		{with(soon, func(r *api.Reservation) { r.Nodes = []string{"n9"} }), `no node "n9"`},
		{with(soon, func(r *api.Reservation) { r.Name = "night" }), "there is a reservation night already"},
		{b.reservation("talk", 26*time.Hour+30*time.Minute, time.Hour, []string{"n2"}),
			"reservation night has n2 from 2026-03-01T14:00:00Z to 2026-03-01T15:00:00Z already"},
		{b.reservation("talk", 50*time.Hour, 25*time.Hour, []string{"n1"}, api.FlagDaily), "reservation talk lasts 1 d 1 h, longer than the 1 d until its next one"},
	} {
		if out := b.step(PutReservation{R: tt.r}); out.Refused == nil || out.Refused.Message != tt.want {
			t.Errorf("%+v\nwant %s", out.Refused, tt.want)
		}
	}
	b.must(PutReservation{R: with(soon, func(r *api.Reservation) { r.Flags = []api.ReservationFlag{api.FlagIgnoreJobs} })})
	b.must(PutReservation{R: b.reservation("fans", 2*time.Hour, time.Hour, []string{"n2"}, api.FlagMaint)})
	b.after(5 * time.Minute)
	b.state(forever, api.JobRunning)
	if out := b.step(PutReservation{R: b.reservation("none", time.Hour, time.Hour, []string{"n1"}), Old: true}); out.Refused == nil || out.Refused.Hint != "reservations are fans, night, talk" {
		t.Errorf("%+v", out.Refused)
	}
}

// TestReservationsByNumber: of the nodes that nobody has at its times, in the order of their names, and those that it
// has already first.
func TestReservationsByNumber(t *testing.T) {
	b := newBench(t, 4)
	forever := b.submit(specOf(1)) // on n1
	b.start(forever)
	b.must(PutReservation{R: b.reservation("night", 2*time.Hour, time.Hour, []string{"n3"})})
	count := func(name string, n int, old bool, flags ...api.ReservationFlag) string {
		t.Helper()
		r := b.reservation(name, 2*time.Hour, time.Hour, nil, flags...)
		if out := b.step(PutReservation{R: r, Old: old, Count: n}); out.Refused != nil {
			return string(out.Refused.Reason) + ": " + out.Refused.Message
		}
		return strings.Join(b.w.site.reservations.byName[name].r.Nodes, ",")
	}
	for _, c := range []struct{ got, want string }{
		{count("talk", 3, false), "node_count: 3 nodes asked for, and of 4 there are 2 free for all of that time"},
		{count("talk", 1, false), "n2"},
		{count("more", 2, false), "node_count: 2 nodes asked for, and of 4 there is 1 free for all of that time"},
		{count("more", 1, false), "n4"},
		{count("more", 2, true, api.FlagIgnoreJobs), "n1,n4"},
		{count("more", 1, true), "n4"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	b.must(DropReservation{Name: "more"})
	for _, c := range []struct{ got, want string }{
		{count("talk", 2, true), "n2,n4"},
		{count("talk", 1, true), "n4"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

// Two gangs outlast the start of a maintenance that drains: the one with a notice is told so
// much earlier; a third that will have ended by itself is let be.
func TestAReservationEmptiesItsNodes(t *testing.T) {
	b := newBench(t, 1)
	plain, short := b.submit(specOf(1)), b.submit(timed(1, 90*time.Second))
	s := specOf(1)
	s.Notice = &api.Notice{Signal: "USR1", Lead: 20 * time.Second}
	noticed := b.submit(s)
	for _, id := range []int64{plain, short, noticed} {
		b.start(id)
	}
	b.must(PutReservation{R: b.reservation("fans", 2*time.Minute, time.Hour, []string{"n1"}, api.FlagMaint, api.FlagDrain)})
	b.after(99 * time.Second)
	b.state(noticed, api.JobRunning)
	b.after(time.Second)
	d := b.w.Job(noticed).Drain
	if d == nil || d.Cause != api.CauseRequeued || d.Lead != 20*time.Second || d.Text != "node n1 is to be empty by 2026-03-01T12:02:00Z for reservation fans" {
		t.Fatalf("%+v", d)
	}
	b.state(plain, api.JobRunning)
	b.after(20 * time.Second)
	if b.w.Job(plain).Drain == nil || b.w.Job(short).Drain != nil && b.w.Job(short).Drain.Cause != api.CauseTimeout {
		t.Errorf("%+v, %+v", b.w.Job(plain).Drain, b.w.Job(short).Drain)
	}
	b.ack(plain)
	b.state(plain, api.JobPending)
	if out := b.step(b.spread(plain)); out.Refused == nil || !strings.HasPrefix(out.Refused.Message, "node n1 is reserved: fans") {
		t.Errorf("%+v", out)
	}
	b.after(time.Hour)
	if len(b.w.Reservations()) != 0 {
		t.Error("it is over and still there")
	}
	b.must(b.spread(plain))
}

// Two that come again meet when any of their days do.
func TestReservationsMeet(t *testing.T) {
	at := func(day, hour, hours int, flags ...api.ReservationFlag) *api.Reservation {
		start := epoch0.AddDate(0, 0, day).Add(time.Duration(hour) * time.Hour)
		return &api.Reservation{Start: start, End: start.Add(time.Duration(hours) * time.Hour), Flags: flags}
	}
	for i, tt := range []struct {
		a, b *api.Reservation
		want bool
	}{
		{at(0, 1, 2), at(0, 3, 2), false},
		{at(0, 1, 3), at(0, 3, 2), true},
		{at(0, 1, 2, api.FlagDaily), at(9, 2, 2), true},
		{at(0, 1, 2, api.FlagDaily), at(9, 3, 2), false},
		{at(9, 1, 2, api.FlagDaily), at(0, 1, 2), false},
		{at(0, 1, 2, api.FlagDaily), at(3, 2, 1, api.FlagWeekly), true},
		{at(0, 1, 2, api.FlagWeekly), at(3, 2, 1, api.FlagWeekly), false},
		{at(0, 1, 2, api.FlagWeekly), at(14, 2, 1, api.FlagWeekly), true},
		{at(0, 1, 2, api.FlagWeekly), at(3, 2, 1, api.FlagDaily), true},
		{at(0, 22, 4, api.FlagDaily), at(5, 1, 1, api.FlagDaily), true},
		{at(0, 22, 4, api.FlagDaily), at(5, 3, 1, api.FlagDaily), false},
	} {
		if coincide(tt.a, tt.b) != tt.want || coincide(tt.b, tt.a) != tt.want {
			t.Errorf("%d: %+v and %+v: want %v", i, tt.a, tt.b, tt.want)
		}
	}
}

// TestNotAdmittedWithoutItsReservation: a plan may be older than the end of a reservation.
func TestNotAdmittedWithoutItsReservation(t *testing.T) {
	b := newBench(t, 1)
	b.must(PutReservation{R: b.reservation("talk", 0, time.Hour, []string{"n1"})})
	s := specOf(1)
	s.Reservation = "talk"
	id := b.must(Submit{Spec: s, SpecHash: hashOf(s), User: "bob", Partition: "main"}).JobIDs[0]
	b.must(DropReservation{Name: "talk"})
	if out := b.step(b.spread(id)); api.CodeOf(out.Refused) != api.CodeConflict || out.Refused.Message != "reservation talk is not there for job 1 now" {
		t.Errorf("%+v", out)
	}
}

func TestReservationsThatAreRefused(t *testing.T) {
	b := newBench(t, 3)
	put := func(edit func(*api.Reservation)) PutReservation {
		r := b.reservation("talk", time.Hour, time.Hour, []string{"n1"})
		edit(&r)
		return PutReservation{R: r}
	}
	same := func(*api.Reservation) {}
	b.refuses(DropReservation{Name: "talk"}, `no reservation "talk"`)
	b.refuses(PutReservation{R: put(same).R, Old: true}, `no reservation "talk"`)
	b.refuses(put(func(r *api.Reservation) { r.End = r.Start }), "reservation talk would end at 2026-03-01T13:00:00Z, which is not after its start at 2026-03-01T13:00:00Z")
	b.refuses(put(func(r *api.Reservation) { r.Start, r.End = epoch0.Add(-time.Hour), epoch0 }), "reservation talk would be over already: it ends at 2026-03-01T12:00:00Z")
	b.refuses(put(func(r *api.Reservation) { r.Nodes = nil }), "reservation talk has no nodes")
	b.refuses(put(func(r *api.Reservation) { r.Users = nil }), "reservation talk is for nobody")
	b.refuses(put(func(r *api.Reservation) { r.Flags = []api.ReservationFlag{api.FlagDaily, api.FlagWeekly} }), "flags daily and weekly exclude each other")
	b.refuses(put(func(r *api.Reservation) {
		r.End, r.Flags = r.Start.Add(24*time.Hour+time.Second), []api.ReservationFlag{api.FlagDaily}
	}), "reservation talk lasts 1 d, longer than the 1 d until its next one")
	b.refuses(put(func(r *api.Reservation) { r.Nodes = []string{"n1", "n9"} }), `no node "n9"`)
	b.must(PutReservation{R: put(same).R, By: "root"})
	b.refuses(put(same), "there is a reservation talk already")
	b.ignores(PutReservation{R: put(same).R, Old: true}, "it is so already")
	// Each of its parts makes it another.
	for _, edit := range []func(*api.Reservation){
		func(r *api.Reservation) { r.Start = r.Start.Add(time.Minute) }, func(r *api.Reservation) { r.End = r.End.Add(time.Minute) },
		func(r *api.Reservation) { r.Nodes = []string{"n2"} }, func(r *api.Reservation) { r.Users = []string{"ada"} },
		func(r *api.Reservation) { r.Accounts = []string{"lab"} }, func(r *api.Reservation) { r.Picked = true },
		func(r *api.Reservation) { r.Flags = []api.ReservationFlag{api.FlagMaint} },
	} {
		ev := put(edit)
		ev.Old = true
		b.must(ev)
		b.must(PutReservation{R: put(same).R, Old: true})
	}
	other := put(func(r *api.Reservation) { r.Name, r.Nodes = "other", []string{"n2", "n1"} })
	b.refuses(other, "reservation talk has n1 from 2026-03-01T13:00:00Z to 2026-03-01T14:00:00Z already")
	other.R.Start, other.R.End = other.R.End, other.R.End.Add(time.Hour)
	b.must(other) // one begins as the other ends
	s := specOf(1)
	s.Reservation = "talk"
	id := b.must(Submit{Spec: s, SpecHash: hashOf(s), User: "bob", Partition: "main"}).JobIDs[0]
	b.refuses(b.spread(id), fmt.Sprintf("reservation talk is not there for job %d now", id))
	b.after(time.Hour)
	b.refuses(Admit{Job: id, Slots: []cluster.Slot{{Node: "n3"}}}, "node n3 is not in reservation talk")
	b.must(DropReservation{Name: "talk", By: "root"})
	b.refuses(Admit{Job: id, Slots: []cluster.Slot{{Node: "n1"}}}, fmt.Sprintf("reservation talk is not there for job %d now", id))
}

// TestForgottenNodeOfAReservation: it is of that as long as it is named there.
func TestForgottenNodeOfAReservation(t *testing.T) {
	b := newBench(t, 2)
	b.must(PutReservation{R: b.reservation("talk", time.Hour, time.Hour, []string{"n2"})})
	b.must(NodeGone{Node: "n2"})
	b.after(b.w.set.NodeTimeout)
	b.refuses(NodeForget{Node: "n2"}, "node n2 is of reservation talk")
	b.must(DropReservation{Name: "talk"})
	b.must(NodeForget{Node: "n2", By: "root"})
}

func TestReservationsInALine(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
	for want, r := range map[string]api.Reservation{
		"": {}, " for users ada,bob": {Users: []string{"ada", "bob"}}, " for accounts lab": {Accounts: []string{"lab"}},
		" for users ada under accounts lab MAINT DAILY": {Users: []string{"ada"}, Accounts: []string{"lab"}, Flags: []api.ReservationFlag{api.FlagMaint, api.FlagDaily}},
	} {
		r.Start, r.End, r.Nodes = at, at.Add(time.Hour), []string{"n1", "n2"}
		if got := reservationText(&r); got != "n[1-2] from 2030-01-02T03:00:00Z to 2030-01-02T04:00:00Z"+want {
			t.Errorf("%q", got)
		}
	}
}
