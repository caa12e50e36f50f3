package sched

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// benchQueue is waiting gangs of so many different asks.
func benchQueue(waiting, shapes int) []*order.Candidate {
	specs := make([]*api.Spec, shapes)
	for i := range specs {
		specs[i] = &api.Spec{Size: 1 + i%64, CPUsPerRank: 1 + i%7, GPUsPerRank: 1 + i%8, VRAMBytes: int64(i%5) * 16 * plantest.GiB,
			MemoryPerRank: int64(i) << 20}
	}
	queue := make([]*order.Candidate, waiting)
	for i := range queue {
		s := specs[i%shapes]
		queue[i] = &order.Candidate{Job: int64(i + 1), Submit: plantest.Epoch0, Terms: &order.Terms{Priority: int64(waiting - i), Size: s.Size, Ask: cluster.AskOf(s, []string{"gpu"})}}
	}
	return queue
}

// fill gives all cards of the nodes away, but those for which keep is true.
func fill(nodes []*cluster.Node, keep func(node, card int) bool) {
	for i, n := range nodes {
		for j := range n.Cards {
			if keep == nil || !keep(i, j) {
				n = n.Restore(cluster.Grant{MemberKey: api.MemberKey{Job: int64(1e6 + i*64 + j), Epoch: 1}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 1},
					Cards: []cluster.CardGrant{{UUID: n.Cards[j].UUID, Exclusive: true}}})
			}
		}
		nodes[i] = n
	}
}

func benchMake(b *testing.B, v *given.View, p *order.Policy, starts int) {
	b.ReportAllocs()
	for b.Loop() {
		plan := Make(plantest.Epoch0, v, p)
		if len(plan.Starts) != starts {
			b.Fatalf("%d starts, want %d", len(plan.Starts), starts)
		}
		v.Backfills = plan.Backfills // as the engine does
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/plan")
}

func BenchmarkFullCluster(b *testing.B) {
	nodes := plantest.Nodes(10000, 64, 8, 80)
	fill(nodes, nil)
	benchMake(b, &given.View{Nodes: nodes, Queue: plantest.QueueOf(benchQueue(100000, 500)...)}, &order.Policy{}, 0)
}

// One card in 40 free: every ask looks at a quarter of the nodes, the large ones in vain.
func BenchmarkFragmentedCluster(b *testing.B) {
	nodes := plantest.Nodes(10000, 64, 8, 80)
	fill(nodes, func(n, c int) bool { return (n*8+c)%40 == 0 })
	queue := benchQueue(100000, 500)
	for _, c := range queue {
		s := *c.Ask.Spec
		s.GPUsPerRank = max(2, s.GPUsPerRank)
		c.Ask = cluster.AskOf(&s, c.Ask.Partitions)
	}
	benchMake(b, &given.View{Nodes: nodes, Queue: plantest.QueueOf(queue...)}, &order.Policy{}, 0)
}

func BenchmarkOneStart(b *testing.B) {
	nodes := plantest.Nodes(4, 16, 8, 80)
	fill(nodes, func(n, c int) bool { return n == 2 && c == 5 })
	for _, waiting := range []int{1, 5000} {
		b.Run(fmt.Sprint(waiting), func(b *testing.B) {
			queue := make([]*order.Candidate, waiting)
			ask := cluster.AskOf(&api.Spec{Size: 1, GPUsPerRank: 1}, []string{"gpu"})
			for i := range queue {
				queue[i] = &order.Candidate{Job: int64(i + 1), Submit: plantest.Epoch0.Add(time.Duration(i)), Terms: &order.Terms{Size: 1, Ask: ask}}
			}
			benchMake(b, &given.View{Nodes: nodes, Queue: plantest.QueueOf(queue...)}, &order.Policy{}, 1)
		})
	}
}

// A hundred gangs of 1 to 64 ranks start on a large, empty cluster.
func BenchmarkHundredStarts(b *testing.B) {
	nodes := plantest.Nodes(10000, 64, 8, 80)
	benchMake(b, &given.View{Nodes: nodes, Queue: plantest.QueueOf(benchQueue(100000, 500)...)}, &order.Policy{MaxStarts: 100}, 100)
}

func BenchmarkQueueChange(b *testing.B) {
	var q order.Queue
	for _, c := range benchQueue(100000, 500) {
		q.Insert(c)
	}
	c := q.Slice()[50000]
	for b.Loop() {
		q.Remove(c.Job)
		q.Insert(c)
	}
}

// BenchmarkQueueClone is what a question to the engine costs those that wait for it.
func BenchmarkQueueClone(b *testing.B) {
	q := plantest.QueueOf(benchQueue(100000, 500)...)
	b.ReportAllocs()
	for b.Loop() {
		q.Clone()
	}
}

// BenchmarkOneGang: on a full cluster a gang ends and the plan gives its place to another (out);
// then one more is submitted (in). Medians, and the CPU time of the thread that plans: on a
// busy machine the clock runs on while others do.
func BenchmarkOneGang(b *testing.B) {
	for name, limits := range map[string]bool{"no limits": false, "time limits": true} {
		b.Run(name, func(b *testing.B) {
			benchOneGang(b, &order.Policy{MaxStarts: 100, BackfillDepth: 8}, benchSite(limits, 500))
		})
		b.Run("10,000 shapes, "+name, func(b *testing.B) {
			benchOneGang(b, &order.Policy{MaxStarts: 100, BackfillDepth: 8}, benchSite(limits, 10000))
		})
	}
	// All of them have waited four times their time limits, beside 10,000 that run.
	b.Run("overdue", func(b *testing.B) {
		p, v := &order.Policy{MaxStarts: 100, BackfillDepth: 8, GuardAfter: 300 * time.Hour}, benchSite(true, 500)
		q := order.NewQueue(p, nil)
		for _, c := range v.Queue.Slice() {
			own := *c
			own.Submit = plantest.Epoch0.Add(-200 * time.Hour)
			q.Insert(&own)
		}
		v.Queue = q
		for i := range 10000 {
			v.Running = append(v.Running, &order.Running{Job: int64(2e6 + i), Cards: 8, TimeLimit: 24 * time.Hour, Submit: plantest.Epoch0.Add(-time.Hour), Start: plantest.Epoch0})
		}
		benchOneGang(b, p, v)
	})
}

// benchSite is a full cluster and a long queue of so many different asks, all with time limits or none.
func benchSite(limits bool, shapes int) *given.View {
	nodes := plantest.Nodes(10000, 64, 8, 80)
	fill(nodes, nil)
	queue := benchQueue(100000, shapes)
	if limits {
		for i, n := range nodes {
			for j := range n.Grants {
				n.Grants[j].Until = plantest.Epoch0.Add(time.Duration((i*8+j)*7919%80000) * time.Second)
			}
		}
		for i, c := range queue {
			c.TimeLimit = time.Duration(1+i%5) * 6 * time.Hour
		}
	}
	return &given.View{Nodes: nodes, Queue: plantest.QueueOf(queue...)}
}

// BenchmarkNewBackfill: one of eight backfills is made anew.
func BenchmarkNewBackfill(b *testing.B) {
	for name, limits := range map[string]bool{"no limits": false, "time limits": true} {
		b.Run(name, func(b *testing.B) {
			p, v := &order.Policy{MaxStarts: 100, BackfillDepth: 8}, benchSite(limits, 500)
			var planner Planner
			v.Backfills = planner.Make(plantest.Epoch0, v, p).Backfills
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				v.Backfills = slices.Delete(slices.Clone(v.Backfills), i%8, i%8+1)
				v.Backfills = planner.Make(plantest.Epoch0, v, p).Backfills
			}
		})
	}
}

// BenchmarkFirstPlan is the plan after a start of the program, which remembers nothing.
func BenchmarkFirstPlan(b *testing.B) {
	for name, limits := range map[string]bool{"no limits": false, "time limits": true} {
		for _, shapes := range []int{500, 10000} {
			b.Run(fmt.Sprintf("%d shapes, %s", shapes, name), func(b *testing.B) {
				p, v := &order.Policy{MaxStarts: 100, BackfillDepth: 8}, benchSite(limits, shapes)
				b.ReportAllocs()
				for b.Loop() {
					Make(plantest.Epoch0, v, p)
				}
			})
		}
	}
}

// BenchmarkFill: an empty cluster is filled from the queue, with plans of a hundred starts each as the engine makes
// them. One card each, and gangs of 1 to 64 ranks.
func BenchmarkFill(b *testing.B) {
	one := benchQueue(100000, 500)
	for i, c := range one {
		s := *c.Ask.Spec
		s.Size, s.GPUsPerRank, s.CPUsPerRank, s.MemoryPerRank = 1, 1, 1, int64(i%500)<<20
		c.Size, c.Ask = 1, cluster.AskOf(&s, c.Ask.Partitions)
	}
	for name, queue := range map[string][]*order.Candidate{"one card": one, "mixed": benchQueue(100000, 500)} {
		b.Run(name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				p, v := &order.Policy{MaxStarts: 100, BackfillDepth: 8}, &given.View{Nodes: plantest.Nodes(10000, 64, 8, 80), Queue: plantest.QueueOf(queue...)}
				var planner Planner
				var all, longest time.Duration
				starts, ranks := 0, 0
				for {
					cpu := threadTime(b)
					plan := planner.Make(plantest.Epoch0, v, p)
					took := threadTime(b) - cpu
					all, longest = all+took, max(longest, took)
					v.Backfills = plan.Backfills
					if len(plan.Starts) == 0 {
						break
					}
					take(v, plan.Starts)
					for _, s := range plan.Starts {
						starts, ranks = starts+1, ranks+len(s.Slots)
						v.Queue.Remove(s.Job)
					}
				}
				b.ReportMetric(float64(starts), "gangs")
				b.ReportMetric(float64(ranks), "ranks")
				b.ReportMetric(float64(all.Milliseconds()), "ms/planning")
				b.ReportMetric(float64(longest.Microseconds())/1000, "ms/longest")
			}
		})
	}
}

// take books what starts on the nodes of a view.
func take(v *given.View, starts []Start) {
	for _, s := range starts {
		c := v.Queue.Get(s.Job)
		for _, g := range grantsBySlots(c, s.Slots, 1, plantest.Epoch0.Add(c.TimeLimit)) {
			i, _ := slices.BinarySearchFunc(v.Nodes, g.node, func(n *cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
			if c.TimeLimit == 0 {
				g.Until = time.Time{}
			}
			v.Nodes[i] = v.Nodes[i].Restore(g.Grant)
		}
	}
}

func benchOneGang(b *testing.B, p *order.Policy, v *given.View) {
	nodes := v.Nodes
	var planner Planner
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	make1 := func() (Plan, spent) {
		cpu, begin := threadTime(b), time.Now()
		plan := planner.Make(plantest.Epoch0, v, p)
		took := spent{time.Since(begin), threadTime(b) - cpu}
		v.Backfills = plan.Backfills
		return plan, took
	}
	make1()
	var out, in []spent
	job, at := int64(v.Queue.Len()), 0
	b.ReportAllocs()
	for b.Loop() {
		at = (at + 7919) % len(nodes)
		v.Nodes[at] = v.Nodes[at].Release(v.Nodes[at].Grants[at%8].MemberKey)
		plan, took := make1()
		out = append(out, took)
		take(v, plan.Starts)
		for _, s := range plan.Starts {
			c := v.Queue.Get(s.Job)
			v.Queue.Remove(s.Job)
			again := c.Apart()
			job++
			again.Job, again.Priority = job, job*7919%100000
			v.Queue.Insert(again)
		}
		_, took = make1()
		in = append(in, took)
	}
	for name, all := range map[string][]spent{"out": out, "in": in} {
		at := func(q int, by func(spent) time.Duration) float64 {
			slices.SortFunc(all, func(a, b spent) int { return cmp.Compare(by(a), by(b)) })
			return float64(by(all[len(all)*q/100]).Nanoseconds()) / 1000
		}
		b.ReportMetric(at(50, func(s spent) time.Duration { return s.wall }), "us/"+name)
		b.ReportMetric(at(50, func(s spent) time.Duration { return s.cpu }), "us/"+name+"-cpu")
		b.ReportMetric(at(99, func(s spent) time.Duration { return s.cpu }), "us/"+name+"-cpu-p99")
	}
}

// spent is what one plan took.
type spent struct{ wall, cpu time.Duration }

// threadTime is the CPU time of the calling thread so far.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}

// BenchmarkPreemption: 500 full nodes, a gang of 250 ranks with 8 cards each.
func BenchmarkPreemption(b *testing.B) {
	for name, per := range map[string]int{"whole-node victims": 8, "single-card victims": 1} {
		b.Run(name, func(b *testing.B) {
			nodes := plantest.Nodes(500, 64, 8, 80)
			var running []*order.Running
			for at := range nodes {
				for card := 0; card < 8; card += per {
					var cards []int
					for k := range per {
						cards = append(cards, card+k)
					}
					job := int64(1e6 + at*8 + card)
					running = append(running, plantest.Ran(nodes, job, int(job*7919%600), map[int][]int{at: cards}))
				}
			}
			c := plantest.Candidate(1, api.Spec{Size: 250, GPUsPerRank: 8})
			c.Priority = 5
			p := &order.Policy{Preempt: order.PreemptTier, BackfillDepth: 4}
			v := &given.View{Nodes: nodes, Queue: plantest.QueueOf(c), Running: running}
			b.ReportAllocs()
			for b.Loop() {
				if plan := Make(plantest.Epoch0, v, p); len(plan.Stops) != 2000/per {
					b.Fatalf("%d are stopped", len(plan.Stops))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "us/plan")
		})
	}
}
