package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
)

const stateQuarantined = api.CardQuarantined

// Take is n with the grant added, or why it can't be: the node, what is short, by how
// much. n itself never changes.
func (n *Node) Take(g Grant) (*Node, error) {
	if err := n.refuse(&g); err != nil {
		return nil, err
	}
	return n.Restore(g), nil
}

// Restore is n with the grant added whatever is free. It is for what is a fact already:
// members found running after a restart hold what they hold, also when the node has
// shrunk or strangers have grown meanwhile. A grant with the same key is replaced.
func (n *Node) Restore(g Grant) *Node {
	c := *n.Release(g.MemberKey)
	c.used = c.with(&g, 1)
	at, _ := c.find(g.MemberKey)
	grants := make([]Grant, 0, len(c.Grants)+1)
	grants = append(grants, c.Grants[:at]...)
	grants = append(grants, g)
	c.Grants = append(grants, c.Grants[at:]...)
	return &c
}

// Release is n without what is held under k; n itself when that is nothing.
func (n *Node) Release(k api.MemberKey) *Node {
	at, found := n.find(k)
	if !found {
		return n
	}
	c := *n
	c.used = n.with(&n.Grants[at], -1)
	c.Grants = nil // as in a node that never had any: Release undoes Take exactly
	if len(n.Grants) > 1 {
		c.Grants = append(append(make([]Grant, 0, len(n.Grants)-1), n.Grants[:at]...), n.Grants[at+1:]...)
	}
	return &c
}

// Grant is what is held under k.
func (n *Node) Grant(k api.MemberKey) (Grant, bool) {
	at, found := n.find(k)
	if !found {
		return Grant{}, false
	}
	return n.Grants[at], true
}

// Emptied is n as if no gang held anything; strangers stay.
func (n *Node) Emptied() *Node {
	if len(n.Grants) == 0 {
		return n.Counted()
	}
	c := *n
	c.Grants = nil
	c.used = c.count()
	return &c
}

// find is where the grant under k is, or would be.
func (n *Node) find(k api.MemberKey) (at int, found bool) {
	low, high := 0, len(n.Grants)
	for low < high {
		mid := int(uint(low+high) >> 1)
		if g := &n.Grants[mid]; g.Job < k.Job || g.Job == k.Job && g.Epoch < k.Epoch {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, low < len(n.Grants) && n.Grants[low].MemberKey == k
}

// lack is what keeps a grant off a node.
type lack int

const (
	lacksNothing lack = iota
	lacksReady
	lacksWhole // somebody has the whole node
	lacksEmpty // it wants the whole node
	lacksAmount
	lacksCard  // there is none of that name
	lacksOther // one card twice
	lacksSound // the card is quarantined
	lacksShare // somebody has the card
	lacksAlone // it wants the whole card
	lacksVRAM
)

// lack finds what is short for a grant: of which resource, or on which of its cards. It is apart from the
// text, since a plan asks very often and tells nobody.
func (n *Node) lack(u *usage, g *Grant) (what lack, at int) {
	switch {
	case !n.Ready:
		return lacksReady, 0
	case u.exclusive > 0:
		return lacksWhole, 0
	case g.Exclusive && u.grants > 0:
		return lacksEmpty, 0
	}
	for r := range n.Has {
		// A figure of zero takes nothing, so it fits even where memory is over-drawn.
		if want := cmp.Or(g.Takes[r], n.Each[r]); want > 0 && want > n.Has[r]-u.taken[r] {
			return lacksAmount, r
		}
	}
	last := -1
	for i := range g.Cards {
		last = n.cardAfter(last, g.Cards[i].UUID)
		if what := n.lackOn(u, last, g.Cards[:i], &g.Cards[i]); what != lacksNothing {
			return what, i
		}
	}
	return lacksNothing, 0
}

// lackOn is lack for the card at index i of the node, -1: it has none such.
func (n *Node) lackOn(u *usage, i int, before []CardGrant, c *CardGrant) lack {
	if i < 0 {
		return lacksCard
	}
	for j := range before {
		if before[j].UUID == c.UUID {
			return lacksOther
		}
	}
	switch {
	case n.Cards[i].State == stateQuarantined:
		return lacksSound
	case u.cards[i].exclusive > 0:
		return lacksShare
	case c.Exclusive && u.cards[i].holders > 0:
		return lacksAlone
	case c.VRAMBytes > n.freeVRAM(u, i):
		return lacksVRAM
	}
	return lacksNothing
}

// refuse says why a grant can't be added, nil when it can.
func (n *Node) refuse(g *Grant) error {
	u := n.use()
	what, at := n.lack(u, g)
	if _, held := n.find(g.MemberKey); held && what != lacksReady {
		return fmt.Errorf("node %s: job %d epoch %d holds a grant already", n.Name, g.Job, g.Epoch)
	}
	switch what {
	case lacksNothing:
		return nil
	case lacksReady:
		return fmt.Errorf("node %s takes no new work: %s", n.Name, cmp.Or(n.NotReady, "not ready"))
	case lacksWhole:
		return fmt.Errorf("node %s: job %d has the whole node", n.Name, n.exclusiveHolder())
	case lacksEmpty:
		return fmt.Errorf("node %s: asked for as a whole, job %d is on it", n.Name, n.Grants[0].Job)
	case lacksAmount:
		row, free, want := &Resources[at], max(0, n.Has[at]-u.taken[at]), cmp.Or(g.Takes[at], n.Each[at])
		return fmt.Errorf("node %s: %s %s asked, %s of %s free: %s short", n.Name, row.Figure(want), row.Noun, row.Figure(free),
			row.Figure(n.Has[at]), row.Figure(want-free))
	}
	return n.refuseCard(u, &g.Cards[at], what)
}

func (n *Node) refuseCard(u *usage, c *CardGrant, what lack) error {
	i := n.cardIndex(c.UUID)
	if i < 0 {
		return fmt.Errorf("node %s has no card %s", n.Name, c.UUID)
	}
	card := &n.Cards[i]
	name := fmt.Sprintf("node %s card %d", n.Name, card.Index)
	switch what {
	case lacksOther:
		return fmt.Errorf("%s: asked for twice in one grant", name)
	case lacksSound:
		return fmt.Errorf("%s is quarantined: %s", name, cmp.Or(card.Reason, "unhealthy"))
	case lacksShare:
		return fmt.Errorf("%s: job %d has it to itself", name, n.cardHolders(c.UUID)[0])
	case lacksAlone:
		return fmt.Errorf("%s: asked for as a whole, job %d is on it", name, n.cardHolders(c.UUID)[0])
	}
	free := n.freeVRAM(u, i)
	return fmt.Errorf("%s: %s VRAM asked, %s of %s free (%s held by strangers): %s short", name, Size(c.VRAMBytes),
		Size(free), Size(card.VRAMBytes), Size(card.StrangersBytes), Size(c.VRAMBytes-free))
}

func (n *Node) exclusiveHolder() int64 {
	for i := range n.Grants {
		if n.Grants[i].Exclusive {
			return n.Grants[i].Job
		}
	}
	return 0
}

// Holders lists the jobs on the card at index i, and whether one has it to itself.
func (n *Node) Holders(i int) (jobs []int64, alone bool) {
	return n.cardHolders(n.Cards[i].UUID), n.use().cards[i].exclusive > 0
}

// cardHolders lists the jobs on a card, smallest id first.
func (n *Node) cardHolders(uuid string) []int64 {
	var out []int64
	for i := range n.Grants {
		for _, c := range n.Grants[i].Cards {
			if c.UUID == uuid {
				out = append(out, n.Grants[i].Job)
			}
		}
	}
	return slices.Compact(out)
}

// GrantFor is what the member of a gang on one node takes: slots are the ranks on that
// node. What is asked for by node is counted once, whatever the number of ranks.
func GrantFor(ask *Ask, key api.MemberKey, slots []Slot, until time.Time) Grant {
	s := ask.Spec
	g := Grant{
		MemberKey: key,
		Ranks:     len(slots),
		Exclusive: s.Exclusive,
		Until:     until,
	}
	rank, member := AmountsOf(s)
	for r := range g.Takes {
		g.Takes[r] = int64(len(slots))*rank[r] + member[r]
	}
	for _, slot := range slots {
		for _, uuid := range slot.Cards {
			if !slices.ContainsFunc(g.Cards, func(c CardGrant) bool { return c.UUID == uuid }) {
				g.Cards = append(g.Cards, CardGrant{UUID: uuid, VRAMBytes: s.VRAMBytes, Exclusive: !shares(s)})
			}
		}
	}
	return g
}

// shares reports whether cards may be shared: without a figure nobody could tell how
// many gangs fit on a card, so such an ask takes it whole.
func shares(s *api.Spec) bool { return s.Share && s.VRAMBytes > 0 }

// AskOf is what a gang needs, with the partitions it may run in.
func AskOf(spec *api.Spec, partitions []string) *Ask {
	ask := &Ask{Spec: spec, Partitions: partitions, Key: askKey(spec, partitions)}
	for i := range spec.Roles {
		part := AskOf(spec.Part(i), ownPartitions(spec.Roles[i].Component, partitions))
		part.Apart = spec.Roles[i].Component != nil
		ask.Parts = append(ask.Parts, part)
		if ask.Key += "; " + part.Key; part.Apart {
			ask.Key += " apart"
		}
	}
	return ask
}

// Leave notes which of the excluded nodes nobody asked to leave out.
func (a *Ask) Leave(refused []string) {
	a.Refused = refused
	for _, p := range slices.Concat(a.Parts, a.Any) {
		p.Leave(refused)
	}
}

// ownPartitions are those of the gang that a component asks for, all where it asks for none that the
// gang still asks for.
func ownPartitions(c *api.Component, all []string) []string {
	if c == nil || c.Partition == "" {
		return all
	}
	var own []string
	for name := range strings.SplitSeq(c.Partition, ",") {
		if slices.Contains(all, name) {
			own = append(own, name)
		}
	}
	if own == nil {
		return all
	}
	return own
}

// boundsKey tells the asks of roles apart that may have different numbers of nodes.
func boundsKey(least, most int) string {
	if least == 0 && most == 0 {
		return ""
	}
	return fmt.Sprintf(" on %d-%d", least, most)
}

// ask class names everything that decides where a gang fits, and nothing else, so that the
// elements of an array and a user's hundred equal submissions are looked at once a plan.
func askKey(s *api.Spec, partitions []string) string {
	// Written without fmt, which costs most of what a submission's look at the nodes does.
	b := strconv.AppendInt(make([]byte, 0, 128), int64(s.Size), 10)
	number := func(mark byte, n int64) { b = strconv.AppendInt(append(b, mark), n, 10) }
	yes := func(v bool) { b = strconv.AppendBool(append(b, ' '), v) }
	text := func(v string) { b = strconv.AppendQuote(append(b, ' '), v) }
	rank, member := AmountsOf(s)
	for r := range Resources {
		number(' ', rank[r])
		number('+', member[r])
	}
	number(' ', int64(s.GPUsPerRank))
	number(' ', int64(s.GPUsPerNode))
	number(' ', s.VRAMBytes)
	yes(shares(s))
	number(' ', int64(s.RanksPerNode))
	number(' ', int64(s.MinNodes))
	number(' ', int64(s.MaxNodes))
	yes(s.Exclusive)
	if s.Switches > 0 {
		wait := time.Duration(-1)
		if s.SwitchWait != nil {
			wait = *s.SwitchWait
		}
		b = fmt.Appendf(b, " switches %d %d", s.Switches, int64(wait))
	}
	if len(s.Pools) > 0 {
		b = fmt.Appendf(b, " pools %v", s.Pools)
	}
	if s.Shape != (api.CPUShape{}) {
		b = fmt.Appendf(b, " shape %v", s.Shape)
	}
	if s.Reservation != "" {
		b = fmt.Appendf(b, " in %q", s.Reservation)
	}
	if s.Prefer != "" {
		b = fmt.Appendf(b, " rather %q", s.Prefer)
	}
	if s.Container != nil {
		b = fmt.Appendf(b, " contained %q", imageFeatures(s))
	}
	text(strings.ToLower(s.GPUType))
	text(s.MinCompute)
	text(s.Constraint)
	for _, list := range [][]string{partitions, s.NodeList, s.Exclude} {
		b = append(b, " ["...)
		for _, name := range slices.Sorted(slices.Values(list)) {
			text(name)
		}
		b = append(b, ']')
	}
	return string(b)
}
