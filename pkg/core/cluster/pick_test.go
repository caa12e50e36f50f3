package cluster

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// islands is a node of 8 cards in two NVLink islands of 4, each on its own NUMA node.
func islands() *Node {
	n := testNode(8)
	for i := range n.Cards {
		n.Cards[i].NUMA = i / 4
		for j := range 4 {
			if p := i/4*4 + j; p != i {
				n.Cards[i].Peers = append(n.Cards[i].Peers, p)
			}
		}
	}
	return n
}

func busy(n *Node, cards ...int) *Node {
	g := Grant{MemberKey: key(9), Takes: Amounts{CPUs: 1}}
	for _, c := range cards {
		g.Cards = append(g.Cards, whole(n.Cards[c].UUID))
	}
	return n.Restore(g)
}

func TestPick(t *testing.T) {
	mixed := testNode(4)
	for _, i := range []int{0, 1} {
		mixed.Cards[i].Model, mixed.Cards[i].VRAMBytes = "NVIDIA H200", 141*gib
	}
	dirty := testNode(3)
	dirty.Cards[0].StrangersBytes, dirty.Cards[1].StrangersBytes = 20*gib, gib/4
	shared := testNode(3).Restore(Grant{MemberKey: key(9), Takes: Amounts{CPUs: 1}, Cards: []CardGrant{share("GPU-1", 30), share("GPU-2", 50)}})
	tail := testNode(4)
	tail.Cards[2].Peers = []int{3}
	for i := range 2 {
		mixed.Cards[i+2].Model = "Tesla V100" // behind the H200 by name
	}
	pairs := testNode(4) // NVLink bridges 0-2 and 1-3
	for i := range pairs.Cards {
		pairs.Cards[i].Peers = []int{(i + 2) % 4}
	}
	for _, tt := range []struct {
		name  string
		n     *Node
		spec  api.Spec
		ranks int
		want  string // the cards of each rank
	}{
		{"an island for a gang of its size", busy(islands(), 1), api.Spec{GPUsPerRank: 1}, 4, "4 5 6 7"},
		{"the broken island for a small one", busy(islands(), 1), api.Spec{GPUsPerRank: 2}, 1, "0,2"},
		{"one card, few links cut", busy(islands(), 2, 5, 6), api.Spec{GPUsPerRank: 1}, 1, "4"},
		{"linked cards before others", tail, api.Spec{GPUsPerRank: 2}, 1, "2,3"},
		{"bridges", pairs, api.Spec{GPUsPerRank: 2}, 2, "0,2 1,3"},
		{"all cards of a batch script's own nodes", islands(), api.Spec{GPUsPerRank: 1, Exclusive: true, Launch: api.LaunchBatch}, 2, "0 1,2,3,4,5,6,7"},
		{"all cards of the kind", mixed, api.Spec{GPUsPerNode: 1, GPUType: "h200", Exclusive: true, Launch: api.LaunchBatch}, 2, "0,1 0,1"},
		{"as many at each start of ranks", islands(), api.Spec{GPUsPerRank: 1, Exclusive: true, Launch: api.LaunchRanks}, 2, "0 1"},
		{"all cards of a batch script's own node that asks for none", islands(), api.Spec{Exclusive: true, Launch: api.LaunchBatch}, 1, "0,1,2,3,4,5,6,7"},
		{"no cards where none are asked for", islands(), api.Spec{Launch: api.LaunchBatch}, 1, ""},
		{"none of ranks that have the node to themselves", islands(), api.Spec{Exclusive: true, Launch: api.LaunchRanks}, 1, ""},
		{"lowest model that is enough", mixed, api.Spec{GPUsPerRank: 1, VRAMBytes: 40 * gib}, 2, "2 3"},
		{"larger model when it must be", mixed, api.Spec{GPUsPerRank: 1, VRAMBytes: 100 * gib}, 1, "0"},
		{"larger model beside the lower", mixed, api.Spec{GPUsPerRank: 3}, 1, "0,2,3"},
		{"by type", mixed, api.Spec{GPUsPerRank: 1, GPUType: "h100|h200"}, 1, "0"},
		{"clean card without a figure", dirty, api.Spec{GPUsPerRank: 1}, 1, "1"},
		{"the fullest shared card", shared, api.Spec{GPUsPerRank: 1, VRAMBytes: 20 * gib, Share: true}, 1, "2"},
		{"the shared card that fits", shared, api.Spec{GPUsPerRank: 1, VRAMBytes: 40 * gib, Share: true}, 1, "1"},
		{"another card when none fits", shared, api.Spec{GPUsPerRank: 1, VRAMBytes: 60 * gib, Share: true}, 1, "0"},
		{"ranks see all cards of their member", islands(), api.Spec{GPUsPerNode: 4}, 2, "0,1,2,3 0,1,2,3"},
		{"no cards", islands(), api.Spec{}, 2, " "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Size = tt.ranks
			d, err := NewNeed(AskOf(&tt.spec, []string{"gpu"}))
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Ranks(tt.n); got != tt.ranks {
				t.Fatalf("room for %d ranks", got)
			}
			var parts []string
			for _, s := range d.Pick(tt.n, tt.ranks) {
				parts = append(parts, strings.ReplaceAll(strings.Join(s.Cards, ","), "GPU-", ""))
			}
			if got := strings.Join(parts, " "); got != tt.want {
				t.Errorf("cards %q, want %q", got, tt.want)
			}
		})
	}
}

func TestConstraint(t *testing.T) {
	for _, tt := range []struct {
		text, features string
		want           bool
	}{
		{"", "", true}, {"ib", "ib,a100", true}, {"ib", "", false}, {"ib&a100", "ib", false}, {"ib&a100", "a100,ib", true},
		{"ib|roce", "roce", true}, {"a|b&c", "a", true}, {"a|b&c", "b", false}, {"(a|b)&c", "a", false}, {"(a|b)&c", "b,c", true}, {" a & ( b | c ) ", "a,c", true},
	} {
		c, err := ParseConstraint(tt.text)
		if err != nil || c.Met(strings.Split(tt.features, ",")) != tt.want {
			t.Errorf("%q on %q: want %t, %v", tt.text, tt.features, tt.want, err)
		}
	}
	const hint = "; write features joined by & and |, such as a100&(ib|roce), alternatives for all nodes as [rack1|rack2], counts of nodes as rack1*2"
	for _, tt := range []struct{ text, want string }{
		{"a&", `constraint "a&": a feature expected at column 3, found the end` + hint},
		{"a b", `constraint "a b": '&', '|' or the end expected at column 3, found 'b'` + hint},
		{"(a", `constraint "(a": ')' expected at column 3, found the end` + hint},
		{"[a|b", `constraint "[a|b": ']' expected at column 5, found the end` + hint},
		{"a*", `constraint "a*": a number of nodes from 1 to 65536 expected at column 3, found the end` + hint},
		{"a*0", `constraint "a*0": a number of nodes from 1 to 65536 expected at column 3, found '0'` + hint},
		{"a*2*3", `constraint "a*2*3": '&', '|' or the end expected at column 4, found '*'` + hint},
		{"[a|b]*3", `constraint "[a|b]*3": '&', '|' or the end expected at column 6, found '*'` + hint},
		{"[a|b]&[c|d]", `constraint "[a|b]&[c|d]": only one pair of brackets is possible (column 7); join what is in them`},
		{"a|b*2", `constraint "a|b*2": a count and brackets can't be an alternative or stand in parentheses (column 3); join them to the rest by &, or write alternatives in brackets, such as [rack1|rack2]`},
		{"a*1&b*2", `constraint "a*1&b*2": several counts stand together in brackets (column 1); write [a*1&b*2]`},
		{"[a*1&b*2]&c*1", `constraint "[a*1&b*2]&c*1": several counts stand together in brackets (column 1); write [a*1&b*2&c*1]`},
		{"[a&b]", `constraint "[a&b]": in brackets & joins counts (column 2); write a&b without brackets, or a count behind each feature, such as [rack1*2&rack2*4]`},
		{"[a*2&b]", `constraint "[a*2&b]": in brackets each feature has a count or none has (column 2); write a count behind each, such as [rack1*2&rack2*4]`},
		{"[a*2|b*2]", `constraint "[a*2|b*2]": counts in brackets are joined by & (column 2); write alternatives without counts, such as [rack1|rack2]`},
		{"[a|[b|c]]", `constraint "[a|[b|c]]": a count and brackets can't stand inside of brackets so (column 4); write [rack1*2&rack2*4] or [rack1|rack2]`},
		{"[a*1&b*1&c*1&d*1&e*1&f*1&g*1]", `constraint "[a*1&b*1&c*1&d*1&e*1&f*1&g*1]": more than 6 counts (column 1); count fewer features`},
		{strings.Repeat("(", 40), `constraint "` + strings.Repeat("(", 40) + `": more than 32 parentheses inside each other`},
	} {
		if _, err := ParseConstraint(tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%q: %v\nwant %s", tt.text, err, tt.want)
		}
	}
}

// TestJointConstraint: what is said of the nodes together is taken apart into its alternatives.
func TestJointConstraint(t *testing.T) {
	for _, tt := range []struct{ text, ways, names string }{
		{"a", "a", "a"}, {"a,b", "a,b", "a b"}, {"[a]", "a", "a"}, {"[a|b|c]", "a or b or c", "a b c"}, {"g&[a|b]", "a (g) or b (g)", "g a b"},
		{"[a|b],g", "a (g) or b (g)", "g a b"}, {"[(a&g)|b&h]", "a&g or b&h", "a g b h"}, {"a*3", "anywhere 3 a", "a"}, {"(a|b)*2", "anywhere 2 a|b", "a b"},
		{"g&a*3", "g 3 a", "g a"}, {"[a*2&(b|c)*4]", "anywhere 2 a 4 b|c", "a b c"}, {"[a|b]&c*2", "a 2 c or b 2 c", "a b c"}, {"[a*2]", "anywhere 2 a", "a"},
	} {
		c, err := ParseConstraint(tt.text)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		var ways []string
		for _, w := range c.alternatives() {
			text := "anywhere"
			if w.each != nil {
				text = w.each.String()
				if c.each != nil && c.same != nil {
					text += " (" + c.each.String() + ")"
				}
			}
			for _, n := range w.counts {
				text += " " + strconv.Itoa(n.Nodes) + " " + n.Features.String()
			}
			ways = append(ways, text)
		}
		if got := strings.Join(ways, " or "); got != tt.ways || strings.Join(c.Names(), " ") != tt.names {
			t.Errorf("%q: ways %q, want %q; names %q", tt.text, got, tt.ways, c.Names())
		}
	}
}

func FuzzParseConstraint(f *testing.F) {
	for _, s := range []string{"a&(b|c)", "((", "a|", "a&b&c|d", "\x00", "[a|b]&g", "g,[a*2&(b|c)*4]", "a*3", "[a|[b", "a*2|b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseConstraint(text)
		if err != nil || c == nil {
			return
		}
		if !c.Met(c.Names()) {
			t.Fatalf("%q is not met by all its features %q", text, c.Names())
		}
		for _, w := range c.alternatives() {
			if w.same != nil || !w.Met(c.Names()) || w.Nodes() != c.Nodes() {
				t.Fatalf("%q: a way that counts %d nodes, all %d", text, w.Nodes(), c.Nodes())
			}
		}
	})
}

// TestPickIsTakeable: wherever ranks fit, Pick finds cards that Take accepts, each once,
// and one rank more does not fit.
func TestPickIsTakeable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := testNode(rapid.IntRange(0, 6).Draw(t, "cards"))
		for i := range n.Cards {
			c := &n.Cards[i]
			c.VRAMBytes = rapid.SampledFrom([]int64{24, 80}).Draw(t, "vram") * gib
			c.StrangersBytes = rapid.SampledFrom([]int64{0, 0, 10, 90}).Draw(t, "strangers") * gib
			c.NUMA = rapid.IntRange(-1, 1).Draw(t, "numa")
			c.Peers = rapid.SliceOfN(rapid.IntRange(0, 7), 0, 3).Draw(t, "peers")
		}
		for i := range 3 {
			if next, err := n.Take(genGrant(t, n, int64(i+1))); err == nil {
				n = next
			}
		}
		spec := api.Spec{Size: rapid.IntRange(1, 5).Draw(t, "size"), GPUsPerRank: rapid.IntRange(0, 3).Draw(t, "per rank"),
			VRAMBytes: rapid.SampledFrom([]int64{0, 10, 30}).Draw(t, "vram") * gib, Share: rapid.Bool().Draw(t, "share")}
		d, err := NewNeed(AskOf(&spec, []string{"gpu"}))
		if err != nil {
			t.Fatal(err)
		}
		for k := 1; k <= d.Ranks(n); k++ {
			slots := d.Pick(n, k)
			if again := d.Pick(n, k); fmt.Sprint(again) != fmt.Sprint(slots) {
				t.Fatalf("%v, then %v", slots, again)
			}
			g := GrantFor(d.Ask, key(50), slots, time.Time{})
			if len(g.Cards) != d.CardsFor(k) {
				t.Fatalf("%d cards for %d ranks: %v", len(g.Cards), k, slots)
			}
			if _, err := n.Take(g); err != nil {
				t.Fatalf("%v: %v", slots, err)
			}
		}
		if a, b := n.AppendEmptiedClass(nil), n.Emptied().AppendClass(nil); !bytes.Equal(a, b) {
			t.Fatalf("kind %q, of the emptied node %q", a, b)
		}
		if empty := d.RanksEmpty(n); empty != d.Ranks(n.Emptied()) {
			t.Fatalf("RanksEmpty %d, Ranks of the emptied node %d", empty, d.Ranks(n.Emptied()))
		}
	})
}

// TestMatchesCard: types as people and Slurm write them against names as drivers do.
func TestMatchesCard(t *testing.T) {
	for _, tt := range []struct {
		kind, compute string
		card          string
		has           string
		want          bool
	}{
		{"", "", "anything", "", true},
		{"a100", "", "NVIDIA A100-SXM4-80GB", "8.0", true},
		{"A100|h100", "", "NVIDIA H100 80GB HBM3", "9.0", true},
		{"nvidia_a100-sxm4-80gb", "", "NVIDIA A100-SXM4-80GB", "8.0", true},
		{"nvidia_h100_80gb_hbm3", "", "NVIDIA H100 80GB HBM3", "9.0", true},
		{"a10", "", "NVIDIA A100-SXM4-80GB", "8.0", false},
		{"a10", "", "NVIDIA A10", "8.6", true},
		{"l4", "", "NVIDIA L40S", "8.9", false},
		{"l40", "", "NVIDIA L40S", "8.9", true},
		{"h20", "", "NVIDIA H200", "9.0", false},
		{"0", "", "A100 0", "", true},
		{"1g.10gb", "", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "9.0", true},
		{"v100", "", "NVIDIA H100 80GB HBM3", "9.0", false},
		{"", "8.0", "NVIDIA A100-SXM4-80GB", "8.0", true},
		{"", "8.6", "NVIDIA A100-SXM4-80GB", "8.0", false},
		{"", "8.9", "some B200", "10.0", true},
		{"", "8.0", "an old driver does not say", "", false},
		{"a100", "9.0", "NVIDIA A100-SXM4-80GB", "8.0", false},
	} {
		d, err := NewNeed(AskOf(&api.Spec{Size: 1, GPUsPerRank: 1, GPUType: tt.kind, MinCompute: tt.compute}, []string{"main"}))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.MatchesCard(&Card{CardInfo: api.CardInfo{Model: tt.card, Compute: tt.has}}); got != tt.want {
			t.Errorf("%q %q against %q %q: %t", tt.kind, tt.compute, tt.card, tt.has, got)
		}
	}
}
