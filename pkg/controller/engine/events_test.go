package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/lab/disk"
)

// TestFollowersShareEvents: what a follower is given is a page of what the bus keeps and no copy,
// and what comes later does not change it.
func TestFollowersShareEvents(t *testing.T) {
	var b bus
	b.init(0)
	publish := func(from, to int64) {
		var evs []api.Event
		for seq := from; seq <= to; seq++ {
			evs = append(evs, api.Event{Seq: seq, JobID: seq % 2})
		}
		b.publish(evs)
	}
	publish(1, 2*followPage)
	page, _, complete := b.after(3)
	if !complete || len(page) != followPage || page[0].Seq != 4 || &page[0] != &b.recent[3] || cap(page) != len(page) {
		t.Fatalf("%d events from %d on, complete %v", len(page), page[0].Seq, complete)
	}
	if odd := ofJob(page, 1); len(odd) != followPage/2 || odd[0].Seq != 5 {
		t.Errorf("of job 1: %d, the first %d", len(odd), odd[0].Seq)
	}
	publish(2*followPage+1, 4*busKeep)
	for i := range page {
		if page[i].Seq != int64(4+i) {
			t.Fatalf("event %d of the page became %d", i, page[i].Seq)
		}
	}
}

// pagesStore counts who reads events at a time; each read waits for let.
type pagesStore struct {
	store.Store
	reading atomic.Int32
	entered chan int32
	let     chan struct{}
}

func (s *pagesStore) Events(ctx context.Context, job, since int64, limit int) ([]api.Event, error) {
	s.entered <- s.reading.Add(1)
	defer s.reading.Add(-1)
	<-s.let
	return s.Store.Events(ctx, job, since, limit)
}

// Followers from the beginning, as after a restart, read the store a few at a time, and all come to their events.
func TestFewFollowersReadTheStoreAtATime(t *testing.T) {
	const followers = 20
	disk := disk.Open(t)
	r := newRig(t, disk)
	r.submit("a", spec(1))
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	slow := &pagesStore{Store: disk, entered: make(chan int32, followers), let: make(chan struct{})}
	r = newRig(t, slow)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	enough := errors.New("enough")
	for range followers {
		all.Go(func() {
			if err := r.Follow(ctx, 0, 0, func([]api.Event) error { return enough }); !errors.Is(err, enough) {
				t.Error(err)
			}
		})
	}
	for range followers {
		if n := <-slow.entered; n > oldReaders {
			t.Fatalf("%d read at a time, want at most %d", n, oldReaders)
		}
		slow.let <- struct{}{}
	}
	all.Wait()
}
