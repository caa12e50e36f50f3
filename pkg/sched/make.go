package sched

import (
	"cmp"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// Make plans the starts that the view allows: strictly in queue order, each gang whole or
// not at all, lower ones around what the first blocked ones claim.
//
// Equal asks are planned once. Within a plan room only shrinks (starts take it, claims
// keep it off), so an ask that did not fit once does not fit again: the rest of a hundred
// thousand waiting gangs costs one map look-up each.
func Make(now time.Time, v *View, p *Policy) Plan {
	pl := newPlanner(now, v, p)
	for i, c := range v.Queue {
		if p.MaxStarts > 0 && len(pl.starts) >= p.MaxStarts {
			pl.carry(v.Queue[i:])
			break
		}
		pl.visit(c)
	}
	return Plan{Starts: pl.starts, Reasons: pl.reasons, Claims: pl.claims}
}

// planner is the working state of one plan.
type planner struct {
	now     time.Time
	view    *View
	limit   int             // claims
	real    []*cluster.Node // with the starts planned so far
	shadow  []*cluster.Node // real with the claims on top, possibly over-drawn; nil: no claim yet
	empty   map[int]*cluster.Node
	open    []int32 // ready nodes with a free CPU
	carded  []int32 // those of them with an open card
	shapes  map[string]*shape
	spots   []spot
	tally   tally
	starts  []Start
	claims  []Claim
	reasons []Reason
}

// shape is what is known about all asks that are equal.
type shape struct {
	need        *cluster.Need
	bad         error // the ask can't be read
	blocked     bool
	unclaimable bool
	first       Reason // of the first of them that was blocked
	rest        Reason // of the others
}

func newPlanner(now time.Time, v *View, p *Policy) *planner {
	pl := &planner{
		now: now, view: v, limit: max(1, p.Claims), real: slices.Clone(v.Nodes), empty: make(map[int]*cluster.Node),
		shapes: make(map[string]*shape),
	}
	for at, n := range pl.real {
		if !n.Ready {
			continue
		}
		n = n.Counted()
		pl.real[at] = n
		if n.FreeCPUs() > 0 {
			pl.open = append(pl.open, int32(at))
			if n.OpenCards() > 0 {
				pl.carded = append(pl.carded, int32(at))
			}
		}
	}
	return pl
}

// current is the nodes as the gang in turn sees them.
func (pl *planner) current() []*cluster.Node {
	if pl.shadow != nil {
		return pl.shadow
	}
	return pl.real
}

func (pl *planner) find(name string) int {
	at, found := slices.BinarySearchFunc(pl.real, name, func(n *cluster.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return -1
	}
	return at
}

// visit starts a gang or notes why it stays.
func (pl *planner) visit(c *Candidate) {
	sh := pl.shape(c.Ask)
	if sh.bad == nil && !sh.blocked && pl.start(c, sh) {
		return
	}
	first := !sh.blocked
	if first {
		sh.blocked = true
		pl.explainShape(c, sh)
	}
	r := sh.rest
	if first {
		r = sh.first
	}
	r.Job = c.Job
	if pl.reasons == nil {
		pl.reasons = make([]Reason, 0, len(pl.view.Queue)-len(pl.starts))
	}
	pl.reasons = append(pl.reasons, r)
	if sh.bad == nil && len(pl.claims) < pl.limit {
		pl.claim(c, sh)
	}
}

func (pl *planner) shape(ask *cluster.Ask) *shape {
	sh := pl.shapes[ask.Shape]
	if sh == nil {
		sh = &shape{}
		sh.need, sh.bad = cluster.NewNeed(ask)
		pl.shapes[ask.Shape] = sh
	}
	return sh
}

// start books a gang where it fits, and reports whether it does.
func (pl *planner) start(c *Candidate, sh *shape) bool {
	slots := pl.slots(c, sh.need)
	if slots == nil {
		return false
	}
	var until time.Time
	if c.TimeLimit > 0 {
		until = pl.now.Add(c.TimeLimit)
	}
	for _, g := range pl.grants(c, slots, epochStart, until) {
		pl.real[g.at] = pl.real[g.at].Restore(g.Grant)
		if pl.shadow != nil {
			pl.shadow[g.at] = pl.shadow[g.at].Restore(g.Grant)
		}
	}
	pl.starts = append(pl.starts, Start{Job: c.Job, Slots: slots})
	return true
}

// slots is where a gang can start now, by rank; nil: it does not fit.
func (pl *planner) slots(c *Candidate, d *cluster.Need) []cluster.Slot {
	if d.Parts != nil {
		return pl.placeMixed(c, d)
	}
	members := pl.place(d, pl.current(), c.Avoid)
	if members == nil {
		return nil
	}
	slots := make([]cluster.Slot, 0, d.Size)
	for _, m := range members {
		slots = append(slots, d.Pick(pl.current()[m.at], m.ranks)...)
	}
	return slots
}

// nodeGrant is a grant with the index of its node.
type nodeGrant struct {
	at int
	cluster.Grant
}

// grants is what slots take, node by node. The slots of a node follow each other, except
// in a gang with roles.
func (pl *planner) grants(c *Candidate, slots []cluster.Slot, epoch int, until time.Time) []nodeGrant {
	key := api.MemberKey{Job: c.Job, Epoch: epoch}
	if c.Ask.Parts != nil {
		return pl.mixedGrants(c, slots, key, until)
	}
	var out []nodeGrant
	for len(slots) > 0 {
		n := 1
		for n < len(slots) && slots[n].Node == slots[0].Node {
			n++
		}
		out = append(out, nodeGrant{pl.find(slots[0].Node), cluster.GrantFor(c.Ask, key, slots[:n], until)})
		slots = slots[n:]
	}
	return out
}

func (pl *planner) mixedGrants(c *Candidate, slots []cluster.Slot, key api.MemberKey, until time.Time) []nodeGrant {
	ranks := make(map[string][]int)
	var order []string
	for r, s := range slots {
		if ranks[s.Node] == nil {
			order = append(order, s.Node)
		}
		ranks[s.Node] = append(ranks[s.Node], r)
	}
	out := make([]nodeGrant, len(order))
	for i, name := range order {
		out[i] = nodeGrant{pl.find(name), cluster.GrantOf(c.Ask, key, ranks[name], func(r int) cluster.Slot { return slots[r] }, until)}
	}
	return out
}

// place finds members for a gang, nil when it does not fit. Nodes that just failed it
// are used only when nothing else does.
func (pl *planner) place(d *cluster.Need, nodes []*cluster.Node, avoid []string) []member {
	spots := pl.look(d, nodes, avoid)
	l := layoutOf(d)
	t := pl.tallyOf(spots)
	m := l.members(t)
	if m == 0 {
		if len(avoid) > 0 {
			return pl.place(d, nodes, nil)
		}
		return nil
	}
	return l.choose(spots, t, m, func(s spot, ranks int) cluster.Waste { return d.WasteOf(nodes[s.at], ranks) })
}

// look lists where ranks fit. The figures come first: on a full cluster they end the look
// at a node, and names and features are never compared.
func (pl *planner) look(d *cluster.Need, nodes []*cluster.Node, avoid []string) []spot {
	list := pl.open
	if d.WantsCards() {
		list = pl.carded
	}
	pl.spots = pl.spots[:0]
	for _, at := range list {
		n := nodes[at]
		if k := d.Ranks(n); k > 0 && d.Admits(n) && !slices.Contains(avoid, n.Name) {
			pl.spots = append(pl.spots, spot{at: int(at), ranks: k})
		}
	}
	return pl.spots
}

func (pl *planner) tallyOf(spots []spot) *tally {
	pl.tally.reset()
	for _, s := range spots {
		pl.tally.add(s.ranks)
	}
	return &pl.tally
}
