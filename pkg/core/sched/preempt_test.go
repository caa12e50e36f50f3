package sched

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

func told(p Plan) string {
	var out []string
	for _, s := range p.Stops {
		out = append(out, fmt.Sprintf("%d>%d", s.Job, s.For))
	}
	return fmt.Sprint(out)
}

func TestPreemption(t *testing.T) {
	tier, spareDone := &order.Policy{Preempt: order.PreemptTier}, &order.Policy{Preempt: order.PreemptTier, ProtectDone: true}
	lends := &order.Policy{Accounts: []order.Account{{Name: "own", Quota: 4}, {Name: "other", Quota: 4}}}
	type place = map[int][]int
	for _, tt := range []struct {
		name    string
		policy  *order.Policy
		running func(n []*cluster.Node) []*order.Running
		taker   api.Spec
		want    string
	}{
		{"free cards count first", tier, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1}}), plantest.Ran(n, 2, 60, place{1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[1>9]"},
		{"nobody for what fits", tier, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1}})}
		}, api.Spec{Size: 4, GPUsPerRank: 1}, "[]"},
		{"the least lost work", tier, func(n []*cluster.Node) []*order.Running {
			saved := plantest.Ran(n, 2, 600, place{1: {0, 1, 2, 3}})
			saved.Saved = plantest.Epoch0.Add(-time.Minute)
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}}), saved}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[2>9]"},
		{"whoever hands over loses none", tier, func(n []*cluster.Node) []*order.Running {
			keeps := plantest.Ran(n, 2, 600, place{1: {0, 1, 2, 3}})
			keeps.KeepsWork = true
			return []*order.Running{plantest.Ran(n, 1, 1, place{0: {0, 1, 2, 3}}), keeps}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[2>9]"},
		{"no more than needed", tier, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{plantest.Ran(n, 1, 1, place{0: {0}}), plantest.Ran(n, 2, 2, place{0: {1}}), plantest.Ran(n, 3, 3, place{0: {2, 3}}), plantest.Ran(n, 4, 900, place{1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 2, GPUsPerRank: 1, MaxNodes: 1}, "[1>9 2>9]"},
		{"who turns out not to be needed stays", spareDone, func(n []*cluster.Node) []*order.Running {
			done := plantest.Ran(n, 3, 60, place{1: {0, 1, 2, 3}})
			done.Done = true
			return []*order.Running{plantest.Ran(n, 1, 1, place{0: {0}}), plantest.Ran(n, 2, 10, place{0: {1, 2, 3}}), done}
		}, api.Spec{Size: 1, GPUsPerRank: 3}, "[2>9]"},
		{"a whole gang, wherever it is", tier, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"not for the sake of a part", spareDone, func(n []*cluster.Node) []*order.Running {
			done := plantest.Ran(n, 2, 60, place{1: {0}})
			done.Done = true
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}}), done}
		}, api.Spec{Size: 2, GPUsPerRank: 4}, "[]"},
		{"not within its minimum run", &order.Policy{Preempt: order.PreemptTier, MinRun: 61 * time.Minute}, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"nor its own one", tier, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.MinRun = 61 * time.Minute
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"its own one for no longer than the site allows", &order.Policy{Preempt: order.PreemptTier, MaxMinRun: time.Hour}, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.MinRun = 240 * time.Hour
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"a done rank protects nobody", tier, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Done, r.Final = true, true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"but where the site says so", spareDone, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Done, r.Final = true, true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"who may not run again too", tier, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Final = true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"after its equals", tier, func(n []*cluster.Node) []*order.Running {
			a, b, c := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}}), plantest.Ran(n, 2, 60, place{1: {0, 1}}), plantest.Ran(n, 3, 60, place{1: {2, 3}})
			a.Final, c.Final = true, true
			return []*order.Running{a, b, c}
		}, api.Spec{Size: 2, GPUsPerRank: 1, MaxNodes: 1}, "[2>9]"},
		{"its checkpoint saves it nothing", tier, func(n []*cluster.Node) []*order.Running {
			saved := plantest.Ran(n, 2, 600, place{1: {0, 1, 2, 3}})
			saved.Saved, saved.KeepsWork, saved.Final = plantest.Epoch0.Add(-time.Minute), true, true
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}}), saved}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[1>9]"},
		{"not for one of its own tier", &order.Policy{Preempt: order.PreemptService}, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Priority, r.TimeLimit, r.KeepsWork, r.Final = 5, 1000*time.Hour, true, true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1, TimeLimit: time.Hour}, "[]"},
		{"not of the same tier", tier, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Priority = 5
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"nor who is only nice", tier, func(n []*cluster.Node) []*order.Running {
			r := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Priority, r.Nice = 1, 4
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"off", &order.Policy{Preempt: order.PreemptOff}, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"whom a wider one makes needless, but not all of them", tier, func(n []*cluster.Node) []*order.Running {
			other := plantest.Ran(n, 4, 60, place{0: {3}})
			other.Priority = 5
			return []*order.Running{plantest.Ran(n, 1, 60, place{0: {0}}), plantest.Ran(n, 2, 30, place{0: {1}}), plantest.Ran(n, 3, 90, place{0: {2}, 1: {0, 1, 2, 3}}), other}
		}, api.Spec{Size: 6, GPUsPerRank: 1}, "[2>9 3>9]"},
		{"roles of whom the cheapest is in nobody's way", tier, func(n []*cluster.Node) []*order.Running {
			other := plantest.Ran(n, 4, 60, place{0: {1, 2, 3}})
			other.Priority = 5
			return []*order.Running{plantest.Ran(n, 1, 1, place{0: {0}}), plantest.Ran(n, 2, 90, place{1: {0, 1, 2, 3}}), other}
		}, api.Spec{Size: 2, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, GPUsPerRank: 2}, {Name: "b", Count: 1, CPUsPerRank: 1, GPUsPerRank: 2}}}, "[2>9]"},
		{"an account takes back what it lent", lends, func(n []*cluster.Node) []*order.Running {
			a, b := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}}), plantest.Ran(n, 2, 30, place{1: {0, 1, 2, 3}})
			a.Account, b.Account = "other", "other"
			return []*order.Running{a, b}
		}, api.Spec{Size: 4, GPUsPerRank: 1}, "[2>9]"},
		{"from who may not run again too", lends, func(n []*cluster.Node) []*order.Running {
			a, b := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}}), plantest.Ran(n, 2, 60, place{1: {0, 1, 2, 3}})
			a.Account, b.Account, a.Final, b.Final = "other", "other", true, true
			return []*order.Running{a, b}
		}, api.Spec{Size: 4, GPUsPerRank: 1}, "[1>9]"},
		{"but no more than that", lends, func(n []*cluster.Node) []*order.Running {
			a, b := plantest.Ran(n, 1, 60, place{0: {0, 1, 2, 3}}), plantest.Ran(n, 2, 30, place{1: {0, 1, 2, 3}})
			a.Account, b.Account = "other", "other"
			return []*order.Running{a, b}
		}, api.Spec{Size: 5, GPUsPerRank: 1}, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := []*cluster.Node{plantest.Node("n1", 32, 4, 80), plantest.Node("n2", 32, 4, 80)}
			c := plantest.Candidate(9, tt.taker)
			c.Priority, c.Account, c.TimeLimit = 5, "own", tt.taker.TimeLimit
			plan := planned(t, plantest.Epoch0, &given.View{Running: tt.running(nodes), Nodes: nodes, Queue: plantest.QueueOf(c)}, tt.policy)
			if got := told(plan); got != tt.want {
				t.Errorf("told %s, want %s", got, tt.want)
			}
		})
	}
}

// TestWhyNamesTheProtected: who waits learns who could make room but need not, by what, and
// until when; who is not protected, is not below it, is being stopped, or holds nothing that it could have, is not named.
func TestWhyNamesTheProtected(t *testing.T) {
	type place = map[int][]int
	nodes := []*cluster.Node{plantest.Node("n1", 32, 6, 80), plantest.Node("n2", 32, 4, 80), plantest.Node("n3", 32, 4, 80)}
	nodes[2].Partitions = []string{"other"}
	elsewhere, stopping := plantest.Ran(nodes, 5, 20, place{2: {0}}), plantest.Ran(nodes, 6, 20, place{0: {4, 5}})
	stopping.Stopping, stopping.StopBy = true, plantest.Epoch0.Add(time.Hour)
	own, site, done, equal := plantest.Ran(nodes, 1, 60, place{0: {0, 1}}), plantest.Ran(nodes, 2, 20, place{0: {2, 3}}), plantest.Ran(nodes, 3, 40, place{1: {0, 1}}), plantest.Ran(nodes, 4, 20, place{1: {2, 3}})
	own.MinRun, equal.Priority = 2*time.Hour, 5
	done.Done, done.Final, done.TimeLimit = true, true, 2*time.Hour
	c := plantest.Candidate(9, api.Spec{Size: 2, GPUsPerRank: 4})
	c.Priority = 5
	v := &given.View{Running: []*order.Running{own, site, done, equal, elsewhere, stopping}, Nodes: nodes, Queue: plantest.QueueOf(c)}
	p := &order.Policy{Preempt: order.PreemptTier, MinRun: 30 * time.Minute, MaxMinRun: 3 * time.Hour, ProtectDone: true}
	at := func(d time.Duration) string { return when.Clock(plantest.Epoch0, plantest.Epoch0.Add(d)) }
	want := "could make room, but protected: job 1 until " + at(time.Hour) + " (its --min-run), job 2 until " + at(10*time.Minute) +
		" (the least run of the site), job 3 until it ends, at the latest at " + at(80*time.Minute) + " (a rank is done)"
	if got := Explain(plantest.Epoch0, v, p, 9).Text; !slices.Contains(strings.Split(got, "\n"), want) {
		t.Errorf("why:\n%s\nlacks: %s", got, want)
	}
	p.Preempt = order.PreemptOff
	if got := Explain(plantest.Epoch0, v, p, 9).Text; strings.Contains(got, "protected") {
		t.Errorf("without preemption:\n%s", got)
	}
}

// TestMove follows one move: victims with a shorter notice are told later, the places are
// nobody else's meanwhile, and the rest is called off when the taker goes.
func TestMove(t *testing.T) {
	nodes := []*cluster.Node{plantest.Node("n1", 32, 4, 80)}
	long, short := plantest.Ran(nodes, 1, 10, map[int][]int{0: {0, 1}}), plantest.Ran(nodes, 2, 10, map[int][]int{0: {2}})
	long.Lead, long.KeepsWork, short.KeepsWork = time.Minute, true, true
	p := &order.Policy{Preempt: order.PreemptTier}
	taker := plantest.Candidate(9, api.Spec{Size: 4, GPUsPerRank: 1})
	taker.Priority, taker.TimeLimit = 5, 10*time.Hour
	shorter := plantest.Lasting(11, 1, 1)
	shorter.Priority = 5
	v := &given.View{Nodes: nodes, Running: []*order.Running{long, short}, Queue: plantest.QueueOf(taker, plantest.Lasting(10, 1, 1))}
	plan := planned(t, plantest.Epoch0, v, p)
	if got := told(plan) + started(plan); got != "[1>9][]" || !plan.Next.Equal(plantest.Epoch0.Add(time.Minute)) {
		t.Fatalf("at first %s, next %s", got, plan.Next)
	}
	stopping := *long
	stopping.Stopping, stopping.StopBy = true, plantest.Epoch0.Add(2*time.Minute)
	v.Running, v.Backfills = []*order.Running{&stopping, short}, plan.Backfills
	v.Queue.Insert(shorter)
	if plan = planned(t, plantest.Epoch0.Add(30*time.Second), v, p); told(plan) != "[]" || len(plan.Backfills) != 1 || len(plan.Starts) != 0 {
		t.Fatalf("half way: told %s, backfills %+v, starts %s", told(plan), plan.Backfills, started(plan))
	}
	v.Backfills = plan.Backfills
	later := plantest.Epoch0.Add(time.Minute)
	if plan = planned(t, later, v, p); told(plan) != "[2>9]" {
		t.Fatalf("after the notice: told %s", told(plan))
	}
	v.Queue = plantest.QueueOf(plantest.Lasting(10, 1, 1))
	if plan = planned(t, later, v, p); told(plan) != "[]" || len(plan.Backfills) != 0 || started(plan) != "[10@n1]" {
		t.Fatalf("the taker is gone: told %s, backfills %+v, starts %s", told(plan), plan.Backfills, started(plan))
	}
}

// TestNobodyIsPreemptedInVain: whatever runs and waits, each move lets its whole taker
// start, needs each of its victims, and has none that may not be one.
func TestNobodyIsPreemptedInVain(t *testing.T) {
	moves := 0
	rapid.Check(t, func(t *rapid.T) {
		// Unequal nodes and asks half of the time; else such as mostly fit, so that there is
		// often somebody to be preempted.
		plain := rapid.Bool().Draw(t, "plain")
		nodes, before := plantest.DrawNodes(t), plantest.DrawQueue(t, 1000, 8)
		ask := func(job int64) *order.Candidate {
			if !plain {
				return plantest.DrawCandidate(t, job)
			}
			return plantest.Candidate(job, api.Spec{Size: rapid.IntRange(1, 6).Draw(t, "ranks"), GPUsPerRank: rapid.IntRange(1, 2).Draw(t, "cards")})
		}
		if plain {
			nodes, before = plantest.Nodes(rapid.IntRange(2, 4).Draw(t, "nodes"), 16, 4, 80), new(order.Queue)
			for i := range 8 {
				before.Insert(ask(int64(1000 + i)))
			}
		}
		var running []*order.Running
		for _, s := range Make(plantest.Epoch0, &given.View{Nodes: nodes, Queue: before}, &order.Policy{}).Starts {
			c := before.Get(s.Job)
			nodes = plantest.Apply(t, nodes, c, 1, s.Slots)
			running = append(running, &order.Running{Job: s.Job, Epoch: 1, Priority: c.Priority, Cards: order.CardsOf(c.Ask), Submit: c.Submit,
				Start: plantest.Epoch0.Add(-time.Duration(rapid.IntRange(0, 30).Draw(t, "ran")) * time.Minute), TimeLimit: time.Hour,
				KeepsWork: rapid.Bool().Draw(t, "keeps"), Ending: order.Ending{Done: rapid.IntRange(0, 5).Draw(t, "done") == 0,
					Final: rapid.IntRange(0, 5).Draw(t, "final") == 0, Lead: time.Duration(rapid.IntRange(0, 1).Draw(t, "lead")) * time.Minute}})
		}
		slices.SortFunc(running, func(a, b *order.Running) int { return int(a.Job - b.Job) })
		p := &order.Policy{Preempt: rapid.SampledFrom(order.Preempts).Draw(t, "preempt"), MinRun: 5 * time.Minute, ProtectDone: rapid.Bool().Draw(t, "protect done")}
		q := order.NewQueue(p, nil)
		for i := range rapid.IntRange(1, 5).Draw(t, "waiting") {
			c := ask(int64(i + 1))
			c.Priority += rapid.Int64Range(0, 2).Draw(t, "more")
			c.TimeLimit = time.Duration(rapid.IntRange(0, 90).Draw(t, "limit")) * time.Minute
			q.Insert(c)
		}
		v := &given.View{Nodes: nodes, Queue: q, Running: running}
		plan := Make(plantest.Epoch0, v, p)
		if again := Make(plantest.Epoch0, v, p); !reflect.DeepEqual(plan.Starts, again.Starts) || !reflect.DeepEqual(plan.Backfills, again.Backfills) || !reflect.DeepEqual(plan.Stops, again.Stops) {
			t.Fatal("two plans of one view differ")
		}
		checkMoves(t, v, p, plan)
		moves += len(plan.Stops)
	})
	if moves == 0 && !testing.Short() { // a short run draws a fifth
		t.Error("nobody was ever preempted")
	}
}

// besideBackfills is nodes with the plain backfills of all but one job on them: who is behind one
// may have to make room beside it where there was room enough without.
func besideBackfills(nodes []*cluster.Node, q *order.Queue, backfills []given.Backfill, but int64) []*cluster.Node {
	out := slices.Clone(nodes)
	for _, k := range backfills {
		if k.Job == but || len(k.Victims) > 0 {
			continue
		}
		by := plantest.GrantsBy(q.Get(k.Job), given.EpochBackfill, k.Slots, time.Time{})
		for i, n := range out {
			if g, here := by[n.Name]; here {
				out[i] = n.Restore(g)
			}
		}
	}
	return out
}

func checkMoves(t *rapid.T, v *given.View, p *order.Policy, plan Plan) {
	for _, s := range plan.Starts {
		v.Nodes = plantest.Apply(t, v.Nodes, v.Queue.Get(s.Job), 7, s.Slots)
	}
	seen := make(map[int64]bool)
	for _, k := range plan.Backfills {
		c := v.Queue.Get(k.Job)
		gone := func(but int64) []*cluster.Node {
			nodes := slices.Clone(v.Nodes)
			for _, x := range k.Victims {
				for i, n := range nodes {
					if x.Job != but {
						nodes[i] = n.Release(api.MemberKey{Job: x.Job, Epoch: x.Epoch})
					}
				}
			}
			return nodes
		}
		if len(k.Victims) > 0 {
			plantest.Apply(t, gone(0), c, 8, k.Slots)
		}
		for _, x := range k.Victims {
			r := v.Running[slices.IndexFunc(v.Running, func(r *order.Running) bool { return r.Job == x.Job })]
			same := r.Priority == c.Priority && p.Preempt == order.PreemptService && r.KeepsWork && !r.Final
			switch {
			case seen[x.Job]:
				t.Fatalf("job %d makes room twice", x.Job)
			case r.Done && p.ProtectDone || r.Stopping || plantest.Epoch0.Sub(r.Start) < p.MinRun:
				t.Fatalf("job %d may not be preempted: %+v", x.Job, r)
			case r.Priority >= c.Priority && !same:
				t.Fatalf("job %d of priority %d for job %d of %d", x.Job, r.Priority, c.Job, c.Priority)
			case fitsOn(besideBackfills(gone(x.Job), v.Queue, plan.Backfills, k.Job), c, k.Slots):
				t.Fatalf("job %d need not go for %+v", x.Job, k)
			}
			seen[x.Job] = true
		}
	}
	for _, s := range plan.Stops {
		if !seen[s.Job] {
			t.Fatalf("job %d is stopped outside of any move", s.Job)
		}
	}
}

func fitsOn(nodes []*cluster.Node, c *order.Candidate, slots []cluster.Slot) (fits bool) {
	defer func() { _ = recover() }()
	plantest.Apply(refuser{}, nodes, c, 8, slots)
	return true
}

// refuser ends apply where a node refuses.
type refuser struct{}

func (refuser) Fatalf(string, ...any) { panic("refused") }
