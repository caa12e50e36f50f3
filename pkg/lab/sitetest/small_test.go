package sitetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"gangd/pkg/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What memory and store have of the small site agrees, and each time it is the same, event by event.
func TestSmallIsTheSameEachTime(t *testing.T) {
	var first []api.Event
	for range 3 {
		s := Small(t)
		if found, err := s.Verify(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("%q, %v", found, err)
		}
		evs, more, err := s.Events(t.Context(), 0, 0, 1000)
		if err != nil || more || len(evs) < 30 {
			t.Fatalf("%d events, more %v, %v", len(evs), more, err)
		}
		if first == nil {
			first = evs
		}
		if d := cmp.Diff(first, evs); d != "" {
			t.Error(d)
		}
	}
}
