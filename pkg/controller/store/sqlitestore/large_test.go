package sqlitestore

import (
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
)

// stream is a megabyte that is made while it is read, the same for each rank.
func stream(rank int) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(rank), byte(rank >> 8)}), 1<<20)
}

// A set of a gang of many ranks, a megabyte each, put side by side as at a drain: what is held in
// memory depends on how many put at a time, not on how large the set is. GANG_LARGE=1 makes
// it a thousand ranks.
func TestLargeSetIsNotHeldInMemory(t *testing.T) {
	ranks, side := 48, 16
	if os.Getenv("GANG_LARGE") != "" {
		ranks = 1000
	}
	s, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	k := store.SetKey{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Step: store.OfRanks}
	var peak atomic.Uint64
	watched := watchHeap(&peak)
	began := time.Now()
	var complete atomic.Int64
	var wg sync.WaitGroup
	next := make(chan int)
	for range side {
		wg.Go(func() {
			for r := range next {
				set, n, err := s.PutCheckpoint(context.Background(), k, r, "", stream(r))
				if err != nil || n != 1<<20 {
					t.Errorf("rank %d: %d bytes, %v", r, n, err)
				}
				if set.Ranks == ranks && set.Bytes == int64(ranks)<<20 {
					complete.Add(1)
				}
			}
		})
	}
	for r := range ranks {
		next <- r
	}
	close(next)
	wg.Wait()
	took := time.Since(began)
	watched()
	if complete.Load() == 0 {
		t.Error("no put saw the set complete")
	}
	for r := range ranks {
		checkStream(t, s, k, r)
	}
	t.Logf("%d ranks, %d MiB in %v, heap at most %d MiB", ranks, ranks, took.Round(time.Millisecond), peak.Load()>>20)
	// Pages, pieces and the driver's copies of 16 puts; a set held whole would be above it at a thousand ranks.
	if most := uint64(96 << 20); peak.Load() > most {
		t.Errorf("heap of %d MiB", peak.Load()>>20)
	}
}

func checkStream(t *testing.T, s *Store, k store.SetKey, rank int) {
	t.Helper()
	r, _, err := s.Checkpoint(context.Background(), k, rank)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, want := sha256.New(), sha256.New()
	_, err = io.Copy(got, r)
	_, _ = io.Copy(want, stream(rank))
	if err != nil || string(got.Sum(nil)) != string(want.Sum(nil)) {
		t.Fatalf("rank %d came back as something else: %v", rank, err)
	}
}

// watchHeap keeps the largest heap that it sees until it is told to stop.
func watchHeap(peak *atomic.Uint64) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak.Store(max(peak.Load(), m.HeapAlloc))
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() { close(done); <-ended }
}
