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

// BenchmarkOneGangOut: on a full cluster a gang ends and the plan gives its place to
// another; BenchmarkOneGangIn: one more is submitted.
func BenchmarkOneGangOut(b *testing.B) {
	nodes := testNodes(10000, 64, 8, 80)
	fill(nodes, nil)
	p := &Policy{MaxStarts: 100, Claims: 4}
	v := &View{Nodes: nodes, Queue: queueOf(benchQueue(100000, 500)...)}
	var planner Planner
	v.Claims = planner.Make(epoch0, v, p).Claims
	b.ReportAllocs()
	at := 0
	for b.Loop() {
		at = (at + 7919) % len(nodes)
		full := v.Nodes[at]
		v.Nodes[at] = full.Release(full.Grants[0].MemberKey)
		plan := planner.Make(epoch0, v, p)
		v.Claims, v.Nodes[at] = plan.Claims, full
		planner.Make(epoch0, v, p)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/2, "us/plan")
}

func BenchmarkOneGangIn(b *testing.B) {
	nodes := testNodes(10000, 64, 8, 80)
	fill(nodes, nil)
	p := &Policy{MaxStarts: 100, Claims: 4}
	list := benchQueue(100000, 500)
	v := &View{Nodes: nodes, Queue: queueOf(list...)}
	var planner Planner
	v.Claims = planner.Make(epoch0, v, p).Claims
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i = (i + 7919) % len(list)
		v.Queue.Remove(list[i].Job)
		v.Queue.Insert(list[i])
		v.Claims = planner.Make(epoch0, v, p).Claims
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/plan")
}

// BenchmarkPreemption: 500 full nodes, a gang of 250 ranks with 8 cards each.
func BenchmarkPreemption(b *testing.B) {
	for name, per := range map[string]int{"whole-node victims": 8, "single-card victims": 1} {
		b.Run(name, func(b *testing.B) {
			nodes := testNodes(500, 64, 8, 80)
			var running []*Running
			for at := range nodes {
				for card := 0; card < 8; card += per {
					var cards []int
					for k := range per {
						cards = append(cards, card+k)
					}
					job := int64(1e6 + at*8 + card)
					running = append(running, ran(nodes, job, int(job*7919%600), map[int][]int{at: cards}))
				}
			}
			c := candidate(1, api.Spec{Size: 250, GPUsPerRank: 8})
			c.Priority = 5
			p := &Policy{Preempt: PreemptTier, Claims: 4}
			v := &View{Nodes: nodes, Queue: queueOf(c), Running: running}
			b.ReportAllocs()
			for b.Loop() {
				if plan := Make(epoch0, v, p); len(plan.Stops) != 2000/per {
					b.Fatalf("%d are stopped", len(plan.Stops))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/plan")
		})
	}
}
