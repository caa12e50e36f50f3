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
		order := rapid.SliceOfN(rapid.Uint8Range(0, uint8(len(asks)-1)), 4, 16).Draw(t, "order")
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
		got := p.Fill([][]uint8{order})
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

// TestFill: asks are packed as [Need.Pick] would place them, one after the other.
func TestFill(t *testing.T) {
	part := func(vram int64) api.Spec { return api.Spec{Size: 1, GPUsPerRank: 1, VRAMBytes: vram, Share: true} }
	for _, tt := range []struct {
		name  string
		cpus  int
		used  []int64 // of cards of 100
		asks  []api.Spec
		most  int
		order []uint8
		want  int64
	}{
		{"the tightest hole", 8, []int64{50, 70}, []api.Spec{part(30), part(50)}, 1, []uint8{0, 1}, 0},
		{"a shared card before a clean one", 8, []int64{0, 10}, []api.Spec{part(80), part(100)}, 1, []uint8{0, 1}, 100},
		{"what does not fit is passed over", 8, []int64{0}, []api.Spec{part(60), part(40)}, 1, []uint8{0, 0, 1}, 0},
		{"no CPU is left", 2, []int64{0, 0}, []api.Spec{part(20)}, 1, []uint8{0, 0, 0}, 1600},
		{"a gang's ranks do not share a card", 8, []int64{0, 0}, []api.Spec{part(20)}, 4, []uint8{0}, 1600},
		{"whole cards are not shared", 8, []int64{10, 0}, []api.Spec{{Size: 1, GPUsPerRank: 1}}, 1, []uint8{0, 0}, 900},
		{"the cards of a member", 8, []int64{0, 0, 0}, []api.Spec{{Size: 4, GPUsPerNode: 2}}, 4, []uint8{0, 0}, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &Node{Name: "n1", Ready: true, Has: Amounts{CPUs: int64(tt.cpus + len(tt.used))}, Partitions: []string{"gpu"}}
			for c, used := range tt.used {
				n.Cards = append(n.Cards, Card{State: api.CardOK, CardInfo: api.CardInfo{Index: c, UUID: fmt.Sprint("c", c), VRAMBytes: 100, NUMA: -1}})
				if used == 0 {
					n.Has[CPUs]--
				}
			}
			for c, used := range tt.used {
				if used > 0 {
					n = n.Restore(Grant{MemberKey: api.MemberKey{Job: int64(c + 1), Epoch: 1}, Ranks: 1, Takes: Amounts{CPUs: 1},
						Cards: []CardGrant{{UUID: n.Cards[c].UUID, VRAMBytes: used}}})
				}
			}
			var asks []Packed
			for i := range tt.asks {
				d, err := NewNeed(AskOf(&tt.asks[i], n.Partitions))
				if err != nil {
					t.Fatal(err)
				}
				asks = append(asks, Packed{d, tt.most})
			}
			var p Packing
			p.Of(n, asks)
			if got := p.Fill([][]uint8{tt.order}); got != tt.want {
				t.Errorf("%d left, want %d", got, tt.want)
			}
		})
	}
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
	n := &Node{Name: "n1", Ready: true, Has: Amounts{CPUs: int64(rapid.IntRange(1, 40).Draw(t, "cpus")), Memory: rapid.Int64Range(0, 40).Draw(t, "memory")},
		Partitions: []string{"gpu"}, Features: rapid.SampledFrom([][]string{nil, {"ib"}}).Draw(t, "features")}
	vram := rapid.SampledFrom([]int64{80, 80, 80, 0}).Draw(t, "vram")
	for c := range rapid.IntRange(2, 6).Draw(t, "cards") {
		card := Card{State: api.CardOK, CardInfo: api.CardInfo{Index: c, UUID: fmt.Sprint("c", c), Model: "A100", VRAMBytes: vram, NUMA: -1}}
		if rapid.IntRange(0, 9).Draw(t, "bad") == 0 {
			card.State = api.CardQuarantined
		}
		n.Cards = append(n.Cards, card)
		if rapid.IntRange(0, 3).Draw(t, "used") < 2 {
			n = n.Restore(Grant{MemberKey: api.MemberKey{Job: int64(c + 1), Epoch: 1}, Ranks: 1, Takes: Amounts{CPUs: 1},
				Cards: []CardGrant{{UUID: card.UUID, VRAMBytes: min(vram, rapid.SampledFrom([]int64{10, 30, 50, 60}).Draw(t, "held")), Exclusive: vram == 0 || rapid.IntRange(0, 3).Draw(t, "alone") == 0}}})
		}
	}
	return n.Counted()
}

func packingSpec(t *rapid.T) *api.Spec {
	s := &api.Spec{Size: 8, CPUsPerRank: rapid.IntRange(0, 3).Draw(t, "cpus of a rank"), MemoryPerRank: rapid.Int64Range(0, 2).Draw(t, "memory of a rank"),
		MemoryPerNode: rapid.Int64Range(0, 2).Draw(t, "memory of a member"), VRAMBytes: rapid.SampledFrom([]int64{0, 10, 20, 30, 50}).Draw(t, "vram asked")}
	if rapid.IntRange(0, 7).Draw(t, "per member") == 0 {
		s.GPUsPerNode = rapid.IntRange(1, 3).Draw(t, "cards of a member")
	} else {
		s.GPUsPerRank = rapid.IntRange(1, 3).Draw(t, "cards of a rank")
	}
	s.Share = rapid.IntRange(0, 3).Draw(t, "share") > 0
	s.Constraint = rapid.SampledFrom([]string{"", "", "", "", "", "ib"}).Draw(t, "constraint")
	s.GPUType = rapid.SampledFrom([]string{"", "", "", "a100", "a100", "h100"}).Draw(t, "type")
	return s
}
