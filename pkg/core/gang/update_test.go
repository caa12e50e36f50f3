package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

func TestUpdateOfAWaitingJob(t *testing.T) {
	b := newBench(t, 2)
	x := b.submit(specOf(1))
	id := b.submit(specOf(1))
	b.must(Update{Job: id, By: "ada", Name: new("other"), TimeLimit: new(time.Hour), Priority: new(int64(-5)),
		Begin: new(b.now.Wall.Add(time.Minute)), Partition: new("main,big"), Dependency: on(api.AfterOK, x)})
	j := b.w.Job(id)
	if j.Name != "other" || j.TimeLimit != time.Hour || j.Priority != -5 || j.Partition != "main,big" || j.Waits != "afterok:1(unfulfilled)" {
		t.Errorf("%+v", j)
	}
	ev := b.w.Take().Events
	if got, want := ev[len(ev)-1].Text, "name other, was job; time limit 1 h, was none; priority -5, was 0; partition main,big, was main; "+
		"begins at 2026-03-01T12:01:00Z; dependency afterok:1 (ada)"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if out := b.step(Update{Job: id, Name: new("other")}); out.Ignored != "it is so already" {
		t.Errorf("%+v", out)
	}
	b.run(x, 0)
	if b.w.Candidate(id) != nil {
		t.Error("a candidate before its begin time")
	}
	b.must(Update{Job: id, Begin: new(time.Time{})})
	if c := b.w.Candidate(id); c == nil || len(c.Ask.Partitions) != 2 {
		t.Errorf("%+v", c)
	}
	b.must(Update{Job: id, Dependency: on(api.AfterSingle)})
	b.waits(id, "")
	back := Update{Job: x}
	if out := b.step(back); out.Refused == nil {
		t.Error("an ended job was changed")
	}
	if out := b.step(Update{Job: id, Dependency: on(api.AfterOK, id)}); out.Refused == nil ||
		out.Refused.Error() != "dependency afterok:2: a job can wait only for one that was submitted before it" {
		t.Errorf("%v", out.Refused)
	}
	b.start(id)
	for _, ev := range []Update{{Partition: new("x")}, {Begin: new(time.Time{})}, {Dependency: &api.Dependency{}}, {ArrayLimit: new(1)}} {
		ev.Job = id
		if out := b.step(ev); out.Refused == nil || out.Refused.Code != api.CodeConflict {
			t.Errorf("%+v: %+v", ev, out)
		}
	}
}

// The limit of a running gang reaches its nodes, and what it holds there is known to be
// free when the new one ends.
func TestUpdateOfARunningGangsTimeLimit(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	gate := func(want time.Duration) {
		t.Helper()
		for _, n := range []string{"n1", "n2"} {
			as := b.w.Desired(n)
			if as[0].Gate.TimeLimit != want {
				t.Errorf("%s is told %s, want %s", n, as[0].Gate.TimeLimit, want)
			}
		}
	}
	gate(api.NoLimit)
	b.w.Take()
	b.must(Update{Job: id, TimeLimit: new(2 * time.Hour)})
	gate(2 * time.Hour)
	if ch := b.w.Take(); len(ch.Dirty) != 2 || len(ch.Nodes) != 2 {
		t.Errorf("dirty %v, stored %d nodes", ch.Dirty, len(ch.Nodes))
	}
	g, _ := b.w.Node("n2").Res.Grant(b.key(id))
	if want := b.w.Job(id).Start.Add(2*time.Hour + b.w.set.Grace); !g.Until.Equal(want) {
		t.Errorf("granted until %s, want %s", g.Until, want)
	}
}

func TestUpdateOfAnArraysLimit(t *testing.T) {
	b := newBench(t, 8)
	first := b.array(6, nil)
	candidates := func(want int) {
		t.Helper()
		n := 0
		for id := first; id < first+6; id++ {
			if b.w.Candidate(id) != nil {
				n++
			}
		}
		if n != want {
			t.Errorf("%d candidates, want %d", n, want)
		}
	}
	candidates(6)
	b.must(Update{Job: first, ArrayLimit: new(2)})
	candidates(2)
	b.start(first)
	candidates(1)
	b.must(Update{Job: first + 3, ArrayLimit: new(4)})
	candidates(3)
	b.must(Update{Job: first, ArrayLimit: new(1)})
	candidates(0)
	if got := b.w.Job(first + 5).Array.Limit; got != 1 {
		t.Errorf("shown limit %d", got)
	}
	b.must(Update{Job: first, ArrayLimit: new(0)})
	candidates(5)
}

// Elements that run when the limit is lowered below their number run on, and no other starts
// until there are fewer; a controller that is started anew knows the newest limit, though an
// element that ended before has the old one.
func TestALimitBelowWhatRuns(t *testing.T) {
	b := newBench(t, 8)
	first := b.array(6, nil)
	b.run(first, 0)
	for id := first + 1; id < first+4; id++ {
		b.start(id)
	}
	b.must(Update{Job: first + 1, ArrayLimit: new(2)})
	for range 2 { // before and after a restart
		if bad := b.w.Verify(); len(bad) > 0 {
			t.Errorf("three run, two may: %q", bad)
		}
		if b.w.Candidate(first+4) != nil || b.w.queue.arrays[first].limit != 2 {
			t.Errorf("limit %d, the fifth is a candidate: %t", b.w.queue.arrays[first].limit, b.w.Candidate(first+4) != nil)
		}
		b.reborn(time.Second)
		b.hello("n1", api.MemberActual{MemberKey: b.key(first + 1), Phase: api.PhaseRunning}, api.MemberActual{MemberKey: b.key(first + 2), Phase: api.PhaseRunning},
			api.MemberActual{MemberKey: b.key(first + 3), Phase: api.PhaseRunning})
	}
	for id := first + 1; id < first+3; id++ {
		if b.w.Candidate(first+4) != nil {
			t.Errorf("a candidate before %d has ended", id)
		}
		b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
	}
	if b.w.Candidate(first+4) == nil {
		t.Error("one of two runs, and the next is no candidate")
	}
}

// Singletons wait for a name: a job that changes its name leaves those of the old one.
func TestRenameAmongSingletons(t *testing.T) {
	b := newBench(t, 2)
	x := b.submit(specOf(1))
	single := b.depending(on(api.AfterSingle))
	b.waits(single, "singleton(unfulfilled)")
	b.must(Update{Job: x, Name: new("else")})
	b.waits(single, "")
	next := b.depending(on(api.AfterSingle))
	b.waits(next, "singleton(unfulfilled)")
	b.must(Update{Job: next, Name: new("else")})
	b.waits(next, "singleton(unfulfilled)")
	b.run(x, 0)
	b.waits(next, "")
	if len(b.w.deps.named) != 0 {
		t.Errorf("of names for which nobody waits is kept %v", b.w.deps.named)
	}
}

// A requeue that holds lets a running gang end and wait, over a restart too.
func TestRequeueThatHolds(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(Requeue{Job: id, By: "ada", Hold: HeldUser})
	j := b.w.Job(id)
	if j.Held != HeldUser || j.Drain == nil || j.Drain.Cause != api.CauseRequeued {
		t.Fatalf("%+v", j)
	}
	if out := b.step(Requeue{Job: id, Hold: HeldUser}); out.Applied || out.Refused != nil {
		t.Errorf("%+v", out)
	}
	b.must(Release{Job: id})
	if j := b.w.Job(id); j.Held != "" {
		t.Errorf("held by %s", j.Held)
	}
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
	says(Update{Name: new("other"), TimeLimit: new(time.Hour)}, "name other, was job; time limit 1 h, was none")
	if NiceOf(j()) != 0 || CommentOf(j()) != "" {
		t.Errorf("nice %d, comment %q", NiceOf(j()), CommentOf(j()))
	}
	b.refuses(Update{Job: id, ArrayLimit: new(1)}, fmt.Sprintf("job %d is not of an array", id))
	b.refuses(Update{Job: id, Dependency: on(api.AfterOK, id)}, fmt.Sprintf("dependency afterok:%d: a job can wait only for one that was submitted before it", id))
	first := b.array(2, nil)
	b.ignores(Update{Job: first, ArrayLimit: new(0)}, "it is so already")
	b.ignores(Update{Job: first, Dependency: &api.Dependency{}}, "it is so already")
}

// TestWhatIsBeingStoppedIsNotChanged, and what runs is changed in little.
func TestWhatIsBeingStoppedIsNotChanged(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	for what, ev := range map[string]Update{"partition": {Partition: new("night")}, "constraint": {Constraint: new("ib")}, "begin time": {Begin: new(epoch0)}, "dependency": {Dependency: &api.Dependency{}}} {
		ev.Job = id
		if err := b.w.control.updatable(b.w.jobs.byID[id], &ev); err == nil || err.Message != fmt.Sprintf("job %d is running: its %s can be changed only while it waits", id, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b.must(Preempt{Job: id, For: "job 9"})
	b.refuses(Update{Job: id, TimeLimit: new(time.Hour)}, fmt.Sprintf("job %d is being stopped: its time limit has no effect any more", id))
	b.refuses(Update{Job: id, Deadline: new(epoch0.Add(time.Hour))}, fmt.Sprintf("job %d is being stopped: a deadline has no effect any more", id))
}

// TestSpecOfAWaitingJob: what only waits asks for something else from then on, as one change with its event, and an element of an array
// then has a request of its own.
func TestSpecOfAWaitingJob(t *testing.T) {
	b := newBench(t, 4)
	first := b.array(3, nil)
	id := first + 1
	was := b.w.Job(id)
	other := *was.Spec
	other.Size, other.NodeList, other.Account, other.CPUsPerRank = 2, []string{"n3", "n4"}, "lab", 2
	b.w.Take()
	b.must(Update{Job: id, By: "ada", Spec: &other, SpecHash: "other"})
	ch := b.w.Take()
	if len(ch.Jobs) != 1 || ch.Specs["other"] != &other || len(ch.Events) != 1 {
		t.Fatalf("%d jobs, specs %v, events %+v: want one change", len(ch.Jobs), ch.Specs, ch.Events)
	}
	if got, want := ch.Events[0].Text, "ranks 2, was 1; CPUs of a rank 2, was 1; node list n[3-4], was none; account lab, was none (ada)"; ch.Events[0].Type != api.EventUpdated || got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	j := b.w.Job(id)
	if len(j.Ranks) != 2 || j.Spec.Size != 2 || j.SpecHash != "other" || b.w.Candidate(id).Ask.Spec.Size != 2 {
		t.Errorf("%+v", j)
	}
	if k := b.w.Job(first); k.Spec.Size != 1 || k.SpecHash != was.SpecHash {
		t.Error("another element was changed")
	}
	if out := b.step(Update{Job: id, Spec: &other, SpecHash: "other"}); out.Ignored == "" {
		t.Errorf("the same once more: %+v", out)
	}
	b.start(id)
	if out := b.step(Update{Job: id, Spec: was.Spec, SpecHash: "third"}); out.Refused == nil || out.Refused.Code != api.CodeConflict {
		t.Errorf("of a job that runs: %+v", out)
	}
}

// TestHoldOfARunningJob: it runs on, and is held when it waits again.
func TestHoldOfARunningJob(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(Hold{Job: id})
	if j := b.w.Job(id); JobState(j) != api.JobRunning || j.Held != HeldUser {
		t.Fatalf("%s, held %q", JobState(j), j.Held)
	}
	b.must(Requeue{Job: id})
	b.ackAll(id)
	if j := b.w.Job(id); !blocked(j) || b.w.Candidate(id) != nil {
		t.Errorf("%s: a candidate although it is held", JobState(j))
	}
	b.must(Release{Job: id})
	if b.w.Candidate(id) == nil {
		t.Error("released and no candidate")
	}
}

// TestCPUsOfWholeNodes: a gang that has its nodes to itself has their CPUs, in what it is told and in the ledger.
func TestCPUsOfWholeNodes(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.Exclusive = true
	id := b.submit(s)
	b.start(id)
	j := b.w.Job(id)
	each := b.w.Node("n1").Res.CPUs()
	if CPUs(j) != 2*each || j.Booking.CPUs != 2*each || each < 2 {
		t.Errorf("%d CPUs, %d booked, of 2 nodes with %d", CPUs(j), j.Booking.CPUs, each)
	}
	for _, n := range b.w.Desired("n1")[0].Body.Nodes {
		if n.CPUs != each {
			t.Errorf("%s is told %d CPUs, want %d", n.Name, n.CPUs, each)
		}
	}
	other := b.submit(specOf(1))
	if CPUs(b.w.Job(other)) != 0 {
		t.Error("a shared node was counted whole")
	}
}

// TestUpdateIsToldInShort: the event of a change quotes how a long text begins, in whole letters, and a short one whole.
func TestUpdateIsToldInShort(t *testing.T) {
	for text, want := range map[string]string{"": "", "abc": "abc", strings.Repeat("x", 200): strings.Repeat("x", 200), strings.Repeat("x", 201): strings.Repeat("x", 200) + "...",
		"x" + strings.Repeat("é", 500): "x" + strings.Repeat("é", 99) + "..."} {
		if got := inShort(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
