package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
	"gangd/pkg/sched"
	"gangd/pkg/watchdog"
)

// What is said in words, and the figures that are computed from a job alone, at their bounds.

// refuses wants an event to be refused in these words.
func (b *bench) refuses(ev Event, want string) {
	b.t.Helper()
	if out := b.step(ev); out.Refused == nil || out.Refused.Message != want {
		b.t.Errorf("%T: %+v, want %q", ev, out, want)
	}
}

// ignores wants an event to change nothing, for this reason.
func (b *bench) ignores(ev Event, want string) {
	b.t.Helper()
	if out := b.step(ev); out.Ignored != want {
		b.t.Errorf("%T: %+v, want %q", ev, out, want)
	}
}

func TestSubmissionsThatAreRefused(t *testing.T) {
	b := newBench(t, 1)
	sub := func(edit func(*Submit)) Submit {
		ev := Submit{Spec: specOf(1), SpecHash: "h", User: "ada", Partition: "main"}
		edit(&ev)
		return ev
	}
	b.refuses(sub(func(ev *Submit) { ev.Spec = nil }), "the submission has no spec")
	b.refuses(sub(func(ev *Submit) { ev.Spec = specOf(0) }), fmt.Sprintf("invalid size 0: want 1 to %d ranks", api.MaxGangSize))
	b.refuses(sub(func(ev *Submit) { ev.Spec = specOf(api.MaxGangSize + 1) }), fmt.Sprintf("invalid size %d: want 1 to %d ranks", api.MaxGangSize+1, api.MaxGangSize))
	roles := specOf(3)
	roles.Roles = []api.Role{{Name: "a", Count: 1}, {Name: "b", Count: 1}}
	b.refuses(sub(func(ev *Submit) { ev.Spec = roles }), "invalid size 3: the roles come to 2 ranks")
	b.refuses(sub(func(ev *Submit) { ev.Array = &api.Array{} }), fmt.Sprintf("invalid array of 0 elements: want 1 to %d", api.MaxArraySize))
	b.w.SetPartitions([]api.Partition{{Name: "main", Default: true}, {Name: "night"}})
	b.refuses(sub(func(ev *Submit) { ev.Partition = "main,nite" }), `no partition "nite"`)
	b.must(sub(func(ev *Submit) { ev.Partition = "main,night" }))
}

// TestUpdatesInWords: what is changed is said with what it was, and what is so already is no change.
func TestUpdatesInWords(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Comment, s.Nice, s.Constraint, s.Prefer = "old", 3, "ib", "big"
	s.Roles = []api.Role{{Name: "a", Count: 1, Constraint: "ib"}, {Name: "b", Count: 1, Constraint: "fast"}}
	id := b.submit(s)
	says := func(ev Update, want string) {
		t.Helper()
		ev.Job = id
		eventsSince(b)
		b.must(ev)
		if got := eventsSince(b); !slices.Equal(got, []string{string(api.EventUpdated) + " : " + want}) {
			t.Errorf("%q, want %q", got, want)
		}
		b.ignores(ev, "it is so already")
	}
	j := func() *Job { return b.w.Job(id) }
	if SpecOf(j()) != j().Spec {
		t.Error("a spec of its own without a change")
	}
	says(Update{Priority: new(int64(5))}, "priority 5, was 0")
	says(Update{Nice: new(int64(7)), By: "ada"}, "nice 7, was 3 (ada)")
	says(Update{Nice: new(int64(0))}, "nice 0, was 7")
	says(Update{Comment: new("new")}, `comment "new", was "old"`)
	says(Update{Comment: new("")}, `comment "", was "new"`)
	says(Update{Prefer: new("")}, "prefers none, was big")
	if got := SpecOf(j()); got.Prefer != "" || got.Constraint != "ib" || got.Roles[0].Constraint != "ib" {
		t.Errorf("%+v", got)
	}
	says(Update{Constraint: new("roce")}, "constraint roce, was ib")
	if got := SpecOf(j()); got.Constraint != "roce" || got.Roles[0].Constraint != "roce" || got.Roles[1].Constraint != "fast" {
		t.Errorf("roles that asked for the same have the new one: %+v", got.Roles)
	}
	if s.Roles[0].Constraint != "ib" {
		t.Error("the spec was written to")
	}
	says(Update{Constraint: new(""), Prefer: new("ib")}, "constraint none, was roce; prefers ib, was none")
	says(Update{Partition: new("night")}, "partition night, was main")
	says(Update{Begin: new(epoch0.Add(time.Hour))}, "begins at 2026-03-01T13:00:00Z")
	says(Update{Begin: new(epoch0.Add(-time.Hour))}, "begins at 2026-03-01T12:00:00Z")
	says(Update{Name: new("other"), TimeLimit: new(time.Hour)}, "name other, was job; time limit 1h0m0s, was none")
	if NiceOf(j()) != 0 || CommentOf(j()) != "" {
		t.Errorf("nice %d, comment %q", NiceOf(j()), CommentOf(j()))
	}
	b.refuses(Update{Job: id, ArrayLimit: new(1)}, fmt.Sprintf("job %d is not of an array", id))
	b.refuses(Update{Job: id, Dependency: on(api.AfterOK, id)}, fmt.Sprintf("dependency afterok:%d: a job can wait only for one that was submitted before it", id))
	first := b.array(2, nil)
	b.ignores(Update{Job: first, ArrayLimit: new(0)}, "it is so already")
	b.ignores(Update{Job: first, Dependency: &api.Dependency{}}, "it is so already")
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
	}), "reservation talk lasts 24h0m1s, longer than the 24h0m0s until its next one")
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

// TestWhoIsInTheWay: the gangs that would outlast the start of a reservation are named, five of them.
func TestWhoIsInTheWay(t *testing.T) {
	b := newBench(t, 1)
	b.unwritten()
	put := PutReservation{R: b.reservation("talk", time.Hour, time.Hour, []string{"n1"})}
	add := func(limit time.Duration) {
		id := b.submit(timed(1, limit))
		b.must(Admit{Job: id, Slots: []cluster.Slot{{Node: "n1"}}})
	}
	add(time.Hour - b.w.set.Grace) // is over as it begins
	for i, want := range []string{
		"job 2 is on these nodes and may run until 2026-03-01T13:00:16Z",
		"jobs 2, 3 are on these nodes and may run until 2026-03-01T13:00:16Z",
		"jobs 2, 3, 4 are on these nodes and may run until 2026-03-01T13:00:16Z",
		"jobs 2, 3, 4, 5 are on these nodes and may run until 2026-03-01T13:00:16Z",
		"jobs 2, 3, 4, 5, 6 are on these nodes and may run until 2026-03-01T13:00:16Z",
		"jobs 2, 3, 4, 5, 6 and 1 more are on these nodes and may run without a limit",
	} {
		add(map[bool]time.Duration{true: 0, false: time.Hour + time.Second}[i == 5])
		b.refuses(put, want)
	}
	for _, flag := range []api.ReservationFlag{api.FlagIgnoreJobs, api.FlagDrain} {
		one := put
		one.R.Name, one.R.Flags = string(flag), []api.ReservationFlag{flag, api.FlagMaint}
		b.must(one)
	}
}

func TestAdmissionsThatAreRefused(t *testing.T) {
	b := newBench(t, 2)
	gate := b.submit(specOf(1))
	waits := b.depending(on(api.AfterOK, gate))
	b.refuses(b.spread(waits), fmt.Sprintf("job %d waits for afterok:%d(unfulfilled)", waits, gate))
	first := b.must(Submit{Spec: specOf(1), SpecHash: "a", Partition: "main", Array: &api.Array{Indices: []int{0, 1, 2}, Limit: 1}}).JobIDs[0]
	b.must(b.spread(first))
	b.refuses(b.spread(first+1), fmt.Sprintf("array %d has 1 elements admitted, its limit", first))
	b.refuses(Admit{Job: 99}, "no job 99")
	cut := timed(1, time.Hour)
	cut.TimeMin = time.Minute
	id := b.submit(cut)
	for limit, fits := range map[time.Duration]bool{time.Minute - 1: false, time.Minute: true, time.Hour - 1: true, time.Hour: false} {
		ev := b.spread(id)
		ev.TimeLimit = limit
		err := b.w.admissible(b.w.jobs[id], ev)
		if (err == nil) != fits || err != nil && err.Message != fmt.Sprintf("the time limit of job %d can't be cut to %s", id, limit) {
			t.Errorf("%s: %v", limit, err)
		}
	}
	unlimited := specOf(1)
	unlimited.TimeMin = time.Minute
	ev := b.spread(b.submit(unlimited))
	ev.TimeLimit = time.Hour
	if err := b.w.admissible(b.w.jobs[ev.Job], ev); err != nil {
		t.Errorf("a limit for a job without one: %v", err)
	}
	held := b.submit(specOf(1))
	b.must(Hold{Job: held, Admin: true})
	b.refuses(b.spread(held), fmt.Sprintf("job %d is held", held))
	b.refuses(Release{Job: held}, fmt.Sprintf("job %d is held by an admin", held))
	b.must(Release{Job: held, Admin: true})
}

func TestNodesThatAreNotThere(t *testing.T) {
	b := newBench(t, 2)
	for _, ev := range []Event{NodeSample{Node: "n9"}, NodeGone{Node: "n9"}, Watched{Node: "n9"}, CardDrain{Node: "n9"}, NodeForget{Node: "n9"}, NodeFence{Node: "n9"}} {
		b.refuses(ev, `no node "n9"`)
	}
	b.refuses(NodeReport{Node: "n9"}, `node "n9" is not known`)
	b.refuses(NodeHello{}, "the hello names no node")
	if got := b.w.Desired("n9"); got != nil {
		t.Errorf("%v", got)
	}
	for _, ev := range []Event{CardDrain{Node: "n1", UUID: "x"}, CardResume{Node: "n1", UUID: "x"}} {
		b.refuses(ev, "node n1 has no card x")
	}
	b.must(CardDrain{Node: "n1", UUID: "GPU-n1-2", Reason: "hot"})
	b.ignores(CardDrain{Node: "n1", UUID: "GPU-n1-2", Reason: "hot"}, "out of service already")
	b.must(CardDrain{Node: "n1", UUID: "GPU-n1-2", Reason: "cold"})
	b.must(CardResume{Node: "n1", UUID: "GPU-n1-2"})
	b.ignores(CardResume{Node: "n1", UUID: "GPU-n1-2"}, "in service already")
	b.ignores(NodeSample{Node: "n1", Cards: []api.CardSample{{UUID: "x"}}}, "nothing new")
	if e := NoNode("n9", nil); e.Hint != "there are none" || e.Reason != api.ReasonNode || e.Subject != "n9" {
		t.Errorf("%+v", e)
	}
	if e := NoNode("n9", []string{"a1", "a2"}); !strings.Contains(e.Hint, "a[1-2]") {
		t.Errorf("%+v", e)
	}
	if e := NoReservation("x", nil); e.Hint != "there are none" {
		t.Errorf("%+v", e)
	}
	if e := NoReservation("x", []string{"aaaa", "bbbb"}); !strings.Contains(e.Hint, "reservations are aaaa, bbbb") {
		t.Errorf("%+v", e)
	}
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

func TestJobsOnANode(t *testing.T) {
	h := newBench(t, 1).w.nodes["n1"]
	for i := range 10 {
		h.members[memberKey(int64(20-i), 1)] = place{}
	}
	h.node.Left = []Left{{MemberKey: memberKey(15, 1)}}
	want := "job 11 12 13 14 15 16 17 18 19 20"
	if got := jobsOn(h); got != want+" and others" && got != want {
		t.Errorf("%q", got)
	}
	delete(h.members, memberKey(20, 1))
	if got := jobsOn(h); got != strings.TrimSuffix(want, " 20") {
		t.Errorf("%q", got)
	}
}

func TestPartitionsThatAreRefused(t *testing.T) {
	b := newBench(t, 2)
	b.w.SetPartitions([]api.Partition{{Name: "main", Default: true}})
	put := func(old bool, r api.PartitionRequest) PutPartition { return PutPartition{Ask: r, Old: old, By: "root"} }
	b.refuses(put(true, api.PartitionRequest{Name: "night"}), `no partition "night"`)
	b.refuses(put(false, api.PartitionRequest{Name: "main"}), "there is a partition main already")
	b.refuses(put(false, api.PartitionRequest{Name: "night", Nodes: &[]string{"n9"}}), `no node "n9"`)
	b.refuses(put(false, api.PartitionRequest{Name: "night", State: new(api.PartitionState("odd"))}), `state "odd": want up, down, drain or inactive`)
	b.refuses(put(false, api.PartitionRequest{Name: "night", MaxTime: new(-time.Second)}), "a time may not be negative")
	b.refuses(put(false, api.PartitionRequest{Name: "night", DefaultTime: new(-time.Second)}), "a time may not be negative")
	b.refuses(put(false, api.PartitionRequest{Name: "night", DefaultTime: new(time.Hour + 1), MaxTime: new(time.Hour)}),
		"the default time 1h0m0.000000001s of partition night is above its longest, 1h0m0s")
	b.must(put(false, api.PartitionRequest{Name: "night", DefaultTime: new(time.Hour), MaxTime: new(time.Hour), Nodes: &[]string{"all"}}))
	b.ignores(put(true, api.PartitionRequest{Name: "night", MaxTime: new(time.Hour)}), "it is so already")
	b.refuses(DropPartition{Name: "knight"}, `no partition "knight"`)
	id := b.must(Submit{Spec: specOf(1), SpecHash: "h", Partition: "main,night"}).JobIDs[0]
	b.refuses(DropPartition{Name: "night"}, fmt.Sprintf("job %d is of partition night", id))
	b.must(Cancel{Job: id})
	b.must(DropPartition{Name: "night", By: "root"})
}

func TestPartitionsInALine(t *testing.T) {
	for want, p := range map[string]api.Partition{
		"p: every node, up, tier 0, time limit unlimited, at most unlimited":  {State: api.PartitionUp},
		"p: n[1-2], down, tier 3, time limit 1h0m0s, at most 2h0m0s, default": {State: api.PartitionDown, Nodes: []string{"n1", "n2"}, Tier: 3, DefaultTime: time.Hour, MaxTime: 2 * time.Hour, Default: true},
	} {
		p.Name = "p"
		if got := partitionText(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
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

// TestPortsThatCanBeHad: the most that can ever be reserved, and one more.
func TestPortsThatCanBeHad(t *testing.T) {
	five, none := fivePorts(), settings()
	none.Ports = ""
	for _, c := range []struct {
		set        api.Settings
		ask, ranks int
		want       string
	}{
		{five, 0, 9, ""}, {five, 5, 1, ""}, {five, 6, 1, "6 ports asked, 5 can be reserved (12000-12004)"},
		{five, api.PortEach, 5, ""}, {five, api.PortEach, 6, "6 ports asked, 5 can be reserved (12000-12004)"},
		{none, 0, 1, ""}, {none, 1, 1, "the site reserves no ports"},
	} {
		got := ""
		if err := CheckPorts(&c.set, c.ask, c.ranks); err != nil {
			if got = err.Message; err.Reason != api.ReasonPorts || err.Code != api.CodeUnsatisfiable {
				t.Errorf("%+v", err)
			}
		}
		if got != c.want {
			t.Errorf("%d ports, %d ranks: %q, want %q", c.ask, c.ranks, got, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{0: 0, 1.5: 1500 * time.Millisecond, 87600*3600 - 1: 87600*time.Hour - time.Second, 87600 * 3600: 87600 * time.Hour, 1e300: 87600 * time.Hour} {
		if got := span(seconds); got != want {
			t.Errorf("%g: %s", seconds, got)
		}
	}
}

func TestPartOf(t *testing.T) {
	for _, c := range []struct {
		sum         int64
		done, whole time.Duration
		all         bool
		want        int64
	}{{9, 1, 3, false, 3}, {9, 1, 3, true, 9}, {9, 0, 3, false, 0}, {9, 0, 0, false, 0}, {9, 1, 1, false, 9}} {
		if got := partOf(c.sum, c.done, c.whole, c.all); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestBlankRanks(t *testing.T) {
	for size, shared := range map[int]bool{-1: false, 0: false, 1: true, maxBlank: true, maxBlank + 1: false} {
		got := BlankRanks(size)
		if len(got) != max(size, 0) || areBlank(got) != shared || cap(got) > max(size, 0) {
			t.Errorf("%d: %d ranks, shared %v", size, len(got), areBlank(got))
		}
		for i := range got {
			if text(got[i]) != text(Rank{State: api.RankBlocked}) {
				t.Fatalf("rank %d of %d: %+v", i, size, got[i])
			}
		}
	}
}

// TestOwnRanks: shared ones are copied before they are written to, own ones are not.
func TestOwnRanks(t *testing.T) {
	shared := BlankRanks(2)
	own := OwnRanks(shared)
	if own[0].State = api.RankDone; shared[0].State != api.RankBlocked {
		t.Error("the shared ranks were written to")
	}
	if again := OwnRanks(own); len(again) != 2 || &again[0] != &own[0] {
		t.Error("own ranks were copied")
	}
}

// TestLettersAreValues: a letter that was handed out is not changed by what comes after; the last one of an array has the state that
// says most of it, not that of its last element.
func TestLettersAreValues(t *testing.T) {
	b := newBench(t, 2)
	ids := arrayOf(b, 3, mailed(1, api.NotifyEnd, api.NotifyBegin, api.NotifyRequeue))
	for i, id := range ids {
		before := b.w.Outbox()
		was := text(before)
		b.run(id, []int{0, 3, 0}[i])
		if text(before) != was {
			t.Fatalf("changed by the end of job %d:\n%s\n%s", id, was, text(before))
		}
	}
	all := b.w.Outbox()
	if i := slices.IndexFunc(all, func(l *api.Letter) bool { return l.Type == api.NotifyEnd }); i < 0 || all[i].State != api.JobFailed || all[i].ExitCode != 3 || all[i].Draft {
		t.Errorf("%s", text(all))
	}
}

func TestSomeNumbers(t *testing.T) {
	for want, all := range map[string][]int{
		"task 3": {3}, "tasks 1 and 2": {1, 2}, "tasks 1, 2 and 3": {1, 2, 3}, "tasks 1, 2, 3, 4, 5, 6, 7 and 8": {1, 2, 3, 4, 5, 6, 7, 8},
		"tasks 1, 2, 3, 4, 5, 6, 7, 8 and 1 more": {1, 2, 3, 4, 5, 6, 7, 8, 9}, "tasks 1, 2, 3, 4, 5, 6, 7, 8 and 2 more": {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
	} {
		if got := numbers("task", all); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNotifyTypes: which kinds of letters each event is, the one that says most first.
func TestNotifyTypes(t *testing.T) {
	type types = []api.NotifyType
	ended := func(s api.JobState, c api.Cause) api.Event {
		return api.Event{Type: api.EventEnded, State: s, Cause: c}
	}
	stop := func(c api.Cause) api.Event { return api.Event{Type: api.EventDrainStarted, Cause: c} }
	for _, c := range []struct {
		job  *Job
		ev   api.Event
		want types
	}{
		{nil, api.Event{Type: api.EventStarted}, types{api.NotifyBegin}},
		{nil, ended(api.JobCompleted, api.CauseCompleted), types{api.NotifyEnd}},
		{nil, ended(api.JobCancelled, api.CauseCancelled), types{api.NotifyEnd}},
		{nil, ended(api.JobFailed, api.CauseCrash), types{api.NotifyFail, api.NotifyEnd}},
		{&Job{Wishes: &Wishes{Waits: "afterok:1"}}, ended(api.JobCancelled, api.CauseCancelled), types{api.NotifyInvalidDepend, api.NotifyEnd}},
		{&Job{Wishes: &Wishes{Waits: "afterok:1"}, Past: &Past{CancelledBy: "ada"}}, ended(api.JobCancelled, api.CauseCancelled), types{api.NotifyEnd}},
		{&Job{Wishes: &Wishes{Waits: "afterok:1"}}, ended(api.JobFailed, api.CauseCrash), types{api.NotifyFail, api.NotifyEnd}},
		{nil, api.Event{Type: api.EventDependencyFailed}, types{api.NotifyInvalidDepend}},
		{nil, stop(api.CauseTimeout), types{api.NotifyTimeLimit}},
		{nil, stop(api.CauseStalled), types{api.NotifyStall}},
		{nil, stop(api.CauseGPUHang), types{api.NotifyStall}},
		{nil, stop(api.CausePreempted), types{api.NotifyPreempt}},
		{nil, stop(api.CauseCrash), nil},
		{nil, api.Event{Type: api.EventDrainCompleted, Outcome: string(api.RankBlocked)}, types{api.NotifyRequeue}},
		{nil, api.Event{Type: api.EventDrainCompleted, Outcome: string(api.RankFailed)}, nil},
		{nil, api.Event{Type: api.EventRequeued}, types{api.NotifyRequeue}},
		{nil, api.Event{Type: api.EventIdleWarned}, types{api.NotifyIdle}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 50}, types{api.NotifyTimeLimit50}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 80}, types{api.NotifyTimeLimit80}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 90}, types{api.NotifyTimeLimit90}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 70}, nil},
		{nil, api.Event{Type: api.EventHeld}, nil},
	} {
		j := c.job
		if j == nil {
			j = &Job{}
		}
		j.Share()
		if got := notifyTypes(j, &c.ev); !slices.Equal(got, c.want) {
			t.Errorf("%s %s%s%s: %v, want %v", c.ev.Type, c.ev.Cause, c.ev.State, c.ev.Outcome, got, c.want)
		}
	}
}

// TestFindings: what a watchdog measured is said by the card or process that speaks most against the suspicion.
func TestFindings(t *testing.T) {
	const gib = 1 << 30
	card := func(c api.CardFinding) []api.CardFinding { c.Node, c.UUID = "n1", "GPU-1"; return []api.CardFinding{c} }
	for _, c := range []struct {
		f    api.Finding
		want string
	}{
		{api.Finding{State: api.CardsQuiet, Count: 2, Readings: 3, Cards: []api.CardFinding{{Utilization: 4, MovedBytes: gib}, {MovedBytes: 2 * gib}},
			Hosts: []api.HostFinding{{MemoryBytes: 3 * gib, IOBytes: gib}, {MemoryBytes: gib, IOBytes: 5 * gib}}},
			"2 cards in 3 readings idle, used at most at 4%, memory moved by at most 2.0G; processes moved at most 3.0G of memory, and read and wrote 5.0G"},
		{api.Finding{State: api.CardsQuiet, Count: 1, Readings: 1, Cards: card(api.CardFinding{})}, "1 card in 1 reading idle, used at most at 0%, memory moved by at most 0.0G"},
		{api.Finding{State: api.CardsQuiet, Count: 1, Readings: 1}, "1 card in 1 reading"},
		{api.Finding{State: api.CardsBusy, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsBusy, Utilization: 55})}, "not idle: n1 GPU-1 was used at 55% (1 card in 2 readings)"},
		{api.Finding{State: api.CardsMoving, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsMoving, MovedBytes: gib / 4})},
			"not still: the memory of n1 GPU-1 moved by 256.0M (1 card in 2 readings)"},
		{api.Finding{State: api.CardsMoving, Count: 1, Readings: 2, Hosts: []api.HostFinding{{Node: "n2", State: api.CardsMoving, MemoryBytes: gib, IOBytes: 1 << 20}}},
			"not still: the processes on n2 moved 1.0G of memory, and read and wrote 1.0M (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsUnknown})}, "not known: n1 GPU-1 could not be read (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsUnknown, AtMost: 1})},
			"not known: n1 GPU-1 was used at up to 1%, how much of it by this gang the driver does not say; also there is a process that the driver does not name (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Hosts: []api.HostFinding{{Node: "n2", State: api.CardsUnknown}}},
			"not known: what the processes on n2 move could not be read (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Hosts: []api.HostFinding{{Node: "n2", State: api.CardsQuiet}}}, "not known: no word of the cards (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2}, "not known: no word of the cards (1 card in 2 readings)"},
	} {
		if got := findingText(&c.f); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
	if got := unseenText(&api.Finding{Cards: []api.CardFinding{{State: api.CardsBusy, AtMost: 3}, {UUID: "GPU-2", State: api.CardsUnknown, AtMost: 3, Others: "Xorg"}}}); got !=
		"it can't be told what the gang does on its cards, GPU-2 was used at up to 3%, how much of it by this gang the driver does not say; also there is Xorg," {
		t.Errorf("%q", got)
	}
	for _, f := range []*api.Finding{nil, {}, {Cards: []api.CardFinding{{State: api.CardsUnknown}}}} {
		if got := unseenText(f); got != "the cards could not be read" {
			t.Errorf("%+v: %q", f, got)
		}
	}
	for n, want := range map[int64]string{-1: "an unknown size", 0: "0.0G", 1: "0.0M", 1<<29 - 1: "512.0M", 1 << 29: "0.5G", gib: "1.0G"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := lastFigure(&cluster.Node{}, "x"); got != watchdog.Unknown {
		t.Errorf("a card that is not there: %+v", got)
	}
}

// TestBudgets of each cause, with what was used of them.
func TestBudgetsByCause(t *testing.T) {
	set := settings()
	j := &Job{Spec: specOf(1), Past: &Past{Used: map[api.Cause]int{api.CauseCrash: 2, api.CausePreempted: 5}}}
	got := Budgets(&set, j)
	causes := []api.Cause{api.CauseCrash, api.CauseLaunch, api.CauseNodeLost, api.CauseStalled, api.CauseGPUHang, api.CauseIdle, api.CausePreempted, api.CauseRequeued, api.CauseTimeout}
	if len(got) != len(causes) {
		t.Errorf("%d causes", len(got))
	}
	for _, c := range causes {
		if want := (api.Budget{Used: j.Used[c], Limit: limit(&set, j.Spec, c)}); got[c] != want {
			t.Errorf("%s: %+v, want %+v", c, got[c], want)
		}
	}
}

// TestLatestStart: a gang that waits may start as long as it could end by its deadline.
func TestLatestStart(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(due(3*time.Hour, time.Hour, 0))
	if got := LatestStart(b.w.Job(id)); !got.Equal(epoch0.Add(2 * time.Hour)) {
		t.Errorf("%s", got)
	}
	b.start(id)
	if got := LatestStart(b.w.Job(id)); !got.IsZero() {
		t.Errorf("of one that runs: %s", got)
	}
	if got := LatestStart(b.w.Job(b.submit(specOf(1)))); !got.IsZero() {
		t.Errorf("without a deadline: %s", got)
	}
}

func TestRowsOfACommit(t *testing.T) {
	one := Changes{Jobs: make([]*Job, 1), Ranks: make([]RankRow, 2), Epochs: make([]EpochRow, 3), Steps: make([]api.Step, 4), Measures: make([]MeasureRow, 5),
		Ledger: make([]api.LedgerRow, 6), Nodes: make([]*Node, 7), Forgot: make([]string, 8), Reservations: make([]ReservationRow, 9), Partitions: make([]PartitionRow, 10),
		Crontabs: make([]CrontabRow, 11), Letters: make([]LetterRow, 12), Events: make([]api.Event, 13)}
	if got := one.Rows(); got != 91 {
		t.Errorf("%d rows", got)
	}
	one.Claims = []byte{}
	if got := one.Rows(); got != 92 {
		t.Errorf("%d rows with claims", got)
	}
}

// TestIDsAreSkipped: never back.
func TestIDsAreSkipped(t *testing.T) {
	b := newBench(t, 1)
	b.w.SkipIDs(7)
	b.w.SkipIDs(3)
	if id := b.submit(specOf(1)); id != 7 || b.w.NextID() != 8 {
		t.Errorf("job %d, then %d", id, b.w.NextID())
	}
}

// TestARankIsWarned: what it is warned of is an event, once, and so is that it is over.
func TestARankIsWarned(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	warn := func(text string, applied bool) {
		t.Helper()
		if out := b.phase(id, "n1", api.PhaseRunning, api.RankActual{PID: 100, Warning: text}); out.Applied != applied {
			t.Errorf("%q: %+v", text, out)
		}
	}
	warn("uses 9G of 8G", true)
	warn("uses 9G of 8G", false)
	warn("", true)
	warn("", false)
	warn("uses 9G of 8G", true)
	if got := slices.Sorted(maps.Keys(b.w.jobs[id].warned)); !slices.Equal(got, []int{0}) {
		t.Errorf("%v", got)
	}
	b.phase(id, "n1", api.PhaseStopped, api.RankActual{PID: 100, Exited: true, Warning: "uses 10G of 8G"})
}

// TestStopsOfTheNodesOwn: a stop that nobody ordered here is the loss of the node.
func TestStopsOfTheNodesOwn(t *testing.T) {
	for _, cause := range []api.Cause{api.CauseNodeLost, api.CausePreempted, api.CauseRequeued, api.CauseOOM, api.CauseStalled, api.CauseTimeout} {
		t.Run(string(cause), func(t *testing.T) {
			b := newBench(t, 2)
			id := b.submit(timed(2, time.Hour))
			b.start(id)
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: cause, Text: map[bool]string{true: "9G of 8G"}[cause == api.CauseOOM]})
			b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: cause})
			for range 2 { // a later cause, and again
				b.say("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseGPUHang})
			}
			b.ack(id)
		})
	}
}

// TestAnImageThatIsMoved: members that found other images of one name don't start together.
func TestAnImageThatIsMoved(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Container = &api.Container{Image: "torch:1"}
	id := b.submit(s)
	b.must(b.spread(id))
	ready := func(node, image string) {
		b.say(node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseReady, Port: 4000, Image: image})
	}
	ready("n1", "sha256:1")
	ready("n2", "sha256:2")
	if j := b.w.Job(id); !blocked(j) || j.Image != "sha256:1" || len(j.Refusals) != 1 || j.Refusals[0].Text != "the image is sha256:2 here and sha256:1 elsewhere" {
		t.Errorf("%+v", j.Refusals)
	}
}

// TestStaleClaimsAreToldOnce a session, though they are refused each time.
func TestStaleClaimsAreToldOnce(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(1))
	claim := func(job int64) {
		t.Helper()
		out := b.say("n1", api.MemberActual{MemberKey: memberKey(job, 7), Phase: api.PhaseRunning})
		if out.Refused == nil || out.Refused.Message != fmt.Sprintf("stale epoch 7 of job %d", job) {
			t.Errorf("%+v", out)
		}
	}
	eventsSince(b)
	for range 2 {
		claim(id)
		claim(99)
	}
	want := []string{string(api.EventStaleRefused) + " n1: running", string(api.EventStaleRefused) + " n1: running, of job 99 which is not known"}
	if got := eventsSince(b); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	b.must(NodeGone{Node: "n1"})
	b.hello("n1")
	eventsSince(b)
	claim(id)
	if got := eventsSince(b); len(got) != 1 {
		t.Errorf("in a new session: %q", got)
	}
}

func TestRefs(t *testing.T) {
	for want, j := range map[string]Job{"12": {ID: 12}, "13": {ID: 13, ArrayIndex: -1}, "14": {ID: 14, ArrayID: 14, ArrayIndex: -1}, "15_0": {ID: 15, ArrayID: 15}, "15_3": {ID: 17, ArrayID: 15, ArrayIndex: 3}} {
		if got := j.Ref().String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestMidnight(t *testing.T) {
	day := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	for _, at := range []time.Time{day, day.Add(time.Hour), day.Add(24*time.Hour - 1), day.Add(time.Hour).In(time.FixedZone("", 12*3600))} {
		if got := midnight(at); !got.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %s", at, got)
		}
	}
}

// TestOwnFailure: the first rank that failed by itself, of a gang on one node.
func TestOwnFailure(t *testing.T) {
	on := func(node string, own bool, code int) Rank {
		return Rank{Slot: cluster.Slot{Node: node}, Own: own, ExitCode: code}
	}
	for _, c := range []struct {
		ranks []Rank
		want  int
	}{
		{[]Rank{on("n1", true, 3)}, 0}, {[]Rank{on("n1", true, 0)}, -1}, {[]Rank{on("n1", false, 3)}, -1},
		{[]Rank{on("n1", true, 0), on("n1", false, 2), on("n1", true, 3), on("n1", true, 4)}, 2},
		{[]Rank{on("n1", true, 3), on("n2", true, 0)}, -1},
	} {
		if got, failed := ownFailure(&Job{Ranks: c.ranks}); got != c.want || failed != (c.want >= 0) {
			t.Errorf("%+v: rank %d, %v", c.ranks, got, failed)
		}
	}
}

// TestWhoAwaitsReadiness: only who runs, asked for it and has not passed.
func TestWhoAwaitsReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(j *Job)
		want bool
	}{
		"it runs":      {func(j *Job) {}, true},
		"did not ask":  {func(j *Job) { j.Spec.ReadyTimeout = 0 }, false},
		"has passed":   {func(j *Job) { j.ReadyAt = epoch0 }, false},
		"is stopped":   {func(j *Job) { j.Drain = &Drain{} }, false},
		"is over":      {func(j *Job) { j.Verdict = &Verdict{} }, false},
		"waits":        {func(j *Job) { j.Ranks[0].State = api.RankBlocked }, false},
		"is prepared":  {func(j *Job) { j.Ranks[0].State = api.RankReserved }, false},
		"has one done": {func(j *Job) { j.Ranks[0].State = api.RankDone }, true},
	} {
		j := &Job{Spec: &api.Spec{ReadyTimeout: 1}, Ranks: []Rank{{State: api.RankRunning}}, Past: &Past{}}
		if c.edit(j); AwaitsReady(j) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// TestDistributions: which tasks each node of a step has.
func TestDistributions(t *testing.T) {
	for how, want := range map[string]string{
		"": "[0 1 2] [3] [4 5]", "block": "[0 1 2] [3] [4 5]", "cyclic": "[0 3 5] [1] [2 4]", "plane=2": "[0 1 5] [2] [3 4]", "plane=9": "[0 1 2] [3] [4 5]",
		"plane=0": `distribution "plane=0": want plane=N`, "plane": `distribution "plane": want plane=N`, "arbitrary": `distribution "arbitrary": want block, cyclic or plane=N`,
	} {
		parts := make([]StepPart, 3)
		err := number(how, parts, []int{3, 1, 2})
		got := fmt.Sprint(parts[0].Tasks, parts[1].Tasks, parts[2].Tasks)
		if err != nil {
			got = err.Message
		}
		if got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
	}
}

// TestOnlyLostNodesAreFenced, and only where something ran.
func TestOnlyLostNodesAreFenced(t *testing.T) {
	b := newBench(t, 3)
	b.unwritten()
	for name, c := range map[string]struct {
		state api.NodeState
		ran   bool
	}{"n1": {api.NodeLost, true}, "n2": {api.NodeUp, true}, "n3": {api.NodeLost, false}} {
		n := b.w.nodes[name].node
		n.State, n.Left = c.state, []Left{{Ran: c.ran}}
	}
	if got := b.w.Fenceable(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("%v", got)
	}
}

// TestANodeIsCalledDownInWords: the event says how it was taken out.
func TestANodeIsCalledDownInWords(t *testing.T) {
	for want, ev := range map[string]NodeDrain{
		"disk": {Reason: "disk"}, "disk; down": {Reason: "disk", Down: true}, "no reason given": {}, "disk; to be empty by 2026-03-01T13:00:00Z": {Reason: "disk", By: epoch0.Add(time.Hour)},
	} {
		b := newBench(t, 1)
		b.unwritten()
		eventsSince(b)
		ev.Node = "n1"
		b.must(ev)
		if got := eventsSince(b); !slices.Equal(got, []string{string(api.EventNodeDrained) + " n1: " + want}) {
			t.Errorf("%q, want %q", got, want)
		}
		b.ignores(ev, "out of service already")
	}
}

// TestAForgottenNodeIsNotStruck: it had refused a gang that another starts.
func TestAForgottenNodeIsNotStruck(t *testing.T) {
	b := newBench(t, 3)
	id := b.by("ada")
	b.on(id, "n1")
	b.refuse(id, api.BlameFiles, "no home")
	b.must(NodeGone{Node: "n1"})
	b.after(b.w.set.NodeTimeout)
	b.must(NodeForget{Node: "n1"})
	b.on(id, "n2")
	b.ready(id)
	if j := b.w.Job(id); len(j.Refusals) != 0 || JobState(j) != api.JobRunning {
		t.Errorf("%s, refused by %+v", JobState(j), j.Refusals)
	}
}

// TestTheRecordOfLettersIsBounded: those that were given up first are forgotten, and those that lie there for too long.
func TestTheRecordOfLettersIsBounded(t *testing.T) {
	b := newBench(t, 1)
	b.unwritten()
	for i := range int64(mostGivenUp + 2) {
		b.w.outbox.put(i+1, &api.Letter{ID: i + 1, GivenUp: epoch0.Add(time.Duration(i) * time.Second)})
	}
	left := func(want, first int64) {
		t.Helper()
		b.w.forgetGivenUp()
		if all := b.w.givenUp(); int64(len(all)) != want || all[0].ID != first {
			t.Errorf("%d letters, the first is %d", len(all), all[0].ID)
		}
	}
	left(mostGivenUp, 3)
	b.w.now.Wall = epoch0.Add(2*time.Second + api.GivenUpKept)
	left(mostGivenUp, 3)
	b.w.now.Wall = b.w.now.Wall.Add(1)
	left(mostGivenUp-1, 4)
}

// TestWhoIsWaitedFor: a job, an array, and each element of one of which somebody waits for an element.
func TestWhoIsWaitedFor(t *testing.T) {
	d := newDepends()
	watched := func(want string) {
		t.Helper()
		got := ""
		for _, j := range []Job{{ID: 5}, {ID: 6}, {ID: 7, ArrayID: 7}, {ID: 8, ArrayID: 7}, {ID: 20, ArrayID: 20}} {
			if d.watched(&j) {
				got += fmt.Sprint(" ", j.ID)
			}
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	watched("")
	d.add(5, 0, 30)
	watched(" 5")
	d.add(8, 7, 30)
	d.add(8, 7, 31)
	d.add(7, 7, 30)
	watched(" 5 7 8")
	d.remove(8, 7, 30)
	d.remove(7, 7, 30)
	d.remove(7, 7, 30)
	watched(" 5 7 8")
	d.remove(8, 7, 31)
	watched(" 5")
	d.remove(5, 0, 30)
	watched("")
	if len(d.on)+len(d.arrays) != 0 {
		t.Errorf("left are %v, %v", d.on, d.arrays)
	}
}

// TestRowsOfRanksAddUp: what was given to be stored is what is.
func TestRowsOfRanksAddUp(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(3))
	stored := slices.Clone(b.w.Job(id).Ranks)
	after := func(what string) {
		t.Helper()
		for _, r := range b.w.Take().Ranks {
			stored[r.Index] = r.Rank
		}
		if got, want := text(stored), text(b.w.Job(id).Ranks); got != want {
			t.Errorf("after %s: %s, want %s", what, got, want)
		}
	}
	after("its submission")
	b.must(b.spread(id))
	after("its admission")
	b.ready(id)
	after("its start")
	b.phase(id, "n2", api.PhaseRunning, api.RankActual{Rank: 1, PID: 7})
	after("a process")
	b.phase(id, "n2", api.PhaseStopped, exit(1, 0))
	after("an end")
	b.must(Preempt{Job: id, For: "job 9"})
	after("an order to stop")
	b.phase(id, "n1", api.PhaseStopped, exit(0, 143))
	after("a stop")
	b.must(Cancel{Job: id})
	b.ack(id)
	after("its end")
}

// TestAdmissionsOfOtherCards: each rank has the cards that it asked for, and more only where its job takes whole nodes.
func TestAdmissionsOfOtherCards(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.GPUsPerRank = 2
	id := b.submit(s)
	cards := func(n ...int) Admit {
		ev := b.spread(id)
		for i, n := range n {
			for c := range n {
				ev.Slots[i].Cards = append(ev.Slots[i].Cards, fmt.Sprintf("GPU-n%d-%d", i+1, c))
			}
		}
		return ev
	}
	b.refuses(cards(1, 2), fmt.Sprintf("1 cards for rank 0 of job %d, which asks for 2", id))
	b.refuses(cards(2, 3), fmt.Sprintf("3 cards for rank 1 of job %d, which asks for 2", id))
	short := cards(2, 2)
	short.Slots = short.Slots[:1]
	b.refuses(short, fmt.Sprintf("1 slots for the 2 ranks of job %d", id))
	b.must(cards(2, 2))
	whole := specOf(1)
	whole.GPUsPerRank, whole.Exclusive, whole.Launch = 1, true, api.LaunchBatch
	id = b.submit(whole)
	for n, fits := range map[int]bool{0: false, 1: true, 4: true} {
		if err := b.w.admissible(b.w.jobs[id], cards(n)); (err == nil) != fits {
			t.Errorf("%d cards: %v", n, err)
		}
	}
}

// TestVerdictOfATrigger: a job that did not complete shows the code of the rank that it ended for, but never 0, and that of its cause before all.
func TestVerdictOfATrigger(t *testing.T) {
	j := &Job{Spec: specOf(3), Ranks: []Rank{{Exited: true, ExitCode: 3, Signal: 9}, {Exited: true}, {ExitCode: 4}}}
	j.Share()
	for _, c := range []struct {
		cause   api.Cause
		trigger int
		want    Verdict
	}{
		{api.CauseCrash, 0, Verdict{State: api.JobFailed, ExitCode: 3, Signal: 9}}, {api.CauseCrash, 1, Verdict{State: api.JobFailed, ExitCode: 1}},
		{api.CauseCrash, 2, Verdict{State: api.JobFailed, ExitCode: 1}}, {api.CauseCrash, -1, Verdict{State: api.JobFailed, ExitCode: 1}},
		{api.CauseOOM, 0, Verdict{State: api.JobOutOfMemory, ExitCode: 3, Signal: 9}}, {api.CauseNodeLost, -1, Verdict{State: api.JobNodeFail, ExitCode: 1}},
		{api.CausePreempted, -1, Verdict{State: api.JobPreempted, ExitCode: 1}}, {api.CauseRequeued, -1, Verdict{State: api.JobPreempted, ExitCode: 1}},
		{api.CauseTimeout, 0, Verdict{State: api.JobTimeout, ExitCode: 75}}, {api.CauseStalled, 0, Verdict{State: api.JobFailed, ExitCode: 76}},
		{api.CauseDeadline, -1, Verdict{State: api.JobDeadline, ExitCode: 1}}, {api.CauseCancelled, -1, Verdict{State: api.JobCancelled, ExitCode: 1}},
		{api.CauseLaunch, -1, Verdict{State: api.JobFailed, ExitCode: 1}},
	} {
		c.want.Cause, c.want.Trigger, c.want.Text = c.cause, c.trigger, "why"
		if got := verdictOf(j, c.cause, c.trigger, "why"); *got != c.want {
			t.Errorf("%s of rank %d: %+v, want %+v", c.cause, c.trigger, *got, c.want)
		}
	}
}

// TestOutcomesOfADependency: how up to four jobs ended is said, of more nobody reads it.
func TestOutcomesOfADependency(t *testing.T) {
	b := newBench(t, 1)
	b.unwritten()
	d := &api.Dependency{}
	add := func(j *Job) {
		j.ID = int64(len(d.On) + 1)
		j.Share()
		b.w.jobs[j.ID] = &entry{job: j}
		d.On = append(d.On, api.Condition{Kind: api.AfterOK, Job: j.ID})
	}
	failed := func() *Job { return &Job{Past: &Past{Verdict: &Verdict{State: api.JobFailed}}} }
	add(&Job{})
	array := failed()
	array.Array = &ArrayInfo{}
	add(array)
	d.On = append(d.On, api.Condition{Kind: api.AfterOK, Job: 99})
	for _, want := range []string{"", " (job 4 ended FAILED)", " (job 4 ended FAILED, job 5 ended FAILED)", " (job 4 ended FAILED, job 5 ended FAILED, job 6 ended FAILED)",
		" (job 4 ended FAILED, job 5 ended FAILED, job 6 ended FAILED, job 7 ended FAILED)", ""} {
		if got := b.w.outcomes(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		add(failed())
	}
}

// TestEndsOfAnArrayAreCounted: the least and the largest code, and the first that failed.
func TestEndsOfAnArrayAreCounted(t *testing.T) {
	a := &api.LetterArray{States: map[api.JobState]int{}}
	countEnd(a, &api.Letter{State: api.JobCompleted, ExitCode: 2}, 0)
	if a.MinExit != 2 || a.MaxExit != 2 || a.Failed != nil {
		t.Errorf("%+v", a)
	}
	countEnd(a, &api.Letter{State: api.JobCancelled, ExitCode: 1}, 1)
	for i := range api.MaxFailedListed + 1 {
		countEnd(a, &api.Letter{State: api.JobFailed, ExitCode: 3}, 2+i)
	}
	if a.MinExit != 1 || a.MaxExit != 3 || len(a.Failed) != api.MaxFailedListed || a.Failed[0] != 2 || a.States[api.JobFailed] != api.MaxFailedListed+1 || len(a.States) != 3 {
		t.Errorf("%+v", a)
	}
}

// TestMeasuresAreCut: a node may say what it likes, booked is no more than what its member held.
func TestMeasuresAreCut(t *testing.T) {
	b, id := cardJob(t)
	b.after(time.Hour)
	e := b.w.jobs[id]
	booked := func() (seen, used int64, cards BookedCards) {
		k := e.job.Booking
		return k.SeenCPUMS, k.UsedCPUMS, k.Cards[0]
	}
	const hour = int64(3600_000)
	far := 1e12
	card := api.CardMeasure{UUID: "GPU-n1-0", Utilization: &api.Figure{Seconds: far, Mean: 300}, IdleSeconds: &far, Joules: &far}
	others := card
	others.UUID = "GPU-n1-3"
	b.w.measured(e, 0, nil)
	if seen, used, cards := booked(); seen+used+cards.SeenMS != 0 {
		t.Errorf("of nothing: %d %d %+v", seen, used, cards)
	}
	b.w.measured(e, 0, &api.Measure{Seconds: far, CPUSeconds: &far, Cards: []api.CardMeasure{others, card}})
	seen, used, cards := booked()
	if want := (BookedCards{Type: "H200", Cards: 2, SeenMS: hour, BusyMS: hour, IdleMS: hour, Joules: 10_000 * 3660}); seen != 6*hour || used != 8*(hour+60_000) || cards != want {
		t.Errorf("%d of %d, cards %+v", used, seen, cards)
	}
	little, few := 10.0, 5.0
	b.w.measured(e, 0, &api.Measure{Seconds: 20, CPUSeconds: &little, Cards: []api.CardMeasure{{UUID: "GPU-n1-1", Utilization: &api.Figure{Seconds: 10, Mean: 50}, IdleSeconds: &few, Joules: &few}}})
	b.w.measured(e, 0, &api.Measure{Seconds: 20, Cards: []api.CardMeasure{{UUID: "GPU-n1-1", Utilization: &api.Figure{Seconds: 10, Mean: 50}}, {UUID: "GPU-n1-1", IdleSeconds: &few}}}) // of which not all is known
	seen2, used2, cards2 := booked()
	if want := (BookedCards{Type: "H200", Cards: 2, SeenMS: hour + 10_000, BusyMS: hour + 5000, IdleMS: hour + 5000, Joules: 10_000*3660 + 5}); seen2-seen != 6*20_000 || used2-used != 10_000 || cards2 != want {
		t.Errorf("%d of %d more, cards %+v", used2-used, seen2-seen, cards2)
	}
	w := b.w.measures
	if len(w) != 3 || len(w[0].Measure.Cards) != 1 || w[0].Measure.Node != "n1" || w[0].Epoch != 1 || w[0].Job != id {
		t.Errorf("%s", text(w))
	}
	b.w.edit(e).Members[0].State = MemberStopped
	if b.w.measured(e, 0, &api.Measure{Seconds: 20}); len(b.w.measures) != 3 {
		t.Error("taken twice")
	}
}

// TestEndsOfSteps: how a step ended by what its parts say, and by what ended it.
func TestEndsOfSteps(t *testing.T) {
	part := func(code int) StepPart { return StepPart{Known: true, ExitCode: code, Signal: code % 3} }
	unknown := StepPart{}
	stop := func(c api.Cause) *Job { return &Job{Past: &Past{Drain: &Drain{Cause: c}}} }
	for _, c := range []struct {
		job    *Job
		step   Step
		state  api.JobState
		cause  api.Cause
		code   int // -1: not known
		signal int
		err    string
	}{
		{&Job{}, Step{Parts: []StepPart{part(0), part(0)}}, api.JobCompleted, "", 0, 0, ""},
		{&Job{}, Step{Parts: []StepPart{part(4), part(5), part(1)}}, api.JobFailed, "", 5, 2, ""},
		{&Job{}, Step{Parts: []StepPart{part(5), part(5)}}, api.JobFailed, "", 5, 2, ""},
		{&Job{}, Step{Parts: []StepPart{part(0), unknown}}, api.JobCancelled, api.CauseCancelled, -1, 0, ""},
		{&Job{}, Step{Parts: []StepPart{part(2), unknown}}, api.JobCancelled, api.CauseCancelled, 2, 2, ""},
		{&Job{}, Step{Stop: true, Parts: []StepPart{part(0)}}, api.JobCancelled, api.CauseCancelled, 0, 0, ""},
		{&Job{}, Step{Stop: true, Late: true, Parts: []StepPart{part(0)}}, api.JobTimeout, api.CauseTimeout, 0, 0, ""},
		{&Job{}, Step{Parts: []StepPart{{Known: true, ExitCode: 9, OOM: true}, part(0)}}, api.JobOutOfMemory, "", 9, 0, ""},
		{&Job{}, Step{Parts: []StepPart{part(0), {Known: true, ExitCode: 1, Text: "no such file"}, {Known: true, Text: "later"}}}, api.JobFailed, "", 1, 0, "n2: no such file"},
		{&Job{}, Step{Parts: []StepPart{{Known: true, Member: 9, Text: "nowhere"}}}, api.JobCompleted, "", 0, 0, ""},
		{stop(api.CausePreempted), Step{Parts: []StepPart{unknown}}, api.JobPreempted, api.CausePreempted, -1, 0, ""},
		{stop(api.CausePreempted), Step{Parts: []StepPart{part(2)}}, api.JobPreempted, api.CausePreempted, 2, 2, ""},
		{stop(api.CausePreempted), Step{Parts: []StepPart{part(0)}}, api.JobCompleted, "", 0, 0, ""},
		{stop(api.CauseCompleted), Step{Parts: []StepPart{part(2)}}, api.JobFailed, "", 2, 2, ""},
	} {
		c.job.Share()
		c.job = c.job.Copy()
		for i := range c.step.Parts {
			c.job.Members = append(c.job.Members, Member{Node: fmt.Sprint("n", i+1)})
			if c.step.Parts[i].Member == 0 {
				c.step.Parts[i].Member = i
			}
		}
		s := ShowStep(c.job, &c.step, epoch0)
		code := -1
		if s.ExitCode != nil {
			code = *s.ExitCode
		}
		if s.State != c.state || s.Cause != c.cause || code != c.code || s.Signal != c.signal || s.Error != c.err {
			t.Errorf("%s: %s %s, code %d, signal %d, %q", text(c.step), s.State, s.Cause, code, s.Signal, s.Error)
		}
	}
}

// TestAnyDone: one rank is enough.
func TestAnyDone(t *testing.T) {
	j := &Job{Ranks: []Rank{{State: api.RankRunning}, {State: api.RankFailed}}}
	if AnyDone(j) {
		t.Error("none is done")
	}
	if j.Ranks[1].State = api.RankDone; !AnyDone(j) {
		t.Error("one is done")
	}
}

// TestWhatIsBeingStoppedIsNotChanged, and what runs is changed in little.
func TestWhatIsBeingStoppedIsNotChanged(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	for what, ev := range map[string]Update{"partition": {Partition: new("night")}, "constraint": {Constraint: new("ib")}, "begin time": {Begin: new(epoch0)}, "dependency": {Dependency: &api.Dependency{}}} {
		ev.Job = id
		if err := b.w.updatable(b.w.jobs[id], &ev); err == nil || err.Message != fmt.Sprintf("job %d is running: its %s can be changed only while it waits", id, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.must(Preempt{Job: id, For: "job 9"})
	b.refuses(Update{Job: id, TimeLimit: new(time.Hour)}, fmt.Sprintf("job %d is being stopped: its time limit has no effect any more", id))
	b.refuses(Update{Job: id, Deadline: new(epoch0.Add(time.Hour))}, fmt.Sprintf("job %d is being stopped: a deadline has no effect any more", id))
}

// TestWhatWaitsAgainBeginsAnew: nothing of its life before counts but what is on record of it.
func TestWhatWaitsAgainBeginsAnew(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.run(id, 1)
	b.after(time.Minute)
	e := b.w.jobs[id]
	j := b.w.edit(e)
	was := *j.Past
	j.Cancelled, j.CancelledBy, j.Elsewhere, j.Used, j.Rollbacks, j.BackoffUntil = true, "ada", true, map[api.Cause]int{api.CauseCrash: 1}, 2, epoch0
	j.Refusals, j.Avoid, j.Checkpoint, j.TaskCheckpoint, j.Acked, j.Kept, j.Ran = []Refusal{{Node: "n1"}}, []string{"n1"}, &Checkpoint{}, &TaskCheckpoint{}, 1, 2, 3
	j.CutTimeLimit, j.Turn, j.Ports, j.Steps, j.NextStep, j.ReservedAt, j.Held = 1, sched.NoTurn+1, []int{1}, []Step{{}}, 4, epoch0, HeldAdmin
	b.w.editRank(e, 0).Own = true
	b.w.now = b.now
	j = b.w.waitAgain(e)
	want := Past{Start: was.Start, Epoch: was.Epoch, Booking: was.Booking, Queued: b.now.Wall}
	if text(*j.Past) != text(want) || j.Held != "" || !j.Eligible.Equal(b.now.Wall) || j.Ranks[0].State != api.RankBlocked || j.Ranks[0].Own {
		t.Errorf("%s\nwant\n%s\nheld %q, eligible %s, %+v", text(*j.Past), text(want), j.Held, j.Eligible, j.Ranks[0])
	}
	if e.leaves != 0 || e.ask.Spec != nil && len(e.ask.Spec.Exclude) != 0 {
		t.Errorf("leaves at %s, asks for %+v", e.leaves, e.ask)
	}
}

// TestAsDoneIsAnother: a job is looked at as if its late results counted, and is not written to.
func TestAsDoneIsAnother(t *testing.T) {
	j := &Job{Ranks: []Rank{{State: api.RankBlocked, Own: true}, {State: api.RankBlocked, Own: true, ExitCode: 1}, {State: api.RankBlocked}}}
	j.Share()
	as := asDone(j)
	if as.Ranks[0].State != api.RankDone || as.Ranks[1].State != api.RankBlocked || as.Ranks[2].State != api.RankBlocked || j.Ranks[0].State != api.RankBlocked {
		t.Errorf("%+v of %+v", as.Ranks, j.Ranks)
	}
}

// TestMembersAndTheirRanks: in which states ranks are by that of their member.
func TestMembersAndTheirRanks(t *testing.T) {
	all := []api.RankState{api.RankBlocked, api.RankReserved, api.RankRunning, api.RankPreempting, api.RankPreempted, api.RankDone, api.RankFailed, api.RankCancelled}
	for m, want := range map[MemberState][]api.RankState{
		MemberPreparing: {api.RankReserved}, MemberStarting: {api.RankRunning}, MemberRunning: {api.RankRunning, api.RankPreempted, api.RankDone},
		MemberStopping: {api.RankPreempting, api.RankPreempted, api.RankDone, api.RankFailed}, MemberStopped: {api.RankPreempted, api.RankDone, api.RankFailed}, MemberFenced: {api.RankPreempted, api.RankDone, api.RankFailed},
	} {
		for _, r := range all {
			if got := memberFits(m, r); got != slices.Contains(want, r) {
				t.Errorf("a rank that is %s in a member that is %s: %v", r, m, got)
			}
		}
	}
}

// TestWhereAJobIsFenced: the nodes on which a past epoch of it may run, and no other's.
func TestWhereAJobIsFenced(t *testing.T) {
	b := newBench(t, 4)
	b.unwritten()
	for name, l := range map[string]Left{"n1": {MemberKey: memberKey(7, 1), Ran: true}, "n2": {MemberKey: memberKey(8, 1), Ran: true}, "n3": {MemberKey: memberKey(7, 2)}, "n4": {MemberKey: memberKey(7, 2), Ran: true}} {
		b.w.nodes[name].node.Left = []Left{l}
	}
	b.w.jobs[7] = &entry{left: 2}
	if got := b.w.Fenced(7); !slices.Equal(got, []string{"n1", "n4"}) {
		t.Errorf("%v", got)
	}
}

// TestTheFirstWorld: ids and events begin with 1.
func TestTheFirstWorld(t *testing.T) {
	w := Restore(Instant{Wall: epoch0, Mono: mono0}, settings(), &Snapshot{})
	if w.NextID() != 1 || w.nextSeq != 1 {
		t.Errorf("job %d, event %d", w.NextID(), w.nextSeq)
	}
}

// TestARestartForgetsSuspicion: what a new controller has not heard of is unknown to it.
func TestARestartForgetsSuspicion(t *testing.T) {
	b := newBench(t, 2)
	b.must(NodeGone{Node: "n1"})
	if n := b.w.Node("n1"); n.State != api.NodeSuspect || n.Res.NotReady != "suspect" || !n.Res.Away {
		t.Errorf("%s, %+v", n.State, n.Res)
	}
	b.reborn(time.Second)
	for _, name := range []string{"n1", "n2"} {
		if n := b.w.Node(name); n.State != api.NodeUnknown || n.Res.NotReady != "unknown" || !n.Res.Away || n.Res.Ready {
			t.Errorf("%s is %s, %+v", name, n.State, n.Res)
		}
	}
}

// TestImagesOfStepsAreBounded: of so many the digest is kept.
func TestImagesOfStepsAreBounded(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	e := b.w.jobs[id]
	j := b.w.edit(e)
	j.StepImages = make([]StepImage, maxStepImages-1)
	for i, want := range []bool{true, false} {
		j.Steps = []Step{{Parts: make([]StepPart, 1)}}
		j.Steps[0].Ask.Container = &api.Container{Image: fmt.Sprint("torch:", i)}
		if got := b.w.stepImage(e, 0, 0, &api.StepActual{Image: "sha256:1"}); got != want || len(e.job.StepImages) != maxStepImages {
			t.Errorf("image %d: kept %v, %d in all", i, got, len(e.job.StepImages))
		}
		j = e.job
	}
}

// TestVerifyLooksAtWhatIsShared: nobody may write to what all gangs have that have none of their own.
func TestVerifyLooksAtWhatIsShared(t *testing.T) {
	b := newBench(t, 1)
	b.unwritten()
	for want, spoil := range map[string]func(){
		"the past and the wishes of the gangs that have none are ": func() { noPast.Epoch = 1 },
		"the past and the wishes of the gangs":                     func() { noWishes.Held = "x" },
		"the epoch of the gangs that have none is ":                func() { b.w.noEpoch.alive = 1 },
		"rank 0 of the gangs that never had nodes is ":             func() { blank[0].State = api.RankDone },
		"rank 1 of the gangs that never had nodes is ":             func() { blank[1].Slot.Node = "n1" },
		"rank 2 of the gangs that never had nodes is ":             func() { blank[2].Slot.Cards = []string{} },
		"rank 3 of the gangs that never had nodes is ":             func() { blank[3].PID = 1 },
		"rank 4 of the gangs that never had nodes is ":             func() { blank[4].Exited = true },
		"rank 5 of the gangs that never had nodes is ":             func() { blank[5].Own = true },
		"rank 6 of the gangs that never had nodes is ":             func() { blank[6].Start = epoch0 },
		"rank 4095 of the gangs that never had nodes is ":          func() { blank[4095].End = epoch0 },
	} {
		spoil()
		if found := b.w.Verify(); len(found) != 1 || !strings.HasPrefix(found[0], want) {
			t.Errorf("%q, want %q", found, want)
		}
		*noPast, *noWishes, *b.w.noEpoch = Past{}, Wishes{}, epoch{}
		copy(blank, newBlank(maxBlank))
	}
}

// TestRequeuesOfAnArrayAreCounted in its letter, and told once by themselves.
func TestRequeuesOfAnArrayAreCounted(t *testing.T) {
	b := newBench(t, 2)
	ids := arrayOf(b, 2, mailed(1, api.NotifyRequeue, api.NotifyEnd))
	for n := range 2 {
		b.after(time.Hour)
		b.start(ids[0])
		b.must(Requeue{Job: ids[0], By: "ada"})
		b.ack(ids[0])
		all := b.w.Outbox()
		if i := slices.IndexFunc(all, func(l *api.Letter) bool { return l.Draft }); i < 0 || all[i].Array.Requeued != n+1 || len(all) != 2 {
			t.Errorf("%s", text(all))
		}
	}
}

// TestALostNodeThatWasDrained is lost, for the reason for which it was drained.
func TestALostNodeThatWasDrained(t *testing.T) {
	b := newBench(t, 2)
	b.must(NodeDrain{Node: "n1", Reason: "disk"})
	b.must(NodeGone{Node: "n1"})
	b.after(b.w.set.NodeTimeout)
	if n := b.w.Node("n1"); n.State != api.NodeLost || n.Reason != "disk" || n.Res.NotReady != "lost: disk" || n.Res.Away {
		t.Errorf("%s %q, %+v", n.State, n.Reason, n.Res)
	}
}

// TestWhoIsInTheWayOfAnEmptying: who may run beyond the start of a reservation that empties its nodes.
func TestWhoIsInTheWayOfAnEmptying(t *testing.T) {
	b := newBench(t, 1)
	b.must(PutReservation{R: b.reservation("talk", time.Hour, time.Hour, []string{"n1"}, api.FlagDrain)})
	j := b.w.Job(b.submit(specOf(1)))
	start := epoch0.Add(time.Hour)
	for until, in := range map[time.Time]bool{{}: true, start: false, start.Add(-time.Hour): false, start.Add(1): true} {
		by, text := b.w.clearing(b.w.nodes["n1"], j, &cluster.Grant{Until: until})
		if by.Equal(start) != in || by.IsZero() == in || (text == "node n1 is to be empty by 2026-03-01T13:00:00Z for reservation talk") != in {
			t.Errorf("until %s: by %s, %q", until, by, text)
		}
	}
}

// TestCardsOfAStepOnThreeNodes: none has a number of them below nought, and what is left over is refused.
func TestCardsOfAStepOnThreeNodes(t *testing.T) {
	for gpus, want := range map[int]string{1: "1 CPU and 1 GPUs in all asked, node n1 has 2 GPUs for the step", 3: "", 6: "", 7: "7 GPUs asked, its nodes have 6"} {
		a := asks(api.StepComponent{Tasks: 3, GPUs: gpus})
		parts, got := make([]StepPart, 3), ""
		if err := giveCards(&a, []room{{node: "n1", cardFree: []string{"a", "b"}}, {node: "n2", cardFree: []string{"c", "d"}}, {node: "n3", cardFree: []string{"e", "f"}}}, parts); err != nil {
			got = err.Message
		}
		if got != want || want == "" && (len(parts[0].Cards) != gpus/3 || len(parts[1].Cards) != gpus/3 || len(parts[2].Cards) != gpus/3) {
			t.Errorf("%d: %q, %+v", gpus, got, parts)
		}
	}
}

// TestNextTimesOfALine: never, of a schedule or a zone that is none.
func TestNextTimesOfALine(t *testing.T) {
	b := newBench(t, 1)
	for want, c := range map[string]api.Cron{"2026-03-02T00:00:00Z": {Schedule: "@daily"}, "2026-03-01T12:05:00Z": {Schedule: "*/5 * * * *"}} {
		if got := b.w.due(&c, epoch0); got.Format(time.RFC3339) != want {
			t.Errorf("%s: %s", c.Schedule, got)
		}
	}
	for _, c := range []api.Cron{{Schedule: "x"}, {Schedule: "@daily", Zone: "Mars"}} {
		if got := b.w.due(&c, epoch0); !got.IsZero() {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
