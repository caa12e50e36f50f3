package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestPartIsTheWhole: whatever the names and the order of the ranks, a node reads from its part where everybody sits
// and which cards are its own.
func TestPartIsTheWhole(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`(n|gpu-|10\.0\.)(0|1|2|9|09|10|010|99|100|18446744073709551615)(:7421|)`), rapid.StringN(0, 6, -1))
	rapid.Check(t, func(t *rapid.T) {
		b := &AssignmentBody{Name: "j"}
		n := rapid.IntRange(2, 12).Draw(t, "nodes")
		for i := range n {
			p := Place{Name: fmt.Sprint(rapid.SampledFrom([]string{"n", "n0", "x-"}).Draw(t, "name"), i), Address: text.Draw(t, "address")}
			if rapid.Bool().Draw(t, "switches") {
				p.Switches = text.Draw(t, "switch")
			}
			p.CPUs = rapid.SampledFrom([]int{0, 8, 96}).Draw(t, "CPUs")
			b.Nodes = append(b.Nodes, p)
		}
		for r := range rapid.IntRange(n, 40).Draw(t, "ranks") {
			p := RankPlace{Node: rapid.IntRange(0, n-1).Draw(t, "node")}
			for c := range rapid.IntRange(0, 2).Draw(t, "cards") {
				p.Cards = append(p.Cards, fmt.Sprint("GPU-", r, "-", c))
			}
			b.Ranks = append(b.Ranks, p)
		}
		b.Layout = NewLayout(b.Nodes, b.Ranks)
		at := rapid.IntRange(0, n-1).Draw(t, "own")
		line, err := json.Marshal(b.For(b.Nodes[at].Name))
		if err != nil {
			t.Fatal(err)
		}
		got := new(AssignmentBody)
		if err := json.Unmarshal(line, got); err != nil {
			t.Fatal(err)
		}
		if err := got.Whole(); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if len(got.Nodes) != n || len(got.Ranks) != len(b.Ranks) || got.Part != nil || got.Name != "j" {
			t.Fatalf("%d nodes, %d ranks of %s", len(got.Nodes), len(got.Ranks), line)
		}
		for i := range b.Nodes {
			if got.Nodes[i] != b.Nodes[i] {
				t.Fatalf("node %d is %v, not %v, of %s", i, got.Nodes[i], b.Nodes[i], line)
			}
		}
		for r, want := range b.Ranks {
			if want.Node != at {
				want.Cards = nil
			}
			if !reflect.DeepEqual(got.Ranks[r], want) {
				t.Fatalf("rank %d is %v, not %v, of %s", r, got.Ranks[r], want, line)
			}
		}
	})
}

// TestPartIsShort: what a node is sent of a gang of a thousand nodes does not grow with them.
func TestPartIsShort(t *testing.T) {
	size := func(nodes int) int {
		b := &AssignmentBody{}
		for i := range nodes {
			b.Nodes = append(b.Nodes, Place{Name: fmt.Sprintf("gpu-%04d", i), Address: fmt.Sprintf("10.1.%d.%d", i/250, i%250), Switches: fmt.Sprintf("spine.leaf%d", i/500)})
			for c := range 8 {
				b.Ranks = append(b.Ranks, RankPlace{Node: i, Cards: []string{fmt.Sprintf("GPU-%d-%d", i, c)}})
			}
		}
		b.Layout = NewLayout(b.Nodes, b.Ranks)
		line, err := json.Marshal(b.For("gpu-0007"))
		if err != nil {
			t.Fatal(err)
		}
		return len(line)
	}
	if n := size(1000); n > 1500 {
		t.Errorf("the part of one of 1,000 nodes has %d bytes", n)
	}
}

// TestPartMakesSense: a layout that stands for more than a gang can have, or for what does not fit together, is refused.
func TestPartMakesSense(t *testing.T) {
	for _, text := range []string{
		`{"part":{"node":0}}`,
		`{"part":{"names":[{"before":"n","count":99999999}],"addresses":[],"ranks":[],"node":0}}`,
		`{"part":{"names":[{"before":"n","count":-1}],"addresses":[],"ranks":[],"node":0}}`,
		`{"part":{"names":[{"before":"n","width":9999999,"count":1}],"addresses":[{"before":"n","count":1}],"ranks":[],"node":0}}`,
		`{"part":{"names":[{"before":"n","count":2}],"addresses":[{"before":"n","count":1}],"ranks":[],"node":0}}`,
		`{"part":{"names":[{"before":"n","count":1}],"addresses":[{"before":"n","count":1}],"switches":[{"before":"n","count":2}],"ranks":[],"node":0}}`,
		`{"part":{"names":[{"before":"n","count":1}],"addresses":[{"before":"n","count":1}],"ranks":[{"first":0,"nodes":65536,"each":1048576}],"node":0}}`,
		`{"part":{"names":[{"before":"n","count":1}],"addresses":[{"before":"n","count":1}],"ranks":[{"first":0,"nodes":-1,"each":-1}],"node":0}}`,
		`{"part":{"names":[{"before":"n","count":1}],"addresses":[{"before":"n","count":1}],"ranks":[{"first":0,"nodes":1,"each":1}],"node":0,"cards":[["a"],["b"]]}}`,
	} {
		b := new(AssignmentBody)
		if err := json.Unmarshal([]byte(text), b); err != nil {
			t.Fatal(err)
		}
		if err := b.Whole(); err == nil {
			t.Errorf("%s is taken: %d nodes, %d ranks", text, len(b.Nodes), len(b.Ranks))
		}
	}
}

// What each of 2,048 nodes does to know where all 16,384 ranks sit.
func BenchmarkWhole(b *testing.B) {
	body := &AssignmentBody{}
	for n := range 2048 {
		body.Nodes = append(body.Nodes, Place{Name: fmt.Sprintf("n%05d", n), Address: fmt.Sprintf("10.0.%d.%d", n>>8, n&255)})
		for range 8 {
			body.Ranks = append(body.Ranks, RankPlace{Node: n, Cards: []string{"GPU"}})
		}
	}
	body.Layout = NewLayout(body.Nodes, body.Ranks)
	part := body.For("n00007")
	b.ReportAllocs()
	for b.Loop() {
		whole := *part
		if err := whole.Whole(); err != nil {
			b.Fatal(err)
		}
	}
}
