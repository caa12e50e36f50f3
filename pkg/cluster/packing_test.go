package cluster

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// TestPackingIsPlacing: what is packed in thought leaves as much as if it were placed.
func TestPackingIsPlacing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := packingNode(t)
		var asks []Packed
		for i := range rapid.IntRange(1, 4).Draw(t, "asks") {
			d, err := NewNeed(AskOf(packingSpec(t), []string{"gpu"}))
			if err != nil {
				t.Fatal(err)
			}
			asks = append(asks, Packed{d, rapid.IntRange(1, 3).Draw(t, fmt.Sprint("most of ", i))})
		}
		order := rapid.SliceOfN(rapid.Uint8Range(0, uint8(len(asks)-1)), 0, 12).Draw(t, "order")
		put := asks[0]
		var p Packing
		p.Of(n, asks)
		if k := min(put.Most, put.Ranks(n)); k > 0 && put.Admits(n) {
			p.Put(n, put.Need, k)
			n = placed(n, put.Need, k, 99)
		}
		if got, want := p.Free(), freeOn(n); got != want {
			t.Errorf("%d free after the first, want %d", got, want)
		}
		got := p.Fill(order)
		for i, at := range order {
			a := asks[at]
			if k := min(a.Most, a.Ranks(n)); k > 0 && a.Admits(n) {
				n = placed(n, a.Need, k, int64(100+i))
			}
		}
		if want := freeOn(n); got != want {
			t.Errorf("%d free in the end, want %d", got, want)
		}
	})
}

func placed(n *Node, d *Need, ranks int, job int64) *Node {
	return n.Restore(GrantFor(d.Ask, api.MemberKey{Job: job, Epoch: 1}, d.Pick(n, ranks), time.Time{}))
}

// freeOn is what is free on the cards of a node, in thousandths of a card.
func freeOn(n *Node) (sum int64) {
	for i := range n.Cards {
		if total := n.Cards[i].VRAMBytes; total > 0 {
			sum += n.FreeVRAM(i) * 1000 / total
		} else if _, alone := n.Holders(i); !alone && n.Cards[i].State != stateQuarantined {
			sum += 1000
		}
	}
	return sum
}

func packingNode(t *rapid.T) *Node {
	n := &Node{Name: "n1", Ready: true, CPUs: rapid.IntRange(1, 12).Draw(t, "cpus"), MemoryBytes: rapid.Int64Range(0, 16).Draw(t, "memory"),
		Partitions: []string{"gpu"}, Features: rapid.SampledFrom([][]string{nil, {"ib"}}).Draw(t, "features")}
	vram := rapid.SampledFrom([]int64{0, 80}).Draw(t, "vram")
	for c := range rapid.IntRange(1, 4).Draw(t, "cards") {
		card := Card{State: api.CardOK, CardInfo: api.CardInfo{Index: c, UUID: fmt.Sprint("c", c), Model: "A100", VRAMBytes: vram, NUMA: -1}}
		if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
			card.State = api.CardQuarantined
		}
		n.Cards = append(n.Cards, card)
		if rapid.IntRange(0, 3).Draw(t, "used") == 0 {
			n = n.Restore(Grant{MemberKey: api.MemberKey{Job: int64(c + 1), Epoch: 1}, Ranks: 1, CPUs: 1,
				Cards: []CardGrant{{UUID: card.UUID, VRAMBytes: min(vram, 30), Exclusive: vram == 0 || rapid.Bool().Draw(t, "alone")}}})
		}
	}
	return n.Counted()
}

func packingSpec(t *rapid.T) *api.Spec {
	s := &api.Spec{Size: 8, CPUsPerRank: rapid.IntRange(0, 4).Draw(t, "cpus of a rank"), MemoryPerRank: rapid.Int64Range(0, 4).Draw(t, "memory of a rank"),
		MemoryPerNode: rapid.Int64Range(0, 2).Draw(t, "memory of a member"), VRAMBytes: rapid.SampledFrom([]int64{0, 10, 20, 50, 80}).Draw(t, "vram asked")}
	if rapid.IntRange(0, 3).Draw(t, "per member") == 0 {
		s.GPUsPerNode = rapid.IntRange(1, 3).Draw(t, "cards of a member")
	} else {
		s.GPUsPerRank = rapid.IntRange(1, 3).Draw(t, "cards of a rank")
	}
	s.Share = rapid.Bool().Draw(t, "share")
	s.Constraint = rapid.SampledFrom([]string{"", "", "ib"}).Draw(t, "constraint")
	s.GPUType = rapid.SampledFrom([]string{"", "a100", "h100"}).Draw(t, "type")
	return s
}
