package rpc

import (
	"testing"
	"testing/synctest"
	"time"
)

// All readers hear of a change before the next tick, a portion at a time.
func TestLiveTellsInPortions(t *testing.T) {
	for _, n := range []int{1, livePortion, 150, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			l := &live{readers: map[*liveReader]bool{}}
			told := map[time.Time]int{}
			heard := make(chan time.Time, n)
			for range n {
				r := &liveReader{frames: make(chan []byte, 1)}
				l.readers[r] = true
				go func() {
					<-r.frames
					heard <- time.Now()
				}()
			}
			began := time.Now()
			l.tell([]byte("x"), func(*liveReader) bool { return true })
			took := time.Since(began)
			for range n {
				told[<-heard]++
			}
			most := 0
			for _, at := range told {
				most = max(most, at)
			}
			if want := max(livePortion, 1+n/livePauses); most > want {
				t.Errorf("%d readers: %d at once, want at most %d", n, most, want)
			}
			if took >= liveTick {
				t.Errorf("%d readers: the last one was told after %v, the next tick is after %v", n, took, liveTick)
			}
		})
	}
}

// Who is cut or leaves between two portions is not written to.
func TestLivePassesOverWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &live{readers: map[*liveReader]bool{}}
		var all []*liveReader
		for range 3 * livePortion {
			r := &liveReader{frames: make(chan []byte, 1)}
			all = append(all, r)
			l.readers[r] = true
		}
		go l.tell([]byte("x"), func(*liveReader) bool { return true })
		synctest.Wait() // in the first pause
		left := 0
		for _, r := range all {
			if len(r.frames) == 0 {
				left++
				l.leave(r)
				close(r.frames) // as who is cut; a frame for it would panic
			}
		}
		if left != 2*livePortion {
			t.Fatalf("%d were not told yet, want %d", left, 2*livePortion)
		}
		time.Sleep(time.Second)
	})
}
