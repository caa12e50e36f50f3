package proc

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
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
			dir := p.Dir
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
			before := UsageOf(kind, dir, os.Getpid(), all)
			if before.MemoryBytes <= 0 || before.IOBytes <= 0 {
				t.Fatalf("%+v", before)
			}
			const moved = 8 << 20
			cat.copy(t, moved)
			if d := UsageOf(kind, dir, os.Getpid(), all).IOBytes - before.IOBytes; d < 2*moved || d > 3*moved {
				t.Errorf("it read and wrote %d, and %d are counted", moved, d)
			}
			if kind == Group {
				if u := UsageOf(kind, dir, os.Getpid(), func(s Stat) bool { return s.PID == cat.pid }); u != (Usage{}) {
					t.Errorf("of none: %+v", u)
				}
				if u := UsageOf(kind, dir, 0, all); u != (Usage{-1, -1}) {
					t.Errorf("of a shim that is not known: %+v", u)
				}
			}
			cat.end()
			ended = true
			if u := UsageOf(kind, dir, os.Getpid(), all); u.IOBytes != 0 {
				t.Errorf("after its end: %+v", u)
			}
		})
	}
	if u := UsageOf(Cgroup2, filepath.Join(t.TempDir(), "none"), 0, nil); u != (Usage{-1, -1}) {
		t.Errorf("of a group that is not there: %+v", u)
	}
}

// The group's own account of memory goes before what its processes say.
func TestGroupMemory(t *testing.T) {
	for _, name := range []string{"memory.current", "memory.usage_in_bytes"} {
		dir := t.TempDir()
		if _, ok := groupMemory(dir); ok {
			t.Error("without a file")
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("73400320\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if n, ok := groupMemory(dir); !ok || n != 70<<20 {
			t.Errorf("%s: %d %v", name, n, ok)
		}
	}
}
