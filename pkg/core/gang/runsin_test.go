package gang

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

func TestRunsIn(t *testing.T) {
	w := New(api.Settings{})
	for name, in := range map[string][]string{"n1": {"main", "short"}, "n2": {"main", "gpu", "long"}, "n3": {"main", "long"}} {
		w.nodes.byName[name] = &host{node: &Node{Res: &cluster.Node{Name: name, Partitions: in}}}
	}
	for _, x := range []struct {
		partitions string
		nodes      []string
		want       string
	}{
		{"short,gpu,long", nil, "short,gpu,long"},
		{"short,gpu,long", []string{"n2"}, "gpu"},
		{"short,gpu,long", []string{"n2", "n3"}, "long"},
		{"short,gpu,long", []string{"n1"}, "short"},
		{"short,long", []string{"n1", "n2"}, "short,long"},
		{"gpu,long", []string{"gone"}, "gpu,long"},
		{"gpu", []string{"n1"}, "gpu"},
	} {
		j := &Job{Partition: x.partitions, Wishes: new(Wishes), Past: new(Past)}
		for _, n := range x.nodes {
			j.Members = append(j.Members, Member{Node: n})
		}
		if got := RunsIn(j, w.Node); got != x.want {
			t.Errorf("%s on %v: %s, want %s", x.partitions, x.nodes, got, x.want)
		}
	}
}
