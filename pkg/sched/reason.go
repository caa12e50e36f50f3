package sched

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
	"gangd/pkg/hostlist"
)

// The words of the REASON column, as Slurm spells them.
const (
	WordResources = "Resources"       // not enough is free
	WordPriority  = "Priority"        // enough is free, or will be, but others are ahead
	WordNodes     = "ReqNodeNotAvail" // the nodes or cards that could hold it are out of service
	WordBad       = "BadConstraints"  // the ask can't be read
	WordNone      = "None"            // nothing keeps it: the next plan starts it
)

// explainShape words why a gang stays, once for all equal asks: a plan that keeps a
// hundred thousand waiting makes as many strings as there are different asks.
func (pl *planner) explainShape(c *Candidate, sh *shape) {
	sh.first = pl.reasonFor(sh)
	sh.rest = sh.first
	if sh.first.Word == WordResources {
		sh.rest.Word = WordPriority
		sh.rest.Text = fmt.Sprintf("behind job %d, which asks for the same; %s", c.Job, sh.first.Text)
	}
}

func (pl *planner) reasonFor(sh *shape) Reason {
	if sh.bad != nil {
		return Reason{Word: WordBad, Text: sh.bad.Error()}
	}
	room := min(pl.tally.ranks, sh.need.Size) // left by the last look, which found it not to fit
	if sh.need.Parts != nil {
		return pl.mixedReason(sh.need)
	}
	if pl.shadow != nil && pl.fits(sh.need, pl.real) {
		return Reason{Word: WordPriority, Text: "would fit, but " + pl.claimants() + " ahead and will use what is free"}
	}
	if !pl.fitsEmpty(sh.need) {
		if out := pl.outOfService(sh.need); out != "" {
			return Reason{Word: WordNodes, Text: "does not fit without what is out of service: " + out}
		}
	}
	return Reason{Word: WordResources, Text: roomText(sh.need, room)}
}

func roomText(d *cluster.Need, room int) string {
	if room < d.Size {
		return fmt.Sprintf("room for %d of %s now, each needs %s", room, plural(d.Size, "rank"), rankText(d))
	}
	return fmt.Sprintf("room for %s now, but not on %s; each rank needs %s", plural(d.Size, "rank"), layoutText(d), rankText(d))
}

// layoutText is what the ask says about its nodes.
func layoutText(d *cluster.Need) string {
	s := d.Ask.Spec
	switch {
	case s.RanksPerNode > 0:
		return fmt.Sprintf("nodes with %s each", plural(s.RanksPerNode, "rank"))
	case s.MinNodes > 0 && s.MinNodes == s.MaxNodes:
		return "exactly " + plural(s.MinNodes, "node")
	case s.MinNodes > 0 && s.MaxNodes > 0:
		return fmt.Sprintf("%d to %s", s.MinNodes, plural(s.MaxNodes, "node"))
	case s.MaxNodes > 0:
		return "at most " + plural(s.MaxNodes, "node")
	}
	return "at least " + plural(s.MinNodes, "node")
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
	parts = append(parts, plural(d.CPUs, "CPU"))
	if d.Memory > 0 {
		parts = append(parts, cluster.Size(d.Memory)+" memory")
	}
	if d.NodeMemory > 0 {
		parts = append(parts, cluster.Size(d.NodeMemory)+" memory on its node")
	}
	if d.Exclusive {
		parts = append(parts, "a node without other gangs")
	}
	return join(parts)
}

func cardText(d *cluster.Need, n int) string {
	text := plural(n, "card")
	if t := d.Ask.Spec.GPUType; t != "" {
		text = plural(n, t+" card")
	}
	if d.VRAM > 0 {
		text += " with " + cluster.Size(d.VRAM)
	}
	return text
}

// claimants names the gangs that hold claims: "job 12 is".
func (pl *planner) claimants() string {
	ids := make([]string, len(pl.claims))
	for i, c := range pl.claims {
		ids[i] = strconv.FormatInt(c.Job, 10)
	}
	if len(ids) == 1 {
		return "job " + ids[0] + " is"
	}
	return "jobs " + join(ids) + " are"
}

// fits reports whether the gang has room on these nodes.
func (pl *planner) fits(d *cluster.Need, nodes []*cluster.Node) bool {
	return layoutOf(d).members(pl.tallyOf(pl.look(d, nodes, nil))) > 0
}

// fitsEmpty reports whether the ready nodes would hold the gang with nothing on them.
// Most asks fit on the first few nodes looked at, so the sum is tried whenever the number
// of nodes counted has doubled.
func (pl *planner) fitsEmpty(d *cluster.Need) bool {
	l := layoutOf(d)
	pl.tally.reset()
	try := 1
	for _, n := range pl.real {
		if !n.Ready {
			continue
		}
		k := d.RanksEmpty(n)
		if k == 0 || !d.Admits(n) {
			continue
		}
		pl.tally.add(k)
		if pl.tally.nodes == try {
			if l.members(&pl.tally) > 0 {
				return true
			}
			try *= 2
		}
	}
	return l.members(&pl.tally) > 0
}

// outOfService names what of the nodes that the ask admits can't be used, and why.
func (pl *planner) outOfService(d *cluster.Need) string {
	byWhy := make(map[string][]string)
	var order []string
	for _, n := range pl.real {
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
		if n.Cards[i].State == api.CardQuarantined && d.MatchesModel(n.Cards[i].Model) {
			bad++
		}
	}
	if bad == 0 {
		return ""
	}
	return plural(bad, "card") + " quarantined"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// join writes "a, b and c".
func join(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// jobList writes a few job ids and how many more there are.
func jobList(ids []int64) string {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	const most = 5
	var parts []string
	for _, id := range ids[:min(most, len(ids))] {
		parts = append(parts, strconv.FormatInt(id, 10))
	}
	if more := len(ids) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if len(ids) == 1 {
		return "job " + parts[0]
	}
	return "jobs " + join(parts)
}
