package proc

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// group is the containment of a machine without a usable cgroup.
type group struct {
	root   int // the shim, subreaper of all of them; 0: it is dead
	marker string
	killed bool
}

func (g *group) Enter(*syscall.SysProcAttr) error { return nil }
func (g *group) Leave()                           {}
func (g *group) Freeze() bool                     { return false }
func (g *group) Thaw()                            {}
func (g *group) Held() Held                       { return Held{} }
func (g *group) Shortage() Shortage               { return Shortage{} }
func (g *group) Forks() int                       { return 0 }

func (g *group) PIDs() ([]int, error) {
	stats, err := g.members()
	pids := make([]int, len(stats))
	for i, s := range stats {
		pids[i] = s.PID
	}
	return pids, err
}

// members scans the machine: descendants of the shim, processes that carry the marker, and
// descendants of those, which may have cleared their environment.
func (g *group) members() ([]Stat, error) { return g.scan(passesMax, nil) }

// scan calls found for each process with the marker at the moment it is seen.
func (g *group) scan(passes int, found func(Stat)) ([]Stat, error) {
	sc := scan{found: found, group: g, self: syscall.Getpid(), kthreadd: kernelParent(), want: []byte("\x00" + g.marker + "\x00"),
		looks: map[int]int{}, children: map[int][]Stat{}}
	if err := sc.all(passes); err != nil {
		return nil, err
	}
	if sc.marker != "" && processes.Full() { // marks were not looked for: nothing is proven
		return nil, errHidden
	}
	return sc.close(), nil
}

var errHidden = fmt.Errorf("the environments of %d processes are not to be had", maxHanging)

// A scan lists until a list has nothing new. One list is not enough: a chain of processes
// each of which starts the next and ends is never where the list said, but its newest link
// is always new.
type scan struct {
	*group
	self, kthreadd int
	want           []byte
	found          func(Stat)
	looks          map[int]int    // pid -> times looked at, done at looksMax
	children       map[int][]Stat // by parent
	marked         []Stat
}

const (
	passesMax = 20 // against a machine where others fork all the time
	passKill  = 3  // a killer had better act and look again
	looksMax  = 4  // at a process without an environment: an exec is over by then
)

func (sc *scan) all(passes int) error {
	for range passes {
		pids, err := All()
		if err != nil {
			return err
		}
		fresh := false
		for _, pid := range pids {
			if sc.looks[pid] < looksMax && pid != sc.self {
				sc.look(pid)
				fresh = true
			}
		}
		if !fresh || len(sc.marked) > 0 && sc.found == nil {
			break // the proof has failed already
		}
	}
	return nil
}

func (sc *scan) look(pid int) {
	s, ok := ReadStat(pid)
	if !ok || s.Dead() || s.PPID == sc.kthreadd {
		sc.looks[pid] = looksMax
		return
	}
	first := sc.looks[pid] == 0
	sc.looks[pid]++
	if first {
		sc.children[s.PPID] = append(sc.children[s.PPID], s)
	}
	found, empty := false, false
	if sc.marker != "" && pid != sc.root {
		found, empty = environ(pid, sc.want)
	}
	if found {
		sc.marked = append(sc.marked, s)
		if sc.found != nil {
			sc.found(s)
		}
	}
	if !empty {
		sc.looks[pid] = looksMax
	}
}

// close adds the descendants. The caller itself is never among them.
func (sc *scan) close() []Stat {
	in := map[int]bool{sc.self: true}
	var todo []Stat
	add := func(list []Stat) {
		for _, s := range list {
			if !in[s.PID] {
				in[s.PID] = true
				todo = append(todo, s)
			}
		}
	}
	add(sc.marked)
	if sc.root != 0 {
		add(sc.children[sc.root])
	}
	for i := 0; i < len(todo); i++ {
		add(sc.children[todo[i].PID])
	}
	return todo
}

// kernelParent is the pid of kthreadd, parent of the kernel's own threads, which are a third
// of what a machine runs; -1 inside a pid namespace, where 2 is anybody's.
func kernelParent() int {
	if s, ok := ReadStat(2); ok && s.Comm == "kthreadd" && s.PPID == 0 {
		return 2
	}
	return -1
}

// sweeps bounds the stopping of a fork bomb: each sweep stops all that the one before has
// missed, and what forks faster meets the next Kill.
const sweeps = 10

// Kill stops everything before it kills anything: a parent that sees its child die may
// start another, a stopped one can't. Whole process groups are signalled where possible:
// the kernel does that atomically against fork.
func (g *group) Kill() error {
	g.killed = true
	seen := map[int]Stat{}
	for range sweeps {
		// Stopped as it is found: a link of a chain lives for a millisecond.
		stats, err := g.scan(passKill, func(s Stat) { g.both(s, syscall.SIGSTOP) })
		if err != nil {
			return err
		}
		fresh := false
		for _, s := range stats {
			if old, ok := seen[s.PID]; !ok || old.Start != s.Start {
				seen[s.PID] = s
				fresh = true
				g.both(s, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	for _, s := range seen {
		g.both(s, syscall.SIGKILL)
	}
	return nil
}

// both signals a process and its process group, unless that is our own or init's.
func (g *group) both(s Stat, sig syscall.Signal) {
	now, ok := ReadStat(s.PID)
	if !ok || now.Start != s.Start {
		return // the pid is somebody else's by now
	}
	if now.PGRP > 1 && now.PGRP != syscall.Getpgrp() && g.leads(now) {
		_ = signal(-now.PGRP, sig)
	}
	_ = signal(s.PID, sig)
}

// leads guards the signal to a group: only the group's leader brings it, since ranks are
// leaders of sessions of their own and no outsider can be in a group that one of ours made.
func (g *group) leads(s Stat) bool { return s.PGRP == s.PID }

// Remove: with the shim as subreaper "no child" proves "no descendant". After a kill, and
// when the shim is dead, two scans in a row must also be clean.
func (g *group) Remove() (bool, error) {
	if g.root != 0 && hasChild() {
		return false, nil
	}
	if g.root != 0 && !g.killed {
		return true, nil
	}
	for range 2 {
		if stats, err := g.members(); err != nil || len(stats) > 0 {
			return false, err
		}
	}
	return true, nil
}

// EndedChild is a child of this process that has ended and was not waited for, 0: there is none.
func EndedChild() (pid int) {
	var info struct {
		signo, errno, code, _ int32
		pid                   int32
		_                     [108]byte
	}
	for {
		err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return int(info.pid)
		}
	}
}

// hasChild looks without reaping.
func hasChild() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			return err != unix.ECHILD
		}
	}
}
