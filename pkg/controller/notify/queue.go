package notify

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
)

const (
	firstRetry = time.Second
	lastRetry  = 10 * time.Minute
	// GiveUp is for how long a letter is tried.
	GiveUp = 24 * time.Hour
	// leastTries are made in any case, also of what lay in the store for longer while no controller ran.
	leastTries = 8
	// mostTogether bounds the letters of one delivery.
	mostTogether = 200
)

// queue decides what is delivered when. It has no clock: its callers say what time it is.
type queue struct {
	rate  time.Duration // between two deliveries of a user, for long; 0: no bound
	burst int
	lines map[Address]*lineState
	users map[string]time.Time // when the user's budget is whole again
}

// Address is to whom letters go: what waits for one goes together. Reports go one by one, each into a file of its own,
// and bother nobody: they have no budget.
type Address struct {
	User, Target, To string
	Report           bool
}

// AddressOf is to whom a letter goes.
func AddressOf(l *api.Letter) Address {
	return Address{l.User, l.Target, l.To, l.Type == api.NotifyReport}
}

type lineState struct {
	waiting []*api.Letter
	away    bool // a delivery is under way
	tries   int
	next    time.Time
	err     string
}

// Batch is one delivery.
type Batch struct {
	Letters []*api.Letter
	to      Address
}

// newQueue of a site.
func newQueue(s *Site) *queue {
	q := &queue{lines: map[Address]*lineState{}, users: map[string]time.Time{}}
	q.bound(s)
	return q
}

// bound has the budgets of users be as a site says from now on.
func (q *queue) bound(s *Site) {
	q.burst, q.rate = max(s.Burst, 1), 0
	if s.Rate > 0 {
		q.rate = time.Hour / time.Duration(s.Rate)
	}
}

// Set takes in the outbox as it stands. What is under way is left to its end.
func (q *queue) Set(letters []*api.Letter) {
	for _, s := range q.lines {
		s.waiting = nil
	}
	for _, l := range letters {
		if l.Draft || !l.GivenUp.IsZero() {
			continue
		}
		k := AddressOf(l)
		if q.lines[k] == nil {
			q.lines[k] = &lineState{}
		}
		q.lines[k].waiting = append(q.lines[k].waiting, l)
	}
	for k, s := range q.lines {
		if len(s.waiting) == 0 && !s.away {
			delete(q.lines, k)
		}
	}
}

// Next is what is to be delivered now; without one, at is when there may be: zero, when the outbox changes.
func (q *queue) Next(now time.Time) (b *Batch, at time.Time) {
	var best *lineState
	var key Address
	for k, s := range q.lines {
		if s.away || len(s.waiting) == 0 {
			continue
		}
		due := s.next
		if free := q.users[k.User].Add(-q.rate * time.Duration(q.burst-1)); q.rate > 0 && !k.Report && free.After(due) {
			due = free
		}
		switch {
		case due.After(now):
			if at.IsZero() || due.Before(at) {
				at = due
			}
		case best == nil || before(k, s, key, best):
			best, key = s, k
		}
	}
	if best == nil {
		return nil, at
	}
	best.away = true
	together := mostTogether
	if key.Report {
		together = 1
	} else if q.rate > 0 {
		q.users[key.User] = later(q.users[key.User], now).Add(q.rate)
	}
	return &Batch{Letters: slices.Clone(best.waiting[:min(len(best.waiting), together)]), to: key}, time.Time{}
}

// before orders addresses by their oldest letter.
func before(a Address, s *lineState, b Address, t *lineState) bool {
	return cmp.Or(s.waiting[0].Time.Compare(t.waiting[0].Time), compare(a, b)) < 0
}

func compare(a, b Address) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Target, b.Target), cmp.Compare(a.To, b.To))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Done takes in what became of a delivery: of one that failed it gives those letters that are given up.
func (q *queue) Done(b *Batch, now time.Time, err error) (givenUp []*api.Letter) {
	s := q.lines[b.to]
	s.away = false
	if err == nil {
		s.tries, s.err, s.next = 0, "", time.Time{}
		sent := map[int64]int{}
		for _, l := range b.Letters {
			sent[l.ID] = l.Rev
		}
		s.waiting = slices.DeleteFunc(s.waiting, func(l *api.Letter) bool { rev, ok := sent[l.ID]; return ok && rev == l.Rev })
		return nil
	}
	if q.rate > 0 && !b.to.Report {
		q.users[b.to.User] = q.users[b.to.User].Add(-q.rate) // what was not delivered bothered nobody
	}
	wait := lastRetry
	if s.tries < 10 {
		wait = min(firstRetry<<s.tries, lastRetry)
	}
	s.tries++
	s.next, s.err = now.Add(wait), err.Error()
	for _, l := range b.Letters {
		if now.Sub(l.Time) >= GiveUp && s.tries >= leastTries {
			givenUp = append(givenUp, l)
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(l *api.Letter) bool { return slices.Contains(givenUp, l) })
	return givenUp
}

// Line is how the deliveries to one address stand.
type Line struct {
	Address
	Waiting int
	Oldest  time.Time
	Tries   int       // that failed since the last that did not
	Next    time.Time // not before
	Error   string
}

// Lines are those with letters that wait, by name.
func (q *queue) Lines() (out []Line) {
	for k, s := range q.lines {
		if len(s.waiting) > 0 {
			out = append(out, Line{k, len(s.waiting), s.waiting[0].Time, s.tries, s.next, s.err})
		}
	}
	slices.SortFunc(out, func(a, b Line) int { return compare(a.Address, b.Address) })
	return out
}
