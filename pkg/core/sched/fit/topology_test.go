package fit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
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
			var choices []Choice
			var sum Tally
			text := ""
			for at := range nodes {
				if k := rapid.IntRange(-1, 4).Draw(t, "ranks"); k > 0 {
					choices = append(choices, Choice{At: at, Ranks: k})
					sum.Add(k)
					text += fmt.Sprintf(" %d:%d", at+1, k)
				}
			}
			l := Layout{size: rapid.IntRange(1, 12).Draw(t, "size"), lo: rapid.IntRange(1, 3).Draw(t, "lo"), even: rapid.Bool().Draw(t, "even")}
			l.hi = l.size
			m := l.Members(&sum)
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
			wasteOf := func(s Choice, ranks int) cluster.Waste { return cluster.Waste{Price: int64(s.At % 3)} }
			chosen := l.Choose(slices.Clone(choices), &sum, l.Members(&sum), wasteOf)
			text += fmt.Sprint("; chosen ", chosen, " costs ", costOf(choices, chosen, wasteOf))
			for limit := range 3 {
				text += fmt.Sprint(" below ", limit, " ", new(Finder).near(tr, l, choices, chosen, limit, wasteOf))
			}
			part.Printf("%s", text)
			return 0
		}).Example(i)
	}
}
