package replay

import (
	"time"

	"gangd/pkg/core/cluster"
)

// samples bounds the points of a series: more can't be told apart in a plot.
const samples = 2000

// Sample is the cluster at one moment of a run.
type Sample struct {
	At      time.Duration
	Busy    int // cards in use
	Broken  int // free cards on nodes that something else is on
	Waiting int // jobs
}

// meter integrates over the run what no job shows by itself.
type meter struct {
	cards      int
	busy       int     // cards in use now
	broken     int     // free cards on nodes in use now
	busyArea   float64 // card-seconds
	brokenArea float64
	freeArea   float64
	plans      int
	planTime   time.Duration
	planMax    time.Duration
	preempts   int
	lost       float64 // card-seconds of work done twice
	every      time.Duration
	series     []Sample
}

func (m *meter) begin(nodes []*cluster.Node) {
	for _, n := range nodes {
		m.cards += len(n.Cards)
	}
	m.every = time.Second
}

// pass takes in that nothing changed since the last call for d, until at.
func (m *meter) pass(at, d time.Duration, waiting int) {
	m.busyArea += float64(m.busy) * d.Seconds()
	m.brokenArea += float64(m.broken) * d.Seconds()
	m.freeArea += float64(m.cards-m.busy) * d.Seconds()
	if n := len(m.series); n > 0 && at-d < m.series[n-1].At+m.every {
		return
	}
	m.series = append(m.series, Sample{At: at - d, Busy: m.busy, Broken: m.broken, Waiting: waiting})
	if len(m.series) > 2*samples {
		m.thin()
	}
}

// thin keeps every other sample and takes them half as often from now on.
func (m *meter) thin() {
	for i := range m.series[:len(m.series)/2] {
		m.series[i] = m.series[2*i]
	}
	m.series = m.series[:len(m.series)/2]
	m.every = max(2*m.every, m.series[len(m.series)-1].At/samples)
}

func (m *meter) node(before, after *cluster.Node) {
	was, wasBroken := use(before)
	is, isBroken := use(after)
	m.busy += is - was
	m.broken += isBroken - wasBroken
}

// use counts the cards in use on a node, and the free ones beside them.
func use(n *cluster.Node) (busy, broken int) {
	free := n.OpenCards()
	busy = len(n.Cards) - free
	if len(n.Grants) > 0 {
		broken = free
	}
	return busy, broken
}

func (m *meter) planned(d time.Duration) {
	m.plans++
	m.planTime += d
	m.planMax = max(m.planMax, d)
}

func (m *meter) preempted(worked, lost time.Duration, cards int) {
	m.preempts++
	m.lost += min(worked, lost).Seconds() * float64(cards)
}
