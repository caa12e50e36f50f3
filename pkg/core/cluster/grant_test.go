package cluster

import (
	"cmp"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

const gib = int64(1) << 30

func testNode(cards int) *Node {
	n := &Node{Name: "n3", Ready: true, Has: Amounts{CPUs: 16, Memory: 64 * gib}, Partitions: []string{"gpu"}}
	for i := range cards {
		n.Cards = append(n.Cards, Card{State: api.CardOK, CardInfo: api.CardInfo{Index: i, UUID: fmt.Sprintf("GPU-%d", i),
			Model: "NVIDIA A100-SXM4-80GB", VRAMBytes: 80 * gib, NUMA: -1}})
	}
	return n
}

func key(job int64) api.MemberKey { return api.MemberKey{Job: job, Epoch: 1} }

func whole(uuid string) CardGrant { return CardGrant{UUID: uuid, Exclusive: true} }
func share(uuid string, vram int64) CardGrant {
	return CardGrant{UUID: uuid, VRAMBytes: vram * gib}
}

func TestTakeRefuses(t *testing.T) {
	n := testNode(4)
	n.Cards[2].StrangersBytes = 50 * gib
	n.Has[Tmp], n.Each[Tmp] = 100*gib, 10*gib
	n.Cards[3].State, n.Cards[3].Reason = api.CardQuarantined, "Xid 79"
	n = n.Restore(Grant{MemberKey: key(7), Takes: Amounts{CPUs: 10, Memory: 60 * gib, Tmp: 70 * gib}, Cards: []CardGrant{whole("GPU-0"), share("GPU-1", 50)}})
	drained := *n
	drained.Ready, drained.NotReady = false, "drained: launch failures: no space left"
	taken := testNode(0).Restore(Grant{MemberKey: key(8), Takes: Amounts{CPUs: 1}, Exclusive: true})
	for _, tt := range []struct {
		n    *Node
		g    Grant
		want string
	}{
		{n, Grant{Takes: Amounts{CPUs: 8}}, "node n3: 8 CPUs asked, 6 of 16 free: 2 short"},
		{n, Grant{Takes: Amounts{CPUs: 1, Memory: 5 * gib}}, "node n3: 5G memory asked, 4G of 64G free: 1G short"},
		{n, Grant{Takes: Amounts{CPUs: 1, Tmp: 31 * gib}}, "node n3: 31G temporary space asked, 30G of 100G free: 1G short"},
		{n.Restore(Grant{MemberKey: key(8), Takes: Amounts{Tmp: 25 * gib}}), Grant{Takes: Amounts{CPUs: 1}}, "node n3: 10G temporary space asked, 5G of 100G free: 5G short"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Cards: []CardGrant{whole("GPU-0")}}, "node n3 card 0: job 7 has it to itself"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Cards: []CardGrant{whole("GPU-1")}}, "node n3 card 1: asked for as a whole, job 7 is on it"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Cards: []CardGrant{share("GPU-1", 40)}}, "node n3 card 1: 40G VRAM asked, 30G of 80G free (0B held by strangers): 10G short"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Cards: []CardGrant{share("GPU-2", 40)}}, "node n3 card 2: 40G VRAM asked, 30G of 80G free (50G held by strangers): 10G short"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Cards: []CardGrant{whole("GPU-3")}}, "node n3 card 3 is quarantined: Xid 79"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Cards: []CardGrant{whole("GPU-9")}}, "node n3 has no card GPU-9"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Cards: []CardGrant{share("GPU-2", 1), share("GPU-2", 1)}}, "node n3 card 2: asked for twice in one grant"},
		{n, Grant{Takes: Amounts{CPUs: 1}, Exclusive: true}, "node n3: asked for as a whole, job 7 is on it"},
		{n, Grant{MemberKey: key(7), Takes: Amounts{CPUs: 1}}, "node n3: job 7 epoch 1 holds a grant already"},
		{taken, Grant{Takes: Amounts{CPUs: 1}}, "node n3: job 8 has the whole node"},
		{&drained, Grant{Takes: Amounts{CPUs: 1}}, "node n3 takes no new work: drained: launch failures: no space left"},
	} {
		if _, err := tt.n.Take(tt.g); err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %v\nwant %s", tt.g, err, tt.want)
		}
	}
}

func TestGrantFor(t *testing.T) {
	slots := []Slot{{"n3", []string{"a", "b"}}, {"n3", []string{"c", "d"}}}
	both := []Slot{{"n3", []string{"a", "b"}}, {"n3", []string{"a", "b"}}}
	until := time.Unix(5, 0)
	for _, tt := range []struct {
		spec  api.Spec
		slots []Slot
		want  Grant
	}{
		{api.Spec{Size: 4, CPUsPerRank: 3, MemoryPerRank: gib, MemoryPerNode: 5 * gib, GPUsPerRank: 2, VRAMBytes: 40 * gib, Exclusive: true}, slots,
			Grant{Ranks: 2, Takes: Amounts{CPUs: 6, Memory: 7 * gib}, Exclusive: true, Cards: []CardGrant{{"a", 40 * gib, true}, {"b", 40 * gib, true},
				{"c", 40 * gib, true}, {"d", 40 * gib, true}}}},
		{api.Spec{Size: 4, GPUsPerNode: 2, VRAMBytes: 40 * gib, Share: true}, both,
			Grant{Ranks: 2, Takes: Amounts{CPUs: 2}, Cards: []CardGrant{{"a", 40 * gib, false}, {"b", 40 * gib, false}}}},
		// Without a figure nobody could tell who else fits: the card is taken whole.
		{api.Spec{Size: 4, GPUsPerNode: 2, Share: true}, both, Grant{Ranks: 2, Takes: Amounts{CPUs: 2}, Cards: []CardGrant{whole("a"), whole("b")}}},
	} {
		tt.want.MemberKey, tt.want.Until = key(1), until
		if got := GrantFor(AskOf(&tt.spec, []string{"gpu"}), key(1), tt.slots, until); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v:\n%+v, want\n%+v", tt.spec, got, tt.want)
		}
	}
}

func TestShapeTellsWhatDecides(t *testing.T) {
	base := api.Spec{Size: 2, CPUsPerRank: 1, GPUsPerRank: 1, VRAMBytes: gib}
	shapeOf := func(change func(s *api.Spec)) string {
		s := base
		change(&s)
		return AskOf(&s, []string{"a", "b"}).Key
	}
	same := shapeOf(func(*api.Spec) {})
	for i, change := range []func(s *api.Spec){
		func(s *api.Spec) { s.Size++ }, func(s *api.Spec) { s.CPUsPerRank++ }, func(s *api.Spec) { s.MemoryPerRank++ },
		func(s *api.Spec) { s.MemoryPerNode++ }, func(s *api.Spec) { s.GPUsPerRank++ }, func(s *api.Spec) { s.GPUsPerNode++ },
		func(s *api.Spec) { s.GPUType = "h100" }, func(s *api.Spec) { s.VRAMBytes++ }, func(s *api.Spec) { s.Share = true },
		func(s *api.Spec) { s.RanksPerNode++ }, func(s *api.Spec) { s.MinNodes++ }, func(s *api.Spec) { s.MaxNodes++ },
		func(s *api.Spec) { s.Exclusive = true }, func(s *api.Spec) { s.NodeList = []string{"n"} },
		func(s *api.Spec) { s.Exclude = []string{"n"} }, func(s *api.Spec) { s.Constraint = "x" },
	} {
		if shapeOf(change) == same {
			t.Errorf("change %d gives the same shape", i)
		}
	}
	for i, change := range []func(s *api.Spec){
		func(s *api.Spec) { s.Name = "other" }, func(s *api.Spec) { s.TimeLimit = 1 }, func(s *api.Spec) { s.Script = []byte("x") },
	} {
		if shapeOf(change) != same {
			t.Errorf("change %d, which decides nothing, gives another shape", i)
		}
	}
	if AskOf(&base, []string{"b", "a"}).Key != same {
		t.Error("the order of partitions gives another shape")
	}
}

// genGrant draws grants that often do not fit.
func genGrant(t *rapid.T, n *Node, job int64) Grant {
	g := Grant{MemberKey: api.MemberKey{Job: job, Epoch: rapid.IntRange(1, 2).Draw(t, "epoch")}, Ranks: 1,
		Takes:     Amounts{CPUs: int64(rapid.IntRange(1, 8).Draw(t, "cpus")), Memory: rapid.Int64Range(0, 40).Draw(t, "memory") * gib},
		Exclusive: rapid.IntRange(0, 9).Draw(t, "node") == 0}
	for i := range n.Cards {
		switch rapid.IntRange(0, 5).Draw(t, "card") {
		case 0:
			g.Cards = append(g.Cards, CardGrant{n.Cards[i].UUID, rapid.Int64Range(0, 80).Draw(t, "whole") * gib, true})
		case 1, 2:
			g.Cards = append(g.Cards, share(n.Cards[i].UUID, rapid.Int64Range(1, 60).Draw(t, "part")))
		}
	}
	return g
}

// TestHistoriesNeverOverCommit takes, releases and lets strangers come and go, and adds
// everything up by hand after each step.
func TestHistoriesNeverOverCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := testNode(rapid.IntRange(0, 3).Draw(t, "cards"))
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				n = n.Release(api.MemberKey{Job: rapid.Int64Range(1, 6).Draw(t, "job"), Epoch: 1})
			case 1:
				c := *n
				c.Cards = append([]Card(nil), n.Cards...)
				for i := range c.Cards {
					c.Cards[i].StrangersBytes = rapid.Int64Range(0, 30).Draw(t, "strangers") * gib
				}
				n = &c
			default:
				g := genGrant(t, n, rapid.Int64Range(1, 6).Draw(t, "job"))
				next, err := n.Take(g)
				if err != nil {
					break
				}
				checkRoom(t, next, g)
				if back := next.Release(g.MemberKey); !reflect.DeepEqual(back, n.Counted()) {
					t.Fatalf("take and release of %+v:\n%+v\nbecame\n%+v", g, n, back)
				}
				if got, ok := next.Grant(g.MemberKey); !ok || !reflect.DeepEqual(got, g) {
					t.Fatalf("granted %+v, found %+v", g, got)
				}
				n = next
			}
			if len(n.Grants) > 0 && !reflect.DeepEqual(*n.use(), n.count()) {
				t.Fatalf("sums %+v, recounted %+v", *n.use(), n.count())
			}
		}
	})
}

// checkRoom adds up a node on which g was just taken.
func checkRoom(t *rapid.T, n *Node, g Grant) {
	var sum Amounts
	vram, holders, alone := map[string]int64{}, map[string]int{}, map[string]bool{}
	for i, o := range n.Grants {
		for r := range sum {
			sum[r] += o.Takes[r]
		}
		if o.Exclusive && len(n.Grants) > 1 {
			t.Fatalf("job %d has the whole node with %d others", o.Job, len(n.Grants)-1)
		}
		if i > 0 && cmp.Or(cmp.Compare(n.Grants[i-1].Job, o.Job), cmp.Compare(n.Grants[i-1].Epoch, o.Epoch)) >= 0 {
			t.Fatalf("grants out of order: %+v", n.Grants)
		}
		for _, c := range o.Cards {
			vram[c.UUID] += c.VRAMBytes
			holders[c.UUID]++
			alone[c.UUID] = alone[c.UUID] || c.Exclusive
		}
	}
	for r := range sum {
		if sum[r] > n.Has[r] {
			t.Fatalf("%d of %d %s granted", sum[r], n.Has[r], Resources[r].Noun)
		}
	}
	for _, c := range g.Cards { // others may be over-drawn by strangers that came later
		card := n.Cards[n.cardIndex(c.UUID)]
		if alone[c.UUID] && holders[c.UUID] > 1 || vram[c.UUID] > max(0, card.VRAMBytes-card.StrangersBytes) {
			t.Fatalf("card %s: %d holders, %d of %d granted, %d with strangers", c.UUID, holders[c.UUID], vram[c.UUID], card.VRAMBytes, card.StrangersBytes)
		}
	}
}

func TestOldNodeStaysAsItWas(t *testing.T) {
	n := testNode(2).Restore(Grant{MemberKey: key(5), Takes: Amounts{CPUs: 2}, Cards: []CardGrant{whole("GPU-0")}})
	for range 3 {
		if _, err := n.Take(Grant{MemberKey: key(4), Takes: Amounts{CPUs: 14}, Cards: []CardGrant{whole("GPU-1")}}); err != nil {
			t.Fatal(err)
		}
		n.Release(key(5))
	}
	if n.FreeCPUs() != 14 || n.FreeVRAM(0) != 0 || n.FreeVRAM(1) != 80*gib || len(n.Grants) != 1 {
		t.Fatalf("%+v", n)
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		in   int64
		want string
	}{
		{0, "0B"}, {1, "1B"}, {1 << 10, "1K"}, {16 << 20, "16M"}, {40 * gib, "40G"}, {22*gib + gib/2, "22.5G"}, {80*gib - 1, "79.9G"},
		{1536 * gib, "1536G"}, {256*gib + 1, "256G"}, {20 << 40, "20T"}, {gib - 1, "1023M"},
	} {
		if got := Size(tt.in); got != tt.want {
			t.Errorf("Size(%d) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

// TestTemporarySpace: nodes are told apart by it, asks too, and all ranks of a member share it.
func TestTemporarySpace(t *testing.T) {
	n := testNode(0)
	n.Has[Tmp] = 100 * gib
	each := *n
	each.Each[Tmp] = gib
	seen := map[string]bool{}
	for _, v := range []*Node{n, &each, n.Restore(Grant{MemberKey: key(1), Takes: Amounts{Tmp: gib}}), n.Restore(Grant{MemberKey: key(1), Takes: Amounts{Tmp: 2 * gib}})} {
		seen[string(v.AppendClass(nil))] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d classes of 4 nodes", len(seen))
	}
	spec := &api.Spec{Size: 2, TmpPerNode: 10 * gib, Roles: []api.Role{{Name: "a", Count: 1, CPUsPerRank: 1}, {Name: "b", Count: 1, CPUsPerRank: 1}}}
	ask := AskOf(spec, []string{"gpu"})
	g := GrantOf(ask, key(1), []int{0, 1}, func(int) Slot { return Slot{Node: "n3"} }, time.Time{})
	if g.Takes[Tmp] != 10*gib || g.Ranks != 2 {
		t.Errorf("a member of two roles takes %+v", g)
	}
	less := *spec
	less.TmpPerNode = 0
	if AskOf(&less, []string{"gpu"}).Key == ask.Key {
		t.Error("asks of different temporary space have one key")
	}
	if g = GrantFor(ask, key(1), []Slot{{Node: "n3"}, {Node: "n3"}}, time.Time{}); g.Takes[Tmp] != 10*gib {
		t.Errorf("two ranks on a node take %s", Size(g.Takes[Tmp]))
	}
	// Who asks for none takes what each takes, however many ranks there are.
	each.Each[Tmp] = 30 * gib
	on := each.Counted().Restore(Grant{MemberKey: key(1), Ranks: 2, Takes: Amounts{CPUs: 2}}).Restore(Grant{MemberKey: key(2), Ranks: 2, Takes: Amounts{CPUs: 2, Tmp: 50 * gib}})
	for _, x := range []struct {
		n    *Node
		tmp  int64
		free int64
		fits bool
	}{{on, 20 * gib, 20, true}, {on, 20*gib + 1, 20, false}, {on, 0, 20, false}, {on.Release(key(1)), 50 * gib, 50, true}, {on.Release(key(2)), 0, 70, true}, {on.Emptied(), 100 * gib, 100, true}} {
		d, err := NewNeed(AskOf(&api.Spec{Size: 1, TmpPerNode: x.tmp}, []string{"gpu"}))
		if err != nil {
			t.Fatal(err)
		}
		if free := x.n.Free(Tmp); free != x.free*gib || x.n.Used(Tmp) != 100*gib-free || (d.Ranks(x.n) > 0) != x.fits {
			t.Errorf("%s free, room for %d ranks that ask for %s; want %dG", Size(free), d.Ranks(x.n), Size(x.tmp), x.free)
		}
	}
}
