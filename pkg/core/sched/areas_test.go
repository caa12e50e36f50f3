package sched

import (
	"fmt"
	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAreas: which switches hold a gang, the nearest together first, with what stays over, and who is taken there.
func TestAreas(t *testing.T) {
	nodes := plantest.Nodes(11, 8, 0, 0)
	sw := plantest.Fabric(10, 2) // the last node hangs on none
	tr := newTree(sw, nodes)
	if fmt.Sprint(tr.parent, tr.leafOf) != "[5 5 6 6 7 8 8 8 -1] [0 0 1 1 2 2 3 3 4 4 -1]" {
		t.Error(tr.parent, tr.leafOf)
	}
	part := transcript.Of(t, *update).Part()
	for i := range 75 {
		rapid.Custom(func(t *rapid.T) int {
			var choices []nodeChoice
			var sum tally
			text := ""
			for at := range nodes {
				if k := rapid.IntRange(-1, 4).Draw(t, "ranks"); k > 0 {
					choices = append(choices, nodeChoice{at: at, ranks: k})
					sum.add(k)
					text += fmt.Sprintf(" %d:%d", at+1, k)
				}
			}
			l := layout{size: rapid.IntRange(1, 12).Draw(t, "size"), lo: rapid.IntRange(1, 3).Draw(t, "lo"), even: rapid.Bool().Draw(t, "even")}
			l.hi = l.size
			m := l.members(&sum)
			if m == 0 {
				return 0
			}
			if text += fmt.Sprintf(": %+v", l); rapid.Bool().Draw(t, "any number") {
				m = 0
			}
			for i, a := range tr.areas(l, tr.leaves(choices), m) {
				if i < 4 {
					text += fmt.Sprintf("; %d %q +%d", a.level, a.name, a.over)
					for _, one := range a.leaves {
						text += fmt.Sprint(" ", one.sw, ":", one.ranks)
					}
				}
			}
			wasteOf := func(s nodeChoice, ranks int) cluster.Waste { return cluster.Waste{Price: int64(s.at % 3)} }
			chosen := l.choose(slices.Clone(choices), &sum, l.members(&sum), wasteOf)
			text += fmt.Sprint("; chosen ", chosen, " costs ", costOf(choices, chosen, wasteOf))
			for limit := range 3 {
				text += fmt.Sprint(" below ", limit, " ", new(finder).near(tr, l, choices, chosen, limit, wasteOf))
			}
			part.Printf("%s", text)
			return 0
		}).Example(i)
	}
}
