package sqlitestore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

// pastJobs is a batch of jobs as they stand when they have ended: four ranks, an attempt, ten
// events, a spec of their own.
func pastJobs(first int64, n int) *gang.Changes {
	ch := running(first, n, 1)
	ch.Ranks, ch.Events = nil, nil
	for _, j := range ch.Jobs {
		j.SpecHash = fmt.Sprintf("%016x%016x", uint64(j.ID)*0x9e3779b97f4a7c15, j.ID) // as selective as a real one
		j.End = storetest.T0.Add(time.Duration(j.ID) * time.Second)
		j.Verdict = &gang.Verdict{State: api.JobCompleted, Cause: api.CauseCompleted, Trigger: -1}
		j.Ranks = append(j.Ranks, j.Ranks[0], j.Ranks[0], j.Ranks[0])
		for i := range j.Ranks {
			ch.Ranks = append(ch.Ranks, gang.RankRow{Job: j.ID, Index: i, Rank: j.Ranks[i]})
		}
		ch.Epochs = append(ch.Epochs, gang.EpochRow{Job: j.ID, Epoch: 1, Started: j.Start, Ended: j.End, Trigger: -1, ExitCodes: []int{0, 0, 0, 0}})
		for i := range int64(10) {
			ch.Events = append(ch.Events, api.Event{Seq: j.ID*10 + i, JobID: j.ID, Epoch: 1, Type: api.EventStarted, Time: j.End, Nodes: []string{"node-17"}})
		}
		ch.NextSeq = j.ID*10 + 10
	}
	return storetest.WithSpecs(ch)
}

// The file does not grow while as much is forgotten as comes in.
func TestForgottenPagesAreUsedAgain(t *testing.T) {
	ctx := context.Background()
	m, err := NewMemory(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const batch, keep = 100, 500
	var full int64
	for n := range 60 {
		if _, err := s.Commit(ctx, pastJobs(int64(n*batch+1), batch)); err != nil {
			t.Fatal(err)
		}
		before, err := s.EndedNth(ctx, keep)
		if err != nil {
			t.Fatal(err)
		}
		for {
			ids, err := s.Due(ctx, before, nil, 32)
			if err != nil {
				t.Fatal(err)
			}
			for more := len(ids) > 0; more; ids = nil {
				if more, err = s.Forget(ctx, ids); err != nil {
					t.Fatal(err)
				}
			}
			if due, err := s.Due(ctx, before, nil, 1); err != nil || len(due) == 0 {
				break
			}
		}
		pages, _, err := m.Pages()
		if err != nil {
			t.Fatal(err)
		}
		if n == 10 {
			full = pages
		}
		if n > 10 && pages > full+full/20 {
			t.Fatalf("%d pages after %d jobs, %d after %d", pages, (n+1)*batch, full, 11*batch)
		}
	}
	if n, _, err := m.Ended(); err != nil || n != keep {
		t.Errorf("%d jobs are kept, %v", n, err)
	}
}

// BenchmarkForget: one call of Forget, for which a commit may have to wait.
func BenchmarkForget(b *testing.B) {
	ctx := context.Background()
	s, err := Open(ctx, b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	next, jobs := int64(1), 0
	fill := func() {
		for range 50 {
			if _, err := s.Commit(ctx, pastJobs(next, 100)); err != nil {
				b.Fatal(err)
			}
			next += 100
		}
	}
	fill()
	var due []int64
	var worst, asking time.Duration
	used := cpu()
	for more := false; b.Loop(); {
		if !more {
			b.StopTimer()
			began := time.Now()
			if due, err = s.Due(ctx, storetest.T0.Add(1e6*time.Hour), nil, 32); err != nil {
				b.Fatal(err)
			}
			asking += time.Since(began)
			if jobs += len(due); len(due) < 32 {
				fill()
			}
			b.StartTimer()
		}
		start := time.Now()
		if more, err = s.Forget(ctx, due); err != nil {
			b.Fatal(err)
		}
		worst = max(worst, time.Since(start))
		due = nil
	}
	b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
	b.ReportMetric(float64((cpu()-used).Microseconds())/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(asking.Microseconds())/float64(b.N), "us-asking/op")
}
