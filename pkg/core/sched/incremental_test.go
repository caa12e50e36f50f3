package sched

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/lab/plantest"
)

// TestPlansRememberNothingThatMatters: a planner that has made many plans decides as one
// that has made none, whatever came and went between them, and gives the same reasons.
func TestPlansRememberNothingThatMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newPast(t)
		var old Planner
		for step := range rapid.IntRange(1, 16).Draw(t, "steps") {
			h.step()
			plan, fresh := old.Make(h.now, &h.view, h.policy), Make(h.now, &h.view, h.policy)
			had, want := wholeOf(&plan, h), wholeOf(&fresh, h)
			if !reflect.DeepEqual(had, want) {
				t.Fatalf("step %d: with a memory\n%+v\nwithout\n%+v", step, had, want)
			}
			h.take(plan)
		}
	})
}

// TestCapacityIsLookedAtAgain: whether a gang would fit on empty nodes is known until one of them offers something else.
func TestCapacityIsLookedAtAgain(t *testing.T) {
	full := plantest.Node("n1", 4, 0, 0).Restore(cluster.Grant{MemberKey: api.MemberKey{Job: 7, Epoch: 1}, Ranks: 4, Takes: cluster.Amounts{cluster.CPUs: 4}})
	for name, x := range map[string]struct {
		spec   api.Spec
		offers func(n *cluster.Node) // what the gang needs
	}{
		"CPUs":                    {api.Spec{Size: 5}, func(n *cluster.Node) { n.Has[cluster.CPUs] = 5 }},
		"memory":                  {api.Spec{Size: 1, MemoryPerNode: 300 * plantest.GiB}, func(n *cluster.Node) { n.Has[cluster.Memory] = 300 * plantest.GiB }},
		"temporary space":         {api.Spec{Size: 1, TmpPerNode: 20 * plantest.GiB}, func(n *cluster.Node) { n.Has[cluster.Tmp] = 20 * plantest.GiB }},
		"temporary space of each": {api.Spec{Size: 1}, func(n *cluster.Node) { n.Each[cluster.Tmp] = 16 * plantest.GiB }},
		"features":                {api.Spec{Size: 1, Constraint: "ib"}, func(n *cluster.Node) { n.Features = []string{"ib"} }},
	} {
		lacks, has := *full, *full
		x.offers(&has)
		if name == "temporary space of each" {
			lacks.Each[cluster.Tmp] = 17 * plantest.GiB
		}
		v := &given.View{Queue: plantest.QueueOf(plantest.Candidate(8, x.spec))}
		away := plantest.Node("n2", 64, 0, 0) // would hold all of them, and is out of service
		away.Ready, away.Has[cluster.Tmp], away.Has[cluster.Memory], away.Features = false, 64*plantest.GiB, 512*plantest.GiB, []string{"ib"}
		var m Planner
		for i, n := range []*cluster.Node{&lacks, &has, &lacks} {
			v.Nodes = []*cluster.Node{n, away}
			plan := m.Make(plantest.Epoch0, v, &order.Policy{})
			r, _ := plan.Reason(8, v.Queue.JobClass(8))
			if fits := r.Word == given.WordResources; fits != (i == 1) {
				t.Errorf("%s, look %d: %+v", name, i+1, r)
			}
		}
	}
}

// TestHopelessIsWhatAVisitFinds: a planner that visits also those that it could tell to be hopeless, and looks at each end
// for a backfill, decides the same and gives the same reasons. What it remembers of earlier plans changes nothing either.
func TestHopelessIsWhatAVisitFinds(t *testing.T) {
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newPast(t)
		h.policy.Preempt, h.policy.UserCards, h.policy.Switches, h.policy.GuardAfter = "", 0, nil, 0
		h.policy.BackfillDepth = rapid.IntRange(1, 2).Draw(t, "depth")
		fast := new(Planner)
		for step := range rapid.IntRange(4, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 6).Draw(t, "more") {
				h.submit()
			}
			h.step()
			h.view.Reservations = nil
			all := &Planner{kept: kept.Memory{VisitsAll: true}}
			plan, slow := fast.Make(h.now, &h.view, h.policy), all.Make(h.now, &h.view, h.policy)
			if had, want := wholeOf(&plan, h), wholeOf(&slow, h); !reflect.DeepEqual(had, want) {
				t.Fatalf("step %d: %+v\nall visited: %+v", step, had, want)
			}
			h.take(plan)
		}
		told += fast.told
	})
	if told < 50 && !testing.Short() { // a short run draws a fifth
		t.Errorf("only %d gangs were told to be hopeless", told)
	}
}

// whole is all of a plan that anybody sees.
type whole struct {
	Plan    Plan
	Reasons []why.Reason
}

func wholeOf(p *Plan, h *past) whole {
	seen := *p
	seen.verdicts = nil
	return whole{seen, p.Reasons(h.view.Queue)}
}

// TestWhoStartedIsNotHopeless: a taker that started before its turn, for gangs ahead of it need less, is not given as the one that
// others like it stand behind.
func TestWhoStartedIsNotHopeless(t *testing.T) {
	p := &order.Policy{BackfillDepth: 2}
	n1, n2 := plantest.Run(plantest.Node("n1", 32, 4, 80), 90, 60, 0, 1, 2, 3), plantest.Node("n2", 32, 1, 80)
	q := plantest.QueueOf(plantest.Lasting(1, 4, 1), plantest.Lasting(3, 1, 600))
	v := &given.View{Nodes: []*cluster.Node{n1, plantest.Run(n2, 91, 60, 0)}, Queue: q}
	v.Backfills = planned(t, plantest.Epoch0, v, p).Backfills
	q.Insert(plantest.Lasting(2, 2, 60))
	q.Insert(plantest.Lasting(4, 1, 600))
	v.Nodes[1] = n2
	plan := planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1})
	if got := started(plan); got != "[3@n2]" {
		t.Fatalf("starts %s", got)
	}
	if r, _ := plan.Reason(4, q.JobClass(4)); r.Word != given.WordResources || r.Text != "room for 0 of 1 rank now, each needs 1 card and 1 CPU" {
		t.Errorf("%+v", r)
	}
}
