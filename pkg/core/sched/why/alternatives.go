package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// alternativesText is what each alternative is short of now.
func (wy *Why) alternativesText(sh *fit.AskClass) string {
	l := cmp.Or(wy.ExplainedView, wy.kept.TopView())
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

func (wy *Why) roomOf(way *fit.AskClass, l *fit.NodeView) string {
	choices := wy.fit.Look(way, l, nil)
	var marks []uint
	for i := range choices {
		for range choices[i].Count() {
			marks = append(marks, way.Need.Marks(l.Node(choices[i].At)))
		}
	}
	return roomOfAlternative(way.Need, wy.fit.TallyOf(choices), marks)
}

// MaxWayLines bounds the alternatives that are explained node by node.
const MaxWayLines = 3

// AlternativeLines is nodeLines for each alternative, those with most room first.
func (wy *Why) AlternativeLines(d *cluster.Need) []string {
	if len(d.Alternatives) == 1 {
		return wy.NodeLines(d.Alternatives[0])
	}
	room := func(way *cluster.Need) (sum int) {
		for at, n := range wy.ExplainedView.Every() {
			if n.Ready && !wy.ExplainedView.Shuts(at) && way.Admits(n) {
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
		lines := wy.NodeLines(one.way)
		if i := slices.IndexFunc(all, func(t told) bool { return slices.Equal(t.lines, lines) }); i >= 0 {
			all[i].names = append(all[i].names, one.way.Alternative())
		} else if all = append(all, told{[]string{one.way.Alternative()}, lines}); len(all) == MaxWayLines {
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
func (wy *Why) switchVerdictOfAlternatives(c *order.Candidate, sh *fit.AskClass) *verdict {
	for _, way := range sh.Alternatives {
		if way.Need.Counts != nil {
			if wy.fit.Fits(way, wy.kept.ViewFor(c, wy.End(c))) {
				return &verdict{word: given.WordResources, nearer: true, sentence: fmt.Sprintf(
					"there is room now, but not below %s with the nodes that it counts; it waits for that until %s, then it starts anywhere",
					switches(wy.SwitchLimit(c)), when.Clock(wy.Now, wy.SwitchUntil(c)))}
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
