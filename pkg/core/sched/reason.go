package sched

import (
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// The words of the REASON column, as Slurm spells them.
const (
	WordResources = "Resources"       // not enough is free
	WordPriority  = "Priority"        // enough is free, or will be, but others are ahead
	WordNodes     = "ReqNodeNotAvail" // the nodes or cards that could hold it are out of service
	WordBad       = "BadConstraints"  // the ask can't be read
	WordNone      = "None"            // nothing keeps it: the next plan starts it
)

// why says why gangs stay, in a word for each, and at length of the one that is explained.
type why struct {
	*given
	fit      *fit.Finder
	kept     *kept
	bounds   *bounds
	guard    *guard
	victims  *victims
	mem      *whyMemory
	verdicts verdictList
	// Of the gang that is explained: the nodes as it sees them, and its backfill.
	explainedView     *fit.NodeView
	explainedBackfill *backfill
}

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

// verdictList are the verdicts of classes, by slot: a map of as many would be made anew in each plan.
type verdictList []struct {
	class   *order.JobClass // whose slot it was
	verdict *verdict
}

func (w verdictList) of(cl *order.JobClass) *verdict {
	if cl == nil || cl.Slot() >= len(w) || w[cl.Slot()].class != cl {
		return nil
	}
	return w[cl.Slot()].verdict
}

func (w verdictList) set(cl *order.JobClass, v *verdict) {
	w[cl.Slot()].class, w[cl.Slot()].verdict = cl, v
}

// whyMemory is what was said of ask classes, by their id.
type whyMemory struct{ noted []noted }

// noted is why the candidates of an ask class stay.
type noted struct {
	planNumber int
	verdict    *verdict // of this plan
	last       *verdict // of the last plan that had one. Verdicts are not changed, so that one which says the same is used again
}

// notedOf is what was said of an ask class in this plan, good until the next is asked for.
func (wy *why) notedOf(sh *fit.AskClass) *noted {
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

// note says why the candidates of a class stay, once for all ask classes and classes that are
// equal in it.
func (wy *why) note(c *order.Candidate, cl *order.JobClass, sh *fit.AskClass) {
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
		if (wy.reservations != nil || len(wy.policy.Switches) > 0) && sh.Need != nil && sh.Need.Parts == nil {
			// What was looked at since is not what this gang sees.
			wy.fit.TallyOf(wy.fit.Look(sh, wy.kept.viewFor(c, wy.end(c)), nil))
		}
		v := wy.verdictFor(sh)
		v.first = c.Job
		n.verdict = n.again(&v)
	}
	wy.verdicts.set(cl, n.verdict)
}

// verdictFor is asked right after a look that found the ask class not to fit.
func (wy *why) verdictFor(sh *fit.AskClass) verdict {
	if sh.Bad != nil {
		return verdict{word: WordBad, bad: sh.Bad}
	}
	if sh.Need.Parts != nil {
		return *wy.mixedReason(sh.Need)
	}
	v := verdict{need: sh.Need, word: WordResources, room: min(wy.fit.Found().Ranks, sh.Need.Size)}
	if sh.Alternatives != nil {
		v.sentence = wy.alternativesText(sh)
	}
	if len(wy.kept.list) > 0 && !sh.Counted && wy.fit.Fits(sh, wy.kept.views[0]) {
		v.word, v.sentence, v.takers = WordPriority, "", wy.kept.takerJobs()
		return v
	}
	if !wy.fit.FitsEmpty(sh) {
		if out := wy.outOfService(sh.Need); out != "" {
			v.word, v.sentence, v.out = WordNodes, "", out
		}
	}
	return v
}

// takerJobs are the gangs that hold backfills. The list is not to be changed: others have it
// as long as nobody else gets a backfill.
func (kp *kept) takerJobs() []int64 {
	same := len(kp.takers) == len(kp.list)
	for i := 0; same && i < len(kp.list); i++ {
		_, same = slices.BinarySearch(kp.takers, kp.list[i].Job)
	}
	if !same {
		kp.takers = make([]int64, len(kp.list))
		for i := range kp.list {
			kp.takers[i] = kp.list[i].Job
		}
		slices.Sort(kp.takers)
	}
	return kp.takers
}

func (v *verdict) reason(job int64, names Names) Reason {
	r := Reason{Job: job, Word: v.wordFor(job), Text: v.text(job, names)}
	if r.Word != v.word {
		r.Text = "behind job " + names.of(v.first) + ", which asks for the same; " + r.Text
	}
	return r
}

func (v *verdict) wordFor(job int64) string {
	if v.word == WordResources && job != v.first {
		return WordPriority
	}
	return v.word
}

func (v *verdict) text(job int64, names Names) string {
	switch {
	case v.sentence != "":
		return v.sentence
	case v.bad != nil:
		return v.bad.Error()
	case v.takers != nil:
		// Not that these are ahead: in order of service who has a backfill may be behind.
		others := slices.DeleteFunc(slices.Clone(v.takers), func(taker int64) bool { return taker == job })
		return "would fit, but what is free is kept for " + names.list(others)
	case v.out != "":
		return "does not fit without what is out of service: " + v.out
	}
	return roomText(v.need, v.room)
}

func roomText(d *cluster.Need, room int) string {
	if room < d.Size {
		return fmt.Sprintf("room for %d of %s now, each needs %s", room, api.Count(d.Size, "rank"), rankText(d))
	}
	return fmt.Sprintf("room for %s now, but not on %s; each rank needs %s", api.Count(d.Size, "rank"), layoutText(d), rankText(d))
}

// layoutText is what the ask says about its nodes.
func layoutText(d *cluster.Need) string {
	s := d.Ask.Spec
	switch {
	case s.RanksPerNode > 0:
		return fmt.Sprintf("nodes with %s each", api.Count(s.RanksPerNode, "rank"))
	case s.MinNodes > 0 && s.MinNodes == s.MaxNodes:
		return "exactly " + api.Count(s.MinNodes, "node")
	case s.MinNodes > 0 && s.MaxNodes > 0:
		return fmt.Sprintf("%d to %s", s.MinNodes, api.Count(s.MaxNodes, "node"))
	case s.MaxNodes > 0:
		return "at most " + api.Count(s.MaxNodes, "node")
	}
	return "at least " + api.Count(s.MinNodes, "node")
}

// rankText is what one rank needs, cards first.
func rankText(d *cluster.Need) string {
	var parts []string
	if d.Cards > 0 {
		parts = append(parts, cardText(d, d.Cards))
	}
	if d.NodeCards > 0 {
		parts = append(parts, cardText(d, d.NodeCards)+" on its node")
	}
	for r := range cluster.Resources {
		row := &cluster.Resources[r]
		if v := d.PerRank[r]; v > 0 {
			parts = append(parts, row.Text(v))
		}
		if v := d.PerMember[r]; v > 0 {
			parts = append(parts, row.Text(v)+" on its node")
		}
	}
	if d.Exclusive {
		parts = append(parts, "a node without other gangs")
	}
	return join(parts)
}

func cardText(d *cluster.Need, n int) string {
	text := api.Count(n, kindOfCard(d))
	if d.VRAM > 0 {
		text += " with " + cluster.Size(d.VRAM)
	}
	return text
}

// kindOfCard is "card", "a100|h100 card" or "card of compute 8.0 or more".
func kindOfCard(d *cluster.Need) string {
	noun := "card"
	if t := d.Ask.Spec.GPUType; t != "" {
		noun = t + " card"
	}
	if c := d.Ask.Spec.MinCompute; c != "" {
		noun = "compute-" + c + " " + noun
	}
	return noun
}

// outOfService names what of the nodes that the ask admits can't be used, and why.
func (wy *why) outOfService(d *cluster.Need) string {
	byWhy := make(map[string][]string)
	var order []string
	for _, n := range wy.view.Nodes {
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
	return join(parts)
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

// join writes "a, b and c".
func join(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
