package cluster

import (
	"fmt"
	"testing"

	"gangd/pkg/api"
)

// BenchmarkPick is places for the ranks of a gang on a node of 512 free cards: one rank, ranks that share a
// node, and all cards.
func BenchmarkPick(b *testing.B) {
	n := &Node{Name: "n", Ready: true, CPUs: 1024, MemoryBytes: 1 << 44, Partitions: []string{"gpu"}}
	for i := range 512 {
		n.Cards = append(n.Cards, Card{CardInfo: api.CardInfo{Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: "H100", VRAMBytes: 80 << 30, NUMA: i / 256}, State: api.CardOK})
	}
	for _, want := range []struct{ ranks, cards int }{{1, 1}, {1, 8}, {64, 4}, {256, 2}, {511, 1}} {
		b.Run(fmt.Sprintf("%dx%d", want.ranks, want.cards), func(b *testing.B) {
			d, err := NewNeed(AskOf(&api.Spec{Size: want.ranks, GPUsPerRank: want.cards, CPUsPerRank: 1}, []string{"gpu"}))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				d.Pick(n, want.ranks)
			}
		})
	}
}
