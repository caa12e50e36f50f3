package order

import (
	"math/bits"
	"time"
)

// Gangs without a time limit are told apart by what such gangs ran: all of them, those as large,
// those of the same user, and the neighbours. See docs/design/backfill.md.

const (
	// openSpan is what the run time of a gang without a time limit is told as a part of, and
	// openBins how many bins reach from there down to a second and a half: with the bins of a
	// limit all below an hour would be one.
	openSpan = 128 * 24 * time.Hour
	openBins = 46
)

// openPrior is what is believed of gangs without a limit before anything was seen: any order of
// magnitude of their run time is as likely as another. So those that ran least are first.
var openPrior = func() (c chances) {
	c.bins = openBins
	for i := range openBins {
		c.p[i] = 1 / float64(i+1)
	}
	return c
}()

// openKey is a class of gangs without a time limit.
type openKey struct {
	size int // bits of the number of cards; 0: whatever it is
	user string
}

// openKeys are the classes of a gang, the wider first. Who is sent back when it turns out to be
// long is told by its size as well. Without preemption that is worse: the order is by cards
// already, and large gangs of a class that happened to be short would go ahead for good.
func openKeys(of Peer, steady bool) (ks []openKey) {
	size := 0
	if steady {
		size = bits.Len(uint(max(1, of.Cards)))
		ks = append(ks, openKey{size, ""})
	}
	if of.User != "" { // else whose they are is not known: it would be the wider class again
		ks = append(ks, openKey{size, of.User})
	}
	return ks
}

// addOpen takes in that a gang without a limit ran on.
func (l *Ledger) addOpen(u *Usage, to time.Duration, ended bool) {
	l.open.add(u.Before, to, openSpan, openBins, ended)
	l.openEnds = l.openEnds || ended
	for _, steady := range []bool{false, true} {
		for _, k := range openKeys(u.Peer, steady) {
			if l.openBy[k] == nil {
				l.openBy[k] = &spans{}
			}
			l.openBy[k].add(u.Before, to, openSpan, openBins, ended)
		}
	}
}

// openClass is a question to [Ledger.openChances]: all gangs with the same one have the same
// chances.
type openClass struct {
	neighbourKey
	steady bool
}

// openChances are those of a gang without a time limit: what is seen of its narrowest class, mixed
// with what is seen of the wider ones while that is little, of gangs with a limit too; and
// weighed by its neighbours.
func (l *Ledger) openChances(of Peer, steady bool) *chances {
	if l == nil {
		return &openPrior
	}
	if l.openMixedAt != l.version || l.openMixed == nil {
		l.openMixed, l.openMixedAt = map[openClass]*chances{}, l.version
	}
	near, _ := l.neighbourKey(of)
	q := openClass{near, steady}
	if c := l.openMixed[q]; c != nil {
		return c
	}
	own := l.everyone.chances(&openPrior, steady)
	own = l.open.chances(&own, steady)
	for _, k := range openKeys(of, steady) {
		if s := l.openBy[k]; s != nil {
			own = s.chances(&own, steady)
		}
	}
	c := own.weigh(l.neighbourLikelihoods(of), openSpan)
	l.openMixed[q] = c
	return c
}

// Knows reports whether anything is expected of a gang with such a limit, 0: none. Of those without
// one nothing is before the first of them has ended: they are behind all others, the largest
// first. From then on gangs with a limit are compared with what would be expected of them without:
// whoever says one is never expected to run longer than if it had not.
func (l *Ledger) Knows(limit time.Duration) bool { return limit > 0 || l != nil && l.openEnds }
