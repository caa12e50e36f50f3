package pgstore

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/controller/store/pgserver/pgtest"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/controller/store/storetest"
	"gangd/pkg/core/gang"
)

// BenchmarkDurable commits jobs as the engine does: what waits goes into one batch, for 1 and 8 who submit one
// after the other. Both stores sync each commit to the same disk.
func BenchmarkDurable(b *testing.B) {
	for _, clients := range []int{1, 8} {
		for _, kind := range []string{"sqlite", "postgres"} {
			b.Run(kind+"/clients="+string(rune('0'+clients)), func(b *testing.B) {
				if kind == "sqlite" {
					s, err := sqlitestore.Open(context.Background(), b.TempDir(), sqlitestore.Options{})
					if err != nil {
						b.Fatal(err)
					}
					defer s.Close()
					submits(b, s, clients)
					return
				}
				server := pgtest.Run(b, pgtest.Dir(b), "a", pgserver.Options{})
				submits(b, leading(b, server.URL(pgserver.Database), "a"), clients)
			})
		}
	}
}

// submits measures how long each waits for its acknowledgement.
func submits(b *testing.B, s store.Store, clients int) {
	b.Helper()
	type call struct{ done chan struct{} }
	calls := make(chan call, clients)
	var engine sync.WaitGroup
	engine.Go(func() {
		next := int64(1)
		for c := range calls {
			batch := []call{c}
			for len(calls) > 0 {
				batch = append(batch, <-calls)
			}
			var jobs []*gang.Job
			for range batch {
				jobs = append(jobs, storetest.NewJob(next, 1))
				next++
			}
			if _, err := s.Commit(context.Background(), storetest.Submitted(jobs...)); err != nil {
				b.Error(err)
			}
			for _, c := range batch {
				close(c.done)
			}
		}
	})
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	for range clients {
		wg.Go(func() {
			for range left {
				c, start := call{make(chan struct{})}, time.Now()
				calls <- c
				<-c.done
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	close(calls)
	engine.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "submits/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
