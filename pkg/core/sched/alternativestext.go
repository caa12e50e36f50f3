package sched

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/order"
)

// checkFeatures refuses features that no node has, in the constraint and in what is
// preferred: nearly always they are misspelt.
func checkFeatures(nodes []*cluster.Node, d *cluster.Need) *api.Error {
	if d.Ask.Spec.Constraint == "" && d.Ask.Spec.Prefer == "" && d.Parts == nil {
		return nil
	}
	known := func() (out []string) {
		for _, n := range nodes {
			for _, f := range n.Features {
				if !slices.Contains(out, f) {
					out = append(out, f)
				}
			}
		}
		return out
	}
	required, preferred := d.Names()
	if err := checkKnown("feature", api.ReasonFeature, required, known, commas); err != nil {
		return err
	}
	if err := checkKnown("preferred feature", api.ReasonPreferredFeature, preferred, known, commas); err != nil {
		return err
	}
	for i, part := range d.Parts {
		if required, _ := part.Names(); required != nil {
			if err := checkKnown("feature", api.ReasonFeature, required, known, commas); err != nil {
				err.Message = roleTitle(d.Ask.Spec, i) + err.Message
				return err
			}
		}
	}
	return nil
}

// checkCounts refuses counts of more nodes than the gang can be on, whatever the cluster.
func checkCounts(d *cluster.Need) *api.Error {
	if d.Parts != nil {
		return checkRoleCounts(d)
	}
	if d.Alternatives == nil {
		return nil
	}
	s, sum := d.Ask.Spec, 0
	for _, c := range d.Alternatives[0].Counts {
		sum += c.Nodes
	}
	what := fmt.Sprintf("the constraint %q counts %s", s.Constraint, api.Count(sum, "node"))
	switch {
	case s.MaxNodes > 0 && sum > s.MaxNodes:
		return &api.Error{Code: api.CodeUnsatisfiable, Message: what + ", but " + nodesAsked(s) + " asked for",
			Hint: fmt.Sprintf("ask for --nodes=%d", sum)}
	case sum > d.Size:
		return &api.Error{Code: api.CodeUnsatisfiable, Message: what + fmt.Sprintf(", more than the gang has ranks (%d): each node has at "+
			"least one", d.Size),
			Hint: fmt.Sprintf("ask for %d ranks or more", sum)}
	}
	if r := min(s.RanksPerNode, d.Size); r > 0 && sum > (d.Size+r-1)/r {
		return &api.Error{Code: api.CodeUnsatisfiable, Message: what + fmt.Sprintf(", but %s with %d on each node take %d",
			api.Count(d.Size, "rank"), r, (d.Size+r-1)/r), Hint: fmt.Sprintf("ask for %d ranks", sum*r)}
	}
	return nil
}

// checkRoleCounts refuses a count that the roles have from the whole gang: whose nodes it
// counts would be anybody's guess.
func checkRoleCounts(d *cluster.Need) *api.Error {
	s := d.Ask.Spec
	for i, part := range d.Parts {
		if part.Alternatives != nil && part.Alternatives[0].Counts != nil && s.Roles[i].Constraint == s.Constraint {
			return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("the constraint %q counts nodes, and the gang has roles: each of them "+
				"has nodes of its own", s.Constraint),
				Hint: fmt.Sprintf("write constraint=%s in the role whose nodes it counts", s.Constraint)}
		}
		if err := checkCounts(part); err != nil {
			err.Message = roleTitle(d.Ask.Spec, i) + err.Message
			return err
		}
	}
	return nil
}

// alternativesTogether is together for a constraint that speaks of all nodes at once.
func alternativesTogether(d *cluster.Need, pool []*cluster.Node) *api.Error {
	e := &api.Error{Code: api.CodeUnsatisfiable}
	for _, way := range d.Alternatives {
		for _, c := range way.Counts {
			var with []string
			for _, n := range pool {
				if c.Features.Met(n.Features) && way.Admits(n) && way.RanksEmpty(n) > 0 {
					with = append(with, n.Name)
				}
			}
			if len(with) < c.Nodes {
				e.Message = fmt.Sprintf("the constraint %q counts %s with %s, and only %d can hold a rank", d.Ask.Spec.Constraint,
					api.Count(c.Nodes, "node"), c.Features, len(with))
				if e.Hint = "none does"; len(with) > 0 {
					e.Hint = fmt.Sprintf("ask for %s*%d or less: %s", named(c.Features), len(with), hosts(with))
				}
				return e
			}
		}
	}
	var parts []string
	for _, way := range d.Alternatives {
		t, marks := &fit.Tally{}, []uint(nil)
		for _, n := range pool {
			if k := way.RanksEmpty(n); k > 0 && way.Admits(n) {
				t.Add(k)
				marks = append(marks, way.Marks(n))
			}
		}
		parts = append(parts, alternativeTitle(way)+roomOfAlternative(way, t, marks))
	}
	e.Message = "the whole cluster, empty, does not hold it so: " + shortened(parts) + "; each rank needs " + rankText(d)
	return e
}

// named is a condition as it is written before a count.
func named(f *cluster.Features) string {
	if text := f.String(); strings.ContainsAny(text, "&|,") {
		return "(" + text + ")"
	}
	return f.String()
}

func alternativeTitle(way *cluster.Need) string {
	if text := way.Alternative(); text != "" {
		return text + " has "
	}
	return ""
}

// shortened is the first few of many alternatives.
func shortened(parts []string) string {
	const most = 5
	if more := len(parts) - most; more > 0 {
		parts = append(slices.Clone(parts[:most]), api.Count(more, "more alternative"))
	}
	return strings.Join(parts, "; ")
}

// alternativesText is what each alternative is short of now.
func (wy *why) alternativesText(sh *fit.AskClass) string {
	l := cmp.Or(wy.explainedView, wy.kept.topView())
	var parts []string
	for _, way := range sh.Alternatives {
		parts = append(parts, alternativeTitle(way.Need)+wy.roomOf(way, l))
	}
	text := shortened(parts)
	if len(sh.Alternatives) > 1 {
		text = "no alternative has it all now: " + text
	}
	return text + "; each rank needs " + rankText(sh.Need)
}

func (wy *why) roomOf(way *fit.AskClass, l *fit.NodeView) string {
	choices := wy.fit.Look(way, l, nil)
	var marks []uint
	for i := range choices {
		for range choices[i].Count() {
			marks = append(marks, way.Need.Marks(l.Node(choices[i].At)))
		}
	}
	return roomOfAlternative(way.Need, wy.fit.TallyOf(choices), marks)
}

// roomOfAlternative is "room for 2 of 4 ranks", and of what it counts "1 of 2 nodes with rack1".
func roomOfAlternative(d *cluster.Need, t *fit.Tally, marks []uint) string {
	text := fmt.Sprintf("room for %d of %s", min(t.Ranks, d.Size), api.Count(d.Size, "rank"))
	if t.Ranks >= d.Size && fit.LayoutOf(d).Members(t) == 0 {
		return "room for " + api.Count(d.Size, "rank") + ", but not on " + layoutText(d)
	}
	short := false
	var counts []string
	for i, c := range d.Counts {
		with := 0
		for _, m := range marks {
			with += int(m >> i & 1)
		}
		short = short || with < c.Nodes
		counts = append(counts, strconv.Itoa(min(with, c.Nodes))+" of "+api.Count(c.Nodes, "node")+" with "+c.Features.String())
	}
	if len(counts) > 0 {
		text += ", " + join(counts)
	}
	if len(counts) > 0 && !short && t.Ranks >= d.Size {
		text += ", but not for all of it on as many nodes as it may have"
	}
	return text
}

// maxWayLines bounds the alternatives that are explained node by node.
const maxWayLines = 3

// alternativeLines is nodeLines for each alternative, those with most room first.
func (wy *why) alternativeLines(d *cluster.Need) []string {
	if len(d.Alternatives) == 1 {
		return wy.nodeLines(d.Alternatives[0])
	}
	room := func(way *cluster.Need) (sum int) {
		for at, n := range wy.explainedView.Every() {
			if n.Ready && !wy.explainedView.Shuts(at) && way.Admits(n) {
				sum += way.Ranks(n)
			}
		}
		return sum
	}
	type sized struct {
		way  *cluster.Need
		room int
	}
	var ways []sized
	for _, way := range d.Alternatives {
		ways = append(ways, sized{way, room(way)})
	}
	slices.SortStableFunc(ways, func(a, b sized) int { return cmp.Compare(b.room, a.room) })
	// Alternatives that the nodes answer alike are told together.
	type told struct {
		names []string
		lines []string
	}
	var all []told
	for _, one := range ways {
		lines := wy.nodeLines(one.way)
		if i := slices.IndexFunc(all, func(t told) bool { return slices.Equal(t.lines, lines) }); i >= 0 {
			all[i].names = append(all[i].names, one.way.Alternative())
		} else if all = append(all, told{[]string{one.way.Alternative()}, lines}); len(all) == maxWayLines {
			break
		}
	}
	var lines []string
	more := len(ways)
	for _, t := range all {
		more -= len(t.names)
		lines = append(lines, strings.Join(t.names, " or ")+":")
		for _, l := range t.lines {
			lines = append(lines, "  "+l)
		}
	}
	if more > 0 {
		lines = append(lines, "and "+api.Count(more, "more alternative")+" with less")
	}
	return lines
}

// switchVerdictOfAlternatives is [why.switchVerdict] of the first alternative that would fit below more
// switches.
func (wy *why) switchVerdictOfAlternatives(c *order.Candidate, sh *fit.AskClass) *verdict {
	for _, way := range sh.Alternatives {
		if way.Need.Counts != nil {
			if wy.fit.Fits(way, wy.kept.viewFor(c, wy.end(c))) {
				return &verdict{word: WordResources, nearer: true, sentence: fmt.Sprintf(
					"there is room now, but not below %s with the nodes that it counts; it waits for that until %s, then it starts anywhere",
					switches(wy.switchLimit(c)), when.Clock(wy.now, wy.switchUntil(c)))}
			}
			continue
		}
		if v := wy.switchVerdict(c, way); v != nil {
			if text := way.Need.Alternative(); len(sh.Alternatives) > 1 && text != "" {
				v.sentence = text + ": " + v.sentence
			}
			return v
		}
	}
	return nil
}
