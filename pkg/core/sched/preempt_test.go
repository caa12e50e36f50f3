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
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// ran makes a running gang that holds cards of nodes since some minutes before plantest.Epoch0.
func ran(nodes []*cluster.Node, job int64, minutes int, places map[int][]int) *order.Running {
	r := &order.Running{Job: job, Epoch: 1, Start: plantest.Epoch0.Add(-time.Duration(minutes) * time.Minute), Submit: plantest.Epoch0.Add(-time.Duration(minutes) * time.Minute)}
	for at, cards := range places {
		nodes[at] = plantest.Run(nodes[at], job, 0, cards...)
		r.Cards += len(cards)
	}
	return r
}

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
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1}}), ran(n, 2, 60, place{1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[1>9]"},
		{"nobody for what fits", tier, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1}})}
		}, api.Spec{Size: 4, GPUsPerRank: 1}, "[]"},
		{"the least lost work", tier, func(n []*cluster.Node) []*order.Running {
			saved := ran(n, 2, 600, place{1: {0, 1, 2, 3}})
			saved.Saved = plantest.Epoch0.Add(-time.Minute)
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1, 2, 3}}), saved}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[2>9]"},
		{"whoever hands over loses none", tier, func(n []*cluster.Node) []*order.Running {
			keeps := ran(n, 2, 600, place{1: {0, 1, 2, 3}})
			keeps.KeepsWork = true
			return []*order.Running{ran(n, 1, 1, place{0: {0, 1, 2, 3}}), keeps}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[2>9]"},
		{"no more than needed", tier, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{ran(n, 1, 1, place{0: {0}}), ran(n, 2, 2, place{0: {1}}), ran(n, 3, 3, place{0: {2, 3}}), ran(n, 4, 900, place{1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 2, GPUsPerRank: 1, MaxNodes: 1}, "[1>9 2>9]"},
		{"who turns out not to be needed stays", spareDone, func(n []*cluster.Node) []*order.Running {
			done := ran(n, 3, 60, place{1: {0, 1, 2, 3}})
			done.Done = true
			return []*order.Running{ran(n, 1, 1, place{0: {0}}), ran(n, 2, 10, place{0: {1, 2, 3}}), done}
		}, api.Spec{Size: 1, GPUsPerRank: 3}, "[2>9]"},
		{"a whole gang, wherever it is", tier, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"not for the sake of a part", spareDone, func(n []*cluster.Node) []*order.Running {
			done := ran(n, 2, 60, place{1: {0}})
			done.Done = true
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1, 2, 3}}), done}
		}, api.Spec{Size: 2, GPUsPerRank: 4}, "[]"},
		{"not within its minimum run", &order.Policy{Preempt: order.PreemptTier, MinRun: 61 * time.Minute}, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"nor its own one", tier, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.MinRun = 61 * time.Minute
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"its own one for no longer than the site allows", &order.Policy{Preempt: order.PreemptTier, MaxMinRun: time.Hour}, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.MinRun = 240 * time.Hour
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"a done rank protects nobody", tier, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Done, r.Final = true, true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"but where the site says so", spareDone, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Done, r.Final = true, true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"who may not run again too", tier, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Final = true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[1>9]"},
		{"after its equals", tier, func(n []*cluster.Node) []*order.Running {
			a, b, c := ran(n, 1, 60, place{0: {0, 1, 2, 3}}), ran(n, 2, 60, place{1: {0, 1}}), ran(n, 3, 60, place{1: {2, 3}})
			a.Final, c.Final = true, true
			return []*order.Running{a, b, c}
		}, api.Spec{Size: 2, GPUsPerRank: 1, MaxNodes: 1}, "[2>9]"},
		{"its checkpoint saves it nothing", tier, func(n []*cluster.Node) []*order.Running {
			saved := ran(n, 2, 600, place{1: {0, 1, 2, 3}})
			saved.Saved, saved.KeepsWork, saved.Final = plantest.Epoch0.Add(-time.Minute), true, true
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1, 2, 3}}), saved}
		}, api.Spec{Size: 4, GPUsPerRank: 1, MaxNodes: 1}, "[1>9]"},
		{"not for one of its own tier", &order.Policy{Preempt: order.PreemptService}, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Priority, r.TimeLimit, r.KeepsWork, r.Final = 5, 1000*time.Hour, true, true
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1, TimeLimit: time.Hour}, "[]"},
		{"not of the same tier", tier, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Priority = 5
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"nor who is only nice", tier, func(n []*cluster.Node) []*order.Running {
			r := ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})
			r.Priority, r.Nice = 1, 4
			return []*order.Running{r}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"off", &order.Policy{Preempt: order.PreemptOff}, func(n []*cluster.Node) []*order.Running {
			return []*order.Running{ran(n, 1, 60, place{0: {0, 1, 2, 3}, 1: {0, 1, 2, 3}})}
		}, api.Spec{Size: 1, GPUsPerRank: 1}, "[]"},
		{"whom a wider one makes needless, but not all of them", tier, func(n []*cluster.Node) []*order.Running {
			other := ran(n, 4, 60, place{0: {3}})
			other.Priority = 5
			return []*order.Running{ran(n, 1, 60, place{0: {0}}), ran(n, 2, 30, place{0: {1}}), ran(n, 3, 90, place{0: {2}, 1: {0, 1, 2, 3}}), other}
		}, api.Spec{Size: 6, GPUsPerRank: 1}, "[2>9 3>9]"},
		{"roles of whom the cheapest is in nobody's way", tier, func(n []*cluster.Node) []*order.Running {
			other := ran(n, 4, 60, place{0: {1, 2, 3}})
			other.Priority = 5
			return []*order.Running{ran(n, 1, 1, place{0: {0}}), ran(n, 2, 90, place{1: {0, 1, 2, 3}}), other}
		}, api.Spec{Size: 2, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1, GPUsPerRank: 2}, {Name: "b", Count: 1, CPUsPerRank: 1, GPUsPerRank: 2}}}, "[2>9]"},
		{"an account takes back what it lent", lends, func(n []*cluster.Node) []*order.Running {
			a, b := ran(n, 1, 60, place{0: {0, 1, 2, 3}}), ran(n, 2, 30, place{1: {0, 1, 2, 3}})
			a.Account, b.Account = "other", "other"
			return []*order.Running{a, b}
		}, api.Spec{Size: 4, GPUsPerRank: 1}, "[2>9]"},
		{"from who may not run again too", lends, func(n []*cluster.Node) []*order.Running {
			a, b := ran(n, 1, 60, place{0: {0, 1, 2, 3}}), ran(n, 2, 60, place{1: {0, 1, 2, 3}})
			a.Account, b.Account, a.Final, b.Final = "other", "other", true, true
			return []*order.Running{a, b}
		}, api.Spec{Size: 4, GPUsPerRank: 1}, "[1>9]"},
		{"but no more than that", lends, func(n []*cluster.Node) []*order.Running {
			a, b := ran(n, 1, 60, place{0: {0, 1, 2, 3}}), ran(n, 2, 30, place{1: {0, 1, 2, 3}})
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
	elsewhere, stopping := ran(nodes, 5, 20, place{2: {0}}), ran(nodes, 6, 20, place{0: {4, 5}})
	stopping.Stopping, stopping.StopBy = true, plantest.Epoch0.Add(time.Hour)
	own, site, done, equal := ran(nodes, 1, 60, place{0: {0, 1}}), ran(nodes, 2, 20, place{0: {2, 3}}), ran(nodes, 3, 40, place{1: {0, 1}}), ran(nodes, 4, 20, place{1: {2, 3}})
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
	long, short := ran(nodes, 1, 10, map[int][]int{0: {0, 1}}), ran(nodes, 2, 10, map[int][]int{0: {2}})
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
				KeepsWork: rapid.Bool().Draw(t, "keeps"), Done: rapid.IntRange(0, 5).Draw(t, "done") == 0,
				Final: rapid.IntRange(0, 5).Draw(t, "final") == 0, Lead: time.Duration(rapid.IntRange(0, 1).Draw(t, "lead")) * time.Minute})
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

// A place costs the cards' work that its victims lose, a minute for each of them so that of
// equal ones the fewest go, and another for who would not run again; and no more victims than
// the ranks there need.
func TestPriceOfAPlace(t *testing.T) {
	nodes := []*cluster.Node{plantest.Node("n1", 32, 4, 80), plantest.Node("n2", 32, 4, 80)}
	victim := func(job int64, lost time.Duration, places map[int][]int) *victimCandidate {
		v := &victimCandidate{Running: ran(nodes, job, 60, places), lost: lost}
		for at := range places {
			v.at = append(v.at, at)
		}
		return v
	}
	half, other := victim(1, 10*time.Minute, map[int][]int{0: {0, 1}}), victim(2, 20*time.Minute, map[int][]int{0: {2, 3}})
	wide := victim(3, 10*time.Minute, map[int][]int{1: {0, 1, 2, 3}})
	wide.at = []int{0, 1} // of a gang on two nodes
	c := plantest.Candidate(9, api.Spec{Size: 4, GPUsPerRank: 1})
	pl := new(Planner).planner(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(c)}, &order.Policy{})
	sh := pl.fit.ClassOf(c.Ask)
	mv := &mover{d: sh.Need, base: pl.kept.Bare(), on: map[int][]*victimCandidate{0: {half, other}, 1: {wide}}}
	for _, tt := range []struct {
		at, ranks int
		want      int64
	}{{0, 0, 0}, {0, 1, 600*2 + 60}, {0, 2, 600*2 + 60}, {0, 3, 600*2 + 60 + 1200*2 + 60}, {1, 4, 600*4/2 + 60}} {
		if got := mv.price(tt.at, tt.ranks); got != tt.want {
			t.Errorf("%d ranks on node %d cost %d, want %d", tt.ranks, tt.at, got, tt.want)
		}
	}
	half.Final = true
	if got := mv.price(0, 1); got != 600*2+120 {
		t.Errorf("of who may not run again: %d", got)
	}
}

// TestLostWork: what a gang did since its last checkpoint, all of it where it does not run again.
func TestLostWork(t *testing.T) {
	hour := func(h int) time.Time { return plantest.Epoch0.Add(time.Duration(h-10) * time.Hour) }
	for _, tt := range []struct {
		r    order.Running
		want int
	}{
		{order.Running{}, 0},
		{order.Running{KeepsWork: true, Attained: time.Hour}, 0},
		{order.Running{Start: hour(4)}, 6},
		{order.Running{Start: hour(4), Attained: time.Hour}, 6},
		{order.Running{Start: hour(4), KeepsWork: true}, 0},
		{order.Running{Start: hour(4), KeepsWork: true, Final: true, Attained: time.Hour}, 7},
		{order.Running{Start: hour(4), Final: true, Saved: hour(9)}, 6},
		{order.Running{Start: hour(4), Saved: hour(9)}, 1},
		{order.Running{Start: hour(4), Saved: hour(3)}, 6},
		{order.Running{Final: true, Attained: time.Hour}, 0},
	} {
		if got := (&victims{Facts: &given.Facts{Now: hour(10)}}).lost(&tt.r); got != time.Duration(tt.want)*time.Hour {
			t.Errorf("%s: %v, want %d hours", printer.Value(tt.r), got, tt.want)
		}
	}
}

// TestMayTake: of whom a gang may take the place, one below, at and above each bound.
func TestMayTake(t *testing.T) {
	mine := []order.Account{{Name: "own", Quota: 4}, {Name: "other", Quota: 1}, {Name: "none"}}
	holds := &order.Running{Job: 2, Account: "other", Cards: 2}
	for _, tt := range []struct {
		name    string
		p       order.Policy
		c       order.Terms
		r       order.Running
		left    float64
		service float64
		want    bool
	}{
		{"off", order.Policy{}, order.Terms{Tier: 2}, order.Running{}, 10, 1, false},
		{"a higher tier", order.Policy{Preempt: order.PreemptTier}, order.Terms{Tier: 1}, order.Running{}, 0, 0, true},
		{"a higher tier by service", order.Policy{Preempt: order.PreemptService}, order.Terms{Tier: 1}, order.Running{Priority: 9}, 0, 0, true},
		{"a lower tier", order.Policy{Preempt: order.PreemptService}, order.Terms{Priority: 9}, order.Running{Tier: 1, KeepsWork: true}, 10, 1, false},
		{"a higher priority", order.Policy{Preempt: order.PreemptTier}, order.Terms{Priority: 1}, order.Running{}, 0, 0, true},
		{"a lower priority", order.Policy{Preempt: order.PreemptTier}, order.Terms{}, order.Running{Priority: 1}, 0, 0, false},
		{"it is nicer", order.Policy{Preempt: order.PreemptTier}, order.Terms{Priority: 2, Nice: 3}, order.Running{Priority: 4}, 0, 0, true},
		{"only the other is nice", order.Policy{Preempt: order.PreemptTier}, order.Terms{Priority: 4}, order.Running{Priority: 1, Nice: 3}, 0, 0, false},
		{"equals by tier", order.Policy{Preempt: order.PreemptTier}, order.Terms{}, order.Running{KeepsWork: true}, 10, 1, false},
		{"needs much less", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true}, 12, 10, true},
		{"needs little less", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true}, 11.9, 10, false},
		{"as little as the site says", order.Policy{Preempt: order.PreemptService, Hysteresis: 1}, order.Terms{}, order.Running{KeepsWork: true}, 10, 10, true},
		{"and no less", order.Policy{Preempt: order.PreemptService, Hysteresis: 3}, order.Terms{}, order.Running{KeepsWork: true}, 29, 10, false},
		{"it is not known what it needs", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true}, 12, 0, false},
		{"the other would lose its work", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{}, 12, 1, false},
		{"the other would not run again", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true, Final: true}, 12, 1, false},
		{"the other had its turn", order.Policy{Preempt: order.PreemptService}, order.Terms{}, order.Running{KeepsWork: true, Turn: order.TurnOwn}, 12, 1, false},
		{"the other had waited", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, order.Terms{}, order.Running{KeepsWork: true, Submit: plantest.Epoch0, Start: plantest.Epoch0.Add(time.Hour)}, 12, 1, false},
		{"not for long", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, order.Terms{}, order.Running{KeepsWork: true, Submit: plantest.Epoch0, Start: plantest.Epoch0.Add(time.Hour - 1)}, 12, 1, true},
		{"for it ran before", order.Policy{Preempt: order.PreemptService, GuardAfter: time.Hour}, order.Terms{}, order.Running{KeepsWork: true, Submit: plantest.Epoch0, Start: plantest.Epoch0.Add(time.Hour), Attained: 1}, 12, 1, true},
		{"what was lent", order.Policy{Accounts: mine}, order.Terms{Account: "own"}, order.Running{Account: "other", Tier: 5}, 0, 0, true},
		{"what is the other's own", order.Policy{Accounts: mine}, order.Terms{Account: "own"}, order.Running{Account: "own", Tier: 5}, 0, 0, false},
		{"who has no quota", order.Policy{Accounts: mine}, order.Terms{Account: "none"}, order.Running{Account: "other", Tier: 5}, 0, 0, false},
		{"who has no account", order.Policy{Accounts: mine}, order.Terms{}, order.Running{Account: "other", Tier: 5}, 0, 0, false},
	} {
		p := tt.p
		p.GuardShare = 0.5
		nodes := plantest.Nodes(1, 16, 8, 80)
		c := plantest.Candidate(1, api.Spec{Size: 4, GPUsPerRank: 1})
		ask := c.Ask
		*c.Terms = tt.c
		c.Size, c.Ask = 4, ask
		pl := new(Planner).planner(plantest.Epoch0, &given.View{Nodes: nodes, Queue: plantest.QueueOf(), Running: []*order.Running{holds}}, &p)
		if got := pl.victims.mayTake(c, tt.service, &victimCandidate{Running: &tt.r, left: tt.left}); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// TestServiceLeft: the time of all cards that a gang may run yet, of one at least, by what it ran in all.
func TestServiceLeft(t *testing.T) {
	l := order.NewLedger(0)
	v := &given.View{Nodes: plantest.Nodes(1, 16, 8, 80), Queue: order.NewQueue(&order.Policy{}, l)}
	pl := new(Planner).planner(plantest.Epoch0, v, &order.Policy{})
	of := func(ran time.Duration, cards int) float64 {
		return l.Remaining(10*time.Hour, ran, order.Peer{Cards: cards}).Seconds() * float64(cards)
	}
	for _, tt := range []struct {
		r    order.Running
		want float64
	}{
		{order.Running{Cards: 4}, order.Unknown},
		{order.Running{TimeLimit: 10 * time.Hour}, of(0, 1)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 1}, of(0, 1)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 4}, of(0, 4)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 4, Attained: time.Hour}, of(time.Hour, 4)},
		{order.Running{TimeLimit: 10 * time.Hour, Cards: 4, Attained: time.Hour, Start: plantest.Epoch0.Add(-2 * time.Hour)}, of(3*time.Hour, 4)},
	} {
		if got := pl.victims.serviceLeft(&tt.r); got != tt.want {
			t.Errorf("%s: %v, want %v", printer.Value(tt.r), got, tt.want)
		}
	}
}

// TestVictimsInTurn: the cheapest first, by what each loses, its tier, its priority, whether it runs again, what it needs yet
// and when it began; neither who is being stopped nor who is protected.
func TestVictimsInTurn(t *testing.T) {
	began := func(job int64, hours int, change func(r *order.Running)) *order.Running {
		r := &order.Running{Job: job, Epoch: 1, Cards: 1, Start: plantest.Epoch0.Add(-time.Duration(hours) * time.Hour), TimeLimit: 20 * time.Hour}
		change(r)
		return r
	}
	same := func(*order.Running) {}
	running := []*order.Running{
		began(1, 5, same), began(2, 5, func(r *order.Running) { r.Tier = 1 }), began(3, 5, func(r *order.Running) { r.Priority = 1 }),
		began(4, 5, func(r *order.Running) { r.Final = true }), began(5, 5, func(r *order.Running) { r.Cards = 2 }), began(6, 4, same),
		began(7, 5, same), began(8, 9, func(r *order.Running) { r.Saved = plantest.Epoch0.Add(-5 * time.Hour) }), began(9, 8, func(r *order.Running) { r.KeepsWork = true }),
		began(10, 1, func(r *order.Running) { r.Stopping = true }), began(11, 1, func(r *order.Running) { r.MinRun = 2 * time.Hour }), began(12, 1, func(r *order.Running) { r.MinRun = time.Hour }),
		began(13, 5, func(r *order.Running) { r.TimeLimit = 0 }), began(14, 3, func(r *order.Running) { r.KeepsWork = true }),
	}
	p := &order.Policy{Preempt: order.PreemptService}
	pl := new(Planner).planner(plantest.Epoch0, &given.View{Nodes: plantest.Nodes(1, 16, 8, 80), Queue: order.NewQueue(p, order.NewLedger(0)), Running: running}, p)
	var got []int64
	for range 2 {
		got = nil
		for _, v := range pl.victims.victimCandidates() {
			got = append(got, v.Job)
		}
	}
	if want := "[14 9 12 6 13 5 1 7 8 4 3 2]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if !pl.Next.Equal(plantest.Epoch0.Add(time.Hour)) {
		t.Errorf("next at %v, want when the protection of job 11 is over", pl.Next.Sub(plantest.Epoch0))
	}
}

// TestVictimsAreToldInTime: so that all are through with their notice together; who is told already or not yet due is not told.
func TestVictimsAreToldInTime(t *testing.T) {
	victim := func(job int64, lead int) *victimCandidate {
		return &victimCandidate{Running: &order.Running{Job: job, Epoch: 2, Lead: time.Duration(lead) * time.Second}}
	}
	g := &given.Facts{Now: plantest.Epoch0}
	vs := &victims{Facts: g, kept: &kept.Backfills{Facts: g, Moved: map[int64]bool{}}}
	b := &kept.Backfill{Backfill: given.Backfill{Job: 9, Victims: vs.timed([]*victimCandidate{victim(1, 10), victim(2, 60), victim(3, 0)})}}
	vs.tell(b)
	if got := printer.Value(b.Victims); got != "[{Job:1 Epoch:2 At:50s} {Job:2 Epoch:2 At:0s Notified:true} {Job:3 Epoch:2 At:1m0s}]" || len(vs.kept.Moved) != 3 {
		t.Errorf("%s, of a move %v", got, vs.kept.Moved)
	}
	g.Now = plantest.Epoch0.Add(50 * time.Second)
	vs.tell(b)
	vs.tell(b)
	if got := printer.Value(vs.stops); got != "[{Job:2 Epoch:2 For:9} {Job:1 Epoch:2 For:9}]" {
		t.Errorf("told %s", got)
	}
}
