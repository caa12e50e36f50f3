package order

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Usage is one attempt that has ended, as the [Ledger] learns from it.
type Usage struct {
	Peer
	Account string
	Ran     time.Duration // this attempt
	Ended   time.Time
	// Whole is what the job ran in all when this was its last attempt and it came to its own
	// end, Alive what is kept of it all when it was stopped and is to go on; Before is what
	// was kept when the attempt began. Limit is what it had asked for, 0: none. Neither Whole nor
	// Alive teaches nothing about run times.
	Before, Whole, Alive, Limit time.Duration
}

// Ledger is what is learnt from history: who used how much of the cards, and what part of
// their time limits gangs use, and how long those run that have none. It is made from stored attempts at start and told of each
// end from then on; it holds a figure a user and a few histograms, no attempt itself.
type Ledger struct {
	usedTime
	ranTimes
	peersRan
	whatIsAsked
	version int // counts the changes of what is learnt of run times
	workedOut
}

// usedTime is who used how much of the cards.
type usedTime struct {
	halfLife time.Duration
	origin   time.Time // figures are as of then: decay never has to be applied to all
	users    map[string]float64
	accounts map[string]float64
}

// ranTimes is what part of their time limits gangs use, and how long those run that have none.
type ranTimes struct {
	byLimit  map[int]*spans
	all      spans
	everyone spans              // by run times: of all, with a limit or without
	open     spans              // of those without
	openBy   map[openKey]*spans // of these
	openEnds bool               // one of these came to its end
}

// peersRan is what the last gangs of each user ran.
type peersRan struct {
	peers    map[string][]peer // by user, of each by job
	runTimes runTimes          // of all users
	ended    int               // gangs in it
	// Of version likelihoodsAt: likelihoods are what was worked out, and rare is by bin how many end for one
	// that ends there.
	likelihoods   map[neighbourKey]*likelihoods
	rare          runTimes
	likelihoodsAt int
}

// whatIsAsked is what people ask for.
type whatIsAsked struct {
	asks     map[string]*askCount // by ask class
	askedFor int
	lastJob  int64 // the newest job that was counted
	mix      *Mix
	mixAt    int // asks that it was made of
}

// workedOut is what was worked out of one version.
type workedOut struct {
	// expected holds what Remaining has worked out since version changed last: people choose
	// round limits, so that of thousands that wait few are different.
	expected   map[remainingKey]time.Duration
	expectedAt int
	// mixed is the chances of the same version.
	mixed       map[chancesKey]*chances
	mixedAt     int
	openMixed   map[openClass]*chances
	openMixedAt int
}

// DefaultHalfLife is how fast used GPU time is forgotten where a site does not say.
const DefaultHalfLife = 7 * 24 * time.Hour

// NewLedger is an empty one. What was used a half-life ago counts half; 0: the default.
func NewLedger(halfLife time.Duration) *Ledger {
	if halfLife <= 0 {
		halfLife = DefaultHalfLife
	}
	return &Ledger{
		usedTime:    usedTime{halfLife: halfLife, users: map[string]float64{}, accounts: map[string]float64{}},
		ranTimes:    ranTimes{byLimit: map[int]*spans{}, openBy: map[openKey]*spans{}},
		peersRan:    peersRan{peers: map[string][]peer{}},
		whatIsAsked: whatIsAsked{asks: map[string]*askCount{}},
	}
}

// Add takes one ended attempt in.
func (l *Ledger) Add(u Usage) {
	l.version++
	if l.origin.IsZero() {
		l.origin = u.Ended
	}
	u.Cards = max(1, u.Cards) // as [Weight]
	used := float64(u.Cards) * u.Ran.Seconds() * l.weight(u.Ended)
	l.users[u.User] += used
	l.accounts[u.Account] += used
	if to := max(u.Whole, u.Alive); to > 0 {
		ended := u.Whole > 0
		l.everyone.add(u.Before, to, openSpan, openBins, ended)
		if u.Limit > 0 {
			l.addLimited(&u, to, ended)
		} else {
			l.addOpen(&u, to, ended)
		}
		if ended && u.Job > 0 {
			l.addPeer(u.Peer, u.Whole)
		}
	}
}

func (l *Ledger) addLimited(u *Usage, to time.Duration, ended bool) {
	b := limitBin(u.Limit)
	if l.byLimit[b] == nil {
		l.byLimit[b] = &spans{}
	}
	l.byLimit[b].add(u.Before, to, u.Limit, spanBins, ended)
	l.all.add(u.Before, to, u.Limit, spanBins, ended)
}

// weight is how much use at a time counts beside use at the origin.
func (l *Ledger) weight(at time.Time) float64 {
	return math.Exp2(at.Sub(l.origin).Seconds() / l.halfLife.Seconds())
}

// remainingKey is a question to [Ledger.Remaining].
type remainingKey struct{ limit, ran time.Duration }

// maxExpected bounds what is remembered: gangs that ran before have run for any time.
const maxExpected = 10000

// Remaining is how much longer a gang with a time limit, 0: none, that ran so long already is
// expected to run, as an order wants it: see [chances.index].
func (l *Ledger) Remaining(limit, ran time.Duration, of Peer) time.Duration {
	if limit <= 0 {
		return l.openChances(of, false).index(openSpan, ran)
	}
	if l == nil {
		return prior.index(limit, ran)
	}
	if l.expectedAt != l.version || len(l.expected) >= maxExpected || l.expected == nil {
		if l.expected == nil {
			l.expected = map[remainingKey]time.Duration{}
		}
		clear(l.expected)
		l.expectedAt = l.version
	}
	q := remainingKey{limit, ran}
	d, known := l.expected[q]
	if !known {
		d = l.chances(limit, false).index(limit, ran)
		l.expected[q] = d
	}
	return d
}

// Mean is [Ledger.Average] by what its neighbours did as well, and steady: see [spans.chances].
func (l *Ledger) Mean(limit, ran time.Duration, of Peer) time.Duration {
	if limit <= 0 {
		return l.openChances(of, true).mean(openSpan, ran)
	}
	if l == nil {
		return prior.mean(limit, ran)
	}
	return l.chances(limit, true).weigh(l.neighbourLikelihoods(of), limit).mean(limit, ran)
}

// Average is how much longer a gang that ran so long already runs on average. Without a limit
// its neighbours count as well; before one without has ended it is for longer than anybody.
func (l *Ledger) Average(limit, ran time.Duration, of Peer) time.Duration {
	if limit <= 0 {
		if !l.Knows(limit) {
			return openSpan
		}
		return l.Mean(0, ran, of)
	}
	if l == nil {
		return prior.mean(limit, ran)
	}
	return l.chances(limit, false).mean(limit, ran)
}

// chancesKey is a question to [Ledger.chances]: of a limitBin, and how to mix.
type chancesKey struct {
	limit  int
	steady bool
}

// chances are those of gangs with such a limit: what was seen of them, mixed with what is
// seen of all others, and that with the prior, while it is little.
func (l *Ledger) chances(limit time.Duration, steady bool) *chances {
	if l.mixedAt != l.version || l.mixed == nil {
		l.mixed, l.mixedAt = map[chancesKey]*chances{}, l.version
	}
	b := chancesKey{limitBin(limit), steady}
	c := l.mixed[b]
	if c == nil {
		own := l.all.chances(&prior, steady)
		if s := l.byLimit[b.limit]; s != nil {
			own = s.chances(&own, steady)
		}
		c = &own
		l.mixed[b] = c
	}
	return c
}

// snapshot is a ledger of its own with the same contents, for a plan beside the one writer's.
func (l *Ledger) snapshot() *Ledger {
	if l == nil {
		return nil
	}
	c := *l
	c.users, c.accounts, c.byLimit, c.openBy = maps.Clone(l.users), maps.Clone(l.accounts), cloneSpans(l.byLimit), cloneSpans(l.openBy)
	// Lists of neighbours are shared: without room behind it the next insertion copies one.
	for user, list := range l.peers {
		l.peers[user] = slices.Clip(list)
	}
	c.peers = maps.Clone(l.peers)
	c.expected, c.mixed, c.openMixed, c.likelihoods, c.asks = nil, nil, nil, nil, make(map[string]*askCount, len(l.asks))
	for shape, a := range l.asks {
		own := *a
		c.asks[shape] = &own
	}
	return &c
}

func cloneSpans[K comparable](m map[K]*spans) map[K]*spans {
	out := make(map[K]*spans, len(m))
	for k, s := range m {
		own := *s
		out[k] = &own
	}
	return out
}
