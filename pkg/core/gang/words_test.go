package gang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/order"
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
		err := b.w.launches.admissible(b.w.jobs.byID[id], ev)
		if (err == nil) != fits || err != nil && err.Message != fmt.Sprintf("the time limit of job %d can't be cut to %s", id, when.Words(limit)) {
			t.Errorf("%s: %v", limit, err)
		}
	}
	unlimited := specOf(1)
	unlimited.TimeMin = time.Minute
	ev := b.spread(b.submit(unlimited))
	ev.TimeLimit = time.Hour
	if err := b.w.launches.admissible(b.w.jobs.byID[ev.Job], ev); err != nil {
		t.Errorf("a limit for a job without one: %v", err)
	}
	held := b.submit(specOf(1))
	b.must(Hold{Job: held, Admin: true})
	b.refuses(b.spread(held), fmt.Sprintf("job %d is held", held))
	b.refuses(Release{Job: held}, fmt.Sprintf("job %d is held by an admin", held))
	b.must(Release{Job: held, Admin: true})
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

// TestBudgets of each cause, with what was used of them.
func TestBudgetsByCause(t *testing.T) {
	set := settings()
	j := &Job{Spec: specOf(1), Past: &Past{Setbacks: Setbacks{Used: map[api.Cause]int{api.CauseCrash: 2, api.CausePreempted: 5}}}}
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
	one := Changes{Jobs: make([]*Job, 1), Ranks: make([]RankRow, 2), Epochs: make([]EpochRow, 3), Steps: make([]api.Step, 4), Measures: make([]MeasureRow, 5), Ledger: make([]api.LedgerRow, 6), Nodes: make([]*Node, 7), Forgot: make([]string, 8), Letters: make([]LetterRow, 12), Events: make([]api.Event, 13), SiteChanges: SiteChanges{Reservations: make([]ReservationRow, 9), Partitions: make([]PartitionRow, 10), Crontabs: make([]CrontabRow, 11)}}
	if got := one.Rows(); got != 91 {
		t.Errorf("%d rows", got)
	}
	one.Claims = []byte{}
	if got := one.Rows(); got != 92 {
		t.Errorf("%d rows with claims", got)
	}
}

func TestRefs(t *testing.T) {
	for want, j := range map[string]Job{"12": {ID: 12}, "13": {ID: 13, ArrayIndex: -1}, "14": {ID: 14, ArrayID: 14, ArrayIndex: -1}, "15_0": {ID: 15, ArrayID: 15}, "15_3": {ID: 17, ArrayID: 15, ArrayIndex: 3}} {
		if got := j.Ref().String(); got != want {
			t.Errorf("%s, want %s", got, want)
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
		if err := b.w.launches.admissible(b.w.jobs.byID[id], cards(n)); (err == nil) != fits {
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

// TestWhatWaitsAgainBeginsAnew: nothing of its life before counts but what is on record of it.
func TestWhatWaitsAgainBeginsAnew(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.run(id, 1)
	b.after(time.Minute)
	e := b.w.jobs.byID[id]
	j := b.w.jobs.edit(e)
	was := *j.Past
	j.Cancelled, j.CancelledBy, j.Elsewhere, j.Used, j.Rollbacks, j.BackoffUntil = true, "ada", true, map[api.Cause]int{api.CauseCrash: 1}, 2, epoch0
	j.Refusals, j.Avoid, j.Checkpoint, j.TaskCheckpoint, j.Acked, j.Kept, j.Ran = []Refusal{{Node: "n1"}}, []string{"n1"}, &Checkpoint{}, &TaskCheckpoint{}, 1, 2, 3
	j.CutTimeLimit, j.Turn, j.Ports, j.Steps, j.NextStep, j.ReservedAt, j.Held = 1, order.NoTurn+1, []int{1}, []Step{{}}, 4, epoch0, HeldAdmin
	b.w.jobs.editRank(e, 0).Own = true
	b.w.clock.now = b.now
	j = b.w.control.waitAgain(e)
	want := Past{Attempt: Attempt{Start: was.Start, Epoch: was.Epoch}, Allocation: Allocation{Booking: was.Booking}, Progress: Progress{Queued: b.now.Wall}}
	if text(*j.Past) != text(want) || j.Held != "" || !j.Eligible.Equal(b.now.Wall) || j.Ranks[0].State != api.RankBlocked || j.Ranks[0].Own {
		t.Errorf("%s\nwant\n%s\nheld %q, eligible %s, %+v", text(*j.Past), text(want), j.Held, j.Eligible, j.Ranks[0])
	}
	if e.leaves != 0 || e.asked.ask.Spec != nil && len(e.asked.ask.Spec.Exclude) != 0 {
		t.Errorf("leaves at %s, asks for %+v", e.leaves, e.asked.ask)
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
		b.w.nodes.byName[name].node.Left = []Left{l}
	}
	b.w.jobs.byID[7] = &entry{left: 2}
	if got := b.w.Fenced(7); !slices.Equal(got, []string{"n1", "n4"}) {
		t.Errorf("%v", got)
	}
}

// TestTheFirstWorld: ids and events begin with 1.
func TestTheFirstWorld(t *testing.T) {
	w := Restore(Instant{Wall: epoch0, Mono: mono0}, settings(), &Snapshot{})
	if w.NextID() != 1 || w.record.nextSeq != 1 {
		t.Errorf("job %d, event %d", w.NextID(), w.record.nextSeq)
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

// TestWhoIsInTheWayOfAnEmptying: who may run beyond the start of a reservation that empties its nodes.
func TestWhoIsInTheWayOfAnEmptying(t *testing.T) {
	b := newBench(t, 1)
	b.must(PutReservation{R: b.reservation("talk", time.Hour, time.Hour, []string{"n1"}, api.FlagDrain)})
	j := b.w.Job(b.submit(specOf(1)))
	start := epoch0.Add(time.Hour)
	for until, in := range map[time.Time]bool{{}: true, start: false, start.Add(-time.Hour): false, start.Add(1): true} {
		by, text := b.w.site.reservations.clearing(b.w.nodes.byName["n1"], j, &cluster.Grant{Until: until})
		if by.Equal(start) != in || by.IsZero() == in || (text == "node n1 is to be empty by 2026-03-01T13:00:00Z for reservation talk") != in {
			t.Errorf("until %s: by %s, %q", until, by, text)
		}
	}
}
