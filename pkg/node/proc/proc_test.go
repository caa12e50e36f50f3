package proc

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/lab/tool"
)

func TestParseStat(t *testing.T) {
	tail := " S 1 10 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 100 200\n"
	for comm, text := range map[string]string{"sh": "42 (sh)" + tail, "a) R (b": "42 (a) R (b)" + tail, "": "42 ()" + tail} {
		s, ok := parseStat(42, []byte(text))
		want := Stat{PID: 42, PPID: 1, PGRP: 10, Session: 9, Comm: comm, State: 'S', Start: 12345, CPU: 260 * time.Millisecond, Waited: true}
		if !ok || s != want {
			t.Errorf("%q: %+v %v", text, s, ok)
		}
	}
}

// How a process ended is known as soon as it is on its way out, and not before.
func TestParseStatExit(t *testing.T) {
	for text, want := range map[string]int{
		"S 1 10 9 0 -1 4194560": 0,
		"R 1 10 9 0 -1 4194564": 9,
		"Z 1 10 9 0 -1 4194560": 9,
		"Z 1 10 9 0 -1 4227084": 9,
	} {
		if s, ok := parseStat(42, []byte("42 (sh) "+text+strings.Repeat(" 0", 42)+" 9\n")); !ok || s.Exit != want {
			t.Errorf("%s: %d %v, want %d", text, s.Exit, ok, want)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) R (b) S 1 10 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 100 200"))
	f.Add([]byte(")("))
	f.Add([]byte("1 () "))
	f.Fuzz(func(t *testing.T, b []byte) { parseStat(1, b) })
}

func TestReadStat(t *testing.T) {
	s, ok := ReadStat(os.Getpid())
	if !ok || s.PPID != os.Getppid() || s.Start == 0 || s.Dead() {
		t.Errorf("%+v %v", s, ok)
	}
	if _, ok := ReadStat(1 << 30); ok {
		t.Error("a process that can't be")
	}
}

func TestParseMounts(t *testing.T) {
	text := `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
37 31 0:34 /docker/x /sys/fs/cgroup/freezer ro,relatime shared:9 - cgroup cgroup rw,freezer
41 31 0:38 / /mnt/with\040blank rw,relatime - cgroup2 cgroup2 rw,nsdelegate
short line
`
	ms := parseMounts(text)
	if len(ms) != 3 {
		t.Fatalf("%+v", ms)
	}
	if m := ms[1]; !m.readOnly || !m.has("freezer") || m.fs != "cgroup" || m.path("/docker/x/y") != "/sys/fs/cgroup/freezer/y" {
		t.Errorf("%+v", m)
	}
	if m := ms[2]; m.point != "/mnt/with blank" || m.path("/a") != "/mnt/with blank/a" {
		t.Errorf("%+v", m)
	}
	var got []string
	for _, p := range placesV2(ms, "0::/user.slice\n6:freezer:/docker/x\n", "/mnt/with blank/base") {
		got = append(got, p.dir)
	}
	if want := []string{"/mnt/with blank/base", "/mnt/with blank/user.slice/gangd", "/mnt/with blank/gangd"}; !slices.Equal(got, want) {
		t.Errorf("places %q, want %q", got, want)
	}
	if got := primariesV1(ms, "", ""); len(got) != 0 {
		t.Errorf("a read-only hierarchy: %v", got)
	}
}

func TestSignal(t *testing.T) {
	for name, want := range map[string]syscall.Signal{"TERM": 15, "SIGUSR1": 10, "usr2": 12, "9": 9, "64": 64} {
		if got, ok := Signal(name); !ok || got != want {
			t.Errorf("%s: %d %v", name, got, ok)
		}
	}
	for _, name := range []string{"", "0", "65", "-1", "SIG", "FOO"} {
		if got, ok := Signal(name); ok {
			t.Errorf("%q is %d", name, got)
		}
	}
}

// begun starts a program that writes a word when it may be looked at, and ends it with the test; in is its standard input.
func begun(t *testing.T, name string, args ...string) (cmd *exec.Cmd, in io.Closer) {
	t.Helper()
	cmd = exec.Command(name, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return cmd, in
}

// TestReadSignals: what a program that waits for signals waits for counts as blocked, though the kernel lets it in just then.
func TestReadSignals(t *testing.T) {
	tool.Need(t, "python3")
	const both = 1<<(15-1) | 1<<(10-1)
	for wait, caught := range map[string]uint64{
		"signal.sigwait({15, 10})":                 0,
		"signal.sigtimedwait({15, 10}, 60)":        0,
		"time.sleep(60)":                           0,
		"signal.signal(12, print); time.sleep(60)": 1 << (12 - 1),
	} {
		cmd, _ := begun(t, "python3", "-c", "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, {15, 10})\nprint('up', flush=True)\n"+wait)
		for range 20 {
			if s := ReadSignals(cmd.Process.Pid); s.Blocked&both != both || s.Ignored&both != 0 || s.Caught&both != 0 {
				t.Errorf("%s: %+v", wait, s)
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if s := ReadSignals(cmd.Process.Pid); s.Caught&^2 != caught {
			t.Errorf("%s: catches %#x, want %#x", wait, s.Caught, caught)
		}
	}
}

// TestProgramFailed: a shell that has nothing left of what it ran may have run what failed; one that runs something, or has run nothing, has not.
func TestProgramFailed(t *testing.T) {
	for script, want := range map[string]bool{
		"(exit 3); echo up; read x":        true,
		"echo up; read x":                  false,
		"echo up; sleep 60; true":          false,
		"(exit 3); echo up; sleep 60; :":   false,
		"(exit 3) & wait; echo up; read x": true,
	} {
		cmd, _ := begun(t, "/bin/sh", "-c", script)
		for end := time.Now().Add(10 * time.Second); ProgramFailed(cmd.Process.Pid) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %v, want %v", script, !want, want)
			}
		}
	}
}

func TestDetect(t *testing.T) {
	c := Detect("")
	t.Logf("%+v", c)
	if (c.Kind == Group) != (c.Dir == "") {
		t.Errorf("%+v", c)
	}
	nothingLeft(t, &c)
	if c := Detect(NoCgroups); c.Kind != Group || c.Memory || c.Why == "" {
		t.Errorf("without cgroups: %+v", c)
	}
}

// nothingLeft looks for probe groups; other daemons may be trying too.
func nothingLeft(t *testing.T, c *Cgroups) {
	t.Helper()
	for _, dir := range append(slices.Collect(maps.Values(c.Sides)), c.Dir) {
		if left, _ := filepath.Glob(fmt.Sprintf("%s/probe.%d", dir, os.Getpid())); dir != "" && len(left) != 0 {
			t.Fatalf("%s: left %v", c.Kind, left)
		}
		if dir != "" {
			_ = os.Remove(dir)
		}
	}
}

// TestDetectLeavesNothing: an ended process may be in its group for a moment longer, and a
// goroutine may change its thread.
func TestDetectLeavesNothing(t *testing.T) {
	for range 30 {
		for _, c := range DetectAll() {
			nothingLeft(t, &c)
		}
	}
}

// TestBaseTidiedAway: the directory of the groups may go while it is empty; the next member
// must start all the same. On one machine it took every node out of service.
func TestBaseTidiedAway(t *testing.T) {
	for kind, found := range DetectAll() {
		base := filepath.Join(found.Dir, fmt.Sprintf("tidied.%d", os.Getpid())) // never made
		c, err := Make(Place{Kind: kind, Dir: filepath.Join(base, "1.1.x")}, Limits{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if gone, err := c.Remove(); !gone || err != nil {
			t.Errorf("%s: removed %v, %v", kind, gone, err)
		}
		_ = os.Remove(base)
		_ = os.Remove(found.Dir)
	}
}

// TestGone: a controller that was there is missed, a directory that was tidied away is not.
func TestGone(t *testing.T) {
	if found := Detect(""); found.Gone() != "" {
		t.Errorf("%+v: %s", found, found.Gone())
	}
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put("v2/gangd/cgroup.subtree_control", "cpu memory pids\n")
	put("memory/tasks", "")
	put("memory/gangd/tasks", "")
	v2 := Cgroups{Kind: Cgroup2, Dir: filepath.Join(root, "v2/gangd"), Memory: true, PIDs: true}
	v1 := Cgroups{Kind: Cgroup1, Dir: filepath.Join(root, "freezer/gangd"), Memory: true, Sides: map[string]string{sideMemory: filepath.Join(root, "memory/gangd")}}
	says := func(c *Cgroups, want string) {
		t.Helper()
		if got := c.Gone(); got != strings.ReplaceAll(want, "@", root) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	says(&v2, "")
	says(&v1, "")
	put("v2/gangd/cgroup.subtree_control", "cpu pids\n")
	says(&v2, "the memory controller of cgroup v2 is not enabled in @/v2/gangd")
	says(&Cgroups{Kind: Cgroup2, Dir: v2.Dir, PIDs: true}, "") // it never had one
	if err := errors.Join(os.RemoveAll(v2.Dir), os.RemoveAll(filepath.Join(root, "memory/gangd"))); err != nil {
		t.Fatal(err)
	}
	says(&v2, "")
	says(&v1, "")
	if err := os.Remove(filepath.Join(root, "memory/tasks")); err != nil {
		t.Fatal(err)
	}
	says(&v1, "nothing is mounted for the memory controller of cgroup v1")
}

func TestFreshOnly(t *testing.T) {
	found := Detect("")
	if found.Kind == Group {
		t.Skip("no cgroup that may be written")
	}
	p := found.Place(fmt.Sprintf("fresh.%d", os.Getpid()), "")
	c, err := Make(p, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Make(p, Limits{}); err == nil {
		t.Error("a group that exists was taken for a fresh one")
	}
	if gone, err := c.Remove(); !gone || err != nil {
		t.Errorf("%v %v", gone, err)
	}
	if err := KillContainment(p, time.Second); err != nil {
		t.Errorf("a group that is not there: %v", err)
	}
	nothingLeft(t, &found)
}

// TestForkBomb: chains of processes, each of which starts the next in a session of its own
// and ends, are found by the marker and ended. The chains are finite, whatever happens: the
// end of one by itself is a file, and the failure of the test.
func TestForkBomb(t *testing.T) {
	marker := fmt.Sprintf("GANG_MEMBER=bomb.%d", os.Getpid())
	script := filepath.Join(t.TempDir(), "bomb")
	text := "#!/bin/sh\n[ $1 = 0 ] && { : > \"$0.end\"; exit; }\nsetsid /bin/sh \"$0\" $(($1-1)) &\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		cmd := exec.Command("/bin/sh", script, "1500")
		cmd.Env = append(os.Environ(), marker)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
	}
	if err := KillContainment(Place{Kind: Group, Marker: marker}, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(script + ".end"); err == nil {
		t.Error("a chain came to its own end: nothing was tested")
	}
	pids, _ := All()
	for _, pid := range pids {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if s, ok := ReadStat(pid); ok && !s.Dead() && strings.Contains(string(b), script) {
			t.Errorf("%d lives", pid)
		}
	}
}

func BenchmarkCgroup2(b *testing.B) {
	found := Detect("")
	if found.Kind != Cgroup2 {
		b.Skip("no cgroup2")
	}
	for b.Loop() {
		c, err := Make(found.Place("bench", ""), Limits{})
		if err != nil {
			b.Fatal(err)
		}
		if gone, err := c.Remove(); !gone {
			b.Fatal(err)
		}
	}
	_ = os.Remove(found.Dir)
}

func BenchmarkScan(b *testing.B) {
	g := &group{marker: "GANG_MEMBER=nobody"}
	for b.Loop() {
		if _, err := g.members(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestMachineCPUs: the machine has as many as its kernel lists.
func TestMachineCPUs(t *testing.T) {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		t.Skip(err)
	}
	if n, want := machineCPUs(), strings.Count(string(data), "\nprocessor")+1; n != want {
		t.Errorf("%d CPUs, want %d", n, want)
	}
}
