package gang

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// crowd is a world of many nodes with a gang over all of them, and a long queue behind it.
func crowd(b *testing.B, nodes, waiting int) (*World, Instant, int64) {
	w := New(settings())
	now := Instant{Wall: epoch0, Mono: time.Hour}
	for i := range nodes {
		w.Step(now, helloOf(fmt.Sprintf("n%d", i)))
	}
	id := w.Step(now, Submit{Spec: specOf(nodes), SpecHash: hashOf(specOf(nodes)), Partition: "main"}).JobIDs[0]
	one := specOf(1)
	for range waiting {
		w.Step(now, Submit{Spec: one, SpecHash: hashOf(one), Partition: "main"})
	}
	w.Take()
	return w, now, id
}

func slotsOver(nodes int) []cluster.Slot {
	slots := make([]cluster.Slot, nodes)
	for i := range slots {
		slots[i].Node = fmt.Sprintf("n%d", i)
	}
	return slots
}

// BenchmarkWideGang is one life of a gang of 1000 ranks on as many nodes beside 100,000
// waiting jobs, each report a step, one commit for each hundred of them.
func BenchmarkWideGang(b *testing.B) {
	const n = 1000
	w, now, id := crowd(b, n, 100_000)
	steps := 0
	say := func(i int, p api.MemberPhase, ranks ...api.RankActual) {
		w.Step(now, NodeReport{Node: fmt.Sprintf("n%d", i), Actual: api.Actual{Members: []api.MemberActual{{MemberKey: w.Job(id).key(), Phase: p, Ranks: ranks}}}})
		if steps++; steps%100 == 0 {
			w.Take()
		}
	}
	for b.Loop() {
		if out := w.Step(now, Admit{Job: id, Slots: slotsOver(n)}); !out.Applied {
			b.Fatal(out.Refused)
		}
		for i := range n {
			say(i, api.PhaseReady)
		}
		for i := range n {
			say(i, api.PhaseRunning, api.RankActual{Rank: i, PID: i + 1})
		}
		w.Step(now, Preempt{Job: id, For: "job 9"})
		for i := range n {
			say(i, api.PhaseStopped, exit(i, 143))
		}
		if w.Candidate(id) == nil {
			b.Fatal(JobState(w.Job(id)))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
}

// BenchmarkSmallJob is one life of a job of one rank beside 100,000 waiting ones, a commit
// after each step.
func BenchmarkSmallJob(b *testing.B) {
	w, now, _ := crowd(b, 10, 100_000)
	spec := specOf(1)
	for b.Loop() {
		id := w.Step(now, Submit{Spec: spec, SpecHash: hashOf(spec), Partition: "main"}).JobIDs[0]
		w.Take()
		w.Step(now, Admit{Job: id, Slots: slotsOver(1)})
		w.Take()
		for _, p := range []api.MemberPhase{api.PhaseReady, api.PhaseRunning, api.PhaseStopped} {
			ma := api.MemberActual{MemberKey: w.Job(id).key(), Phase: p}
			if p == api.PhaseStopped {
				ma.Ranks = []api.RankActual{exit(0, 0)}
			}
			w.Step(now, NodeReport{Node: "n0", Actual: api.Actual{Members: []api.MemberActual{ma}}})
			w.Take()
		}
		now.Mono += time.Second
		now.Wall = now.Wall.Add(time.Second)
		w.Step(now, Tick{})
	}
}

// BenchmarkSubmit is 100 submissions in one commit.
func BenchmarkSubmit(b *testing.B) {
	w, now, _ := crowd(b, 10, 100_000)
	spec := specOf(1)
	for b.Loop() {
		for range 100 {
			w.Step(now, Submit{Spec: spec, SpecHash: hashOf(spec), Partition: "main"})
		}
		w.Take()
	}
}
