package kept

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// TestTimelineIsEveryEnd: whatever came, went and was stopped between plans, a plan goes
// through the ends that a look at all grants would find, in their order.
func TestTimelineIsEveryEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m plans
		nodes := plantest.Nodes(rapid.IntRange(1, 4).Draw(t, "nodes"), 8, 0, 0)
		var running []*order.Running
		minute := func(what string, low, high int) time.Time {
			return plantest.Epoch0.Add(time.Duration(rapid.IntRange(low, high).Draw(t, what)) * time.Minute)
		}
		job := int64(0)
		for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
			nodes = slices.Clone(nodes)
			if rapid.IntRange(0, 3).Draw(t, "joins") == 0 {
				nodes = append(nodes, plantest.Node(fmt.Sprintf("n%05d", len(nodes)+1), 8, 0, 0))
			}
			for range rapid.IntRange(0, 200).Draw(t, "changes") {
				at := rapid.IntRange(0, len(nodes)-1).Draw(t, "node")
				n := *nodes[at]
				switch held := len(n.Grants); {
				case rapid.IntRange(0, 20).Draw(t, "change") == 0:
					n.Ready = !n.Ready
				case held > 0 && rapid.IntRange(0, 2).Draw(t, "release") == 0:
					n = *n.Release(n.Grants[rapid.IntRange(0, held-1).Draw(t, "grant")].MemberKey)
				default:
					job++
					g := cluster.Grant{MemberKey: api.MemberKey{Job: job, Epoch: 1}}
					if rapid.IntRange(0, 3).Draw(t, "known") > 0 {
						g.Until = minute("until", 0, 20)
					}
					n = *n.Restore(g)
					running = append(running, &order.Running{Job: job, Epoch: 1})
				}
				nodes[at] = &n
			}
			for i, r := range running {
				if rapid.IntRange(0, 30).Draw(t, "stop") == 0 {
					stopped := *r
					stopped.Stopping, stopped.StopBy = true, minute("by", 0, 20)
					running[i] = &stopped
				}
			}
			pl := m.plan(plantest.Epoch0.Add(time.Duration(step)*time.Minute), &given.View{Nodes: nodes, Queue: plantest.QueueOf(), Running: running}, &order.Policy{})
			if nodes[0].Ready && rapid.Bool().Draw(t, "start") {
				c := plantest.Candidate(1000000, api.Spec{Size: 1})
				pl.Book(c, []cluster.Slot{{Node: nodes[0].Name}}, minute("end", 10, 30))
			}
			var got, want []ending
			for s := pl.ends.byEnd(); ; {
				e, more := s.next()
				if !more {
					break
				}
				got = append(got, e)
			}
			for at, n := range pl.Bare().Every() {
				for i := range n.Grants {
					if end := pl.ends.endOf(&n.Grants[i]); n.Ready && !end.IsZero() {
						want = append(want, endingOf(at, end, &n.Grants[i]))
					}
				}
			}
			slices.SortFunc(want, compareEnding)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("step %d:\n%v\nwant\n%v", step, got, want)
			}
		}
	})
}
