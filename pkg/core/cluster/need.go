package cluster

import (
	"cmp"
	"gangd/pkg/api"
	"gangd/pkg/core/container"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Need is an ask made ready to be held against many nodes: figures taken out of the
// spec, card types lowered, the constraint parsed. It remembers what it found out about
// card models and is not safe for concurrent use.
type Need struct {
	Ask       *Ask
	Parts     []*Need // of a gang with roles, else nil; then only Ask, Size and Exclusive speak of the whole
	Size      int
	PerRank   Amounts
	PerMember Amounts
	Cards     int   // per rank
	NodeCards int   // per member
	VRAM      int64 // per card
	Share     bool
	Exclusive bool
	// Alternatives are the asks any one of which is enough, where the constraint says something of the
	// nodes together: its alternatives in the order written, or the one with its counts. Nil:
	// the ask itself is all.
	Alternatives []*Need
	// Preferred are those of --prefer, which come before Ways for a gang that can start now.
	Preferred   []*Need
	Counts      []Count  // of a way; nil: none
	within      string   // of a way: which of the partitions it is of; empty: all
	types       []string // lower case, any of them is enough; empty: every card
	constraint  *Constraint
	prefer      *Constraint
	compute     int             // least compute capability, 0: any
	models      map[string]bool // does a model match types
	images      []string        // features, see [Need.Images]
	only, never []string        // node names, sorted
}

// NewNeed reads an ask. The error is that of a constraint that can't be parsed.
func NewNeed(ask *Ask) (*Need, error) {
	s := ask.Spec
	constraint, err := ParseConstraint(s.Constraint)
	if err != nil {
		return nil, err
	}
	d := &Need{
		Ask: ask, Size: max(1, s.Size),
		Cards: s.GPUsPerRank, NodeCards: s.GPUsPerNode, VRAM: s.VRAMBytes, Share: shares(s), Exclusive: s.Exclusive,
		constraint: constraint, only: slices.Sorted(slices.Values(s.NodeList)), never: slices.Sorted(slices.Values(s.Exclude)),
	}
	d.PerRank, d.PerMember = AmountsOf(s)
	d.images = imageFeatures(s)
	if d.Cards > 0 {
		d.NodeCards = 0 // the two exclude each other; each rank having its own says more
	}
	for _, p := range ask.Parts {
		part, err := NewNeed(p)
		if err != nil {
			return nil, err
		}
		d.Parts = append(d.Parts, part)
	}
	for _, t := range strings.Split(s.GPUType, "|") {
		if t = modelName(strings.TrimSpace(t)); t != "" {
			d.types = append(d.types, t)
		}
	}
	d.compute = compute(s.MinCompute)
	if ask.Any != nil {
		return d, d.setAny(s.Prefer)
	}
	return d, d.setAlternatives(s.Prefer)
}

// setAny sets Alternatives and Preferred from those of the asks any one of which is enough.
func (d *Need) setAny(prefer string) error {
	var err error
	if d.prefer, err = ParseConstraint(prefer); err != nil {
		return err
	}
	for _, ask := range d.Ask.Any {
		one, err := NewNeed(ask)
		if err != nil {
			return err
		}
		ways := one.Alternatives
		if ways == nil {
			ways = []*Need{one}
		}
		for _, list := range [][]*Need{ways, one.Preferred} {
			for _, way := range list {
				way.within = "partition " + strings.Join(ask.Partitions, ",")
			}
		}
		d.Alternatives, d.Preferred = append(d.Alternatives, ways...), append(d.Preferred, one.Preferred...)
	}
	return nil
}

// alternatives sets Alternatives and Preferred. A gang with roles has them in its parts.
func (d *Need) setAlternatives(prefer string) error {
	var err error
	if d.prefer, err = ParseConstraint(prefer); err != nil || d.Parts != nil {
		return err
	}
	if d.constraint.joint() || d.prefer != nil {
		d.Alternatives = d.alternativesOf(d.constraint)
	}
	if d.prefer != nil {
		d.Preferred = d.alternativesOf(d.prefer)
	}
	return nil
}

func (d *Need) alternativesOf(c *Constraint) []*Need {
	var out []*Need
	for _, way := range c.alternatives() {
		w := *d
		w.Alternatives, w.Preferred, w.constraint = nil, nil, way
		if way != nil {
			w.Counts = way.counts
		}
		out = append(out, &w)
	}
	return out
}

// Packed reports whether how many ranks each node holds is not enough to place the ask: one
// with roles, or one that counts its nodes.
func (d *Need) Packed() bool { return d.Parts != nil || d.Counts != nil }

// Marks are the counts, by bit, that a node would count for.
func (d *Need) Marks(n *Node) (bits uint) {
	for i, c := range d.Counts {
		if c.Features.Met(n.Features) {
			bits |= 1 << i
		}
	}
	return bits
}

// Alternative is the alternative that a way stands for, as it was written; empty: there is one only.
func (d *Need) Alternative() string {
	if d.constraint == nil || d.constraint.each == nil {
		return d.within
	}
	return strings.TrimSpace(d.constraint.each.text + " " + d.within)
}

// Prefers reports whether a node has what --prefer names; without it all have.
func (d *Need) Prefers(n *Node) bool { return d.prefer.Met(n.Features) }

// Names lists the features that the constraint names, and those that are only preferred.
func (d *Need) Names() (required, preferred []string) {
	return d.constraint.Names(), d.prefer.Names()
}

// WantsCards reports whether any card is asked for.
func (d *Need) WantsCards() bool { return d.Cards+d.NodeCards > 0 }

// CardsFor is how many cards a member of so many ranks takes.
func (d *Need) CardsFor(ranks int) int { return d.Cards*ranks + d.NodeCards }

// Admits reports whether a node is one of those that the ask names: by partition, node
// list, exclusion, sockets and features. What is free, and whether it is ready, is not looked at.
func (d *Need) Admits(n *Node) bool {
	return d.InPartition(n) && d.Named(n.Name) && d.HasFeatures(n)
}

// InPartition reports whether a node is in one of the partitions of the ask.
func (d *Need) InPartition(n *Node) bool {
	for _, p := range d.Ask.Partitions {
		if slices.Contains(n.Partitions, p) {
			return true
		}
	}
	return false
}

// Named reports whether the ask's lists of nodes allow a name.
func (d *Need) Named(name string) bool {
	if len(d.only) > 0 {
		if _, in := slices.BinarySearch(d.only, name); !in {
			return false
		}
	}
	_, out := slices.BinarySearch(d.never, name)
	return !out
}

// HasFeatures reports whether a node meets the constraint, has the sockets, cores and threads, and runs
// containers if one is asked for.
func (d *Need) HasFeatures(n *Node) bool {
	return d.constraint.Met(n.Features) && d.HasShape(n) && d.HasContainers(n)
}

// HasShape reports whether a node has the sockets, cores and threads that are asked for.
func (d *Need) HasShape(n *Node) bool { return n.Shape.Has(d.Ask.Spec.Shape) }

// HasContainers reports whether a node can run the image that is asked for, if there is one.
func (d *Need) HasContainers(n *Node) bool {
	return len(d.images) == 0 || slices.ContainsFunc(d.images, func(f string) bool { return slices.Contains(n.Features, f) })
}

// imageFeatures are those of [Need.Images]. A name that nobody can read is for nodes to refuse.
func imageFeatures(s *api.Spec) []string {
	if s.Container == nil {
		return nil
	}
	image, err := container.Parse(s.Container.Image)
	if err != nil {
		return []string{api.FeatureContainer}
	}
	return image.Features()
}

// Images are the features one of which a node needs for the image that is asked for; none: there is no image.
func (d *Need) Images() []string { return d.images }

// MatchesCard reports whether a card is of the model asked for: one of the types is
// part of its model's name, and its compute capability is enough.
func (d *Need) MatchesCard(c *Card) bool {
	if d.compute > 0 && compute(c.Compute) < d.compute {
		return false
	}
	if len(d.types) == 0 {
		return true
	}
	if ok, known := d.models[c.Model]; known {
		return ok
	}
	name := modelName(c.Model)
	ok := slices.ContainsFunc(d.types, func(t string) bool { return namesModel(name, t) })
	if d.models == nil {
		d.models = make(map[string]bool)
	}
	d.models[c.Model] = ok
	return ok
}

// modelName is a model or a type as they are compared. Drivers write "NVIDIA A100-SXM4-80GB",
// and Slurm makes "nvidia_a100-sxm4-80gb" of it.
func modelName(s string) string { return dashes.Replace(strings.ToLower(s)) }

var dashes = strings.NewReplacer("_", "-", " ", "-")

// namesModel reports whether a type is part of a model's name. A number is whole: an a10 is no
// A100, and an l4 no L40.
func namesModel(model, kind string) bool {
	digit := func(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
	for at := 0; ; {
		i := strings.Index(model[at:], kind)
		if i < 0 {
			return false
		}
		at += i
		end := at + len(kind)
		if !(digit(kind, 0) && digit(model, at-1)) && !(digit(kind, len(kind)-1) && digit(model, end)) {
			return true
		}
		at++
	}
}

// compute makes a CUDA compute capability comparable: "8.6" is 806; 0: none, or not known.
func compute(s string) int {
	major, minor, _ := strings.Cut(s, ".")
	a, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	b, _ := strconv.Atoi(minor) // "9" is 9.0
	return 100*a + b
}

// Ranks is how many ranks of the ask fit on a node beside what is granted there, at most
// Size. If k ranks fit, any smaller number does: every term below falls with k.
func (d *Need) Ranks(n *Node) int { return d.ranks(n, n.use()) }

// RanksEmpty is Ranks as if no gang held anything on the node. It spares the copy that
// [Node.Emptied] makes, which on ten thousand full nodes is most of a plan.
func (d *Need) RanksEmpty(n *Node) int {
	if len(n.Cards) <= len(unused) {
		return d.ranks(n, &usage{cards: unused[:len(n.Cards)], open: len(n.Cards)})
	}
	return d.Ranks(n.Emptied())
}

var unused [64]cardUse

func (d *Need) ranks(n *Node, u *usage) int {
	if u.exclusive > 0 || d.Exclusive && u.grants > 0 {
		return 0
	}
	free := n.free(u)
	k := d.ranksIn(&free, &n.Each, d.Size)
	if k <= 0 || !d.WantsCards() {
		return k
	}
	return d.ranksByCards(n, u, k)
}

func (d *Need) ranksByCards(n *Node, u *usage, k int) int {
	if u.open < d.CardsFor(1) {
		return 0
	}
	want, have := d.CardsFor(k), 0
	for i := range n.Cards {
		if d.cardFits(n, u, i) {
			if have++; have == want {
				return k
			}
		}
	}
	if d.Cards == 0 {
		return 0 // the member's cards are one figure: all or none
	}
	return have / d.Cards
}

// cardFits reports whether one rank (or the member) can be given the card at index i.
func (d *Need) cardFits(n *Node, u *usage, i int) bool {
	c, use := &n.Cards[i], &u.cards[i]
	if c.State == stateQuarantined || use.exclusive > 0 || !d.Share && use.holders > 0 {
		return false
	}
	free := c.VRAMBytes - c.StrangersBytes - use.vram
	if d.VRAM > free || free <= 0 && c.VRAMBytes > 0 {
		return false // also without a figure: nothing runs on a card that strangers have filled
	}
	return d.MatchesCard(c)
}

// CardFits is cardFits for reasons: which cards of a node would do now.
func (d *Need) CardFits(n *Node, i int) bool { return d.cardFits(n, n.use(), i) }

// Free is how many cards of a node the ask could use now, whether or not they make up a
// rank; of an ask without cards, how many CPUs.
func (d *Need) Free(n *Node) int {
	u := n.use()
	if u.exclusive > 0 || d.Exclusive && u.grants > 0 {
		return 0
	}
	if !d.WantsCards() {
		return int(max(0, n.Has[CPUs]-u.taken[CPUs]))
	}
	free := 0
	for i := range n.Cards {
		if d.cardFits(n, u, i) {
			free++
		}
	}
	return free
}

// Waste says what placing on a node would cost later asks; smaller is better.
type Waste struct {
	wish  int   // 1: without the features that are preferred; decides before anything else
	Price int64 // what the caller adds
	idle  int   // card nodes used by an ask without cards: 1 + the cards left idle beside it
	vram  int64 // of the largest card taken: the lowest model that is enough goes first
	fresh int   // whole cards opened by a sharing gang
	cards int   // cards still open afterwards: nearly full nodes are filled first
	cpus  int   // CPUs left
}

// Compare orders by cost.
func (w Waste) Compare(o Waste) int {
	return cmp.Or(cmp.Compare(w.wish, o.wish), cmp.Compare(w.Price, o.Price), cmp.Compare(w.idle, o.idle), cmp.Compare(w.vram, o.vram),
		cmp.Compare(w.fresh, o.fresh),
		cmp.Compare(w.cards, o.cards), cmp.Compare(w.cpus, o.cpus))
}

// WasteOf is the cost of so many ranks on a node where they fit.
func (d *Need) WasteOf(n *Node, ranks int) Waste {
	u := n.use()
	w := Waste{cpus: int(n.Has[CPUs] - u.taken[CPUs] - int64(ranks)*d.PerRank[CPUs])}
	if d.prefer != nil && !d.prefer.Met(n.Features) {
		w.wish = 1
	}
	if !d.WantsCards() {
		if len(n.Cards) > 0 {
			w.idle = 1 + u.open
		}
		return w
	}
	want := d.CardsFor(ranks)
	w.cards = u.open - want
	low, high, fits, shared := int64(math.MaxInt64), int64(0), 0, 0
	for i := range n.Cards {
		if d.cardFits(n, u, i) {
			low, high = min(low, n.Cards[i].VRAMBytes), max(high, n.Cards[i].VRAMBytes)
			fits++
			if u.cards[i].holders > 0 {
				shared++
			}
		}
	}
	w.vram = high
	if low < high && fits > want {
		w.vram = d.lowestTier(n, u, want)
	}
	if d.Share {
		w.fresh = max(0, want-shared)
	}
	return w
}

// lowestTier is the VRAM of the largest card when the smallest that do are taken.
func (d *Need) lowestTier(n *Node, u *usage, want int) int64 {
	var sizes []int64
	for i := range n.Cards {
		if d.cardFits(n, u, i) {
			sizes = append(sizes, n.Cards[i].VRAMBytes)
		}
	}
	slices.Sort(sizes)
	return sizes[want-1]
}
