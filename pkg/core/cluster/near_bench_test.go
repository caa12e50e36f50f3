package cluster

import (
	"fmt"
	"testing"

	"gangd/pkg/api"
)

// BenchmarkPick is places for the ranks of a gang on a node of free cards: one rank, ranks that share a
// node, and all cards but one. Of 8 cards that are all linked, and of 512 without NVLink and in islands of 8.
func BenchmarkPick(b *testing.B) {
	for _, want := range []struct{ of, island, ranks, cards int }{{8, 8, 1, 1}, {8, 8, 2, 2}, {8, 8, 1, 4},
		{512, 1, 1, 1}, {512, 1, 1, 8}, {512, 1, 64, 4}, {512, 1, 256, 2}, {512, 1, 511, 1}, {512, 8, 1, 1}, {512, 8, 64, 4}, {512, 8, 256, 2}, {512, 8, 511, 1}} {
		n := &Node{Name: "n", Ready: true, Has: Amounts{CPUs: 1024, Memory: 1 << 44}, Partitions: []string{"gpu"}}
		for i := range want.of {
			n.Cards = append(n.Cards, Card{CardInfo: api.CardInfo{Index: i, UUID: fmt.Sprintf("GPU-%d", i), Model: "H100", VRAMBytes: 80 << 30, NUMA: i / max(4, want.of/2)}, State: api.CardOK})
			for p := i / want.island * want.island; p < i; p++ {
				n.Cards[i].Peers = append(n.Cards[i].Peers, p)
			}
		}
		b.Run(fmt.Sprintf("%d in islands of %d/%dx%d", want.of, want.island, want.ranks, want.cards), func(b *testing.B) {
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
