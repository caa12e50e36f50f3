package sched

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// genView is a cluster on which a first plan has run, and a queue.
func genView(t *rapid.T) *given.View {
	nodes := plantest.DrawNodes(t)
	before := plantest.DrawQueue(t, 1000, 4)
	for _, s := range Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: before}, &order.Policy{}).Starts {
		nodes = plantest.Apply(t, nodes, before.Get(s.Job), 1, s.Slots)
	}
	return &given.View{Nodes: nodes, Queue: plantest.DrawQueue(t, 1, 8)}
}

func find(q *order.Queue, job int64) *order.Candidate { return q.Get(job) }

func TestPlanIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		p := &order.Policy{BackfillDepth: rapid.IntRange(0, 3).Draw(t, "backfills"), MaxStarts: rapid.IntRange(0, 3).Draw(t, "max starts")}
		plan := Make(plantest.Epoch0, v, p)
		if again := Make(plantest.Epoch0, v, p); !reflect.DeepEqual(plan, again) {
			t.Fatalf("two plans of one view differ:\n%+v\n%+v", plan, again)
		}
		if p.MaxStarts > 0 && len(plan.Starts) > p.MaxStarts {
			t.Fatalf("%d starts, at most %d allowed", len(plan.Starts), p.MaxStarts)
		}
		nodes := v.Nodes
		for _, s := range plan.Starts {
			c := find(v.Queue, s.Job)
			checkPlaces(t, c, s.Slots, v.Nodes)
			nodes = plantest.Apply(t, nodes, c, 7, s.Slots)
		}
		if p.MaxStarts == 0 && len(plan.Starts)+len(plan.Reasons(v.Queue)) != v.Queue.Len() {
			t.Fatalf("%d waiting, %d start, %d have a reason", v.Queue.Len(), len(plan.Starts), len(plan.Reasons(v.Queue)))
		}
		for _, r := range plan.Reasons(v.Queue) {
			if r.Word == "" || r.Text == "" {
				t.Fatalf("empty reason %+v", r)
			}
		}
	})
}

// checkPlaces holds a placement against the spec, without the code that made it.
func checkPlaces(t *rapid.T, c *order.Candidate, slots []cluster.Slot, nodes []*cluster.Node) {
	s := c.Ask.Spec
	if len(slots) != s.Size {
		t.Fatalf("job %d: %d places for %d ranks", c.Job, len(slots), s.Size)
	}
	per := make(map[string]int)
	if s.Roles != nil {
		checkRolePlaces(t, c, slots, nodes)
		return
	}
	for i, slot := range slots {
		if i > 0 && slot.Node != slots[i-1].Node && per[slot.Node] > 0 {
			t.Fatalf("job %d: ranks of %s are not together: %v", c.Job, slot.Node, slots)
		}
		per[slot.Node]++
		if len(slot.Cards) != s.GPUsPerRank+s.GPUsPerNode {
			t.Fatalf("job %d rank %d: cards %v", c.Job, i, slot.Cards)
		}
		n := nodes[slices.IndexFunc(nodes, func(n *cluster.Node) bool { return n.Name == slot.Node })]
		if !n.Ready || slices.Contains(s.Exclude, n.Name) {
			t.Fatalf("job %d is placed on %s", c.Job, n.Name)
		}
	}
	checkFeaturesOf(t, c, per, nodes)
	if len(per) < s.MinNodes || s.MaxNodes > 0 && len(per) > s.MaxNodes {
		t.Fatalf("job %d: %d nodes, %d to %d asked for", c.Job, len(per), s.MinNodes, s.MaxNodes)
	}
	if r := s.RanksPerNode; r > 0 {
		short := 0
		for _, k := range per {
			if k > r {
				t.Fatalf("job %d: %d ranks on a node, %d asked for", c.Job, k, r)
			}
			if k < r {
				short++
			}
		}
		if short > 1 {
			t.Fatalf("job %d: %d nodes with less than %d ranks", c.Job, short, r)
		}
	}
}

// TestHeadIsPlacedWhenAnyPlacementExists compares with trying every distribution of
// ranks and Take as the judge.
func TestHeadIsPlacedWhenAnyPlacementExists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		c := v.Queue.Slice()[0]
		v.Queue = plantest.QueueOf(c)
		if c.Ask.Parts != nil {
			t.Skip("the parts of a gang with roles have a test of their own")
		}
		got := len(Make(plantest.Epoch0, v, &order.Policy{}).Starts) == 1
		if want := plantest.BruteForce(c, v.Nodes); got != want {
			t.Fatalf("started %t, brute force %t: %+v", got, want, *c.Ask.Spec)
		}
	})
}

// TestLowerGangsLeaveBackfillsAlone: with what was started on them, the places that are kept would
// still be enough for the taker once everything that ran before has ended.
func TestLowerGangsLeaveBackfillsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		plan := Make(plantest.Epoch0, v, &order.Policy{BackfillDepth: rapid.IntRange(1, 3).Draw(t, "backfills")})
		for i, claim := range plan.Backfills {
			c := find(v.Queue, claim.Job)
			nodes := make([]*cluster.Node, len(v.Nodes))
			for i, n := range v.Nodes {
				nodes[i] = n.Emptied()
			}
			for _, s := range plan.Starts {
				if o := find(v.Queue, s.Job); order.Less(c, o) {
					nodes = plantest.Apply(t, nodes, o, 7, s.Slots)
				}
			}
			for _, other := range plan.Backfills[:i+1] {
				nodes = plantest.Apply(t, nodes, find(v.Queue, other.Job), 8, other.Slots)
			}
		}
	})
}

// TestPutRunning: the list of what holds nodes stays in the order of jobs, and has each once.
func TestPutRunning(t *testing.T) {
	var list []*order.Running
	for _, put := range []struct {
		job  int64
		keep bool
		want []int64
	}{{5, true, []int64{5}}, {3, true, []int64{3, 5}}, {9, true, []int64{3, 5, 9}}, {5, true, []int64{3, 5, 9}}, {4, false, []int64{3, 5, 9}}, {3, false, []int64{5, 9}}} {
		var r *order.Running
		if put.keep {
			r = &order.Running{Job: put.job}
		}
		list = order.PutRunning(list, put.job, r)
		var got []int64
		for _, r := range list {
			got = append(got, r.Job)
		}
		if !slices.Equal(got, put.want) || r != nil && !slices.Contains(list, r) {
			t.Fatalf("job %d, %t: %v, want %v", put.job, put.keep, got, put.want)
		}
	}
}

// TestReasonOfWhatCameLater: a plan says nothing of who came after it.
func TestReasonOfWhatCameLater(t *testing.T) {
	q := plantest.QueueOf()
	plan := planned(t, plantest.Epoch0, &given.View{Nodes: plantest.Nodes(1, 1, 0, 0), Queue: q}, &order.Policy{})
	q.Insert(plantest.Candidate(1, api.Spec{Size: 9}))
	if r, told := plan.Reason(1, q.JobClass(1)); told {
		t.Errorf("%+v", r)
	}
}
