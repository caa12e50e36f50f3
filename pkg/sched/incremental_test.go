package sched

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// TestPlansRememberNothingThatMatters: a planner that has made many plans decides as one
// that has made none, whatever came and went between them.
func TestPlansRememberNothingThatMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Policy{Order: rapid.SampledFrom(Orders).Draw(t, "order"), Claims: rapid.IntRange(1, 3).Draw(t, "claims"),
			MaxStarts: rapid.IntRange(0, 2).Draw(t, "max")}
		nodes := genNodes(t)
		v := &View{Nodes: nodes, Queue: NewQueue(p, nil)}
		var old Planner
		held := make(map[int64]bool)
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			now := epoch0.Add(time.Duration(step) * time.Minute)
			c := genCandidate(t, int64(100+step))
			c.TimeLimit = time.Duration(rapid.IntRange(0, 3).Draw(t, "limit")) * 10 * time.Minute
			v.Queue.Insert(c)
			for job := range held {
				if job%3 == int64(step%3) {
					delete(held, job)
					next := append([]*cluster.Node(nil), v.Nodes...)
					for i, n := range next {
						next[i] = n.Release(api.MemberKey{Job: job, Epoch: 1})
					}
					v.Nodes = next
				}
			}
			if at := rapid.IntRange(0, len(nodes)*3).Draw(t, "node"); at < len(nodes) {
				n := *v.Nodes[at]
				n.Ready = !n.Ready
				n.Away = !n.Ready && rapid.Bool().Draw(t, "away")
				next := append([]*cluster.Node(nil), v.Nodes...)
				next[at] = &n
				v.Nodes = next
			}
			plan, fresh := old.Make(now, v, p), Make(now, v, p)
			if !reflect.DeepEqual(plan.Starts, fresh.Starts) || !reflect.DeepEqual(plan.Claims, fresh.Claims) ||
				!reflect.DeepEqual(plan.Reasons(v.Queue), fresh.Reasons(v.Queue)) {
				t.Fatalf("step %d: with a memory\n%+v %+v %+v\nwithout\n%+v %+v %+v", step, plan.Starts, plan.Claims, plan.Reasons(v.Queue),
					fresh.Starts, fresh.Claims, fresh.Reasons(v.Queue))
			}
			v.Claims = plan.Claims
			for _, s := range plan.Starts {
				v.Nodes = apply(t, v.Nodes, v.Queue.Get(s.Job), 1, s.Slots)
				v.Queue.Remove(s.Job)
				held[s.Job] = true
			}
		}
	})
}
