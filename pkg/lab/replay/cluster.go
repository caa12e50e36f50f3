package replay

import (
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// Partition is the one of every simulated node that names none.
const Partition = "main"

// Node is one machine of a simulated cluster.
type Node struct {
	Name       string
	CPUs       int
	Memory     int64
	Cards      int
	Model      string
	VRAM       int64 // of each card
	Features   []string
	Partitions []string // empty: [Partition]
}

// hello is what the daemon of the node would say when it connects.
func (n *Node) hello() gang.NodeHello {
	h := api.Hello{Protocol: api.SessionProtocol, Node: n.Name, BootID: "simulated", Address: n.Name, CPUs: n.CPUs,
		MemoryBytes: n.Memory, Features: n.Features}
	for i := range n.Cards {
		h.Cards = append(h.Cards, api.CardInfo{Index: i, UUID: fmt.Sprintf("%s-%d", n.Name, i), Model: n.Model, VRAMBytes: n.VRAM, NUMA: -1})
	}
	parts := n.Partitions
	if len(parts) == 0 {
		parts = []string{Partition}
	}
	return gang.NodeHello{Hello: h, Partitions: parts}
}

// Cluster is what a trace is played on.
type Cluster struct {
	Name  string
	Nodes []Node
}

// Cards is how many cards there are in all.
func (c *Cluster) Cards() int {
	sum := 0
	for i := range c.Nodes {
		sum += c.Nodes[i].Cards
	}
	return sum
}

// Uniform is a cluster of n equal nodes, n001 and so on.
func Uniform(n int, like Node) *Cluster {
	width := len(fmt.Sprint(n))
	c := &Cluster{Nodes: make([]Node, n)}
	for i := range c.Nodes {
		c.Nodes[i] = like
		c.Nodes[i].Name = fmt.Sprintf("n%0*d", width, i+1)
	}
	return c
}

// Costs are what the ideal node does not do for nothing.
type Costs struct {
	// Restart is how long a gang of so many cards works again after a preemption before
	// it makes progress; nil: not at all.
	Restart func(cards int) time.Duration
	// Lost is how much of the work done is done again after a preemption.
	Lost time.Duration
}

// RestartOfTraces is the rule of the published experiments: 7 s for one card, 30 s on one
// node, 60 s for more.
func RestartOfTraces(cards int) time.Duration {
	switch {
	case cards <= 1:
		return 7 * time.Second
	case cards <= 8:
		return 30 * time.Second
	}
	return time.Minute
}
