package engine

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/given"
)

// TestClaimsOutliveTheController: a gang of all three nodes waits behind a job on one. A
// smaller one that runs as long is ahead of it in the order of service, and is kept off the free
// nodes by the backfill alone: with the backfills made anew it would start when the controller does, and with
// backfills that end where a node is not back yet, when the first node is.
func TestClaimsOutliveTheController(t *testing.T) {
	f := newFarm(t)
	job := func(size int, limit time.Duration) int64 {
		s := spec(size)
		s.RanksPerNode, s.TimeLimit = 1, limit
		return f.submit("", s)
	}
	first := job(1, time.Hour)
	for range 3 {
		f.all()
	}
	large := job(3, 10*time.Hour)
	small := job(1, 10*time.Hour)
	waits := func(when string) {
		t.Helper()
		f.settled()
		if a, b, c := f.state(first), f.state(large), f.state(small); a != api.JobRunning || b != api.JobPending || c != api.JobPending {
			t.Fatalf("%s: the first is %s, the large one %s, the small one %s", when, a, b, c)
		}
	}
	waits("before")
	for range 3 {
		f.kill()
		f.begin()
		waits("after a restart")
		f.all()
		waits("when all nodes have said what they have")
	}
	if _, err := f.Do(t.Context(), gang.Cancel{Job: first, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		f.all()
	}
	if a, b := f.state(large), f.state(small); a != api.JobRunning || b != api.JobPending {
		t.Errorf("when the first has ended the large one is %s, the small one %s", a, b)
	}
}

// TestSameBackfill: another place, taker or victim is a change; another time at which it is free is none.
func TestSameBackfill(t *testing.T) {
	places, others := []cluster.Slot{{Node: "n1"}, {Node: "n2"}}, []cluster.Slot{{Node: "n1"}, {Node: "n2"}}
	of := func(edit func(*given.Backfill)) given.Backfill {
		b := given.Backfill{Job: 5, Slots: places, At: noon, Until: noon.Add(1), Victims: []given.Victim{{Job: 3, Epoch: 2, At: noon}}}
		edit(&b)
		return b
	}
	victim := func(v given.Victim) func(*given.Backfill) {
		return func(b *given.Backfill) { b.Victims = []given.Victim{v} }
	}
	for what, c := range map[string]struct {
		edit func(*given.Backfill)
		same bool
	}{
		"it": {func(*given.Backfill) {}, true}, "free at another time": {func(b *given.Backfill) { b.At = noon.Add(9) }, true}, "looked for later": {func(b *given.Backfill) { b.SearchedAt = noon }, true},
		"the same time elsewhere": {func(b *given.Backfill) { b.Until = b.Until.In(time.FixedZone("x", 3600)) }, true},
		"another taker":           {func(b *given.Backfill) { b.Job = 6 }, false}, "other places": {func(b *given.Backfill) { b.Slots = others }, false}, "a part of them": {func(b *given.Backfill) { b.Slots = places[:1] }, false},
		"no places": {func(b *given.Backfill) { b.Slots = nil }, false}, "a later end": {func(b *given.Backfill) { b.Until = noon }, false}, "no victims": {func(b *given.Backfill) { b.Victims = nil }, false},
		"another victim": {victim(given.Victim{Job: 4, Epoch: 2, At: noon}), false}, "in another epoch": {victim(given.Victim{Job: 3, Epoch: 1, At: noon}), false},
		"told by now": {victim(given.Victim{Job: 3, Epoch: 2, At: noon, Notified: true}), false}, "to be told later": {victim(given.Victim{Job: 3, Epoch: 2, At: noon.Add(1)}), false},
	} {
		if got := sameBackfill(of(func(*given.Backfill) {}), of(c.edit)); got != c.same {
			t.Errorf("%s: %t", what, got)
		}
	}
	none := of(func(b *given.Backfill) { b.Slots = nil })
	if !sameBackfill(none, none) {
		t.Error("without places it is not itself")
	}
}

// TestBackfillsToKeep: they are written when they change, by their jobs, and are the same when they are read.
func TestBackfillsToKeep(t *testing.T) {
	e := still()
	if data := e.backfillsToKeep(); data != nil {
		t.Errorf("of none %s is written", data)
	}
	later, sooner := given.Backfill{Job: 9, Slots: []cluster.Slot{{Node: "n1"}}, At: noon}, given.Backfill{Job: 4, Slots: []cluster.Slot{{Node: "n2"}}, At: noon.Add(1), Victims: []given.Victim{{Job: 1, Epoch: 2}}}
	e.plan.last.Backfills = []given.Backfill{later, sooner}
	data := e.backfillsToKeep()
	if data == nil || e.backfillsToKeep() != nil {
		t.Fatalf("first %s, and then again", data)
	}
	e.plan.last.Backfills = []given.Backfill{sooner, later}
	if again := e.backfillsToKeep(); again != nil {
		t.Errorf("in another order %s", again)
	}
	next := still()
	if err := next.restoreBackfills(data); err != nil {
		t.Fatal(err)
	}
	differs(t, "what was read", next.plan.last.Backfills, []given.Backfill{sooner, later})
	if again := next.backfillsToKeep(); again != nil {
		t.Errorf("what was read is written again: %s", again)
	}
	e.plan.last.Backfills = nil
	if data := e.backfillsToKeep(); string(data) != "[]" {
		t.Errorf("when there are none any more %s is written", data)
	}
	if err := next.restoreBackfills([]byte("{")); err == nil || !strings.HasPrefix(err.Error(), "backfills: ") {
		t.Errorf("%v", err)
	}
	if err := next.restoreBackfills(nil); err != nil || len(next.plan.last.Backfills) != 2 {
		t.Errorf("of a store that has none: %v, %+v", err, next.plan.last.Backfills)
	}
}
