package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/cpus"
)

// The kinds of containment, best first, as ginfo shows them.
const (
	Cgroup2 = "cgroup2"
	Cgroup1 = "cgroup1"
	Group   = "group"
)

// Place says where the processes of one member are held.
type Place struct {
	Kind   string
	Dir    string            // of its group, fresh for one epoch; empty with [Group]
	Sides  map[string]string // its groups in hierarchies of cgroup v1 that limit what Dir can't, by controller
	Marker string            // NAME=value in the environment of every process
}

// Limits are what a containment can hold its processes to; 0 is no limit.
type Limits struct {
	Memory int64 // bytes
	PIDs   int64
	CPUs   int      // asked for: the weight against other members where there are not enough
	CPUSet cpus.Set // that processes inside may use; empty: all
	Mems   cpus.Set // NUMA nodes that their memory is taken of; empty: all. It needs a CPUSet
	Whole  bool     // when memory runs out all of it ends, not the one process that the kernel picks
	Deny   []Device // that processes inside must not open; cgroup v2 alone can hold them to that
}

// Held says which limits a containment holds by itself.
type Held struct{ Memory, PIDs, CPUSet bool }

// Shortage is what the kernel has counted of want of memory. Each member's end waits for it, so nothing but the count is read
// where that is 0.
type Shortage struct {
	Kills int   // processes that the kernel killed for want of memory
	Own   bool  // the containment's own memory limit was reached: otherwise it was the machine's memory, or a limit around it
	Peak  int64 // the most memory in use at a time, 0: not known
}

// LimitError is a limit that the kernel did not take.
type LimitError struct{ error }

func (e *LimitError) Unwrap() error { return e.error }

// Containment holds the processes of one member. It is used by one goroutine, which is
// locked to its thread: the v1 kind moves that thread.
type Containment interface {
	// Enter prepares attr so that what is forked with it is inside from its first
	// instruction. Leave must be called after the last fork.
	Enter(attr *syscall.SysProcAttr) error
	Leave()
	// PIDs lists the processes inside, zombies possibly among them.
	PIDs() ([]int, error)
	// Freeze stops everything inside where the kind can, so that a list of it stays true;
	// ok is false where it can't.
	Freeze() (ok bool)
	Thaw()
	// Kill sends KILL to everything inside. It is repeated until Remove succeeds.
	Kill() error
	// Remove proves that nothing is left and removes the containment. It is false, without
	// an error, while something is inside.
	Remove() (bool, error)
	Held() Held
	Shortage() Shortage
	Forks() int // that were refused for the limit of processes
}

// Make builds a fresh containment for processes that the caller is going to start. For
// [Group] the caller must be their child subreaper, see [Subreaper].
func Make(p Place, lim Limits) (Containment, error) {
	c, err := makePrimary(p, lim)
	if err != nil || len(p.Sides) == 0 {
		return c, err
	}
	sides, err := makeSides(p.Sides, p.Dir, lim)
	if err != nil {
		_, _ = c.Remove()
		return nil, err
	}
	return &sided{Containment: c, sides: sides}, nil
}

func makePrimary(p Place, lim Limits) (Containment, error) {
	switch p.Kind {
	case Cgroup2:
		return makeCgroup2(p.Dir, lim)
	case Cgroup1:
		return makeCgroup1(p.Dir, lim)
	case Group:
		return &group{root: syscall.Getpid(), marker: p.Marker}, nil
	}
	return nil, unknownKind(p.Kind)
}

func unknownKind(kind string) error {
	return fmt.Errorf("unknown containment %q: want %s, %s or %s", kind, Cgroup2, Cgroup1, Group)
}

// mkdirGroup makes a fresh group, and the directory it is in when that has gone: an empty
// one is anybody's to tidy up (a service manager's, another daemon's that leaves), and a
// node without it would refuse every gang until it is taken out of service.
func mkdirGroup(dir string) error {
	err := syscall.Mkdir(dir, 0o755)
	if err == syscall.ENOENT {
		_ = syscall.Mkdir(filepath.Dir(dir), 0o755)
		enable(filepath.Dir(dir))
		err = syscall.Mkdir(dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make cgroup %s: %w", dir, err)
	}
	return nil
}

// Adopt moves a process, with all of its threads, into a containment that somebody else holds: what it starts
// from then on is inside. What was moved before an error stays there.
func Adopt(p Place, pid int) error {
	if p.Kind != Cgroup1 && p.Kind != Cgroup2 {
		return fmt.Errorf("this node holds jobs without control groups (%s), and nothing can be moved into them", p.Kind)
	}
	for _, dir := range append(dirsOf(p.Sides), p.Dir) {
		if err := writeFile(dir+"/cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// open takes over a containment whose shim is dead.
func open(p Place) (Containment, error) {
	var c Containment
	switch p.Kind {
	case Cgroup2:
		c = &cgroup2{dir: p.Dir, fd: -1}
	case Cgroup1:
		c = &cgroup1{dir: p.Dir}
	case Group:
		c = &group{marker: p.Marker}
	default:
		return nil, unknownKind(p.Kind)
	}
	if len(p.Sides) > 0 {
		c = &sided{Containment: c, sides: p.Sides}
	}
	return c, nil
}

// KillContainment ends what a dead shim left: KILL, again and again, until the containment
// is proven empty and removed. A containment that is not there is empty. It gives up after
// wait and names what is left; a later call goes on.
func KillContainment(p Place, wait time.Duration) error {
	c, err := open(p)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 25*time.Millisecond) {
		if err := c.Kill(); err != nil {
			return err
		}
		if gone, err := c.Remove(); gone || err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes outlived KILL for %v: %s", when.Words(wait), describe(c))
		}
		time.Sleep(pause)
	}
}

// Holds reports whether a process is in a group; what can't be read may hold one.
func Holds(kind, dir string) bool {
	c, err := open(Place{Kind: kind, Dir: dir})
	if err != nil {
		return false
	}
	pids, err := c.PIDs()
	return len(pids) > 0 || err != nil && !os.IsNotExist(err)
}

func describe(c Containment) string {
	pids, err := c.PIDs()
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, pid := range pids {
		if s, ok := ReadStat(pid); ok && !s.Dead() {
			out = append(out, strconv.Itoa(pid)+" ("+s.Comm+", state "+string(s.State)+")")
		}
	}
	return strings.Join(out, ", ")
}

// Subreaper makes this process the parent of every orphan among its descendants.
func Subreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become child subreaper: %w", err)
	}
	return nil
}

// signal sends sig; a process that is gone is no error.
func signal(pid int, sig syscall.Signal) error {
	if err := syscall.Kill(pid, sig); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("signal %d to process %d: %w", sig, pid, err)
	}
	return nil
}
