package engine

import (
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/disk"
)

func TestADeadlineThatCanNotBeMetIsRefused(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "main", Default: true, DefaultTime: time.Hour}}
	})
	now := r.opt.Clock.Now().Wall
	at := func(d time.Duration) time.Time { return now.Add(d) }
	text := func(d time.Duration) string { return at(d).Format(time.RFC3339) }
	for _, c := range []struct {
		deadline, begin, least time.Duration
		want                   string
	}{
		{2 * time.Hour, 0, 0, ""},
		{30 * time.Minute, 0, 0, "no end before the deadline " + text(30*time.Minute) + " is possible: that is 30m0s after now, and the time limit is 1h0m0s; ask for less with --time, or let the limit be cut with --time-min"},
		{30 * time.Minute, 0, 20 * time.Minute, ""},
		{10 * time.Minute, 0, 20 * time.Minute, "no end before the deadline " + text(10*time.Minute) + " is possible: that is 10m0s after now, and the time limit is 1h0m0s, to be cut to 20m0s at most; ask for less with --time-min, or give a later --deadline"},
		{2 * time.Hour, 90 * time.Minute, 0, "no end before the deadline " + text(2*time.Hour) + " is possible: that is 30m0s after its begin time, " + text(90*time.Minute) + ", and the time limit is 1h0m0s; ask for less with --time, or let the limit be cut with --time-min"},
		{-time.Minute, 0, 0, "the deadline " + text(-time.Minute) + " is not after now; give a later --deadline"},
		{2 * time.Hour, 0, 2 * time.Hour, "the least time limit, 2h0m0s, is above the time limit, 1h0m0s"},
	} {
		s := spec(1)
		s.Deadline, s.TimeMin = at(c.deadline), c.least
		if c.begin > 0 {
			s.Begin = at(c.begin)
		}
		_, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me)
		if got := errText(err); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c, got, c.want)
		}
	}
}
