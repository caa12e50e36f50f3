package replay

import (
	"time"

	"gangd/pkg/cluster"
)

// meter integrates over the run what no job shows by itself.
type meter struct {
	cards    int
	busy     float64 // cards in use now
	busyArea float64 // card-seconds
	plans    int
	planTime time.Duration
	planMax  time.Duration
	preempts int
	lost     time.Duration
}

func (m *meter) begin(nodes []*cluster.Node) {
	for _, n := range nodes {
		m.cards += len(n.Cards)
	}
}

func (m *meter) pass(d time.Duration) {
	m.busyArea += m.busy * d.Seconds()
}

func (m *meter) node(before, after *cluster.Node) {
	m.busy += float64(used(after) - used(before))
}

func used(n *cluster.Node) int { return len(n.Cards) - n.OpenCards() }

func (m *meter) planned(d time.Duration) {
	m.plans++
	m.planTime += d
	m.planMax = max(m.planMax, d)
}

func (m *meter) preempted(time.Duration, int) { m.preempts++ }
