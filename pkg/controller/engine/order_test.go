package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/disk"
)

// TestOrderSaysWhy: the first of the queue, and of what can't start yet, are told with the reason that each has.
func TestOrderSaysWhy(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 1)
	later := spec(1)
	later.Begin = time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	held := spec(1)
	held.Hold = true
	r.submit("", spec(1)) // runs
	for range 3 {
		r.submit("", spec(1))
	}
	r.submit("", later)
	r.submit("", held)
	o, err := r.Order(t.Context(), 10, 2)
	if err != nil || o.Order != "2-4" {
		t.Fatalf("%+v, %v", o, err)
	}
	var got []string
	for _, w := range o.Whys {
		got = append(got, w.Jobs+": "+w.Text)
	}
	want := []string{"2-3: room for 0 of 1 rank now, each needs 1 CPU", "5: begins at " + later.Begin.Local().Format("2006-01-02 15:04:05"),
		"6: held by its owner; gctl release 6 lets it go"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if o, err := r.Order(t.Context(), 10, 0); err != nil || fmt.Sprint(o.Whys) != fmt.Sprint([]api.QueueWhy(nil)) {
		t.Errorf("of none: %+v, %v", o.Whys, err)
	}
}
