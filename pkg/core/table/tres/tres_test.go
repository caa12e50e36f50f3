package tres

import (
	"testing"

	"gangd/pkg/api"
)

func TestAmounts(t *testing.T) {
	j := &api.Job{Size: 4, CPUsPerRank: 2, GPUsPerRank: 1, MemoryBytes: 200 << 20}
	a := Of(j, 2)
	if got := a.ByName(); got != "billing=8,cpu=8,gres/gpu=4,mem=800M,node=2" {
		t.Error(got)
	}
	if got := a.InOrder(); got != "cpu=8,mem=800M,node=2,billing=8,gres/gpu=4" {
		t.Error(got)
	}
	byNode := Of(&api.Job{Size: 2, GPUsPerNode: 2, MemoryPerNode: 1 << 30}, 3)
	if got := byNode.InOrder(); got != "cpu=2,mem=3G,node=3,billing=2,gres/gpu=6" {
		t.Error(got)
	}
	roles := Of(&api.Job{Size: 3, Roles: []api.Role{{Count: 1, CPUsPerRank: 2}, {Count: 2, CPUsPerRank: 4, GPUsPerRank: 2, MemoryPerRank: 1 << 30}}}, 1)
	if got := roles.InOrder(); got != "cpu=10,mem=2G,node=1,billing=10,gres/gpu=4" {
		t.Error(got)
	}
	if got := (Amount{CPUs: 1, Nodes: 1}).ByName(); got != "cpu=1,node=1" {
		t.Error(got)
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{Size(0, 'M'), "0"}, {Size(2000<<20, 'M'), "2000M"}, {Size(2<<30, 'M'), "2G"}, {Size(1536<<20, 'M'), "1.50G"}, {Size(512<<20, 'M'), "512M"}, {Size(1500<<20, 'M'), "1500M"}, {Size(1<<40, 'M'), "1T"}, {Size(1<<60, 'M'), "1024P"}, {Size(3<<59, 'M'), "1536P"},
		{Size(3289088, 'K'), "3212K"}, {Size(512, 'K'), "0.50K"}, {InUnit(3289088, 'M'), "3.14M"}, {InUnit(1<<30, 'M'), "1024M"}, {InUnit(0, 'K'), "0"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}
