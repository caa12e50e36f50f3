package sched

import (
	"maps"
	"math"
	"math/bits"
	"time"
)

// Used is one attempt that has ended, as the [Ledger] learns from it.
type Used struct {
	User, Account string
	Cards         int
	Ran           time.Duration // this attempt
	Ended         time.Time
	// Whole is what the job ran in all when this was its last attempt and it came to its own
	// end; 0 teaches nothing about time limits. Limit is what it had asked for.
	Whole, Limit time.Duration
}

// Ledger is what is learnt from history: who used how much of the cards, and what part of
// their time limits gangs use. It is made from stored attempts at start and told of each
// end from then on; it holds a figure a user and a few histograms, no attempt itself.
type Ledger struct {
	halfLife time.Duration
	origin   time.Time // figures are as of then: decay never has to be applied to all
	users    map[string]float64
	accounts map[string]float64
	byLimit  map[int]*spans
	all      spans
	version  int // counts the changes

	// expected holds what Remaining has worked out since version changed last: people choose
	// round limits, so that of thousands that wait few are different.
	expected   map[expecting]time.Duration
	expectedAt int

	asks     map[string]*askCount // by shape
	askedFor int
	lastJob  int64 // the newest job that was counted
	mix      *mix
	mixAt    int // asks that it was made of
}

// DefaultHalfLife is how fast used GPU time is forgotten where a site does not say.
const DefaultHalfLife = 7 * 24 * time.Hour

// NewLedger is an empty one. What was used a half-life ago counts half; 0: the default.
func NewLedger(halfLife time.Duration) *Ledger {
	if halfLife <= 0 {
		halfLife = DefaultHalfLife
	}
	return &Ledger{halfLife: halfLife, users: map[string]float64{}, accounts: map[string]float64{}, byLimit: map[int]*spans{},
		asks: map[string]*askCount{}}
}

// Add takes one ended attempt in.
func (l *Ledger) Add(u Used) {
	l.version++
	if l.origin.IsZero() {
		l.origin = u.Ended
	}
	used := float64(max(1, u.Cards)) * u.Ran.Seconds() * l.weight(u.Ended)
	l.users[u.User] += used
	l.accounts[u.Account] += used
	if u.Whole > 0 && u.Limit > 0 {
		b := limitBin(u.Limit)
		if l.byLimit[b] == nil {
			l.byLimit[b] = &spans{}
		}
		l.byLimit[b].add(u.Whole, u.Limit)
		l.all.add(u.Whole, u.Limit)
	}
}

// weight is how much use at a time counts beside use at the origin.
func (l *Ledger) weight(at time.Time) float64 {
	return math.Exp2(at.Sub(l.origin).Seconds() / l.halfLife.Seconds())
}

// UserUsage is the decayed GPU time of a user, in seconds as of now.
func (l *Ledger) UserUsage(user string, now time.Time) float64 { return l.users[user] / l.weight(now) }

// AccountUsage is the decayed GPU time of an account, in seconds as of now.
func (l *Ledger) AccountUsage(account string, now time.Time) float64 {
	return l.accounts[account] / l.weight(now)
}

// expecting is a question to [Ledger.Remaining].
type expecting struct{ limit, ran time.Duration }

// maxExpected bounds what is remembered: gangs that ran before have run for any time.
const maxExpected = 10000

// Remaining is how much longer a gang with a time limit that ran so long already is
// expected to run, as an order wants it: see [spans.index].
func (l *Ledger) Remaining(limit, ran time.Duration) time.Duration {
	if l == nil {
		return prior.index(nil, limit, ran)
	}
	if l.expectedAt != l.version || len(l.expected) >= maxExpected || l.expected == nil {
		if l.expected == nil {
			l.expected = map[expecting]time.Duration{}
		}
		clear(l.expected)
		l.expectedAt = l.version
	}
	q := expecting{limit, ran}
	d, known := l.expected[q]
	if !known {
		if s := l.byLimit[limitBin(limit)]; s != nil {
			d = s.index(&l.all, limit, ran)
		} else {
			d = l.all.index(nil, limit, ran)
		}
		l.expected[q] = d
	}
	return d
}

// Mean is how much longer such a gang runs on average.
func (l *Ledger) Mean(limit, ran time.Duration) time.Duration {
	if l == nil {
		return prior.mean(nil, limit, ran)
	}
	if s := l.byLimit[limitBin(limit)]; s != nil {
		return s.mean(&l.all, limit, ran)
	}
	return l.all.mean(nil, limit, ran)
}

// snapshot is a ledger of its own with the same contents, for a plan beside the one writer's.
func (l *Ledger) snapshot() *Ledger {
	if l == nil {
		return nil
	}
	c := *l
	c.users, c.accounts, c.byLimit = maps.Clone(l.users), maps.Clone(l.accounts), make(map[int]*spans, len(l.byLimit))
	for b, s := range l.byLimit {
		own := *s
		c.byLimit[b] = &own
	}
	c.expected, c.asks = nil, make(map[string]*askCount, len(l.asks))
	for shape, a := range l.asks {
		own := *a
		c.asks[shape] = &own
	}
	return &c
}

// limitBin puts limits of about the same length together: people choose round ones.
func limitBin(limit time.Duration) int { return bits.Len64(uint64(limit / time.Minute)) }

// spanBins is how finely parts of a limit are told apart: each bin is a factor of the
// square root of two, so that 24 of them reach down to 1/4096 of the limit.
const spanBins = 24

// spans counts what part of their limit gangs ran.
type spans struct {
	n    float64
	bins [spanBins]float64 // 0: nearly all of it
}

// spanEnds is where the bins end, and the last one begins, as parts of the limit.
var spanEnds = func() (ends [spanBins + 1]float64) {
	for i := range ends {
		ends[i] = math.Exp2(-float64(i) / 2)
	}
	return ends
}()

func spanBin(part float64) int {
	return min(spanBins-1, max(0, int(-2*math.Log2(max(part, 1e-9)))))
}

func (s *spans) add(ran, limit time.Duration) {
	s.bins[spanBin(ran.Seconds()/limit.Seconds())]++
	s.n++
}

// prior is what is believed before anything was seen: any order of magnitude down to a
// thousandth of the limit is as likely as another.
var prior = func() *spans {
	s := &spans{}
	for i := range 20 {
		s.bins[i] = 1
		s.n++
	}
	return s
}()

// priorWeight is how many jobs what is believed beforehand counts for.
const priorWeight = 10

// index is the least that must be spent for one end: over all times d for which the gang
// might be run on, the expected time spent over the chance that it ends by then. Serving
// the smallest first is what keeps waits short when only the distribution of run times is
// known (Gittins). With nothing run yet it is near the mean; for a gang that has outlived
// most of its kind it is long, however little its limit leaves.
func (s *spans) index(wider *spans, limit, ran time.Duration) time.Duration {
	lim, a := limit.Seconds(), ran.Seconds()
	var left [spanBins]float64 // chance of an end in the bin, after ran
	alive := 0.0
	for i := range spanBins {
		p := s.share(wider, i)
		end := lim * spanEnds[i]
		begin := lim * spanEnds[i+1]
		if end <= a {
			continue
		}
		if a > begin {
			p *= (end - a) / (end - begin)
		}
		left[i] = p
		alive += p
	}
	if alive <= 0 {
		return max(ran, limit) // past its limit: nobody knows
	}
	best := math.Inf(1)
	spent, ended := 0.0, 0.0
	for i := spanBins - 1; i >= 0; i-- {
		if left[i] == 0 {
			continue
		}
		end := lim * spanEnds[i]
		begin := max(a, lim*spanEnds[i+1])
		// Those that end here run half of the bin on average, the others all of it.
		spent += (end - begin) * (alive - ended - left[i]/2)
		ended += left[i]
		best = min(best, spent/ended)
	}
	return time.Duration(best * float64(time.Second))
}

// mean is the expected time to the end.
func (s *spans) mean(wider *spans, limit, ran time.Duration) time.Duration {
	lim, a := limit.Seconds(), ran.Seconds()
	alive, sum := 0.0, 0.0
	for i := range spanBins {
		begin, end := lim*spanEnds[i+1], lim*spanEnds[i]
		if end <= a {
			break
		}
		p := s.share(wider, i)
		if a > begin {
			p *= (end - a) / (end - begin)
		}
		alive += p
		sum += p * ((max(begin, a)+end)/2 - a)
	}
	if alive <= 0 {
		return max(ran, limit) // past its limit: nobody knows
	}
	return time.Duration(sum / alive * float64(time.Second))
}

// share is the chance of a bin: what was seen, mixed with what is seen of other limits and
// with the prior while that is little.
func (s *spans) share(wider *spans, i int) float64 {
	p := prior.bins[i] / prior.n
	if wider != nil {
		p = (wider.bins[i] + priorWeight*p) / (wider.n + priorWeight)
	}
	return (s.bins[i] + priorWeight*p) / (s.n + priorWeight)
}
