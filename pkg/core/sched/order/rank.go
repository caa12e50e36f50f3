package order

import (
	"cmp"
	"math"
	"time"

	"gangd/pkg/core/cluster"
)

// rank is what of a gang's terms decides on its place in the queue, smaller first. Everything in it and in the
// candidate's own part is fixed when that is taken in or ranked again, so that a queue stays sorted while time passes.
type rank struct {
	first    [3]int64 // before the bucket
	last     int64    // after it
	byMinute bool     // and not by the instant of submission: of gangs submitted together the larger one goes first
}

// Compare orders the waiting gangs of one queue: who is first goes first.
func Compare(a, b *Candidate) int {
	if a.Terms != b.Terms {
		for i := range a.first {
			if c := cmp.Compare(a.first[i], b.first[i]); c != 0 {
				return c
			}
		}
	}
	if c := cmp.Compare(a.bucket, b.bucket); c != 0 {
		return c
	}
	if a.byMinute {
		if c := cmp.Compare(a.Submit.UnixNano()/int64(time.Minute), b.Submit.UnixNano()/int64(time.Minute)); c != 0 {
			return c
		}
	}
	if c := cmp.Compare(a.last, b.last); c != 0 {
		return c
	}
	return cmp.Or(a.Submit.Compare(b.Submit), cmp.Compare(a.Job, b.Job))
}

// Less orders waiting gangs of one queue. It is a total order, the same after a restart.
func Less(a, b *Candidate) bool { return Compare(a, b) < 0 }

// Below reports whether a is of a lower tier than b, where the order has tiers at all.
func (p *Policy) Below(a, b *Candidate) bool {
	return p.Order != OrderLargest && cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Priority, b.Priority)) < 0
}

// MayDelay reports whether a gang may delay another one that has places kept for it: one of a higher tier may, and
// one that is ahead in the order, but not one that is ahead only for being shorter. Those
// come without end, and whoever has a start would never have it. Nor may one of its tier where others were stopped for it, which
// makes it a move.
func (p *Policy) MayDelay(c, taker *Candidate, move bool) bool {
	if p.Below(taker, c) {
		return true
	}
	if move || Compare(c, taker) >= 0 {
		return false
	}
	return !p.ByService() || c.bucket == taker.bucket && !p.Below(c, taker)
}

// Unknown is the bucket of gangs of which nothing is expected: behind all others, and equal among
// each other, so that of these the larger one goes first.
const Unknown = math.MaxInt32

func (p *Policy) rankOf(t *Terms) rank {
	switch p.Order {
	case OrderFIFO:
		return rank{first: [3]int64{-t.Tier, -t.Priority}}
	case OrderLargest:
		return rank{first: [3]int64{-int64(t.Size), -t.Tier, -t.Priority}}
	}
	return rank{first: [3]int64{-t.Tier, -t.Priority}, last: -int64(t.Size), byMinute: p.Order == OrderFair}
}

// bucketOf is 0 where the order goes by nothing that is learnt.
func (p *Policy) bucketOf(l *Ledger, c *Candidate) int64 {
	switch {
	case p.ByService():
		return p.bucket(p.Service(l, c).Seconds())
	case p.Order == OrderFair:
		return p.shareBucket(l, c)
	}
	return 0
}

// Service is the cards' time that a gang is expected to need yet; 0: not known.
func (p *Policy) Service(l *Ledger, c *Candidate) time.Duration {
	if !l.Knows(c.TimeLimit) {
		return 0
	}
	return p.Remaining(l, c.TimeLimit, c.Attained, c.Peer()) * time.Duration(Weight(c.Ask))
}

// need is the same in seconds, without the bound of a duration.
func (p *Policy) need(l *Ledger, c *Candidate) int64 {
	if !l.Knows(c.TimeLimit) {
		return 0
	}
	return int64(p.Remaining(l, c.TimeLimit, c.Attained, c.Peer()).Seconds()) * int64(Weight(c.Ask))
}

// Remaining is how much longer a gang is expected to run. Where a shorter one takes its place
// whenever it comes that is the mean of what others with such a limit and as much behind
// them ran on: the index, which is better in a queue where nobody is sent back, falls and
// grows while a gang runs and moves it off and back again. What neighbours of a gang with a limit ran
// counts there only: a gang that is taken for short by mistake is sent back, where nobody is it stays.
func (p *Policy) Remaining(l *Ledger, limit, ran time.Duration, of Peer) time.Duration {
	expects := l.Remaining
	if p.Preempt == PreemptService {
		expects = l.Mean
	}
	d := expects(limit, ran, of)
	if limit > 0 && l.Knows(0) {
		d = min(d, expects(0, ran, of))
	}
	return d
}

// Peer is the candidate as those like it are looked for.
func (c *Candidate) Peer() Peer { return Peer{c.User, c.Name, Weight(c.Ask), c.Job} }

// Weight is how many cards a gang counts for; one without any counts as one.
func Weight(ask *cluster.Ask) int { return max(1, CardsOf(ask)) }

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
		return Unknown
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
