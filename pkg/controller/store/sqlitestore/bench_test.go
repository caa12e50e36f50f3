package sqlitestore

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
)

// cpu is what this process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measured runs commit b.N times and reports what a row costs.
func measured(b *testing.B, s store.Store, rows int, batch func(n int) *gang.Changes) {
	b.Helper()
	b.ReportAllocs()
	before, n := cpu(), 0
	var worst time.Duration
	for b.Loop() {
		start := time.Now()
		if _, err := s.Commit(context.Background(), batch(n)); err != nil {
			b.Fatal(err)
		}
		worst = max(worst, time.Since(start))
		n++
	}
	b.ReportMetric(float64(rows*n)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(rows*n), "cpu-us/row")
	b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
}

// running is a batch as a busy engine makes it: jobs whose gangs of one start, each a
// header, a rank and an event.
func running(first int64, jobs int, seq int64) *gang.Changes {
	ch := &gang.Changes{}
	for i := range jobs {
		j := storetest.NewJob(first+int64(i), 1)
		j.Epoch, j.Start = 1, storetest.T0
		j.Members = []gang.Member{{Node: "node-17", State: gang.MemberRunning, Ranks: []int{0}, Port: 29500}}
		j.Ranks[0] = gang.Rank{State: api.RankRunning, PID: 12345, Start: storetest.T0, Slot: cluster.Slot{Node: "node-17", Cards: []string{"GPU-7c1e6f0a-5b7b-4d2e-9f0c-2f3d4e5a6b7c"}}}
		ch.Jobs = append(ch.Jobs, j)
		ch.Ranks = append(ch.Ranks, gang.RankRow{Job: j.ID, Rank: j.Ranks[0]})
		ch.Events = append(ch.Events, api.Event{Seq: seq + int64(i), JobID: j.ID, Epoch: 1, Type: api.EventStarted, Time: storetest.T0, Nodes: []string{"node-17"}})
	}
	ch.NextID, ch.NextSeq = first+int64(jobs), seq+int64(jobs)
	return storetest.WithSpecs(ch)
}

func benchStores(b *testing.B, f func(b *testing.B, s store.Store)) {
	b.Run("disk", func(b *testing.B) {
		s, err := Open(context.Background(), b.TempDir(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		f(b, s)
	})
	b.Run("memory", func(b *testing.B) {
		s, err := OpenMemory(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		f(b, s)
	})
}

// BenchmarkCommit: rows of three kinds, in batches of about 1, 10, 100 and 1000 rows.
func BenchmarkCommit(b *testing.B) {
	for _, rows := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			benchStores(b, func(b *testing.B, s store.Store) {
				if rows == 1 {
					one := running(1, 1, 1)
					one.Ranks, one.Events = nil, nil
					measured(b, s, 1, func(int) *gang.Changes { return one })
					return
				}
				jobs := rows / 3
				var seq int64 = 1
				ch := running(1, jobs, 1)
				measured(b, s, 3*jobs, func(n int) *gang.Changes {
					for i := range ch.Events { // the jobs of a thousand batches, over and over
						ch.Events[i].Seq = seq + int64(i)
						id := int64(n%1000*jobs + i + 1)
						ch.Jobs[i].ID, ch.Ranks[i].Job, ch.Events[i].JobID = id, id, id
					}
					seq += int64(jobs)
					ch.NextID, ch.NextSeq = int64(n*jobs+jobs+1), seq
					return ch
				})
			})
		})
	}
}

// BenchmarkSubmit: what one gsubmit costs: a header, a spec of its own with the usual
// environment, and an event.
func BenchmarkSubmit(b *testing.B) {
	env := make([]string, 60)
	for i := range env {
		env[i] = fmt.Sprintf("SOME_VARIABLE_%d=/usr/local/some/path/%d:/usr/lib/another", i, i)
	}
	for _, jobs := range []int{1, 8, 32} {
		b.Run(fmt.Sprintf("jobs=%d", jobs), func(b *testing.B) {
			benchStores(b, func(b *testing.B, s store.Store) {
				measured(b, s, jobs, func(n int) *gang.Changes {
					ch := &gang.Changes{}
					for i := range jobs {
						id := int64(n*jobs + i + 1)
						j := storetest.NewJob(id, 4)
						j.SpecHash = fmt.Sprintf("%016x%016x", uint64(id)*0x9e3779b97f4a7c15, id)
						ch.Jobs = append(ch.Jobs, j)
						ch.Events = append(ch.Events, api.Event{Seq: id, JobID: id, Type: api.EventSubmitted, Time: storetest.T0})
					}
					ch.NextID, ch.NextSeq = int64(n*jobs+jobs+1), int64(n*jobs+jobs+1)
					for _, whole := range storetest.WithSpecs(ch).Specs {
						whole.Env = env
					}
					return ch
				})
			})
		})
	}
}

// BenchmarkLoad: a start with a queue of 20,000 jobs.
func BenchmarkLoad(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Commit(context.Background(), running(1, 20000, 1)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Load(context.Background(), time.Time{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkScattered: 100 headers and ranks of a queue of 100,000 jobs change in a commit.
func BenchmarkScattered(b *testing.B) {
	s, err := Open(context.Background(), b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Commit(context.Background(), running(1, 100000, 1)); err != nil {
		b.Fatal(err)
	}
	ch := running(1, 50, 1)
	ch.Events = nil
	measured(b, s, 100, func(n int) *gang.Changes {
		for i := range ch.Jobs { // a large prime: no two batches have neighbours
			id := int64((n*50+i)*15485863%100000 + 1)
			ch.Jobs[i].ID, ch.Ranks[i].Job = id, id
		}
		return ch
	})
}
