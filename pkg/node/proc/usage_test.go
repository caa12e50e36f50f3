package proc

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// copier is a cat in a containment, and what it copies.
type copier struct {
	pid     int
	in, out *os.File
}

func startCopier(t *testing.T, c Containment) *copier {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var attr syscall.SysProcAttr
	if err := c.Enter(&attr); err != nil {
		t.Fatal(err)
	}
	defer c.Leave()
	inR, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec(cat, []string{"cat"}, &syscall.ProcAttr{Dir: "/", Sys: &attr, Files: []uintptr{inR.Fd(), outW.Fd(), 2}})
	if err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	return &copier{pid, in, out}
}

// copy has it pass some bytes on, and returns when they have come.
func (c *copier) copy(t *testing.T, n int64) {
	t.Helper()
	go func() { _, _ = c.in.Write(make([]byte, n)) }()
	if got, err := io.CopyN(io.Discard, c.out, n); got != n {
		t.Fatal(got, err)
	}
}

func (c *copier) end() {
	c.in.Close()
	c.out.Close()
	var ws syscall.WaitStatus
	for err := error(syscall.EINTR); err == syscall.EINTR; {
		_, err = syscall.Wait4(c.pid, &ws, 0, nil)
	}
}

// What processes of a containment read and write is counted whatever holds them, and what
// their shim does beside them is not.
func TestUsageOf(t *testing.T) {
	kinds := DetectAll()
	kinds[Group] = Cgroups{Kind: Group}
	for kind, base := range kinds {
		t.Run(kind, func(t *testing.T) {
			p := base.Place("usage."+filepath.Base(t.TempDir()), "")
			c, err := Make(p, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			cat := startCopier(t, c)
			ended := false
			defer func() {
				if !ended {
					cat.end()
				}
				_, _ = c.Remove()
			}()
			all := func(Stat) bool { return false }
			cat.copy(t, 1) // it is cat by now
			before := UsageOf(p, os.Getpid(), all)
			if before.MemoryBytes <= 0 || before.IOBytes <= 0 {
				t.Fatalf("%+v", before)
			}
			const moved = 8 << 20
			cat.copy(t, moved)
			if d := UsageOf(p, os.Getpid(), all).IOBytes - before.IOBytes; d < 2*moved || d > 3*moved {
				t.Errorf("it read and wrote %d, and %d are counted", moved, d)
			}
			if kind == Group {
				if u := UsageOf(p, os.Getpid(), func(s Stat) bool { return s.PID == cat.pid }); u != (Usage{Peak: -1}) {
					t.Errorf("of none: %+v", u)
				}
				if u := UsageOf(p, 0, all); u != UnknownUsage {
					t.Errorf("of a shim that is not known: %+v", u)
				}
			}
			cat.end()
			ended = true
			if u := UsageOf(p, os.Getpid(), all); u.IOBytes != 0 {
				t.Errorf("after its end: %+v", u)
			}
		})
	}
	if u := UsageOf(Place{Kind: Cgroup2, Dir: filepath.Join(t.TempDir(), "none")}, 0, nil); u != UnknownUsage {
		t.Errorf("of a group that is not there: %+v", u)
	}
}

// What a group counts itself is read in v2's files and in v1's, which are in several groups.
func TestAccountOf(t *testing.T) {
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v2, v1, side, bare := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	if u := AccountOf(Place{Kind: Cgroup2, Dir: v2}); u != UnknownUsage {
		t.Errorf("without a file: %+v", u)
	}
	write(v2, "memory.current", "73400320\n")
	write(v2, "memory.peak", "83400320\n")
	write(v2, "cpu.stat", "usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n")
	write(v1, "memory.usage_in_bytes", "73400320\n")
	write(v1, "memory.max_usage_in_bytes", "83400320\n")
	write(side, "cpu.stat", "nr_periods 0\n")
	write(bare, "cpu.stat", "usage_usec 2500000\n") // of a v2 without controllers, whose members have v1 beside
	want := Usage{MemoryBytes: 73400320, IOBytes: -1, Peak: 83400320, CPU: -1}
	if u := AccountOf(Place{Kind: Cgroup1, Dir: v1, Sides: map[string]string{"cpu": side}}); u != want {
		t.Errorf("without its CPU time: %+v", u)
	}
	write(side, "cpuacct.usage", "2500000000\n")
	want.CPU = 2500 * time.Millisecond
	for _, p := range []Place{{Kind: Cgroup2, Dir: v2}, {Kind: Cgroup2, Dir: bare, Sides: map[string]string{sideMemory: v1}}, {Kind: Cgroup1, Dir: v1, Sides: map[string]string{"cpu": side}}} {
		if u := AccountOf(p); u != want {
			t.Errorf("%s: %+v", p.Kind, u)
		}
	}
}

// CPU time is of processes and of those that they waited for.
func TestUsageOfCPU(t *testing.T) {
	cmd, in := begun(t, "sh", "-c", "sh -c 'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'; echo; read x; true")
	got := UsageOf(Place{Kind: Group}, os.Getpid(), func(s Stat) bool { return s.PID != cmd.Process.Pid }).CPU
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	want := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if want < 10*time.Millisecond || got > want+20*time.Millisecond || got < want-50*time.Millisecond {
		t.Errorf("%v of %v", got, want)
	}
}
