package cpus

import (
	"strings"
	"testing"
)

// TestBinding: what the tasks of a step may use, on 4 cores of 2 threads (n and n+4) at two NUMA nodes.
func TestBinding(t *testing.T) {
	topo := &Topology{}
	for id := range 8 {
		topo.CPUs = append(topo.CPUs, CPU{ID: id, Core: id % 4, NUMA: id % 4 / 2})
	}
	for _, c := range []struct {
		bind           string
		tasks, perTask int
		want           string
	}{
		{"", 4, 2, "0,4 1,5 2,6 3,7"},
		{"", 8, 1, "0 4 1 5 2 6 3 7"},
		{"", 2, 1, "0-7 0-7"},
		{"none", 4, 2, "0-7 0-7 0-7 0-7"},
		{"cores", 2, 1, "0,4 1,5"},
		{"cores", 2, 3, "0-1,4-5 2-3,6-7"},
		{"cores", 5, 1, "0 4 1 5 2"},
		{"cores", 2, 8, "0-7 0-7"},
		{"threads", 3, 1, "0 4 1"},
		{"threads", 3, 4, "0-1,4-5 2-3,6-7 0-1,4-5"},
		{"ldoms", 2, 1, "0-1,4-5 0-1,4-5"},
		{"v,ldoms", 2, 4, "0-1,4-5 2-3,6-7"},
		{"map_cpu:3,0x1", 3, 1, "3 1 3"},
		{"q,mask_cpu:0x3*2,F0", 3, 1, "0-1 0-1 4-7"},
		{"map_cpu:8", 1, 1, "--cpu-bind: CPU 8 is not the step's: it has 0-7 here"},
		{"one cores", 2, 2, "0-1 2-3"},
		{"one ", 4, 1, "0 1 2 3"},
		{"one none", 1, 1, "0-3"},
	} {
		text, one := strings.CutPrefix(c.bind, "one ")
		var b Binding
		var err error
		if text != "" {
			if b, err = ParseBinding(text); err != nil {
				t.Errorf("%s: %v", c.bind, err)
				continue
			}
		}
		b.OneThread = one
		sets, err := b.Tasks(topo, c.tasks, c.perTask)
		var got []string
		for _, s := range sets {
			got = append(got, s.String())
		}
		text = strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("%s, %d tasks of %d: %s, want %s", c.bind, c.tasks, c.perTask, text, c.want)
		}
	}
}

func TestBadBindings(t *testing.T) {
	for _, bad := range []string{"sockets", "cores:1", "map_cpu", "map_cpu:", "map_cpu:a", "map_cpu:1*0", "map_cpu:70000", "mask_cpu:0x0", "mask_cpu:z", "v,boards",
		"map_cpu:1*9999", "rank_ldom:1"} {
		if b, err := ParseBinding(bad); err == nil {
			t.Errorf("%q: %+v", bad, b)
		}
	}
	if b, err := ParseBinding("verbose"); err != nil || !b.Verbose || b.Kind != ByDefault {
		t.Errorf("verbose: %+v, %v", b, err)
	}
}

func TestEnviron(t *testing.T) {
	want := "SLURM_CPU_BIND=quiet,mask_cpu:0x3,0xC SLURM_CPU_BIND_VERBOSE=quiet SLURM_CPU_BIND_TYPE=mask_cpu: SLURM_CPU_BIND_LIST=0x3,0xC"
	if got := strings.Join(Environ([]Set{Of(0, 1), Of(2, 3)}, false), " "); got != want {
		t.Error(got)
	}
	want = "SLURM_CPU_BIND=verbose,none SLURM_CPU_BIND_VERBOSE=verbose SLURM_CPU_BIND_TYPE=none SLURM_CPU_BIND_LIST="
	if got := strings.Join(Environ(nil, true), " "); got != want {
		t.Error(got)
	}
}
