package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestNoMoreThanThereAre: what the site has altogether is held as long as the nodes are.
func TestNoMoreThanThereAre(t *testing.T) {
	b := newBench(t, 2)
	asks := func(n int) int64 {
		s := specOf(1)
		s.Pools = []api.Pool{{Kind: "licence", Name: "l", Count: n}}
		return b.submit(s)
	}
	first, second := asks(2), asks(1)
	b.must(b.spread(first))
	if out := b.step(b.spread(second)); out.Applied {
		t.Fatal("a third of two licences was given")
	}
	if v := b.w.Verify(); len(v) > 0 {
		t.Fatal(v)
	}
	b.must(Cancel{Job: first})
	b.must(b.spread(second)) // given back with the nodes
}

// TestFewerThanAreHeld: a site that has fewer after a restart takes them from nobody, and gives none until there are some again.
func TestFewerThanAreHeld(t *testing.T) {
	b := newBench(t, 2)
	var ids []int64
	for range 3 {
		s := specOf(1)
		s.Pools = []api.Pool{{Kind: "licence", Name: "l", Count: 1}}
		ids = append(ids, b.submit(s))
	}
	b.start(ids[0])
	b.start(ids[1])
	b.w.set.Licences = []api.Pool{{Name: "l", Count: 1}}
	b.reborn(time.Minute)
	b.hello("n1", api.MemberActual{MemberKey: b.key(ids[0]), Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: 0, PID: 100}}},
		api.MemberActual{MemberKey: b.key(ids[1]), Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: 0, PID: 100}}})
	b.hello("n2")
	for _, id := range ids[:2] {
		b.state(id, api.JobRunning)
		if out := b.step(b.spread(ids[2])); out.Applied {
			t.Fatal("one is given, while as many as there are or more are held")
		}
		b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Ranks: []api.RankActual{exit(0, 0)}})
		b.state(id, api.JobCompleted)
	}
	b.must(b.spread(ids[2]))
}
