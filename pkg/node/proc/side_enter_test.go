package proc

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// place is a containment that a thread is in or not.
type place struct {
	Containment
	inside bool
}

func (p *place) Enter(*syscall.SysProcAttr) error { p.inside = true; return nil }
func (p *place) Leave()                           { p.inside = false }

// TestEntersAllOrNone: a thread that can't enter a side does not stay in the containment, which may be frozen.
func TestEntersAllOrNone(t *testing.T) {
	p := &place{}
	s := &sided{Containment: p, sides: map[string]string{sidePIDs: filepath.Join(t.TempDir(), "gone")}}
	if err := s.Enter(&syscall.SysProcAttr{}); err == nil || p.inside {
		t.Errorf("entered: %v; error %v", p.inside, err)
	}
}

// TestEntersWithoutNumber: a number would have the kernel wait for all forks of the machine.
func TestEntersWithoutNumber(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	tasks := filepath.Join(dir, "tasks")
	written := func() string {
		t.Helper()
		b, err := os.ReadFile(tasks)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(tasks, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := os.WriteFile(tasks, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := enterV1(dir); err != nil {
		t.Fatal(err)
	}
	if got := written(); got != "0" {
		t.Errorf("entered with %q", got)
	}
	leaveV1(dir)
	if got := written(); got != "0" {
		t.Errorf("left with %q", got)
	}
}

// TestEntersByNumberWhereZeroIsRefused: an emulated group may not know "0".
func TestEntersByNumberWhereZeroIsRefused(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var got []string
	refuse := func(refused ...string) func(string, string) error {
		got = nil
		return func(path, value string) error {
			got = append(got, filepath.Base(path)+" "+value)
			if slices.Contains(refused, value) {
				return &os.PathError{Op: "write", Path: path, Err: syscall.EINVAL}
			}
			return nil
		}
	}
	number := strconv.Itoa(syscall.Gettid())
	want := []string{"tasks 0", "tasks " + number}
	if err := moveV1By(refuse("0"), "group"); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v; written %q, wanted %q", err, got, want)
	}
	if err := moveV1By(refuse("0", number), "group"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("refused both ways: %v", err)
	}
}
