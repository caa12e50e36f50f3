package engine

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// movedClock is the system's, put forward.
type movedClock struct{ by atomic.Int64 }

func (c *movedClock) Now() gang.Instant {
	now, by := SystemClock().Now(), time.Duration(c.by.Load())
	return gang.Instant{Wall: now.Wall.Add(by), Mono: now.Mono + by}
}

// stalledStore takes long for its first commit with a reservation.
type stalledStore struct {
	store.Store
	clock *movedClock
	done  bool
}

func (s *stalledStore) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	for _, ev := range ch.Events {
		if ev.Type == api.EventReserved && !s.done {
			s.done = true
			s.clock.by.Add(int64(2 * api.DefaultSettings().StartTimeout))
		}
	}
	return s.Store.Commit(ctx, ch)
}

// A disk that stands still for longer than start_timeout between the decision and the order: the
// node has heard nothing yet, and is not late.
func TestACommitThatTookLongIsNobodysFault(t *testing.T) {
	clock := &movedClock{}
	r := newRigWith(t, &stalledStore{Store: disk.Open(t), clock: clock}, func(o *Options) { o.Clock = clock })
	r.node("n1", 4)
	id := r.submit("k", spec(1))
	if _, err := r.Do(t.Context(), gang.Tick{}); err != nil {
		t.Fatal(err)
	}
	j, err := r.One(t.Context(), api.JobRef{ID: id, Index: -1}, me)
	if err != nil {
		t.Fatal(err)
	}
	if got := gang.JobState(j); got != api.JobReserved || j.Epoch != 1 {
		t.Errorf("the gang is %s in epoch %d", got, j.Epoch)
	}
}
