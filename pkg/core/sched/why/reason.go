package why

import (
	"fmt"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/sched/bounds"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/guard"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/victims"
)

// Reason says why a candidate stays.
type Reason struct {
	Job  int64
	Word string // Slurm's: Resources, Priority, ReqNodeNotAvail ...
	Text string // the arithmetic, for people
}

// Why says why gangs stay, in a word for each, and at length of the one that is explained.
type Why struct {
	*given.Facts
	fit      *fit.Finder
	kept     *kept.Backfills
	bounds   *bounds.Bounds
	guard    *guard.Guard
	victims  *victims.Victims
	mem      *Memory
	verdicts Verdicts
	// Of the gang that is explained: the nodes as it sees them, and its backfill.
	ExplainedView     *fit.NodeView
	ExplainedBackfill *kept.Backfill
}

// New is for a plan that knows the owners before it. What was said in earlier plans is in mem.
func New(f *given.Facts, finder *fit.Finder, k *kept.Backfills, b *bounds.Bounds, g *guard.Guard, v *victims.Victims, mem *Memory) Why {
	return Why{Facts: f, fit: finder, kept: k, bounds: b, guard: g, victims: v, mem: mem, verdicts: make(Verdicts, f.View.Queue.Slots())}
}

// Verdicts are what was noted so far.
func (wy *Why) Verdicts() Verdicts { return wy.verdicts }

// verdict is why the candidates of a class stay, in figures: of a hundred thousand that
// wait few are ever asked about, so the words are made when somebody reads them. It is
// never changed once its plan is made.
type verdict struct {
	first    int64 // the candidate of its ask class that was looked at; the others are behind it
	need     *cluster.Need
	bad      error
	word     string
	room     int         // ranks that there is room for
	takers   []int64     // who keeps it off places that are free
	out      string      // what of the nodes is out of service
	nearer   bool        // there is room, but below more switches than it wants yet
	pool     api.PoolKey // what it waits for, where that is a pool
	sentence string      // all of it, where there is no arithmetic of places
}

// Verdicts are the verdicts of classes, by slot: a map of as many would be made anew in each plan.
type Verdicts []struct {
	class   *order.JobClass // whose slot it was
	verdict *verdict
}

func (w Verdicts) of(cl *order.JobClass) *verdict {
	if cl == nil || cl.Slot() >= len(w) || w[cl.Slot()].class != cl {
		return nil
	}
	return w[cl.Slot()].verdict
}

// Reason is why a candidate of a class stays; false: nothing was noted of the class.
func (w Verdicts) Reason(job int64, cl *order.JobClass, names given.Names) (Reason, bool) {
	v := w.of(cl)
	if v == nil {
		return Reason{}, false
	}
	return v.reason(job, names), true
}

// Word is that of Reason alone.
func (w Verdicts) Word(job int64, cl *order.JobClass) (string, bool) {
	v := w.of(cl)
	if v == nil {
		return "", false
	}
	return v.wordFor(job), true
}

// Brief is the text of Reason where there is little room.
func (w Verdicts) Brief(job int64, cl *order.JobClass, names given.Names) string {
	if v := w.of(cl); v != nil {
		return v.brief(job, names)
	}
	return ""
}

func (w Verdicts) set(cl *order.JobClass, v *verdict) {
	w[cl.Slot()].class, w[cl.Slot()].verdict = cl, v
}

// Memory is what was said of ask classes, by their id.
type Memory struct{ noted []noted }

// noted is why the candidates of an ask class stay.
type noted struct {
	planNumber int
	verdict    *verdict // of this plan
	last       *verdict // of the last plan that had one. Verdicts are not changed, so that one which says the same is used again
}

// notedOf is what was said of an ask class in this plan, good until the next is asked for.
func (wy *Why) notedOf(sh *fit.AskClass) *noted {
	wy.mem.noted = fit.Reach(wy.mem.noted, sh.ID)
	n := &wy.mem.noted[sh.ID]
	if n.planNumber != wy.fit.PlanNumber() {
		n.planNumber, n.verdict = wy.fit.PlanNumber(), nil
	}
	return n
}

// again is a verdict like v, the one of an earlier plan where that says the same: most do.
func (n *noted) again(v *verdict) *verdict {
	o := n.last
	if o == nil || o.first != v.first || o.need != v.need || o.bad != v.bad || o.word != v.word || o.room != v.room || o.out != v.out ||
		o.nearer != v.nearer || o.sentence != v.sentence || !slices.Equal(o.takers, v.takers) {
		own := *v
		n.last = &own
	}
	return n.last
}

// Exceeds notes that a bound keeps the candidates of a class, unless more is known of them.
func (wy *Why) Exceeds(c *order.Candidate, cl *order.JobClass, x *bounds.Excess) {
	if wy.verdicts.of(cl) == nil {
		wy.verdicts.set(cl, &verdict{first: c.Job, word: x.Word, sentence: x.Sentence, pool: x.Pool})
	}
}

// Nearer reports whether the candidates of a class stay only to be below fewer switches.
func (wy *Why) Nearer(cl *order.JobClass) bool { return wy.verdicts.of(cl).nearer }

// Roomless notes why the gangs of a class stay of which no rank has room. Mostly that is what the plan before said: as long as the
// cluster would hold the gang, that it has no room depends on nothing else.
func (wy *Why) Roomless(c *order.Candidate, cl *order.JobClass, sh *fit.AskClass) {
	n := wy.notedOf(sh)
	if o := n.last; n.verdict == nil && wy.fit.Found().Nodes == 0 && wy.fit.KnowsEmpty(sh) && o != nil && o.first == c.Job &&
		o.isRoomless() {
		n.verdict = o
	}
	wy.Note(c, cl, sh)
}

// isRoomless reports whether a verdict says no more than that there is room for no rank.
func (v *verdict) isRoomless() bool {
	return v.word == given.WordResources && v.room == 0 && v.bad == nil && v.sentence == "" && !v.nearer
}

// Explained is why a gang stays that was looked at last.
func (wy *Why) Explained(c *order.Candidate, sh *fit.AskClass) Reason {
	v := wy.explained(c, sh)
	return Reason{Job: c.Job, Word: v.wordFor(c.Job), Text: v.text(c.Job, wy.View.Names)}
}

func (wy *Why) explained(c *order.Candidate, sh *fit.AskClass) *verdict {
	v := wy.reservedVerdict(c, sh)
	if v == nil {
		v = wy.switchVerdict(c, sh)
	}
	if v != nil {
		v.first = c.Job
		return v
	}
	if (wy.Reservations != nil || len(wy.Policy.Switches) > 0) && sh.Need.Parts == nil {
		wy.fit.TallyOf(wy.fit.Look(sh, wy.ExplainedView, nil))
	}
	own := wy.verdictFor(sh)
	if own.first = c.Job; wy.notedOf(sh).verdict != nil {
		own.first = wy.notedOf(sh).verdict.first
	}
	return &own
}

// Note says why the candidates of a class stay, once for all ask classes and classes that are
// equal in it.
func (wy *Why) Note(c *order.Candidate, cl *order.JobClass, sh *fit.AskClass) {
	if wy.verdicts.of(cl) != nil {
		return
	}
	if v := wy.reservedVerdict(c, sh); v != nil {
		v.first = c.Job
		wy.verdicts.set(cl, v)
		return
	}
	if v := wy.switchVerdict(c, sh); v != nil {
		v.first = c.Job
		wy.verdicts.set(cl, v)
		return
	}
	n := wy.notedOf(sh)
	if n.verdict == nil {
		if (wy.Reservations != nil || len(wy.Policy.Switches) > 0) && sh.Need != nil && sh.Need.Parts == nil {
			// What was looked at since is not what this gang sees.
			wy.fit.TallyOf(wy.fit.Look(sh, wy.kept.ViewFor(c, wy.End(c)), nil))
		}
		v := wy.verdictFor(sh)
		v.first = c.Job
		n.verdict = n.again(&v)
	}
	wy.verdicts.set(cl, n.verdict)
}

// verdictFor is asked right after a look that found the ask class not to fit.
func (wy *Why) verdictFor(sh *fit.AskClass) verdict {
	if sh.Bad != nil {
		return verdict{word: given.WordBad, bad: sh.Bad}
	}
	if sh.Need.Parts != nil {
		return *wy.mixedReason(sh.Need)
	}
	v := verdict{need: sh.Need, word: given.WordResources, room: min(wy.fit.Found().Ranks, sh.Need.Size)}
	if sh.Alternatives != nil {
		v.sentence = wy.alternativesText(sh)
	}
	if len(wy.kept.List) > 0 && !sh.Counted && wy.fit.Fits(sh, wy.kept.Bare()) {
		v.word, v.sentence, v.takers = given.WordPriority, "", wy.kept.TakerJobs()
		return v
	}
	if !wy.fit.FitsEmpty(sh) {
		if out := wy.outOfService(sh.Need); out != "" {
			v.word, v.sentence, v.out = given.WordNodes, "", out
		}
	}
	return v
}

func (v *verdict) reason(job int64, names given.Names) Reason {
	r := Reason{Job: job, Word: v.wordFor(job), Text: v.text(job, names)}
	if r.Word != v.word {
		r.Text = "behind job " + names.Of(v.first) + ", which asks for the same; " + r.Text
	}
	return r
}

func (v *verdict) wordFor(job int64) string {
	if v.word == given.WordResources && job != v.first {
		return given.WordPriority
	}
	return v.word
}

func (v *verdict) text(job int64, names given.Names) string {
	switch {
	case v.sentence != "":
		return v.sentence
	case v.bad != nil:
		return v.bad.Error()
	case v.takers != nil:
		return "would fit, but " + v.kept(job, names)
	case v.out != "":
		return "does not fit without what is out of service: " + v.out
	}
	return roomText(v.need, v.room)
}

// kept says for whom what is free is kept. Not that these are ahead: in order of service who has a backfill may be behind.
func (v *verdict) kept(job int64, names given.Names) string {
	others := slices.DeleteFunc(slices.Clone(v.takers), func(taker int64) bool { return taker == job })
	return "what is free is kept for " + names.List(others)
}

// brief is text where there is little room.
func (v *verdict) brief(job int64, names given.Names) string {
	if v.sentence == "" && v.bad == nil && v.takers != nil {
		return v.kept(job, names)
	}
	return v.text(job, names)
}

// outOfService names what of the nodes that the ask admits can't be used, and why.
func (wy *Why) outOfService(d *cluster.Need) string {
	byWhy := make(map[string][]string)
	var order []string
	for _, n := range wy.View.Nodes {
		if why := outWhy(d, n); why != "" && d.Admits(n) {
			if byWhy[why] == nil {
				order = append(order, why)
			}
			byWhy[why] = append(byWhy[why], n.Name)
		}
	}
	const most = 3
	var parts []string
	for _, why := range order[:min(most, len(order))] {
		parts = append(parts, fmt.Sprintf("%s (%s)", hostlist.Compress(byWhy[why]), why))
	}
	if more := len(order) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return given.And(parts)
}

func outWhy(d *cluster.Need, n *cluster.Node) string {
	if !n.Ready {
		if n.NotReady == "" {
			return "not ready"
		}
		return n.NotReady
	}
	if !d.WantsCards() {
		return ""
	}
	bad := 0
	for i := range n.Cards {
		if n.Cards[i].State == api.CardQuarantined && d.MatchesCard(&n.Cards[i]) {
			bad++
		}
	}
	if bad == 0 {
		return ""
	}
	return api.Count(bad, "card") + " quarantined"
}
