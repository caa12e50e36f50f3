package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/core/cpus"
)

// run starts a shell script in a containment and gives how it ended.
func run(t *testing.T, c Containment, script string) syscall.WaitStatus {
	t.Helper()
	attr := &syscall.SysProcAttr{}
	if err := c.Enter(attr); err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, &syscall.ProcAttr{Dir: "/", Env: os.Environ(), Sys: attr})
	c.Leave()
	if err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != syscall.EINTR {
			return ws
		}
	}
}

// TestLimits: in each kind that this machine allows, what a containment says that it holds is held, and
// counted; and nothing of it is left, in any hierarchy.
func TestLimits(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for kind, found := range DetectAll() {
		before, err := os.ReadFile("/proc/thread-self/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		found.UseCPUSets()
		p := found.Place(fmt.Sprintf("limits.%d", os.Getpid()), "")
		lim := Limits{Memory: 64 << 20, PIDs: 10, CPUs: 4}
		mems, _ := MemoryNodes(SysFS)
		if found.CPUSet && len(mems) > 0 { // a virtual machine has two nodes
			lim.CPUSet, lim.Mems = cpus.Of(0), cpus.Of(mems[len(mems)-1])
		}
		c, err := Make(p, lim)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if h := c.Held(); h != (Held{Memory: found.Memory, PIDs: found.PIDs, CPUSet: found.CPUSet}) {
			t.Errorf("%s holds %+v, found was %+v", kind, h, found)
		}
		if ws := run(t, c, "exit 3"); ws.ExitStatus() != 3 {
			t.Errorf("%s: an honest program ended with %#x", kind, ws)
		}
		if len(lim.CPUSet) > 0 {
			if ws := run(t, c, fmt.Sprintf("grep -q '^Cpus_allowed_list:.0$' /proc/self/status && grep -q '^Mems_allowed_list:.%s$' /proc/self/status", lim.Mems)); ws.ExitStatus() != 0 {
				t.Errorf("%s: CPUs or memory are not those of %+v", kind, lim)
			}
		}
		if weight := numberIn(p.Dir + "/cpu.weight"); found.CPUs && weight != 4*weightOfCPU {
			t.Errorf("%s: who asked for 4 CPUs has weight %d", kind, weight)
		}
		if s := c.Shortage(); s.Kills != 0 || s.Own || c.Forks() != 0 {
			t.Errorf("%s: before anything ran out: %+v, %d forks refused", kind, s, c.Forks())
		}
		if found.PIDs {
			if ws := run(t, c, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 20 & done; wait"); ws.ExitStatus() == 0 {
				t.Errorf("%s: 12 processes of 10 allowed", kind)
			}
			if c.Forks() == 0 {
				t.Errorf("%s: refused forks are not counted", kind)
			}
			if err := KillContainment(p, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			if c, err = Make(p, Limits{Memory: 64 << 20}); err != nil {
				t.Fatal(err)
			}
		}
		if found.Memory {
			if ws := run(t, c, "exec dd bs=200M count=1 if=/dev/zero of=/dev/null 2>/dev/null"); ws.Signal() != syscall.SIGKILL {
				t.Errorf("%s: 200 MB of 64 allowed ended with %#x", kind, ws)
			}
			if s := c.Shortage(); s.Kills != 1 || !s.Own || s.Peak < 60<<20 || s.Peak > 64<<20 {
				t.Errorf("%s: %+v", kind, s)
			}
		}
		if gone, err := c.Remove(); !gone || err != nil {
			t.Errorf("%s: removed %v, %v", kind, gone, err)
		}
		for controller, dir := range p.Sides {
			if exists(dir) {
				t.Errorf("%s: its group of %s is left", kind, controller)
			}
		}
		if after, _ := os.ReadFile("/proc/thread-self/cgroup"); string(after) != string(before) {
			t.Errorf("%s: this thread is still in\n%s", kind, after)
		}
		nothingLeft(t, &found)
	}
}

// TestSidesGoWithADeadShim: who takes a containment over empties and removes all of its groups.
func TestSidesGoWithADeadShim(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for kind, found := range DetectAll() {
		p := found.Place(fmt.Sprintf("dead.%d", os.Getpid()), "")
		c, err := Make(p, Limits{Memory: 64 << 20, PIDs: 10})
		if err != nil {
			t.Fatal(err)
		}
		attr := &syscall.SysProcAttr{}
		if err := c.Enter(attr); err != nil {
			t.Fatal(err)
		}
		pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "100"}, &syscall.ProcAttr{Dir: "/", Sys: attr})
		c.Leave()
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = syscall.Wait4(pid, nil, 0, nil) }()
		if err := KillContainment(p, 10*time.Second); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for _, dir := range append(dirsOf(p.Sides), p.Dir) {
			if exists(dir) {
				t.Errorf("%s is left", dir)
			}
		}
		nothingLeft(t, &found)
	}
}

// TestOwnPlace: controllers are enabled only in a group that is ours to arrange, and never where
// a service manager starts the daemon itself.
func TestOwnPlace(t *testing.T) {
	root := t.TempDir() // ours, as a delegated subtree is
	for own, want := range map[string]placeV2{
		"run-1.scope":        {dir: "run-1.scope/gangd", top: "run-1.scope", leaf: true},
		"run-1.scope/gnoded": {dir: "run-1.scope/gangd", top: "run-1.scope", leaf: true},
		"a.service/gnoded":   {dir: "a.service/gangd", top: "a.service", leaf: true},
		"a.service":          {dir: "a.service/gangd", why: "the unit needs Delegate=yes and DelegateSubgroup=gnoded (systemd 254)"},
	} {
		dir := filepath.Join(root, own)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		want.dir = filepath.Join(root, want.dir)
		if want.top != "" {
			want.top = filepath.Join(root, want.top)
		}
		if os.Getuid() == 0 && exists("/run/systemd/system") {
			t.Skip("the service manager delegates nothing here")
		}
		if got := ownPlace(dir); got != want {
			t.Errorf("%s: %+v, want %+v", own, got, want)
		}
	}
}

// TestEnable: what a group has itself and has not enabled is enabled, one after the other; the rest is left alone.
func TestEnable(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"cgroup.controllers": "cpu io memory pids\n", "cgroup.subtree_control": "cpu\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	enable(dir)
	// A plain file keeps the last word written over its beginning.
	if b, _ := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); string(b) != "+memory" && string(b) != "+pidsry" {
		t.Errorf("wrote %q", b)
	}
}

func TestMemoryUsed(t *testing.T) {
	self := []int{os.Getpid()}
	resident := MemoryUsed(self, 1<<60)
	share := MemoryUsed(self, 0)
	if resident < 1<<20 || share <= 0 || share > resident+16<<20 {
		t.Errorf("resident %d, share %d", resident, share)
	}
	if n := MemoryUsed([]int{1 << 30}, 0); n != 0 {
		t.Errorf("a process that is not there uses %d", n)
	}
	if n := processRoom(ownGroups()...); n < 100 {
		t.Errorf("room for %d processes", n)
	}
}

// TestKeepRoom: the narrowest group around the members counts, and not the limit that they had
// together before.
func TestKeepRoom(t *testing.T) {
	for _, c := range []struct{ above, most int64 }{{400, 336}, {100, 50}, {8000, 7000}} {
		top := t.TempDir()
		all := filepath.Join(top, "service", "gangd")
		if err := os.MkdirAll(all, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			"cgroup.procs": "", "pids.max": fmt.Sprintln(c.above),
			"service/cgroup.procs": "", "service/pids.max": "max\n",
			"service/gangd/cgroup.procs": "", "service/gangd/pids.max": "7",
		} {
			if err := os.WriteFile(filepath.Join(top, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		found := Cgroups{Kind: Cgroup1, Dir: top, Sides: map[string]string{sidePIDs: all}}
		if most := found.KeepRoom(); most != c.most {
			t.Errorf("of %d processes members may have %d together, want %d", c.above, most, c.most)
		}
		if held := numberIn(all + "/pids.max"); held != c.most {
			t.Errorf("of %d processes the members' group may have %d, want %d", c.above, held, c.most)
		}
	}
}

// TestControllersAreTaken: where v1 has a controller that root may use, no kind of containment goes without.
func TestControllersAreTaken(t *testing.T) {
	ms, err := mounts()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, m := range ms {
		for _, c := range []string{sideMemory, sidePIDs} {
			there[c] = there[c] || m.fs == "cgroup" && !m.readOnly && m.has(c)
		}
	}
	if os.Getuid() != 0 || !there[sideMemory] && !there[sidePIDs] {
		t.Skip("needs root and controllers of cgroup v1")
	}
	for kind, found := range DetectAll() {
		if there[sideMemory] && !found.Memory || there[sidePIDs] && !found.PIDs {
			t.Errorf("%s: %+v, and v1 has %v", kind, found, there)
		}
		nothingLeft(t, &found)
	}
}
