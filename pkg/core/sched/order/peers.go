package order

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// What one user submits after each other is alike: a sweep, one run after a change of a line,
// a chain. So of what a gang's limit leaves open its neighbours tell a part, those that its
// user submitted just before and after it and that have ended.

// The figures behind each constant are in docs/design/order.md.

// Peer is a gang as those like it are looked for; the zero Peer is like nobody.
type Peer struct {
	User  string
	Name  string // that its user gave it
	Cards int
	Job   int64
}

// runTimeBins is how finely run times are told apart: each bin is a factor of the square root of
// two as those of limits are, the first one ends at a second and a half, the last at 85 years.
const runTimeBins = 64

// runTimes counts gangs by the bin of their run time.
type runTimes [runTimeBins]float64

func runTimeBin(ran time.Duration) int {
	return min(runTimeBins-1, max(0, int(2*math.Log2(max(ran.Seconds(), 1)))))
}

// peer is a gang that came to its own end.
type peer struct {
	job   int64
	name  uint32 // its hash
	cards int32
	bin   uint8
}

const (
	// peersKept is how many of a user are kept, those submitted last. Whoever waits since before
	// these has no neighbours.
	peersKept = 4096
	// peerFades is what the next neighbour counts beside the one before, otherCards what one
	// with another number of cards counts beside one with as many, and otherName one with another
	// name beside one with the same.
	peerFades, otherCards, otherName = 0.9, 0.3, 0.3
	// leastPeer is where no more of them are looked at.
	leastPeer = 0.05
	// peersPart is how much of what is expected neighbours decide at most.
	peersPart = 0.7
	// leastRunTimes is how many gangs must have ended, whoever's, before it is known what is usual.
	leastRunTimes = 20
	// runTimeWidth is over how many bins to each side an end is spread: a run like another one
	// takes up to three times as long.
	runTimeWidth = 3
)

// likelihoods is by bin how much likelier than usual a run time is.
type likelihoods [runTimeBins]float64

// neighbourKey is a question to [Ledger.neighbourLikelihoods]: all gangs of a user with such a name
// and so many cards that were submitted beside the same one that ended have the same neighbours.
type neighbourKey struct {
	user  string
	name  uint32
	cards int
	at    int  // of the first that ended and was submitted later
	later bool // that one is nearer than the one before it
}

// addPeer takes in that a gang ran for so long in all.
func (l *Ledger) addPeer(of Peer, ran time.Duration) {
	p := peer{of.Job, nameHash(of.Name), int32(of.Cards), uint8(runTimeBin(ran))}
	list := l.peers[of.User]
	at, known := slices.BinarySearchFunc(list, of.Job, comparePeer)
	l.runTimes[p.bin]++
	if known { // it was run again: the last time counts, as in a ledger made anew
		l.runTimes[list[at].bin]--
		list = slices.Delete(slices.Clone(list), at, at+1)
	} else {
		l.ended++
	}
	if list = slices.Insert(list, at, p); len(list) > peersKept {
		list = slices.Delete(list, 0, 1)
	}
	l.peers[of.User] = list
}

func comparePeer(p peer, job int64) int { return cmp.Compare(p.job, job) }

// nameHash tells names apart; that two have the same one now and then costs nothing.
func nameHash(name string) uint32 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// neighbourKey is that of a gang; false: nothing is known of neighbours of it.
func (l *Ledger) neighbourKey(of Peer) (neighbourKey, bool) {
	q := neighbourKey{user: of.User, name: nameHash(of.Name), cards: of.Cards}
	list := l.peers[of.User]
	if of.Job == 0 || len(list) == 0 || l.ended < leastRunTimes {
		return q, false
	}
	q.at, _ = slices.BinarySearchFunc(list, of.Job, comparePeer)
	if q.at == 0 && len(list) == peersKept {
		return q, false
	}
	q.later = q.at == 0 || q.at < len(list) && list[q.at].job-of.Job < of.Job-list[q.at-1].job
	return q, true
}

// neighbourLikelihoods is what the neighbours of a gang say; nil: nothing.
func (l *Ledger) neighbourLikelihoods(of Peer) *likelihoods {
	q, known := l.neighbourKey(of)
	if !known {
		return nil
	}
	if l.likelihoodsAt != l.version || l.likelihoods == nil {
		l.forgetLikelihoods()
	}
	if known := l.likelihoods[q]; known != nil {
		return known
	}
	near, sum := neighbours(l.peers[of.User], q)
	// A whole neighbourhood counts 1 / (1 - peerFades).
	part := peersPart * min(1, sum*(1-peerFades))
	spread := near.spread()
	out := &likelihoods{}
	for i := range out {
		out[i] = 1 - part + part/sum*spread[i]*l.rare[i]
	}
	l.likelihoods[q] = out
	return out
}

// forgetLikelihoods forgets what neighbours said before somebody else ended.
func (l *Ledger) forgetLikelihoods() {
	l.likelihoods, l.likelihoodsAt = map[neighbourKey]*likelihoods{}, l.version
	l.rare = l.runTimes.spread()
	for i := range l.rare {
		// Half an end in each bin is believed beforehand: nothing is impossible.
		l.rare[i] = (float64(l.ended) + 0.5*runTimeBins) / (l.rare[i] + 0.5)
	}
}

// neighbours counts what ended around one that did, the nearest first, and how much they count
// in all.
func neighbours(list []peer, q neighbourKey) (near runTimes, sum float64) {
	before, after := q.at-1, q.at
	nearest := before
	if q.later {
		nearest = after
	}
	beside := list[nearest].job
	for w := 1.0; w > leastPeer && (before >= 0 || after < len(list)); {
		var p peer
		if after >= len(list) || before >= 0 && beside-list[before].job <= list[after].job-beside {
			p = list[before]
			before--
		} else {
			p = list[after]
			after++
		}
		counts := 1.0
		if int(p.cards) != q.cards {
			counts = otherCards
		}
		if p.name != q.name {
			counts *= otherName
		}
		near[p.bin] += w * counts
		sum += w * counts
		w *= 1 - (1-peerFades)*counts
	}
	return near, sum
}

// spread puts each end into the bins around its own, the farther the less.
func (h *runTimes) spread() (out runTimes) {
	const all = (runTimeWidth + 1) * (runTimeWidth + 1)
	for i, n := range h {
		if n == 0 {
			continue
		}
		for d := -runTimeWidth; d <= runTimeWidth; d++ {
			to := min(runTimeBins-1, max(0, i+d))
			out[to] += n * float64(runTimeWidth+1-max(d, -d)) / all
		}
	}
	return out
}

// weigh makes run times likelier or less likely that are so among the neighbours.
func (c *chances) weigh(by *likelihoods, limit time.Duration) *chances {
	if by == nil {
		return c
	}
	// The middle of the first bin of a limit is a quarter of a bin's factor below it, and each
	// further one a whole bin of run times.
	first := 2*math.Log2(max(limit.Seconds(), 1)) - 0.5
	left := c.left(0)
	out := chances{bins: c.bins}
	alive := 0.0
	for i := range left {
		left[i] *= by[min(runTimeBins-1, max(0, int(first)-i))]
		// From the longest down: those that come to a bin are those that end there or later.
		if alive += left[i]; alive > 0 {
			out.p[i] = left[i] / alive
		}
	}
	out.p[0] = 1
	return &out
}
