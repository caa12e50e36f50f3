package engine

import (
	"testing"

	"gangd/pkg/api"
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
