package fit

import (
	"cmp"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// Among places that strand equally little a gang of several nodes gets those that are nearest
// to each other: below the lowest switch, and there below the fewest of the switches that nodes
// hang on. --switches=N makes it a condition, for a time.

// tree is a site's switches over the nodes of a view.
type tree struct {
	sw     []api.Switch // lowest first
	parent []int        // by switch; -1: none
	leafOf []int        // by node: the switch that it hangs on, -1: none is known
	nodes  []*cluster.Node
}

func newTree(sw []api.Switch, nodes []*cluster.Node) *tree {
	t := &tree{sw: sw, parent: make([]int, len(sw)), leafOf: make([]int, len(nodes)), nodes: nodes}
	at, leaf := map[string]int{}, map[string]int{}
	for i := range sw {
		at[sw[i].Name] = i
	}
	for i := range sw {
		t.parent[i] = -1
		if p, ok := at[sw[i].Parent]; ok {
			t.parent[i] = p
		}
		if sw[i].Level == 0 {
			for _, n := range sw[i].Nodes {
				leaf[n] = i
			}
		}
	}
	for at, n := range nodes {
		t.leafOf[at] = -1
		if i, ok := leaf[n.Name]; ok {
			t.leafOf[at] = i
		}
	}
	return t
}

// topology is the tree of the view, nil where the site names no switches.
func (f *Finder) topology() *tree {
	if len(f.switches) == 0 {
		return nil
	}
	t := f.tree
	same := t != nil && len(t.nodes) == len(f.nodes) && len(t.sw) == len(f.switches) && &t.sw[0] == &f.switches[0]
	for at := 0; same && at < len(t.nodes); at++ {
		same = t.nodes[at].Name == f.nodes[at].Name
	}
	if !same {
		t = newTree(f.switches, slices.Clone(f.nodes))
		f.tree = t
	}
	return t
}

// leaf is the room below one switch that nodes hang on.
type leaf struct {
	sw    int
	t     Tally
	ranks int
}

// leaves is the room that choices have below each switch; nodes that hang on none that is known
// are below one of their own each.
func (t *tree) leaves(choices []Choice) []*leaf {
	by := map[int]*leaf{}
	var out []*leaf
	for i := range choices {
		s := &choices[i]
		each(s, func(at int) {
			key := t.leafOf[at]
			if key < 0 {
				key = -1 - at
			}
			l := by[key]
			if l == nil {
				l = &leaf{sw: key}
				by[key] = l
				out = append(out, l)
			}
			l.t.Add(s.Ranks)
			l.ranks += s.Ranks
		})
	}
	slices.SortFunc(out, func(a, b *leaf) int { return cmp.Or(cmp.Compare(b.ranks, a.ranks), t.order(a.sw, b.sw)) })
	return out
}

func each(s *Choice, f func(at int)) {
	if s.like.count == 0 {
		f(s.At)
	}
	for at := range s.like.each() {
		f(at)
	}
}

// order is by name, those of single nodes last.
func (t *tree) order(a, b int) int {
	if a >= 0 && b >= 0 {
		return strings.Compare(t.sw[a].Name, t.sw[b].Name)
	}
	return cmp.Compare(b, a)
}

// area is a few of the switches that nodes hang on, below a common one.
type area struct {
	level  int // of the common one; more than any: there is none
	leaves []*leaf
	over   int // ranks that it has room for beyond the gang
	name   string
}

// areas are the places below each switch that hold a gang, the nearest together first: by the
// level of the common switch, by how many they are, by what stays over, by name.
func (t *tree) areas(l Layout, leaves []*leaf, members int) []area {
	tops := map[int][]*leaf{}
	for _, one := range leaves {
		for sw := one.sw; sw >= 0; sw = t.parent[sw] {
			tops[sw] = append(tops[sw], one)
		}
		if one.sw < 0 {
			tops[one.sw] = append(tops[one.sw], one)
		}
	}
	tops[len(t.sw)] = leaves // all of them, though nothing that is known joins them
	var out []area
	for sw, below := range tops {
		a := area{level: 0}
		switch {
		case sw == len(t.sw):
			a.level = len(t.sw) + 1
		case sw >= 0:
			a.level, a.name = t.sw[sw].Level, t.sw[sw].Name
		default:
			a.name = t.nodes[-1-sw].Name
		}
		if a.leaves = fewest(l, below, members); a.leaves != nil {
			for _, one := range a.leaves {
				a.over += one.ranks
			}
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b area) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(len(a.leaves), len(b.leaves)), cmp.Compare(a.over, b.over),
			strings.Compare(a.name, b.name))
	})
	return out
}

// fewest are the fewest of some leaves, the roomiest first, that hold a gang on so many nodes
// (0: any number); the last is the one with the least room that does. Nil: they do not hold it.
func fewest(l Layout, below []*leaf, members int) []*leaf {
	var sum Tally
	holds := func() bool {
		m := l.Members(&sum)
		return m > 0 && (members == 0 || m == members)
	}
	for n, one := range below {
		sum.addFrom(&one.t, 1)
		if !holds() {
			continue
		}
		out := slices.Clone(below[:n+1])
		for i := len(below) - 1; i > n && below[i].ranks < one.ranks; i-- {
			sum.addFrom(&one.t, -1)
			sum.addFrom(&below[i].t, 1)
			if holds() {
				out[n] = below[i]
				break
			}
			sum.addFrom(&below[i].t, -1)
			sum.addFrom(&one.t, 1)
		}
		return out
	}
	return nil
}

func (t *Tally) addFrom(o *Tally, sign int) {
	for k := 1; k < len(o.by); k++ {
		t.AddAll(k, sign*o.by[k])
	}
}

// within are the choices below some leaves.
func (t *tree) within(choices []Choice, leaves []*leaf) []Choice {
	in := map[int]bool{}
	for _, one := range leaves {
		in[one.sw] = true
	}
	var out []Choice
	for _, s := range choices {
		var like []int32
		each(&s, func(at int) {
			if key := t.leafOf[at]; key >= 0 && in[key] || key < 0 && in[-1-at] {
				like = append(like, int32(at))
			}
		})
		if like != nil {
			s.At, s.like = int(like[0]), listOf(like)
			out = append(out, s)
		}
	}
	return out
}

// maxAreas bounds the areas that are tried for one gang.
const maxAreas = 8

// near finds members below as few and as low switches as that costs nothing: neither a node
// more, nor more stranded cards, nor a larger model of card. limit: below at most so many.
// Nil: there are none.
func (f *Finder) near(t *tree, l Layout, choices []Choice, chosen []Member, limit int, wasteOf wasteFunc) []Member {
	if len(chosen) < 2 && limit == 0 {
		return chosen
	}
	leaves := t.leaves(choices)
	if limit > 0 {
		for _, a := range t.areas(l, leaves, 0) {
			if len(a.leaves) <= limit {
				return f.chooseIn(t, l, choices, a, wasteOf)
			}
		}
		return nil
	}
	least := costOf(choices, chosen, wasteOf)
	areas := t.areas(l, leaves, len(chosen))
	for _, a := range areas[:min(maxAreas, len(areas))] {
		if a.level > len(t.sw) {
			break
		}
		if ms := f.chooseIn(t, l, choices, a, wasteOf); costOf(choices, ms, wasteOf) <= least {
			return ms
		}
	}
	return chosen
}

func (f *Finder) chooseIn(t *tree, l Layout, choices []Choice, a area, wasteOf wasteFunc) []Member {
	in := t.within(choices, a.leaves)
	var sum Tally
	for i := range in {
		sum.AddAll(in[i].Ranks, in[i].Count())
	}
	return l.Choose(in, &sum, l.Members(&sum), wasteOf)
}

// costOf is what members strand.
func costOf(choices []Choice, ms []Member, wasteOf wasteFunc) (sum int64) {
	of := map[int]Choice{}
	for _, s := range choices {
		each(&s, func(at int) { of[at] = s })
	}
	for _, m := range ms {
		s := of[m.At]
		sum += wasteOf(s, m.Ranks).Price
	}
	return sum
}

// switchRoom is the room below one of the switches that nodes hang on.
type switchRoom struct {
	Name  string // empty: of a node that hangs on none that is known
	Ranks int
}

// SwitchRooms is the room for a gang below each switch, and below how many of them it fits; 0: nowhere.
func (f *Finder) SwitchRooms(sh *AskClass, l *NodeView) (rooms []switchRoom, need int) {
	choices, cut, t := slices.Clone(f.Look(sh, l, nil)), LayoutOf(sh.Need), f.topology()
	if t == nil || cut.Members(f.TallyOf(choices)) == 0 {
		return nil, 0
	}
	leaves := t.leaves(choices)
	for _, one := range leaves {
		r := switchRoom{Ranks: one.ranks}
		if one.sw >= 0 {
			r.Name = t.sw[one.sw].Name
		}
		rooms = append(rooms, r)
	}
	return rooms, len(fewest(cut, leaves, 0))
}

// SwitchPath is the names of the switches from the top down to each node.
func SwitchPath(sw []api.Switch) map[string]string {
	path := map[string]string{}
	out := map[string]string{}
	for i := len(sw) - 1; i >= 0; i-- { // the highest first
		s := &sw[i]
		path[s.Name] = s.Name
		if p := path[s.Parent]; p != "" {
			path[s.Name] = p + "." + s.Name
		}
		if s.Level == 0 {
			for _, n := range s.Nodes {
				out[n] = path[s.Name]
			}
		}
	}
	return out
}
