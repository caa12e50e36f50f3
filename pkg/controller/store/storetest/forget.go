package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

func hour(n int) time.Time { return T0.Add(time.Duration(n) * time.Hour) }

// history commits jobs that have run and ended, the one with id n at hour n, with a rank, an
// attempt and two events each. Odd jobs share a spec, even ones have their own.
func history(t *testing.T, s store.Store, ids ...int64) {
	t.Helper()
	ch := &gang.Changes{NextSeq: 1}
	for _, id := range ids {
		j := end(NewJob(id, 2), hour(int(id)))
		j.Epoch, j.Key = 1, fmt.Sprintf("key-%d", id)
		if id%2 == 0 {
			j.SpecHash = fmt.Sprintf("%064d", id)
		}
		j.Ranks[0] = gang.Rank{State: api.RankDone, Slot: cluster.Slot{Node: "n1"}, Exited: true}
		ch.Jobs = append(ch.Jobs, j)
		ch.Ranks = append(ch.Ranks, gang.RankRow{Job: id, Rank: j.Ranks[0]})
		ch.Epochs = append(ch.Epochs, gang.EpochRow{Job: id, Epoch: 1, Started: T0, Ended: j.End, Trigger: -1})
		ch.Steps = append(ch.Steps, api.Step{JobID: id, Epoch: 1, StepID: "0"})
		for _, kind := range []api.EventType{api.EventSubmitted, api.EventEnded} {
			ch.Events = append(ch.Events, api.Event{Seq: 10*id + int64(len(ch.Events)%2), JobID: id, Type: kind, Time: T0})
		}
		ch.NextID, ch.NextSeq = max(ch.NextID, id+1), max(ch.NextSeq, 10*id+2)
	}
	mustCommit(t, s, ch)
}

func mustDue(t *testing.T, s store.Store, before time.Time, keep func(int64) bool, limit int) []int64 {
	t.Helper()
	ids, err := s.Due(context.Background(), before, keep, limit)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func mustForget(t *testing.T, s store.Store, ids ...int64) {
	t.Helper()
	forget(t.Fatal, s, ids)
	mustVerify(t, s)
}

// forget does all that Forget leaves for later calls.
func forget(fatal func(...any), s store.Store, ids []int64) {
	for more := true; more; ids = nil {
		var err error
		if more, err = s.Forget(context.Background(), ids); err != nil {
			fatal(err)
		}
	}
}

// unknown: nothing that the store can be asked knows of the job.
func unknown(t *testing.T, s store.Store, id int64) {
	t.Helper()
	ctx := context.Background()
	_, err := s.Job(ctx, id)
	epochs, err2 := s.Epochs(ctx, id)
	events, err3 := s.Events(ctx, id, 0, 0)
	steps, err4 := s.Steps(ctx, id)
	if !errors.Is(err, store.ErrNotFound) || err2 != nil || err3 != nil || err4 != nil || len(epochs)+len(events)+len(steps) > 0 {
		t.Errorf("job %d, forgotten: %v; attempts %v %v; events %v %v; steps %v %v", id, err, epochs, err2, events, err3, steps, err4)
	}
	if stored(t, s, id, 1, 0) != nil {
		t.Errorf("job %d, forgotten, has a checkpoint", id)
	}
}

func testForget(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	history(t, s, 1, 2, 3, 4, 5)
	live := NewJob(6, 1)
	mustCommit(t, s, Submitted(live))
	mustPut(t, s, 2, 1, 0, "", noise(1, store.CheckpointPiece+1))
	mustRelease(t, s, released(2, 1, "start", "a"), released(5, 1, "start", "b"))
	before := s.Lineage()

	for n, want := range map[int]time.Time{1: hour(5), 5: hour(1), 6: {}} {
		if at, err := s.EndedNth(ctx, n); err != nil || !at.Equal(want) {
			t.Errorf("the end of number %d: %v, %v, want %v", n, at, err, want)
		}
	}
	same(t, "due", mustDue(t, s, hour(4), nil, 10), []int64{1, 2, 3})
	same(t, "due, two", mustDue(t, s, hour(4), nil, 2), []int64{1, 2})
	same(t, "due but one", mustDue(t, s, hour(4), func(id int64) bool { return id == 1 }, 2), []int64{2, 3})

	mustForget(t, s, 1, 2, 6, 99) // a live one and one that never was stay as they are
	unknown(t, s, 1)
	unknown(t, s, 2)
	if s.Lineage() != before {
		t.Error("forgetting counted as a commit")
	}
	same(t, "what is left is due", mustDue(t, s, hour(9), nil, 10), []int64{3, 4, 5})
	wantReleases(t, s, released(5, 1, "start", "b"))
	if j, err := s.Job(ctx, 3); err != nil || j.Spec.WorkDir != "/home/ada" {
		t.Errorf("job 3 lost the spec it shared: %v", err)
	}
	if evs, err := s.Events(ctx, 0, 0, 0); err != nil || len(evs) != 6 || evs[0].JobID != 3 {
		t.Errorf("events %v, %v", evs, err)
	}
	// The spec of a forgotten job is stored again with the next that has it.
	again := NewJob(7, 1)
	again.SpecHash = fmt.Sprintf("%064d", 2)
	mustCommit(t, s, Submitted(again))
	if j, err := s.Job(ctx, 7); err != nil || j.Spec == nil {
		t.Errorf("a job with a forgotten spec: %v", err)
	}
}

// testForgetAll: ids and event numbers go on when nothing is left that had one.
func testForgetAll(t *testing.T, p Place) {
	s := mustOpen(t, p)
	history(t, s, 1, 2, 3)
	mustForget(t, s, mustDue(t, s, hour(9), nil, 100)...)
	same(t, "what is left", mustLoad(t, s, time.Time{}), &gang.Snapshot{NextID: 4, NextSeq: 32})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	same(t, "after reopening", mustLoad(t, s, time.Time{}), &gang.Snapshot{NextID: 4, NextSeq: 32})
	mustForget(t, s) // with nothing to forget
	history(t, s, 4)
	mustVerify(t, s)
}

// testForgetArray: an array goes whole or not at all, its first element first.
func testForgetArray(t *testing.T, p Place) {
	s := mustOpen(t, p)
	var jobs []*gang.Job
	for i, at := range []int{4, 1, 2, 0, 3} { // 1 to 3 are elements of array 1; 4 lives, 5 is alone
		j := NewJob(int64(i+1), 1)
		if i < 3 {
			j.ArrayID, j.ArrayIndex, j.Array = 1, i, &gang.ArrayInfo{Count: 3, Max: 2, Step: 1}
		}
		if at > 0 {
			j = end(j, hour(at))
		}
		jobs = append(jobs, j)
	}
	mustCommit(t, s, Submitted(jobs...))
	same(t, "the array is not over long enough", mustDue(t, s, hour(4), nil, 10), []int64{5})
	same(t, "one element has to stay", mustDue(t, s, hour(5), func(id int64) bool { return id == 3 }, 10), []int64{5})
	same(t, "what has to stay is another", mustDue(t, s, hour(5), func(id int64) bool { return id == 5 }, 10), []int64{1, 2, 3})
	same(t, "its last end is not before", mustDue(t, s, hour(2), nil, 10), nil)
	same(t, "all are due", mustDue(t, s, hour(5), nil, 10), []int64{1, 2, 3, 5})
	mustForget(t, s, mustDue(t, s, hour(5), nil, 2)...)
	unknown(t, s, 1)
	same(t, "the rest of it", mustDue(t, s, hour(5), nil, 10), []int64{3, 5})
}

// testForgetLarge: more rows than one call takes, with everything true in between.
func testForgetLarge(t *testing.T, p Place) {
	s := mustOpen(t, p)
	const ranks = 1500
	j := end(NewJob(1, ranks), hour(1))
	j.Epoch = 1
	ch := &gang.Changes{Jobs: []*gang.Job{j}, NextID: 2, NextSeq: ranks + 1}
	for i := range ranks {
		j.Ranks[i] = gang.Rank{State: api.RankDone, Exited: true}
		ch.Ranks = append(ch.Ranks, gang.RankRow{Job: 1, Index: i, Rank: j.Ranks[i]})
		ch.Events = append(ch.Events, api.Event{Seq: int64(i + 1), JobID: 1, Type: api.EventCheckpoint, Time: T0})
	}
	mustCommit(t, s, ch)
	history(t, s, 200)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Forget(ctx, []int64{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for ids, more := []int64{1}, true; more; ids = nil {
		var err error
		if more, err = s.Forget(context.Background(), ids); err != nil {
			t.Fatal(err)
		}
		unknown(t, s, 1)
		mustVerify(t, s)
		if err := s.Close(); err != nil { // the next process goes on
			t.Fatal(err)
		}
		s = mustOpen(t, p)
	}
	if got := mustLoad(t, s, time.Time{}); len(got.Jobs) != 1 || got.Jobs[0].ID != 200 {
		t.Errorf("left: %d jobs", len(got.Jobs))
	}
}

// testForgetNodeEvents: events of no job go by their age, those of jobs stay with these.
func testForgetNodeEvents(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	history(t, s, 1)
	ch := &gang.Changes{NextSeq: 26}
	for i := range 5 {
		ch.Events = append(ch.Events, api.Event{Seq: int64(20 + i), Type: api.EventNodeLost, Node: "n1", Time: hour(i)})
	}
	mustCommit(t, s, ch)
	for _, want := range []int{2, 1, 0} {
		if n, err := s.ForgetNodeEvents(ctx, hour(3), 2); err != nil || n != want {
			t.Errorf("forgot %d, %v, want %d", n, err, want)
		}
	}
	evs, err := s.Events(ctx, 0, 0, 0)
	if err != nil || len(evs) != 4 || evs[2].Seq != 23 {
		t.Errorf("left: %v, %v", evs, err)
	}
	mustVerify(t, s)
}

// mustDropTexts looks at all that ended after a place, and gives the last of them.
func mustDropTexts(t *testing.T, s store.Store, after store.End, before time.Time, keep func(int64) bool) store.End {
	t.Helper()
	for more := true; more; {
		var err error
		if after, more, err = s.DropTexts(context.Background(), after, before, keep); err != nil {
			t.Fatal(err)
		}
	}
	mustVerify(t, s)
	return after
}

// testDropTexts: what a job would have run with goes when only jobs have it that ended and never had an attempt, and comes back
// with the next that has it.
func testDropTexts(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	ch := &gang.Changes{Specs: map[string]*api.Spec{}}
	job := func(id int64, hash string, ended int, ran bool) *gang.Job {
		j := NewJob(id, 1)
		j.SpecHash = hash
		if ended > 0 {
			j = end(j, hour(ended))
		}
		if ran {
			j.Epoch = 1
			ch.Epochs = append(ch.Epochs, gang.EpochRow{Job: id, Epoch: 1, Started: T0, Ended: j.End, Trigger: -1})
		}
		whole := *j.Spec
		whole.Script, whole.Args, whole.Env, whole.Comment = []byte(script), []string{"a"}, []string{"A=b"}, "stays"
		whole.Container = &api.Container{Image: "/i", Env: []string{"A"}, Mounts: []api.ContainerMount{{Source: "/a", Target: "/b"}}}
		ch.Specs[hash] = &whole
		ch.Jobs, ch.NextID = append(ch.Jobs, j), id+1
		return j
	}
	job(1, "never", 1, false)
	job(2, "ran", 1, true)
	job(3, "with one that waits", 1, false)
	job(4, "with one that waits", 0, false)
	job(5, "with one that ran", 1, false)
	job(6, "with one that ran", 2, true)
	job(7, "kept", 2, false)
	job(8, "kept", 2, false)
	job(9, "young", 5, false)
	for id := int64(10); id < 10+600; id++ { // more than a call looks at, which ended in one moment
		job(id, "of many", 3, false)
	}
	job(700, "the last", 3, false)
	mustCommit(t, s, ch)
	want := maps.Clone(ch.Specs)
	holds := func(when string) {
		t.Helper()
		for hash, w := range want {
			got, err := s.Spec(ctx, hash)
			if err != nil {
				t.Fatal(err)
			}
			same(t, when+": "+hash, got, w)
		}
	}
	cut := func(hash string) {
		w := *want[hash]
		w.Script, w.Args, w.Env = nil, nil, nil
		w.Container = &api.Container{Image: "/i"}
		want[hash] = &w
	}
	before := s.Lineage()
	last := mustDropTexts(t, s, store.End{}, hour(4), func(id int64) bool { return id == 8 })
	if !last.At.Equal(hour(3)) || last.ID != 700 || s.Lineage() != before {
		t.Errorf("it was looked at up to %v; commits %d, want %d", last, s.Lineage(), before)
	}
	cut("never")
	cut("the last")
	holds("dropped")
	if again := mustDropTexts(t, s, last, hour(4), func(int64) bool { return false }); again != last {
		t.Errorf("looked at again: %v", again)
	}
	if last = mustDropTexts(t, s, last, hour(6), func(int64) bool { return false }); last.ID != 9 {
		t.Errorf("after that: %v", last)
	}
	cut("young")
	holds("later")
	if j, err := s.Job(ctx, 1); err != nil || j.Spec.Comment != "stays" {
		t.Errorf("the job: %+v, %v", j, err)
	}
	want["never"] = ch.Specs["never"]
	ch.Jobs, ch.Epochs = nil, nil
	job(800, "never", 0, false)
	mustCommit(t, s, &gang.Changes{Jobs: ch.Jobs, NextID: 801, Specs: map[string]*api.Spec{"never": want["never"]}})
	holds("submitted again")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	holds("opened again")
}
