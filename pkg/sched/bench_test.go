package sched

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// benchQueue is waiting gangs of so many different asks.
func benchQueue(waiting, shapes int) []*Candidate {
	specs := make([]*api.Spec, shapes)
	for i := range specs {
		specs[i] = &api.Spec{Size: 1 + i%64, CPUsPerRank: 1 + i%7, GPUsPerRank: 1 + i%8, VRAMBytes: int64(i%5) * 16 * gib,
			MemoryPerRank: int64(i) << 20}
	}
	queue := make([]*Candidate, waiting)
	for i := range queue {
		s := specs[i%shapes]
		queue[i] = &Candidate{Job: int64(i + 1), Priority: int64(waiting - i), Size: s.Size, Submit: epoch0,
			Ask: cluster.AskOf(s, []string{"gpu"})}
	}
	return queue
}

// fill gives all cards of the nodes away, but those for which keep is true.
func fill(nodes []*cluster.Node, keep func(node, card int) bool) {
	for i, n := range nodes {
		for j := range n.Cards {
			if keep == nil || !keep(i, j) {
				n = n.Restore(cluster.Grant{MemberKey: api.MemberKey{Job: int64(1e6 + i*64 + j), Epoch: 1}, Ranks: 1, CPUs: 1,
					Cards: []cluster.CardGrant{{UUID: n.Cards[j].UUID, Exclusive: true}}})
			}
		}
		nodes[i] = n
	}
}

func benchMake(b *testing.B, v *View, p *Policy, starts int) {
	b.ReportAllocs()
	for b.Loop() {
		plan := Make(epoch0, v, p)
		if len(plan.Starts) != starts {
			b.Fatalf("%d starts, want %d", len(plan.Starts), starts)
		}
		v.Claims = plan.Claims // as the engine does
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/plan")
}

func BenchmarkFullCluster(b *testing.B) {
	nodes := testNodes(10000, 64, 8, 80)
	fill(nodes, nil)
	benchMake(b, &View{Nodes: nodes, Queue: queueOf(benchQueue(100000, 500)...)}, &Policy{}, 0)
}

// One card in 40 free: every ask looks at a quarter of the nodes, the large ones in vain.
func BenchmarkFragmentedCluster(b *testing.B) {
	nodes := testNodes(10000, 64, 8, 80)
	fill(nodes, func(n, c int) bool { return (n*8+c)%40 == 0 })
	queue := benchQueue(100000, 500)
	for _, c := range queue {
		s := *c.Ask.Spec
		s.GPUsPerRank = max(2, s.GPUsPerRank)
		c.Ask = cluster.AskOf(&s, c.Ask.Partitions)
	}
	benchMake(b, &View{Nodes: nodes, Queue: queueOf(queue...)}, &Policy{}, 0)
}

func BenchmarkOneStart(b *testing.B) {
	nodes := testNodes(4, 16, 8, 80)
	fill(nodes, func(n, c int) bool { return n == 2 && c == 5 })
	for _, waiting := range []int{1, 5000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			queue := make([]*Candidate, waiting)
			ask := cluster.AskOf(&api.Spec{Size: 1, GPUsPerRank: 1}, []string{"gpu"})
			for i := range queue {
				queue[i] = &Candidate{Job: int64(i + 1), Size: 1, Submit: epoch0.Add(time.Duration(i)), Ask: ask}
			}
			benchMake(b, &View{Nodes: nodes, Queue: queueOf(queue...)}, &Policy{}, 1)
		})
	}
}

// A hundred gangs of 1 to 64 ranks start on a large, empty cluster.
func BenchmarkHundredStarts(b *testing.B) {
	nodes := testNodes(10000, 64, 8, 80)
	benchMake(b, &View{Nodes: nodes, Queue: queueOf(benchQueue(100000, 500)...)}, &Policy{MaxStarts: 100}, 100)
}

func BenchmarkQueueChange(b *testing.B) {
	var q Queue
	for _, c := range benchQueue(100000, 500) {
		q.Insert(c)
	}
	c := q.Slice()[50000]
	for b.Loop() {
		q.Remove(c.Job)
		q.Insert(c)
	}
}
