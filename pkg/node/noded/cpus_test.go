package noded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cpus"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
)

// twoCPUs skips on a machine that has not two for us.
func twoCPUs(t *testing.T) cpus.Set {
	t.Helper()
	may, err := proc.Affinity(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(may) < 2 || runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	return may[:2]
}

// saysCPUs is a script that writes what it may use, also when it asks for all, and waits.
const saysCPUs = `#!/bin/bash
exec 2>&1
echo "$(taskset -cp $$ | sed 's/.*: //') $(nproc) $SLURM_CPU_BIND"
taskset -cp 0-4095 $$ >/dev/null
taskset -cp $$ | sed 's/.*: //'
sleep 1000
`

// said waits for the lines of a rank's output.
func (c *controller) said(dir string, k api.MemberKey, lines int) []string {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprintf("gang-%d.out", k.Job)))
		if strings.Count(string(b), "\n") >= lines {
			return strings.Split(strings.TrimSpace(string(b)), "\n")
		}
		if time.Now().After(end) {
			c.t.Fatalf("job %d has written %q", k.Job, b)
		}
	}
}

// TestCPUsOfTheirOwn: two jobs of a CPU each have different ones, a third is refused, another daemon
// knows who has what, with a record and without, and what has ended is given on.
func TestCPUsOfTheirOwn(t *testing.T) {
	two := twoCPUs(t)
	c := newController(t)
	o := c.options(t.TempDir())
	o.CPUSets = CPUs{Bind: true, Must: true, Only: two}
	first := c.spawn(o)
	work := t.TempDir()
	in := func(_ *api.Assignment, s *api.Spec) { s.WorkDir = work }
	a, b := c.desire(1, 1, 1, saysCPUs, in), c.desire(2, 1, 1, saysCPUs, in)
	seen := map[string]int{}
	enforced := false
	for i, k := range []api.MemberKey{a, b} {
		c.untilPhase(k, api.PhaseRunning)
		lines := c.said(work, k, 2)
		f := strings.Fields(lines[0])
		own, err := cpus.Parse(f[0])
		if err != nil || len(own) != 1 || !two.Has(own[0]) || f[1] != "1" {
			t.Fatalf("job %d may use %q", k.Job, lines[0])
		}
		if want := "quiet,mask_cpu:" + own.Mask(); f[2] != want {
			t.Errorf("SLURM_CPU_BIND=%s, want %s", f[2], want)
		}
		if other, twice := seen[f[0]]; twice {
			t.Fatalf("jobs %d and %d both have CPU %s", other, k.Job, f[0])
		}
		seen[f[0]] = int(k.Job)
		h := c.hellos[0].Limits.CPUSets
		enforced = h == api.LimitEnforced
		if enforced && lines[1] != f[0] {
			t.Errorf("job %d asked for all CPUs and may use %s", k.Job, lines[1])
		}
		if h != api.LimitEnforced && h != api.LimitAdvised || c.hellos[0].CPUs != 2 {
			t.Errorf("%d: hello %q, %d CPUs", i, h, c.hellos[0].CPUs)
		}
	}
	full := c.desire(3, 1, 1, saysCPUs, in)
	if r := c.untilPhase(full, api.PhaseRefused).Refusal; r.Blame != api.BlameNode || !strings.HasPrefix(r.Text, "1 CPUs asked, 0 of 2 are free here") {
		t.Errorf("%+v", r)
	}
	c.forget(full)
	kill(t, first)
	if enforced { // what a member has is known by its processes, too
		if err := os.Remove(filepath.Join(o.StateDir, membersDir, "2.1", "spec.json")); err != nil {
			t.Fatal(err)
		}
	}
	daemon := c.spawn(o)
	defer func() { finish(t, c, o, daemon) }()
	c.until("the second hello", func() bool { return len(c.hellos) >= 2 })
	full = c.desire(4, 1, 1, saysCPUs, in)
	c.untilPhase(full, api.PhaseRefused)
	c.forget(full)
	c.stop(a, 0)
	c.untilPhase(a, api.PhaseStopped)
	next := c.desire(5, 1, 1, saysCPUs, in)
	c.untilPhase(next, api.PhaseRunning)
	if f := strings.Fields(c.said(work, next, 1)[0]); seen[f[0]] != 1 {
		t.Errorf("job 5 may use CPU %s, job 1 had another: %v", f[0], seen)
	}
	// What has ended while a daemon before was here holds none, as long as the controller may want to hear of it.
	c.stop(next, 0)
	c.untilPhase(next, api.PhaseStopped)
	kill(t, daemon)
	daemon = c.spawn(o)
	c.until("the third hello", func() bool { return len(c.hellos) >= 3 })
	c.untilPhase(c.desire(6, 1, 1, saysCPUs, in), api.PhaseRunning)
}

// TestRanksShareOut: ranks of a gang have different CPUs, and all of its CPUs with --cpu-bind=none; a batch
// script and an exclusive gang have all.
func TestRanksShareOut(t *testing.T) {
	two := twoCPUs(t)
	c := newController(t)
	o := c.options(t.TempDir())
	o.CPUSets = CPUs{Bind: true, Only: two}
	c.run(o)
	for i, x := range []struct {
		n      int
		change func(*api.Spec)
		want   []string
	}{
		{2, func(*api.Spec) {}, []string{fmt.Sprint(two[0]), fmt.Sprint(two[1])}},
		{2, func(s *api.Spec) { s.CPUBind = api.BindNone }, []string{two.String(), two.String()}},
		{2, func(s *api.Spec) { s.Launch = api.LaunchBatch }, []string{two.String()}},
		{1, func(s *api.Spec) { s.Exclusive = true }, []string{two.String()}},
	} {
		work := t.TempDir()
		k := c.desire(int64(i+1), 1, x.n, "#!/bin/sh\ntaskset -cp $$ | sed 's/.*: //'\n", func(_ *api.Assignment, s *api.Spec) {
			s.WorkDir, s.Output = work, "%t"
			x.change(s)
		})
		c.untilPhase(k, api.PhaseStopped)
		for rank, want := range x.want {
			b, err := os.ReadFile(filepath.Join(work, fmt.Sprint(rank)))
			if got, bad := cpus.Parse(string(b)); bad != nil || got.String() != want {
				t.Errorf("case %d, rank %d may use %q, want %q (%v)", i, rank, b, want, err)
			}
		}
	}
}

// fourCPUs is the /sys of a machine with two NUMA nodes of a core with two threads, and of two cores.
func fourCPUs(t *testing.T) string {
	t.Helper()
	sys := t.TempDir()
	for name, text := range map[string]string{"cpu/online": "0-3", "node/online": "0-1", "node/node0/cpulist": "0-1", "node/node1/cpulist": "2-3",
		"node/node0/distance": "10 21", "node/node1/distance": "21 10", "cpu/cpu1/topology/thread_siblings_list": "0-1", "cpu/cpu0/topology/thread_siblings_list": "0-1",
		"cpu/cpu1/topology/physical_package_id": "-1", "cpu/cpu2/topology/physical_package_id": "1", "cpu/cpu3/topology/physical_package_id": "1"} {
		path := filepath.Join(sys, "devices/system", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return sys
}

// TestGiveCPUs: a member that is prepared once more has what one try takes; memory is taken near its CPUs; a rank without cards is
// near those of the others on its node; and who was found running without CPUs of its own takes none from others.
func TestGiveCPUs(t *testing.T) {
	sys := fourCPUs(t)
	if err := os.WriteFile(filepath.Join(sys, "devices/system/node/has_memory"), []byte("0-1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := openCPUs(CPUs{Bind: true, Near: true, Sys: sys}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	card := []api.CardInfo{{UUID: "c", NUMA: 1}}
	body := &api.AssignmentBody{Ranks: []api.RankPlace{{Node: 0}, {Node: 0, Cards: []string{"c"}}, {Node: 1}}}
	for range 2 {
		s := &shim.Spec{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Ranks: []shim.RankSpec{{Rank: 0}, {Rank: 1}}}
		if r := p.give(s, 0, body, &api.Spec{}, card); r != nil || s.CPUSet().String() != "2-3" || s.MemoryNodes.String() != "1" {
			t.Errorf("CPUs %s, memory at %s, %v; want 2-3 and 1", s.CPUSet(), s.MemoryNodes, r)
		}
	}
	if free := p.pool.Free(); free.String() != "0-1" {
		t.Errorf("%s are free, want 0-1", free)
	}
	d := &daemon{cpus: p}
	sleep := exec.Command("sleep", "1000")
	sleep.Env = []string{"GANG_MEMBER=of.give"}
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sleep.Process.Kill(); _ = sleep.Wait() })
	found := &shim.Spec{}
	found.SetPlace(proc.Place{Kind: proc.Group, Marker: "GANG_MEMBER=of.give"})
	all, err := proc.Affinity(0)
	if err != nil {
		t.Fatal(err)
	}
	p.topo.CPUs = nil // the machine that this runs on
	for _, id := range all {
		p.topo.CPUs = append(p.topo.CPUs, cpus.CPU{ID: id})
	}
	(&member{d: d, key: api.MemberKey{Job: 2, Epoch: 1}, bare: true, spec: found}).keepCPUs()
	if held := p.pool.Held(api.MemberKey{Job: 2, Epoch: 1}); len(held) != 0 {
		t.Errorf("one that may use all CPUs holds %s", held)
	}
}

// TestOffer: what can't be held is refused at start where it was asked for, and said where it was not.
func TestOffer(t *testing.T) {
	sys := fourCPUs(t)
	for _, x := range []struct {
		o       CPUs
		offered int
		want    string // error, or why nobody is bound; empty: everybody is
	}{
		{CPUs{Bind: true}, 0, ""},
		{CPUs{Bind: true}, 4, ""},
		{CPUs{Bind: true}, 5, "5 CPUs are offered, and the machine has 4 for jobs"},
		{CPUs{Bind: true, Must: true}, 5, `cpus is 5, and the machine has 4 CPUs for jobs (0-3): with cpu_bind = "cores" in gnoded.toml there can't be more`},
		{CPUs{Bind: true, Only: cpus.Of(2, 7)}, 0, "CPUs of this machine: cpu_list: there is no CPU 7 here that may be used; there are 0-3"},
		{CPUs{}, 0, "cpu_bind is none"},
	} {
		x.o.Sys = sys
		p, err := openCPUs(x.o, x.offered, nil)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = p.why
		}
		if got != x.want {
			t.Errorf("%+v, %d: %q, want %q", x.o, x.offered, got, x.want)
		}
	}
	if _, err := openCPUs(CPUs{Bind: true, Near: true, Sys: sys}, 0, nil); err == nil || !strings.HasPrefix(err.Error(), "memory_near: ") {
		t.Errorf("nobody knows where memory is: %v", err)
	}
	if err := os.WriteFile(filepath.Join(sys, "devices/system/node/has_memory"), []byte("0-2\n"), 0o644); err != nil { // the third has no CPUs
		t.Fatal(err)
	}
	if _, err := openCPUs(CPUs{Near: true, Sys: sys}, 0, nil); err == nil || err.Error() != "memory_near: needs CPUs that are bound, and they are not: cpu_bind is none" {
		t.Error(err)
	}
	near, err := openCPUs(CPUs{Bind: true, Near: true, Sys: sys}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for cpu, want := range map[int]string{0: "0", 3: "1"} {
		if got := near.memoryNodes(cpus.Of(cpu)).String(); got != want {
			t.Errorf("memory of who has CPU %d is at %q, want %q", cpu, got, want)
		}
	}
	near.mems = cpus.Of(0)
	if got := near.memoryNodes(cpus.Of(0, 3)); got != nil {
		t.Errorf("memory of all nodes that have it: %v", got)
	}
	p, _ := openCPUs(CPUs{Bind: true, Sys: sys}, 0, nil)
	if got := fmt.Sprint(p.topo.CPUs, p.topo.Distance); got != "[{0 0 0 0} {1 0 0 0} {2 2 1 1} {3 3 1 1}] map[[0 0]:10 [0 1]:21 [1 0]:21 [1 1]:10]" {
		t.Error(got)
	}
	for _, x := range []struct {
		only    cpus.Set
		offered int
		want    api.CPUShape
	}{
		{cpus.Of(0, 1), 2, api.CPUShape{Sockets: 1, Cores: 1, Threads: 2}},
		{cpus.Of(0, 2), 2, api.CPUShape{Sockets: 2, Cores: 1, Threads: 1}},
		{nil, 4, api.CPUShape{Sockets: 1, Cores: 4, Threads: 1}},              // the cores are not equal
		{cpus.Of(2, 3), 8, api.CPUShape{Sockets: 1, Cores: 8, Threads: 1}},    // not those that there are
		{cpus.Of(0, 2, 3), 3, api.CPUShape{Sockets: 1, Cores: 3, Threads: 1}}, // the sockets are not equal
	} {
		p, err := openCPUs(CPUs{Only: x.only, Sys: sys}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.shape(x.offered); got != x.want {
			t.Errorf("%d CPUs offered of %s: %+v, want %+v", x.offered, x.only, got, x.want)
		}
	}
	if _, err := openCPUs(CPUs{Bind: true, Must: true, Sys: t.TempDir()}, 0, nil); err == nil {
		t.Error("a machine that can't be read is bound")
	}
}
