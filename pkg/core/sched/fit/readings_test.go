package fit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
)

// TestAdmitsCountsNodes: places on fewer nodes with a feature than a gang counts are none for it.
func TestAdmitsCountsNodes(t *testing.T) {
	nodes := []*cluster.Node{plantest.Within("ib", plantest.Node("n1", 8, 4, 80)), plantest.Within("ib", plantest.Node("n2", 8, 4, 80)), plantest.Node("n3", 8, 4, 80)}
	f := new(Finder)
	f.Begin(nodes, nil, nil, nil)
	d, err := cluster.NewNeed(cluster.AskOf(&api.Spec{Size: 2, Constraint: "ib*2"}, []string{"gpu"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		on   []string
		want bool
	}{
		{[]string{"n1", "n2"}, true}, {[]string{"n1", "n1"}, false}, {[]string{"n1", "n3"}, false}, {[]string{"n1", "gone"}, false},
	} {
		var slots []cluster.Slot
		for _, n := range tt.on {
			slots = append(slots, cluster.Slot{Node: n})
		}
		if got := f.admits(d.Alternatives, slots); got != tt.want {
			t.Errorf("on %v: %t", tt.on, got)
		}
	}
}

// TestReadings: parts that say the same have the same alternative, and all else is combined, the last to change first.
func TestReadings(t *testing.T) {
	of := func(prefer string, constraints ...string) *cluster.Need {
		s := api.Spec{Prefer: prefer}
		for i, c := range constraints {
			s.Roles = append(s.Roles, api.Role{Name: fmt.Sprint("r", i), Count: 1, CPUsPerRank: 1, Constraint: c})
			s.Size++
		}
		return plantest.NeedOf(t, s)
	}
	many := []string{}
	for i := range 4 {
		many = append(many, fmt.Sprintf("[a%d|b%d|c%d]", i, i, i))
	}
	for _, tt := range []struct {
		d    *cluster.Need
		want string
	}{
		{of("", "", "ib"), "--"},
		{of("", "[a|b]", "", "[c|d|e]"), "0-0 0-1 0-2 1-0 1-1 1-2"},
		{of("", "[a|b]", "[a|b]", "[c|d]"), "000 001 110 111"},
		{of("", "[a|b]", "[c|d]", "[e|f]"), "000 001 010 011 100 101 110 111"},
	} {
		var got []string
		for _, parts := range readings(tt.d, false) {
			text := ""
			for i, p := range parts {
				if at := slices.Index(tt.d.Parts[i].Alternatives, p); at >= 0 {
					text += fmt.Sprint(at)
				} else {
					text += "-"
				}
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	if got := len(readings(of("", many...), false)); got != maxReadings {
		t.Errorf("%d readings of 81", got)
	}
}
