package gang

import (
	"testing"

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
