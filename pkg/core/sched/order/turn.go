package order

import "time"

// Turn is why a gang is let to the front of its tier. Who started so counts against the part of
// the cards until it ends, and nobody else does: where all wait for long most of what runs has
// waited too, and would keep the part from those who still do.
type Turn int8

const (
	NoTurn   Turn = iota // it is not
	TurnOwn              // it waited long beside its own time limit
	TurnLong             // it waited longer than any should
)

// OwnPatience is for how long a gang waits in order of service, in times of its own time limit,
// before it goes to the front: see docs/design/order.md.
const OwnPatience = 4

// turnAt is when a gang that waits goes to the front for its own time limit, zero: never. since is
// when it would have been submitted had it only waited, ready since when it could have started:
// a time limit says nothing of how long others may be waited for.
//
// Only the order of service lets those who come later go ahead for needing less, without end.
// Where they preempt as well, how long is too long depends on the load: see patience.
func (p *Policy) turnAt(since, ready time.Time, limit time.Duration) time.Time {
	if limit <= 0 || limit >= p.GuardAfter/OwnPatience || !p.ByService() || p.Preempt == PreemptService {
		return time.Time{} // GuardAfter, if there is one, is over before
	}
	return ownTurn(since, ready, limit)
}

// Since is when a gang would have been submitted had it only waited.
func (c *Candidate) Since() time.Time { return c.Submit.Add(c.Attained) }

// HasTurn reports whether it ever goes to the front for its own time limit.
func (c *Candidate) HasTurn() bool { return c.turn != 0 }

// TurnAt is when it goes to the front for its own time limit, where it has a turn.
func (c *Candidate) TurnAt() time.Time { return c.Submit.Add(c.turn) }

// OwnTurn is when a gang has waited for a few times its time limit.
func (c *Candidate) OwnTurn() time.Time { return ownTurn(c.Since(), c.Eligible, c.TimeLimit) }

func ownTurn(since, ready time.Time, limit time.Duration) time.Time {
	if ready.Before(since) {
		ready = since
	}
	return ready.Add(OwnPatience * limit)
}
