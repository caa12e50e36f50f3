package order

import (
	"math"
	"math/bits"
	"time"
)

// limitBin puts limits of about the same length together: people choose round ones.
func limitBin(limit time.Duration) int { return bits.Len64(uint64(limit / time.Minute)) }

// spanBins is how finely parts of a limit are told apart: each bin is a factor of the
// square root of two, so that 24 of them reach down to 1/4096 of the limit. Where there is none
// there are more: see openBins. The bins that a limit does not use are empty.
const spanBins = 24

// spanEnds is where the bins end, and the last one begins, as parts of the limit.
var spanEnds = func() (ends [openBins + 1]float64) {
	for i := range openBins {
		ends[i] = math.Exp2(-float64(i) / 2)
	}
	return ends // the last one reaches down to nothing
}()

func spanBin(part float64, bins int) int {
	return min(bins-1, max(0, int(-2*math.Log2(max(part, 1e-9)))))
}

// spans counts what part of their limit gangs ran: by bin how many were seen in it, and how
// many of these ended there. A gang that is stopped and goes on later was seen without an end.
// Counting ends alone would make all look short for as long as the long ones are sent back
// for shorter ones, which is when it matters.
type spans struct {
	ends, seen [openBins]float64 // 0: nearly all of the limit
}

// add takes in that a gang ran from one part of its limit to another. One that is stopped
// within a bin counts there for the part of it that it went through.
func (s *spans) add(from, to, limit time.Duration, bins int, ended bool) {
	a, z := from.Seconds()/limit.Seconds(), to.Seconds()/limit.Seconds()
	last := spanBin(z, bins)
	for i := bins - 1; i >= last; i-- {
		begin, end := spanEnds[i+1], spanEnds[i]
		if i == bins-1 {
			begin = 0
		}
		until := min(end, z)
		if i == last && ended {
			until = end
		}
		s.seen[i] += max(0, until-max(a, begin)) / (end - begin)
	}
	if ended {
		s.ends[last]++
	}
}

// chances is by bin how likely a gang ends there that comes to it.
type chances struct {
	p    [openBins]float64
	bins int // the last one reaches down to nothing
}

// begin is where a bin begins.
func (c *chances) begin(bin int) float64 {
	if bin == c.bins-1 {
		return 0
	}
	return spanEnds[bin+1]
}

// prior is what is believed before anything was seen: any order of magnitude down to a
// thousandth of the limit is as likely as another.
var prior = func() (c chances) {
	c.bins = spanBins
	for i := range 20 {
		c.p[i] = 1 / float64(i+1)
	}
	return c
}()

// priorWeight is how many gangs what is believed beforehand counts for.
const priorWeight = 10

// chances mixes what was seen with a few gangs that do as was believed before: of these, as
// many are in a bin as come to it. Steady, there are as many in each bin: where gangs are sent
// back few are seen far along, and one end more or less must not move all that wait. By its
// limit a gang has ended.
func (s *spans) chances(before *chances, steady bool) (c chances) {
	believed := float64(priorWeight)
	c.bins = before.bins
	for i := c.bins - 1; i > 0; i-- {
		c.p[i] = before.p[i]
		if n := s.seen[i] + believed; n > 0 {
			c.p[i] = (s.ends[i] + believed*before.p[i]) / n
		}
		if !steady {
			believed *= 1 - before.p[i]
		}
	}
	c.p[0] = 1
	return c
}

// left is the chance of an end in each bin for a gang that ran for a part of its limit; in
// the bin that it is in, ends are as likely at any time. All are 0 for one past its limit.
func (c *chances) left(ran float64) (left [openBins]float64) {
	alive := 1.0
	for i := c.bins - 1; i >= 0; i-- {
		begin, end := c.begin(i), spanEnds[i]
		if end <= ran {
			continue
		}
		p := c.p[i]
		if ran > begin {
			f := (end - ran) / (end - begin)
			p = p * f / (1 - p*(1-f))
		}
		left[i] = alive * p
		alive -= left[i]
	}
	return left
}

// index is the least that must be spent for one end: over all times d for which the gang
// might be run on, the expected time spent over the chance that it ends by then. Serving
// the smallest first is what keeps waits short when only the distribution of run times is
// known (Gittins). With nothing run yet it is near the mean; for a gang that has outlived
// most of its class it is long, however little its limit leaves.
func (c *chances) index(limit, ran time.Duration) time.Duration {
	lim := limit.Seconds()
	a := ran.Seconds() / lim
	if a >= 1 {
		return max(ran, limit) // past its limit: nobody knows
	}
	left := c.left(a)
	best := math.Inf(1)
	spent, ended := 0.0, 0.0
	for i := c.bins - 1; i >= 0; i-- {
		if left[i] == 0 {
			continue
		}
		begin, end := max(a, c.begin(i)), spanEnds[i]
		// Those that end here run half of the bin on average, the others all of it.
		spent += (end - begin) * (1 - ended - left[i]/2)
		ended += left[i]
		best = min(best, spent/ended)
	}
	return time.Duration(best * lim * float64(time.Second))
}

// mean is the expected time to the end.
func (c *chances) mean(limit, ran time.Duration) time.Duration {
	lim := limit.Seconds()
	a := ran.Seconds() / lim
	if a >= 1 {
		return max(ran, limit) // past its limit: nobody knows
	}
	sum := 0.0
	for i, p := range c.left(a) {
		sum += p * ((max(a, c.begin(i))+spanEnds[i])/2 - a)
	}
	return time.Duration(sum * lim * float64(time.Second))
}
