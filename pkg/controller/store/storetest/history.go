package storetest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

func testHistory(t *testing.T, p Place) {
	s := mustOpen(t, p)
	at := func(h int) time.Time { return T0.Add(time.Duration(h) * time.Hour) }
	var jobs []*gang.Job
	for _, c := range []struct {
		id, array     int64
		user          string
		submit, ended int // hours; ended 0: lives
	}{
		{1, 0, "ada", 0, 9}, {2, 2, "bob", 1, 3}, {3, 2, "bob", 1, 4}, {4, 0, "ada", 2, 4}, {5, 0, "ada", 3, 0}, {6, 2, "bob", 1, 0},
	} {
		j := NewJob(c.id, 2)
		j.ArrayID, j.User, j.Submit = c.array, c.user, at(c.submit)
		if c.ended != 0 {
			j = end(j, at(c.ended))
		}
		jobs = append(jobs, j)
	}
	// Cancelled before it ever started: it counts from its submission.
	never := end(NewJob(7, 1), time.Time{})
	never.Submit = at(2)
	mustCommit(t, s, Submitted(append(jobs, never)...))

	for _, c := range []struct {
		user string
		n    int
		want string
	}{{"ada", 1, "[7]"}, {"ada", 9, "[7 4 1]"}, {"ada", 2, "[7 4]"}, {"bob", 5, "[2]"}, {"eve", 5, "[]"}, {"ada", 0, "[]"}} {
		if got, err := s.Newest(context.Background(), c.user, c.n); err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("the newest %d of %s: %v, %v, want %s", c.n, c.user, got, err, c.want)
		}
	}
	for _, c := range []struct {
		name   string
		filter store.HistoryFilter
		want   []int64
	}{
		{"all", store.HistoryFilter{}, []int64{1, 4, 3, 2, 7}},
		{"limit", store.HistoryFilter{Limit: 2}, []int64{1, 4}},
		{"user", store.HistoryFilter{User: "ada"}, []int64{1, 4, 7}},
		{"unknown user", store.HistoryFilter{User: "' OR 1 --"}, nil},
		{"array", store.HistoryFilter{ArrayID: 2}, []int64{3, 2}},
		{"ended after", store.HistoryFilter{EndedAfter: at(3)}, []int64{1, 4, 3}},
		{"submitted after", store.HistoryFilter{SubmittedAfter: at(1)}, []int64{4, 7}},
		{"submitted and ended after", store.HistoryFilter{SubmittedAfter: at(1), EndedAfter: at(3)}, []int64{4}},
		{"user and limit", store.HistoryFilter{User: "bob", Limit: 1}, []int64{3}},
	} {
		got, err := s.Jobs(context.Background(), c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var ids []int64
		for _, j := range got {
			ids = append(ids, j.ID)
			if j.ID != 7 {
				same(t, c.name, j, jobs[j.ID-1])
			}
		}
		same(t, c.name, ids, c.want)
	}

	// An array with more elements than are read at a time counts once.
	var many []*gang.Job
	for id := int64(8); id < 300; id++ {
		j := end(NewJob(id, 1), at(5))
		j.User, j.ArrayID = "eve", 0
		if id >= 10 && id < 290 {
			j.ArrayID = 10
		}
		many = append(many, j)
	}
	mustCommit(t, s, Submitted(many...))
	for n, want := range map[int]string{1: "[299]", 10: "[299 298 297 296 295 294 293 292 291 290]",
		12: "[299 298 297 296 295 294 293 292 291 290 10 9]", 99: "[299 298 297 296 295 294 293 292 291 290 10 9 8]"} {
		if got, err := s.Newest(context.Background(), "eve", n); err != nil || fmt.Sprint(got) != want {
			t.Errorf("the newest %d: %v, %v, want %s", n, got, err, want)
		}
	}
}

func testEvents(t *testing.T, p Place) {
	s := mustOpen(t, p)
	rank, code := 1, 3
	all := []api.Event{
		{Seq: 3, JobID: 1, Type: api.EventSubmitted, Time: T0},
		{Seq: 4, JobID: 2, Type: api.EventSubmitted, Time: T0},
		{Seq: 6, JobID: 1, Epoch: 1, Type: api.EventReserved, Time: T0, Nodes: []string{"n1", "n2"}},
		{Seq: 7, JobID: 1, Epoch: 1, Type: api.EventDrainStarted, Time: T0, Rank: &rank, ExitCode: &code, Trigger: &rank, Cause: api.CauseCrash,
			Moved: 1},
		{Seq: 9, JobID: 2, Epoch: 1, Type: api.EventEnded, Time: T0, State: api.JobCompleted, ExitCodes: map[int]int{0: 0, 1: 137},
			Seconds: 0.25},
	}
	mustCommit(t, s, &gang.Changes{Events: all[:2], NextSeq: 5})
	mustCommit(t, s, &gang.Changes{Events: all[2:], NextSeq: 10})
	for _, c := range []struct {
		job, since int64
		limit      int
		want       []api.Event
	}{
		{0, 0, 0, all},
		{0, 4, 0, all[2:]},
		{0, 5, 0, all[2:]},
		{0, 0, 2, all[:2]},
		{0, 9, 0, nil},
		{1, 0, 0, []api.Event{all[0], all[2], all[3]}},
		{1, 3, 1, []api.Event{all[2]}},
		{3, 0, 0, nil},
	} {
		got, err := s.Events(context.Background(), c.job, c.since, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("events of job %d since %d, limit %d", c.job, c.since, c.limit), got, c.want)
	}
}

func testEpochs(t *testing.T, p Place) {
	s := mustOpen(t, p)
	j := NewJob(1, 2)
	j.Epoch = 2
	slots := []cluster.Slot{{Node: "n1", Cards: []string{"GPU-0"}}, {Node: "n2"}}
	one := gang.EpochRow{Job: 1, Epoch: 1, Slots: slots, Started: T0, Trigger: -1}
	ch := Submitted(j)
	ch.Epochs = []gang.EpochRow{one}
	mustCommit(t, s, ch)
	one.Ended, one.Cause, one.Trigger, one.ExitCodes = T0.Add(time.Minute), api.CauseCrash, 1, []int{-1, 3}
	two := gang.EpochRow{Job: 1, Epoch: 2, Slots: slots, Trigger: -1}
	mustCommit(t, s, &gang.Changes{Epochs: []gang.EpochRow{two, one}})
	got, err := s.Epochs(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "attempts", got, []gang.EpochRow{one, two})
	mustVerify(t, s)
}

// testBackup copies while commits go on: the copy has to be of one commit.
func testBackup(t *testing.T, p Place) {
	ctx := context.Background()
	s := mustOpen(t, p)
	mustCommit(t, s, Submitted(NewJob(1, 2)))
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for id := int64(2); ; id++ {
			select {
			case <-stop:
				return
			default:
			}
			ch := Submitted(NewJob(id, 2))
			ch.Events, ch.NextSeq = []api.Event{{Seq: id, JobID: id, Time: T0}}, id+1
			if _, err := s.Commit(ctx, ch); err != nil {
				t.Error(err)
				return
			}
		}
	})
	path := filepath.Join(t.TempDir(), "backup")
	err := s.Backup(ctx, path)
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(ctx, path); !errors.Is(err, store.ErrExists) {
		t.Errorf("a backup over a file: %v", err)
	}

	copied := mustOpen(t, p.FromBackup(t, path))
	mustVerify(t, copied)
	got := mustLoad(t, copied, time.Time{})
	if got.NextID < 2 || int64(len(got.Jobs)) != got.NextID-1 || copied.Lineage() != uint64(len(got.Jobs)) {
		t.Errorf("the copy has %d jobs, next id %d, lineage %d", len(got.Jobs), got.NextID, copied.Lineage())
	}
	events, err := copied.Events(ctx, 0, 0, 0)
	if err != nil || len(events) != len(got.Jobs)-1 {
		t.Errorf("the copy has %d events for %d jobs, %v", len(events), len(got.Jobs), err)
	}
	mustCommit(t, copied, Submitted(NewJob(got.NextID, 1)))
}
