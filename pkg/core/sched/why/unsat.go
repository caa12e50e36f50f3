package why

import (
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// Unsatisfiable says why the cluster could never hold an ask, nil when it could: with
// every known node in service and nothing on it, neither gangs nor strangers. The hint is
// the nearest ask that could be met.
func Unsatisfiable(nodes []*cluster.Node, p *order.Policy, ask *cluster.Ask) *api.Error {
	if err := checkNames(nodes, p, ask); err != nil {
		return err
	}
	d, err := cluster.NewNeed(ask)
	if err != nil {
		if e, ok := err.(*api.Error); ok {
			return e
		}
		return api.Errorf(api.CodeInvalid, "%s", err.Error())
	}
	if err := checkFeatures(nodes, d); err != nil {
		return err
	}
	if err := checkLayout(d); err != nil {
		return err
	}
	// Nearly every ask fits on the nodes as they are: no copy of ten thousand is made
	// before this look has failed.
	if fit.HoldsEver(d, nodes) {
		return nil
	}
	whole := Pristine(nodes)
	if fit.HoldsEver(d, whole) {
		return nil
	}
	if d.Parts != nil {
		return diagnoseMixed(d, whole)
	}
	e := diagnose(d, whole)
	if e.Hint == "" {
		e.Hint = nearestHint(d, whole)
	}
	return e
}

// CouldHold reports whether nodes would hold an ask with no gang on them.
func CouldHold(nodes []*cluster.Node, ask *cluster.Ask) bool {
	d, err := cluster.NewNeed(ask)
	return err == nil && fit.HoldsEver(d, nodes)
}

// Pristine is the nodes as they were bought.
func Pristine(nodes []*cluster.Node) []*cluster.Node {
	out := make([]*cluster.Node, len(nodes))
	for i, n := range nodes {
		c := *n
		c.Ready, c.NotReady, c.Grants = true, "", nil
		c.Cards = slices.Clone(n.Cards)
		for j := range c.Cards {
			c.Cards[j].State, c.Cards[j].StrangersBytes = api.CardOK, 0
		}
		out[i] = c.Counted()
	}
	return out
}

// checkLayout refuses asks that contradict themselves, whatever the cluster.
func checkLayout(d *cluster.Need) *api.Error {
	s := d.Ask.Spec
	if s.MinNodes > d.Size {
		return &api.Error{Code: api.CodeUnsatisfiable, Message: fmt.Sprintf("%s can't be spread over %s: each node has at least one",
			api.Count(d.Size, "rank"), api.Count(s.MinNodes, "node")), Hint: fmt.Sprintf("ask for --nodes=%d or less", d.Size)}
	}
	if s.MaxNodes > 0 && s.MaxNodes < s.MinNodes {
		return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("at least %s but at most %d asked for", api.Count(s.MinNodes, "node"),
			s.MaxNodes),
			Hint: "write --nodes=MIN-MAX"}
	}
	if err := checkCounts(d); err != nil {
		return err
	}
	r := min(s.RanksPerNode, d.Size)
	if r <= 0 {
		return nil
	}
	m := (d.Size + r - 1) / r
	if m < s.MinNodes || s.MaxNodes > 0 && m > s.MaxNodes {
		return &api.Error{Code: api.CodeUnsatisfiable, Message: fmt.Sprintf("%s with %d on each node take %s, but %s asked for",
			api.Count(d.Size, "rank"), r, api.Count(m, "node"), nodesAsked(s)), Hint: fmt.Sprintf("ask for --nodes=%d", m)}
	}
	return nil
}

func nodesAsked(s *api.Spec) string {
	switch {
	case s.MinNodes > 0 && s.MinNodes == s.MaxNodes:
		return fmt.Sprintf("%d were", s.MinNodes)
	case s.MaxNodes > 0 && s.MinNodes > 0:
		return fmt.Sprintf("%d to %d were", s.MinNodes, s.MaxNodes)
	case s.MaxNodes > 0:
		return fmt.Sprintf("at most %d were", s.MaxNodes)
	}
	return fmt.Sprintf("at least %d were", s.MinNodes)
}

// nearestHint is the smallest change after which the nodes would hold the ask.
func nearestHint(d *cluster.Need, whole []*cluster.Node) string {
	found := NearestAsks(d, whole, 1, func(ask *cluster.Ask) bool {
		o, err := cluster.NewNeed(ask)
		return err == nil && checkLayout(o) == nil && fit.HoldsEver(o, whole)
	})
	if len(found) == 0 {
		return ""
	}
	if found[0].less {
		if a := d.Ask.Asked().Asked; a != nil && a.CardsBy == "gpus" && d.Size == 1 && strings.HasPrefix(found[0].Option, "--gpus=") {
			return "ask for " + found[0].Option + " or less, or for more ranks: one has the cards of one node"
		}
		return "ask for " + found[0].Option + " or less"
	}
	return "ask for " + found[0].Option
}

// stage narrows the nodes down by one thing that the ask needs.
type stage struct {
	most   func(n *cluster.Node) int64 // of it on a node
	need   int64
	say    func(largest int64, where string) string
	hint   func(pool []*cluster.Node) string // nil: the nearest ask
	reason api.Reason
}

// diagnose finds the first thing that no node has enough of, in the order in which people
// think of it: which nodes, which cards, how many, CPUs, memory, all of it at once, and
// then all ranks at once.
func diagnose(d *cluster.Need, nodes []*cluster.Node) *api.Error {
	pool, err := admitted(d, nodes)
	if err != nil {
		return err
	}
	for _, st := range stages(d) {
		var largest int64
		for _, n := range pool {
			largest = max(largest, st.most(n))
		}
		if largest >= st.need {
			continue
		}
		var names []string
		for _, n := range pool {
			if st.most(n) == largest {
				names = append(names, n.Name)
			}
		}
		e := &api.Error{Code: api.CodeUnsatisfiable, Message: st.say(largest, Hosts(names)), Reason: st.reason}
		if st.hint != nil {
			e.Hint = st.hint(pool)
		}
		return e
	}
	return together(d, pool)
}

func stages(d *cluster.Need) []stage {
	var out []stage
	add := func(need int64, reason api.Reason, most func(*cluster.Node) int64, say func(int64, string) string) {
		if need > 0 {
			out = append(out, stage{need: need, most: most, say: say, reason: reason})
		}
	}
	if d.WantsCards() {
		add(1, "", func(n *cluster.Node) int64 { return cardsWith(d, n, 0) }, func(int64, string) string {
			return "no node has a " + cardNoun(d)
		})
		out[0].hint = models
		add(d.VRAM, "", func(n *cluster.Node) int64 { return largestCard(d, n) }, func(v int64, where string) string {
			return fmt.Sprintf("no node has a %s with %s: the largest is %s on %s", cardNoun(d), cluster.Size(d.VRAM), cluster.Size(v), where)
		})
		add(int64(d.CardsFor(1)), "", func(n *cluster.Node) int64 { return cardsWith(d, n, d.VRAM) }, func(v int64, where string) string {
			return fmt.Sprintf("no node has %s: the most is %d on %s", cardText(d, d.CardsFor(1)), v, where)
		})
	}
	for r, need := range d.One() {
		row, whose := &cluster.Resources[r], " for a rank"
		if row.Rank.Option == "" {
			whose = " (--" + row.Member.Option + ")"
		}
		add(need, row.TooMuch, func(n *cluster.Node) int64 { return n.Has[r] }, func(v int64, where string) string {
			return fmt.Sprintf("no node has %s%s: the most is %s on %s", row.Text(need), whose, row.Figure(v), where)
		})
	}
	return out
}

func cardNoun(d *cluster.Need) string {
	noun := "card"
	if t := d.Ask.Spec.GPUType; t != "" {
		noun += " of type " + t
	}
	if c := d.Ask.Spec.MinCompute; c != "" {
		noun += " of compute capability " + c + " or more"
	}
	return noun
}

// models lists what cards there are, for who asked for a type that is not.
func models(pool []*cluster.Node) string {
	on := make(map[string][]string)
	var order []string
	for _, n := range pool {
		for i := range n.Cards {
			m := n.Cards[i].Model
			if on[m] == nil {
				order = append(order, m)
			}
			on[m] = append(on[m], n.Name)
		}
	}
	if len(order) == 0 {
		return "gnoded found none on any of them: ginfo --cards, and its log says why"
	}
	slices.Sort(order)
	for i, m := range order {
		order[i] = m + " on " + Hosts(on[m])
	}
	return "cards: " + strings.Join(order, ", ")
}

func cardsWith(d *cluster.Need, n *cluster.Node, vram int64) int64 {
	var count int64
	for i := range n.Cards {
		if d.MatchesCard(&n.Cards[i]) && n.Cards[i].VRAMBytes >= vram {
			count++
		}
	}
	return count
}

func largestCard(d *cluster.Need, n *cluster.Node) int64 {
	var largest int64
	for i := range n.Cards {
		if d.MatchesCard(&n.Cards[i]) {
			largest = max(largest, n.Cards[i].VRAMBytes)
		}
	}
	return largest
}

// together is said when each thing is there, but not at once, or not often enough.
func together(d *cluster.Need, pool []*cluster.Node) *api.Error {
	if d.Alternatives != nil {
		return alternativesTogether(d, pool)
	}
	var t fit.Tally
	for _, n := range pool {
		if k := d.Ranks(n); k > 0 {
			t.Add(k)
		}
	}
	e := &api.Error{Code: api.CodeUnsatisfiable}
	switch {
	case t.Nodes == 0:
		e.Message = "no node has all that a rank needs at once: " + rankText(d)
	case t.Ranks < d.Size:
		e.Message = fmt.Sprintf("the whole cluster, empty, has room for %d of %s: each needs %s", t.Ranks, api.Count(d.Size, "rank"), rankText(d))
	default:
		e.Message = fmt.Sprintf("%s do not fit on %s, though every node were empty: each rank needs %s",
			api.Count(d.Size, "rank"), layoutText(d), rankText(d))
	}
	return e
}
