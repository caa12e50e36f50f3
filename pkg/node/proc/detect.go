package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// groupsName is the directory that members' groups are made in.
const groupsName = "gangd"

// Cgroups is what a machine lets members be held by.
type Cgroups struct {
	Kind  string
	Dir   string            // below which groups of members are made; empty with [Group]
	Sides map[string]string // likewise in hierarchies of cgroup v1, by controller
	// What the kernel limits.
	Memory, PIDs, CPUs, CPUSet bool
	// Why is why not all of them; empty: all are.
	Why string
}

// Place is where the member of a name is held.
func (c *Cgroups) Place(name, marker string) Place {
	p := Place{Kind: c.Kind, Marker: marker}
	if c.Kind != Group {
		p.Dir = filepath.Join(c.Dir, name)
	}
	for controller, dir := range c.Sides {
		if p.Sides == nil {
			p.Sides = map[string]string{}
		}
		p.Sides[controller] = filepath.Join(dir, name)
	}
	return p
}

// NoCgroups as a base asks for [Group] alone.
const NoCgroups = "none"

// Detect tries what this process may use and answers the best. base, when not empty, is a
// directory that is tried before the places found by itself, or [NoCgroups]. It has really made, killed and
// removed groups there. On cgroup v2 the process may find itself in a leaf of its group afterwards.
func Detect(base string) Cgroups {
	ms, self, err := hierarchies()
	if err != nil || base == NoCgroups {
		why := "gnoded was told to use no cgroups"
		if err != nil {
			why = err.Error()
		}
		return Cgroups{Kind: Group, Why: why}
	}
	if isV1(ms, base) {
		if c := detectV1(ms, self, base); c.Kind == Cgroup1 {
			return c
		}
	}
	if c := detectV2(ms, self, base); c.Kind == Cgroup2 {
		return c
	}
	return detectV1(ms, self, base)
}

// hierarchies are what is mounted, and the groups of this process in them.
func hierarchies() (ms []mount, self string, err error) {
	if ms, err = mounts(); err != nil {
		return nil, "", err
	}
	b, _ := readAll("/proc/self/cgroup")
	return ms, string(b), nil
}

func isV1(ms []mount, dir string) bool {
	for _, m := range ms {
		if m.fs == "cgroup" && below(m.point, dir) {
			return true
		}
	}
	return false
}

func below(point, dir string) bool { return dir == point || strings.HasPrefix(dir, point+"/") }

// detectV2 takes the first place with the memory controller, else the first that can be used
// at all: what is killed there is killed at once, and sides in v1 may hold the limits.
func detectV2(ms []mount, self, base string) (best Cgroups) {
	for _, p := range placesV2(ms, self, base) {
		p.open()
		c := Cgroups{Kind: Cgroup2, Dir: p.dir}
		made, ok := usable(&c)
		switch {
		case !ok:
			continue
		case c.Memory || p.given:
			best.forget()
			best = c
		case best.Kind == "":
			best, best.Why = c, p.why
		case made:
			c.forget()
		}
		if best.Memory || p.given {
			break
		}
	}
	if best.Kind != "" {
		best.addSides(ms, self)
	}
	return best
}

// forget removes the directory of groups that are not going to be made.
func (c *Cgroups) forget() {
	if c.Dir != "" {
		_ = syscall.Rmdir(c.Dir)
	}
}

func detectV1(ms []mount, self, base string) Cgroups {
	for _, d := range primariesV1(ms, self, base) {
		c := Cgroups{Kind: Cgroup1, Dir: d}
		if _, ok := usable(&c); ok {
			c.addSides(ms, self)
			return c
		}
	}
	return Cgroups{Kind: Group, Why: "no cgroup may be written"}
}

// addSides has hierarchies of v1 limit what the containment can't.
func (c *Cgroups) addSides(ms []mount, self string) {
	var want []string
	if !c.Memory {
		want = append(want, sideMemory)
	}
	if !c.PIDs {
		want = append(want, sidePIDs)
	}
	c.Sides = sidesUsable(ms, self, want...)
	c.Memory = c.Memory || c.Sides[sideMemory] != ""
	c.PIDs = c.PIDs || c.Sides[sidePIDs] != ""
	switch {
	case c.Memory && c.PIDs && c.CPUs:
		c.Why = ""
	case c.Memory && c.PIDs:
		c.Why = "no cpu controller of cgroup v2"
	case c.Why == "":
		c.Why = "no controller for it may be used"
	}
}

// UseCPUSets has members' groups hold their CPUs, where v2 does not do it by cpuset of v1. Each
// fork costs a move more then, so that it is asked for.
func (c *Cgroups) UseCPUSets() {
	if c.CPUSet || c.Kind == Group {
		return
	}
	ms, self, _ := hierarchies()
	if dir := sidesUsable(ms, self, sideCPUSet)[sideCPUSet]; dir != "" {
		if c.Sides == nil {
			c.Sides = map[string]string{}
		}
		c.Sides[sideCPUSet], c.CPUSet = dir, true
	}
}

// primariesV1 are the places for groups that hold processes in v1: in the freezer's hierarchy,
// else in that of pids.
func primariesV1(ms []mount, self, base string) []string {
	var out []string
	for _, m := range ms {
		if m.fs != "cgroup" || m.readOnly {
			continue
		}
		controller := sidePIDs
		if m.has("freezer") {
			controller = "freezer"
		} else if !m.has(sidePIDs) {
			continue
		}
		dirs := placesV1(m, self, controller)
		if base != "" && below(m.point, base) {
			dirs = append([]string{base}, dirs...)
		}
		if controller == "freezer" {
			out = append(dirs, out...)
		} else {
			out = append(out, dirs...)
		}
	}
	return out
}

// ownGroup finds our group in "id:controllers:path" lines; v2 has no controllers there.
func ownGroup(self, controller string) string {
	for line := range strings.Lines(self) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		if controller == "" && f[0] == "0" && f[1] == "" {
			return f[2]
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if controller != "" && c == controller {
				return f[2]
			}
		}
	}
	return ""
}

// usable does with a probe group what will be done with a member's, and notes what it is
// limited by. made: the directory was not there before.
func usable(c *Cgroups) (made, ok bool) {
	made = syscall.Mkdir(c.Dir, 0o755) == nil
	if !made && !exists(c.Dir) {
		return false, false
	}
	if c.Kind == Cgroup2 {
		enable(c.Dir)
	}
	ok = try(c)
	if !ok && made {
		_ = syscall.Rmdir(c.Dir)
	}
	return made, ok
}

// probeWait bounds the wait for a probe to be empty: an ended process leaves its group a
// moment after it was waited for.
const probeWait = time.Second

func try(found *Cgroups) bool {
	runtime.LockOSThread() // the v1 kind moves the thread in and out again
	defer runtime.UnlockOSThread()
	probe := filepath.Join(found.Dir, "probe."+strconv.Itoa(os.Getpid()))
	_ = syscall.Rmdir(probe) // of a process that had our pid and died here
	p := Place{Kind: found.Kind, Dir: probe}
	c, err := Make(p, Limits{})
	if err != nil {
		return false
	}
	started := tryStart(c)
	found.Memory, found.PIDs, found.CPUs = exists(probe+"/memory.max"), exists(probe+"/pids.max"), exists(probe+"/cpu.weight")
	found.CPUSet = found.Kind == Cgroup2 && exists(probe+"/cpuset.cpus")
	return KillContainment(p, probeWait) == nil && started
}

// tryStart shows that processes can be born inside: a delegated tree may allow mkdir and
// still refuse clone-into.
func tryStart(c Containment) bool {
	attr := &syscall.SysProcAttr{}
	if c.Enter(attr) != nil {
		return false
	}
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", ":"}, &syscall.ProcAttr{Dir: "/", Sys: attr})
	c.Leave()
	if err != nil {
		return false
	}
	var st syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &st, 0, nil); err != syscall.EINTR {
			return err == nil
		}
	}
}

// DetectAll answers every usable kind but [Group]: for tests and for an operator who wants to
// see what there is.
func DetectAll() map[string]Cgroups {
	out := map[string]Cgroups{}
	ms, self, _ := hierarchies()
	for _, c := range []Cgroups{detectV2(ms, self, ""), detectV1(ms, self, "")} {
		if c.Dir != "" {
			out[c.Kind] = c
		}
	}
	return out
}

// Gone says which controller that was to limit members has been taken away since; empty: none.
// A directory for groups that was removed is not: it is made again with the next group.
func (c *Cgroups) Gone() string {
	for _, want := range []struct {
		controller string
		held       bool
	}{{sideMemory, c.Memory}, {sidePIDs, c.PIDs}} {
		side, controller := c.Sides[want.controller], want.controller
		switch {
		case !want.held:
		case side != "":
			if !isGroup(side) && !isGroup(filepath.Dir(side)) {
				return fmt.Sprintf("nothing is mounted for the %s controller of cgroup v1", controller)
			}
		case c.Kind == Cgroup2 && exists(c.Dir):
			if on := c.Dir + "/cgroup.subtree_control"; !lists(on, controller) {
				enable(c.Dir) // made again by a member this moment, or switched off by somebody
				if lists(on, controller) {
					continue
				}
				return fmt.Sprintf("the %s controller of cgroup v2 is not enabled in %s", controller, c.Dir)
			}
		}
	}
	return ""
}

func lists(file, word string) bool {
	b, err := readAll(file)
	return err == nil && slices.Contains(strings.Fields(string(b)), word)
}

// isGroup: the directory is a group of v1 and not one that is left where a hierarchy was.
func isGroup(dir string) bool { return exists(dir + "/tasks") }
