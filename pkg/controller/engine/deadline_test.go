package engine

import (
	"errors"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/lab/disk"
)

func TestADeadlineThatCanNotBeMetIsRefused(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "main", Default: true, DefaultTime: time.Hour}}
	})
	now := r.opt.Clock.Now().Wall
	at := func(d time.Duration) time.Time { return now.Add(d) }
	text := func(d time.Duration) string { return when.Clock(now, at(d)) }
	for _, c := range []struct {
		deadline, begin, least time.Duration
		want                   string
	}{
		{2 * time.Hour, 0, 0, ""},
		{30 * time.Minute, 0, 0, "no end before the deadline " + text(30*time.Minute) + " is possible: that is 30 min after now, and the time limit is 1 h; ask for less with --time, or let the limit be cut with --time-min"},
		{30 * time.Minute, 0, 20 * time.Minute, ""},
		{10 * time.Minute, 0, 20 * time.Minute, "no end before the deadline " + text(10*time.Minute) + " is possible: that is 10 min after now, and the time limit is 1 h, to be cut to 20 min at most; ask for less with --time-min, or give a later --deadline"},
		{2 * time.Hour, 90 * time.Minute, 0, "no end before the deadline " + text(2*time.Hour) + " is possible: that is 30 min after its begin time, " + text(90*time.Minute) + ", and the time limit is 1 h; ask for less with --time, or let the limit be cut with --time-min"},
		{-time.Minute, 0, 0, "the deadline " + text(-time.Minute) + " is not after now; give a later --deadline"},
		{2 * time.Hour, 0, 2 * time.Hour, "the least time limit, 2 h, is above the time limit, 1 h"},
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

// TestDeadlines: what is least to fit before a deadline, to the second, and which option is at fault where it does not.
func TestDeadlines(t *testing.T) {
	e := still()
	const hour = time.Hour
	for i, c := range []struct {
		deadline, begin, least, limit time.Duration // from noon on; a deadline of 0 is none
		reason                        api.Reason
		text                          string
	}{
		{0, 0, 0, hour, "", ""},
		{0, 0, hour, hour, "", ""},
		{0, 0, hour + 1, hour, api.ReasonTimeMin, "the least time limit, 1 h, is above the time limit, 1 h"},
		{0, 0, hour, 0, "", ""},
		{hour, 0, 0, hour, "", ""},
		{hour - 1, 0, 0, hour, api.ReasonTimeLimit, "no end before the deadline 12:59:59 is possible: that is 1 h after now, and the time limit is 1 h; ask for less with --time, or let the limit be cut with --time-min"},
		{hour - 1, 0, hour - 1, hour, "", ""},
		{hour - 2, 0, hour - 1, hour, api.ReasonTimeMin, "no end before the deadline 12:59:59 is possible: that is 1 h after now, and the time limit is 1 h, to be cut to 59 min 59 s at most; ask for less with --time-min, or give a later --deadline"},
		{time.Second, 0, 0, 0, "", ""},
		{time.Second - 1, 0, 0, 0, api.ReasonTimeLimit, "the deadline 12:00:00 is not after now; give a later --deadline"},
		{time.Second - 1, 0, 1, 0, api.ReasonTimeMin, "the deadline 12:00:00 is not after now; give a later --deadline"},
		{2 * hour, 2 * hour, 1, 0, api.ReasonBegin, "the deadline 14:00:00 is not after its begin time, 14:00:00; give a later --deadline"},
		{2*hour + 1, 2 * hour, 0, 0, api.ReasonTimeLimit, "the deadline 14:00:00 is not after its begin time, 14:00:00; give a later --deadline"},
		{-hour, -2 * hour, 0, 0, api.ReasonTimeLimit, "the deadline 11:00:00 is not after now; give a later --deadline"},
		{3 * hour, 2 * hour, 0, hour, "", ""},
	} {
		s := &api.Spec{TimeMin: c.least, Begin: noon.Add(c.begin)}
		if c.deadline != 0 {
			s.Deadline = noon.Add(c.deadline)
		}
		err := e.checkDeadline(s, c.limit)
		var refused *api.Error
		if errors.As(err, &refused); errText(err) != c.text || refused != nil && (refused.Reason != c.reason || refused.Code != api.CodeInvalid) {
			t.Errorf("%d: got %v (%+v)\nwant %s by %s", i, err, refused, c.text, c.reason)
		}
	}
}
