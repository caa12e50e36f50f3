package noded

import (
	"time"

	"gangd/pkg/api"
)

// beginning is when a member was prepared by this daemon; zero: one before it did.
type beginning struct {
	at, ready     time.Time
	image, prolog time.Duration // parts of the time between
}

// parts are those of a start whose first rank was started then, nil: they are not known.
func (b *beginning) parts(started time.Time) *api.StartParts {
	if b.at.IsZero() || b.ready.IsZero() {
		return nil
	}
	seconds := func(d time.Duration) *float64 {
		s := max(d, 0).Seconds()
		return &s
	}
	return &api.StartParts{Image: seconds(b.image), Prolog: seconds(b.prolog), Prepare: seconds(b.ready.Sub(b.at) - b.image - b.prolog),
		Wait: seconds(started.Sub(b.ready))}
}

// firstStarted is when the first of the ranks was; now, where there are none: a member without a process begins with its gate.
func firstStarted(ranks []api.RankActual) time.Time {
	if len(ranks) == 0 {
		return time.Now()
	}
	return ranks[0].Started
}

// beats looks for the first beat of a member. Of one that beat before this daemon heard of it, only a first beat that was
// the last as well says when it was.
func (s *meters) beats(k api.MemberKey, n *api.MemberNote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.members[k]
	if x == nil || x.beat {
		return
	}
	first, only := time.Duration(-1), true
	hear := func(r *api.RankNote) {
		if r.Beats > 0 {
			first, only = max(first, r.BeatAge), only && r.Beats == 1
		}
	}
	for i := range n.Ranks {
		hear(&n.Ranks[i])
	}
	for i := range n.Tasks {
		hear(&n.Tasks[i].RankNote)
	}
	if first < 0 {
		return
	}
	x.beat = true
	if only || !x.resumed {
		x.fold.Beat(s.now() - x.began - first)
		x.keep()
	}
}
