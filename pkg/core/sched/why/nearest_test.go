package why

import (
	"slices"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
)

// TestAsksNearby: for each option the values that are tried in its place, the nearest first, and what is asked then.
func TestAsksNearby(t *testing.T) {
	nodes := []*cluster.Node{
		plantest.Hold(plantest.Within("ib", plantest.Node("n1", 4, 2, 80)), 7, 30*plantest.GiB, false, 0), plantest.Hold(plantest.Node("n2", 8, 3, 40), 8, 0, true, 0), plantest.Node("n3", 2, 0, 0),
	}
	nodes[2].Has[cluster.Memory], nodes[2].Has[cluster.Tmp] = 3*plantest.GiB+1, 2*plantest.GiB
	asked := func(by string, s api.Spec) api.Spec { s.Asked = &api.Asked{CardsBy: by}; return s }
	for _, s := range []api.Spec{
		{Size: 1},
		{Size: 100, CPUsPerRank: 1},
		{Size: 2, CPUsPerRank: 10},
		{Size: 2, CPUsPerRank: 8},
		{Size: 2, MemoryPerRank: 4 * plantest.GiB},
		{Size: 2, MemoryPerNode: 4 * plantest.GiB},
		{Size: 2, MemoryPerRank: 300 * plantest.GiB},
		{Size: 1, TmpPerNode: 17 * plantest.GiB},
		{Size: 3, GPUsPerRank: 4},
		{Size: 3, GPUsPerNode: 3},
		{Size: 3, GPUsPerNode: 2, MinNodes: 2},
		{Size: 3, GPUsPerRank: 5, VRAMBytes: 90 * plantest.GiB},
		{Size: 1, GPUsPerRank: 1, VRAMBytes: 41 * plantest.GiB, Share: true, GPUType: "a100"},
		{Size: 4, MinNodes: 4, MaxNodes: 4},
		{Size: 6, MinNodes: 3, MaxNodes: 3},
		{Size: 5, MinNodes: 2, MaxNodes: 2},
		{Size: 4, MinNodes: 1, MaxNodes: 2},
		{Size: 4, MaxNodes: 2},
		{Size: 4, RanksPerNode: 2, Exclusive: true, Constraint: "ib", NodeList: []string{"n1"}, Exclude: []string{"n2"}, MinCompute: "8.0", Shape: api.CPUShape{Cores: 2}},
		{Size: 4, Launch: api.LaunchBatch, CPUsPerRank: 3},
		{Size: 4, Launch: api.LaunchBatch, MinNodes: 2, MaxNodes: 2, RanksPerNode: 2},
		{Size: 4, Launch: api.LaunchBatch, MinNodes: 2, MaxNodes: 3, RanksPerNode: 2},
		{Size: 5, Launch: api.LaunchBatch, MinNodes: 2, MaxNodes: 2, RanksPerNode: 2},
		asked("gpus", api.Spec{Size: 3, GPUsPerRank: 3}),
		asked("gpus", api.Spec{Size: 3, GPUsPerNode: 3, MinNodes: 3}),
		asked("gres", api.Spec{Size: 3, GPUsPerNode: 2, GPUType: "a100"}),
		asked("gres", api.Spec{Size: 3, GPUsPerNode: 2}),
		asked("gpus-per-task", api.Spec{Size: 3, GPUsPerRank: 2, GPUType: "a100"}),
	} {
		part := transcript.Of(t, *update).Part()
		d := plantest.NeedOf(t, s)
		part.Printf("# %s", printer.Value(s))
		for i, values := range options(d, nodes) {
			for _, ch := range values {
				now := s
				ch.Ask(&now)
				part.Printf("%d %s: %s less %t", i, ch.Option, printer.Value(now), ch.less)
			}
		}
	}
}

// TestNearestAsks: of each option the first value that does, so many options, so many values.
func TestNearestAsks(t *testing.T) {
	nodes := []*cluster.Node{plantest.Node("n1", 100, 8, 80)}
	d := plantest.NeedOf(t, api.Spec{Size: 90, CPUsPerRank: 80, GPUsPerRank: 3, Exclusive: true})
	for _, tt := range []struct {
		limit int
		try   func(s *api.Spec) bool
		want  []string
	}{
		{2, func(*api.Spec) bool { return true }, []string{"--size=1", "--gpus-per-rank=2"}},
		{3, func(s *api.Spec) bool { return s.CPUsPerRank < 80-63 || !s.Exclusive }, []string{"--cpus-per-task=16", "the same without --exclusive"}},
		{3, func(s *api.Spec) bool { return s.CPUsPerRank < 80-64 || !s.Exclusive }, []string{"the same without --exclusive"}},
		{1, func(*api.Spec) bool { return false }, nil},
	} {
		got := NearestAsks(d, nodes, tt.limit, func(a *cluster.Ask) bool { return tt.try(a.Spec) })
		for i := range max(len(got), len(tt.want)) {
			if len(got) != len(tt.want) || got[i].Option != tt.want[i] {
				t.Errorf("%+v, want %q", got, tt.want)
				break
			}
		}
	}
}

// What refused a gang is left out without anybody having asked for it: no advice says to take that back.
func TestAdviceIsNotAgainstRefusals(t *testing.T) {
	for _, x := range []struct {
		exclude, refused, left []string // left: by the advice; nil: there is none
	}{
		{[]string{"n1"}, nil, []string{}},
		{[]string{"n2"}, []string{"n2"}, nil},
		{[]string{"n1", "n2"}, []string{"n2"}, []string{"n2"}},
		{nil, nil, nil},
	} {
		s := &api.Spec{Exclude: x.exclude}
		all := dropped(s, x.refused)
		if got := len(all) == 1 && all[0][0].Option == "the same without --exclude"; got != (x.left != nil) {
			t.Errorf("%v, refused by %v: %d changes", x.exclude, x.refused, len(all))
			continue
		}
		if x.left != nil {
			if all[0][0].Ask(s); !slices.Equal(s.Exclude, x.left) {
				t.Errorf("%v, refused by %v: it leaves out %v", x.exclude, x.refused, s.Exclude)
			}
		}
	}
}
