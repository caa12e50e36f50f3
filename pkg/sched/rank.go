package sched

import (
	"cmp"
	"math"
	"time"

	"gangd/pkg/cluster"
)

// rank is a place in the order, compared from the front, smaller first. Everything in it
// is fixed when the candidate is taken in or ranked again, so that a queue stays sorted
// while time passes.
type rank [6]int64

// bucketAt is where a rank in order of service has what the gang is expected to need.
const bucketAt = 2

func compare(a, b *Candidate) int {
	for i := range a.rank {
		if c := cmp.Compare(a.rank[i], b.rank[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(a.Job, b.Job)
}

// Less orders waiting gangs of one queue. It is a total order, the same after a restart.
func Less(a, b *Candidate) bool { return compare(a, b) < 0 }

// unknown is the bucket of gangs of which nothing is expected: behind all others, and equal among
// each other, so that of these the larger one goes first.
const unknown = math.MaxInt32

func (p *Policy) rank(l *Ledger, c *Candidate) rank {
	submit := c.Submit.UnixNano()
	switch p.Order {
	case OrderFIFO:
		return rank{-c.Tier, -c.Priority, submit}
	case OrderLargest:
		return rank{-int64(c.Size), -c.Tier, -c.Priority, submit}
	case OrderFair:
		// The minute and not the instant of submission, so that of gangs submitted
		// together the larger one goes first.
		return rank{-c.Tier, -c.Priority, p.shareBucket(l, c), submit / int64(time.Minute), -int64(c.Size), submit}
	}
	return rank{-c.Tier, -c.Priority, p.bucket(p.service(l, c).Seconds()), -int64(c.Size), submit}
}

// service is the cards' time that a gang is expected to need yet; 0: not known.
func (p *Policy) service(l *Ledger, c *Candidate) time.Duration {
	if !l.knows(c.TimeLimit) {
		return 0
	}
	return p.remaining(l, c.TimeLimit, c.Attained, c.peer()) * time.Duration(weight(c.Ask))
}

// need is the same in seconds, without the bound of a duration.
func (p *Policy) need(l *Ledger, c *Candidate) int64 {
	if !l.knows(c.TimeLimit) {
		return 0
	}
	return int64(p.remaining(l, c.TimeLimit, c.Attained, c.peer()).Seconds()) * int64(weight(c.Ask))
}

// remaining is how much longer a gang is expected to run. Where a shorter one takes its place
// whenever it comes that is the mean of what others with such a limit and as much behind
// them ran on: the index, which is better in a queue where nobody is sent back, falls and
// grows while a gang runs and moves it off and back again. What neighbours of a gang with a limit ran
// counts there only: a gang that is taken for short by mistake is sent back, where nobody is it stays.
func (p *Policy) remaining(l *Ledger, limit, ran time.Duration, of Peer) time.Duration {
	expects := l.Remaining
	if p.Preempt == PreemptService {
		expects = l.Mean
	}
	d := expects(limit, ran, of)
	if limit > 0 && l.knows(0) {
		d = min(d, expects(0, ran, of))
	}
	return d
}

// peer is the candidate as those like it are looked for.
func (c *Candidate) peer() Peer { return Peer{c.User, c.Name, weight(c.Ask), c.Job} }

// weight is how many cards a gang counts for; one without any counts as one.
func weight(ask *cluster.Ask) int { return max(1, CardsOf(ask)) }

// CardsOf is how many cards a gang takes, at least: cards asked for by node count once for
// each node that it must have.
func CardsOf(ask *cluster.Ask) int {
	if ask.Parts != nil {
		n := 0
		for _, p := range ask.Parts {
			n += CardsOf(p)
		}
		return n
	}
	s := ask.Spec
	return s.Size*s.GPUsPerRank + max(1, s.MinNodes)*s.GPUsPerNode
}

// bucket numbers amounts so that those within a factor of each other are mostly equal.
func (p *Policy) bucket(amount float64) int64 {
	if amount <= 0 {
		return unknown
	}
	factor := p.Bucket
	if factor <= 1 {
		factor = 1.4
	}
	return int64(math.Floor(math.Log(amount) / math.Log(factor)))
}

// shareBucket numbers what was used, per share: who used nothing yet is first.
func (p *Policy) shareBucket(l *Ledger, c *Candidate) int64 {
	if l == nil {
		return 0
	}
	used := l.users[c.User]
	for i := range p.Accounts {
		if a := &p.Accounts[i]; a.Name == c.Account {
			used = l.accounts[c.Account]
			if a.Share > 0 {
				used /= a.Share
			}
		}
	}
	if used <= 0 {
		return math.MinInt32
	}
	return p.bucket(used)
}
