package order

import (
	"time"

	"gangd/pkg/core/cluster"
)

// Candidate is a waiting gang: every rank blocked, not held, begin time and back-off
// passed. Candidates are immutable.
type Candidate struct {
	Job int64
	*Terms
	Name     string // that its user gave it
	Submit   time.Time
	Eligible time.Time // since when it could have started; zero: Submit

	// Set by [Queue]:
	bucket int64         // what it is expected to need, or its user used, as far as the order goes by that
	need   int64         // seconds of one card that it is expected to need yet, as of its bucket
	turn   time.Duration // from Submit to its turn, see [Policy.turnAt]; 0: it has none
}

// Terms are on what a gang waits. The candidates of a queue share them: of a hundred thousand most differ in nothing else
// than when they came.
type Terms struct {
	Tier     int64 // of its partition: larger first, before anything else
	Priority int64 // larger first; --nice is taken off already
	Nice     int64 // what was taken off: it orders, but makes nobody a victim
	Size     int   // ranks
	Ask      *cluster.Ask
	Avoid    []string // nodes that just failed this gang: used only when nothing else fits
	User     string
	Account  string
	// TimeLimit is what the gang may run in all, the partition's default filled in; 0:
	// unlimited. Stop is how long its end may take beyond that: lead and grace.
	TimeLimit time.Duration
	Stop      time.Duration
	// TimeMin is down to what its time limit may be cut so that it ends before a backfill; 0: it
	// is not cut.
	TimeMin time.Duration
	// Deadline is when it has ended but for Stop, whatever its limit; zero: none.
	Deadline time.Time
	// Attained is how long it ran already, as far as that is not lost: what a checkpoint
	// hands over to the next attempt.
	Attained time.Duration
	// KeepsWork: it would lose nothing by being stopped, and may be at any time.
	KeepsWork bool

	rank // set by [Queue]
}

// Apart is a copy with terms of its own, to be changed before a queue takes it in.
func (c *Candidate) Apart() *Candidate {
	own, terms := *c, *c.Terms
	own.Terms = &terms
	return &own
}
