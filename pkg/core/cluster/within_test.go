package cluster

import (
	"testing"

	"gangd/pkg/api"
)

// TestAskIn: partitions with the same bounds are one ask that keeps to them, with others several, one of which is enough; what was asked for is kept.
func TestAskIn(t *testing.T) {
	spec := &api.Spec{Size: 4, CPUsPerRank: 1, MaxNodes: 3}
	plain := AskIn(spec, []In{{Name: "a"}, {Name: "b"}})
	if plain.Key != AskOf(spec, []string{"a", "b"}).Key || plain.Spec != spec || plain.Any != nil {
		t.Errorf("without bounds: %+v", plain)
	}
	one := AskIn(spec, []In{{"a", 2, 2}, {"b", 2, 2}})
	if one.Any != nil || one.Spec.MinNodes != 2 || one.Spec.MaxNodes != 2 || one.Asked() != spec || one.Key == plain.Key {
		t.Errorf("the same bounds: %+v", one)
	}
	if wide := AskIn(spec, []In{{"a", 0, 9}}); wide.Spec.MaxNodes != 3 {
		t.Errorf("a bound above what is asked for: %+v", wide.Spec)
	}
	two := AskIn(spec, []In{{"a", 0, 1}, {"b", 0, 0}, {"c", 0, 1}})
	if len(two.Any) != 2 || two.Any[0].Spec.MaxNodes != 1 || two.Any[1].Spec != spec || len(two.Any[0].Partitions) != 2 || len(two.Partitions) != 3 {
		t.Errorf("two bounds: %+v", two)
	}
	less := *spec
	less.Size = 2
	if again := two.With(&less); len(again.Any) != 2 || again.Any[0].Spec.Size != 2 || again.Any[0].Spec.MaxNodes != 1 {
		t.Errorf("another spec there: %+v", again)
	}
	d, err := NewNeed(two)
	if err != nil || len(d.Alternatives) != 2 || d.Alternatives[0].Alternative() != "partition a,c" || d.Alternatives[1].Alternative() != "partition b" {
		t.Errorf("as needs: %+v, %v", d, err)
	}
	two.Leave([]string{"n1"})
	if two.Any[0].Refused == nil || two.Any[1].Refused == nil {
		t.Error("nodes that refused the gang are left out of one of them alone")
	}
	spec.Constraint = "[x|y]"
	if d, err := NewNeed(AskIn(spec, []In{{"a", 0, 1}, {"b", 0, 0}})); err != nil || len(d.Alternatives) != 4 || d.Alternatives[3].Alternative() != "y partition b" {
		t.Errorf("with alternatives of its own: %+v, %v", d, err)
	}
	roles := &api.Spec{Size: 2, Roles: []api.Role{{Name: "x", Count: 1, CPUsPerRank: 1}, {Name: "y", Count: 1, CPUsPerRank: 1}}}
	r := AskIn(roles, []In{{"a", 0, 1}, {"b", 0, 2}})
	if r.HoldsNodes([]Slot{{Node: "n1"}, {Node: "n2"}}) || !r.HoldsNodes([]Slot{{Node: "n1"}, {Node: "n1"}}) {
		t.Error("roles are not bounded together")
	}
	parts := &api.Spec{Size: 4, Roles: []api.Role{{Count: 2, CPUsPerRank: 1, Component: &api.Component{Partition: "a"}}, {Count: 2, CPUsPerRank: 1, Component: &api.Component{Partition: "b"}}}}
	if c := AskIn(parts, []In{{"a", 0, 1}, {"b", 2, 0}}); c.Parts[0].Spec.MaxNodes != 1 || c.Parts[1].Spec.MinNodes != 2 || c.Parts[1].Spec.MaxNodes != 0 || !c.Parts[1].Apart {
		t.Errorf("components: %+v, %+v", c.Parts[0].Spec, c.Parts[1].Spec)
	}
}

// TestMayHave: what is admitted keeps to the partitions' bounds, whoever planned it.
func TestMayHave(t *testing.T) {
	nodes := []*Node{{Name: "n1", Partitions: []string{"a"}}, {Name: "n2", Partitions: []string{"a"}}, {Name: "n3", Partitions: []string{"a", "b"}}, {Name: "n4", Partitions: []string{"b"}}}
	ask := AskIn(&api.Spec{Size: 2, CPUsPerRank: 1}, []In{{"a", 0, 1}, {"b", 2, 0}})
	for _, c := range []struct {
		on   [2]string
		want bool
	}{{[2]string{"n1", "n1"}, true}, {[2]string{"n1", "n2"}, false}, {[2]string{"n3", "n4"}, true}, {[2]string{"n4", "n4"}, false}, {[2]string{"n3", "n3"}, true}, {[2]string{"n1", "n4"}, false}} {
		if got := ask.MayHave(nodes, []Slot{{Node: c.on[0]}, {Node: c.on[1]}}); got != c.want {
			t.Errorf("on %v: %t", c.on, got)
		}
	}
}
