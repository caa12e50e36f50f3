package proc

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// In cgroup v2 a group has the files of a controller only when the group above has enabled it
// (cgroup.subtree_control), and no group but the root may have both processes and controllers
// enabled. So daemons and shims move into a leaf, and members' groups lie beside it.

// LeafName is the leaf that daemons and shims move into. As DelegateSubgroup= of a unit it makes
// the service manager start them there.
const LeafName = "gnoded"

// delegable are the controllers that are enabled for members.
var delegable = []string{"memory", "pids", "cpu", "cpuset"}

// placeV2 is one place for members' groups in cgroup v2.
type placeV2 struct {
	dir string
	top string // the highest group whose controllers are ours to enable; empty: dir itself
	// leaf: top holds processes that have to move into a leaf of it first.
	leaf  bool
	given bool   // by the site: it is taken if it can be used at all
	why   string // controllers are not enabled
}

// placesV2 lists them, best first: the given one, below our own group (which a service manager may
// have delegated to us), below the root.
func placesV2(ms []mount, self, base string) []placeV2 {
	var out []placeV2
	for _, m := range ms {
		if m.fs != "cgroup2" || m.readOnly {
			continue
		}
		if base != "" && below(m.point, base) {
			out = append(out, placeV2{dir: base, top: m.point, given: true})
		}
		own := ownGroup(self, "")
		if own != "" && (own != "/" || !isRoot(m.point)) {
			out = append(out, ownPlace(m.path(own)))
		}
		out = append(out, placeV2{dir: filepath.Join(m.point, groupsName), top: m.point,
			why: "the root of cgroup v2 enables no memory controller"})
	}
	return out
}

// isRoot: the root of the hierarchy itself, where processes and controllers go together; the
// mount in a container shows a group as its root.
func isRoot(point string) bool { return !exists(point + "/cgroup.type") }

// ownPlace is the place below the group that this process is in.
func ownPlace(own string) placeV2 {
	top := own
	if filepath.Base(own) == LeafName && delegated(filepath.Dir(own)) {
		top = filepath.Dir(own)
	}
	p := placeV2{dir: filepath.Join(top, groupsName)}
	switch {
	case !delegated(top):
		p.why = top + " is not delegated to gnoded"
	case top == own && strings.HasSuffix(own, ".service"):
		// The service manager could not start the daemon there again while members live.
		p.why = "the unit needs Delegate=yes and DelegateSubgroup=" + LeafName + " (systemd 254)"
	default:
		p.top, p.leaf = top, true
	}
	return p
}

// delegated: what is below the group is ours to arrange. A service manager says so by an
// attribute; without one nobody else does it.
func delegated(dir string) bool {
	if uid := os.Geteuid(); uid != 0 {
		var st syscall.Stat_t
		return syscall.Stat(dir, &st) == nil && int(st.Uid) == uid
	}
	if !exists("/run/systemd/system") {
		return true
	}
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		var value [8]byte
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// open enables controllers from the top down to the place.
func (p *placeV2) open() {
	if p.top == "" {
		return
	}
	if p.leaf {
		vacate(p.top)
	}
	rest, err := filepath.Rel(p.top, filepath.Dir(p.dir))
	if err != nil {
		return
	}
	dir := p.top
	enable(dir)
	for _, name := range strings.Split(rest, "/") {
		if dir = filepath.Join(dir, name); dir != p.top {
			enable(dir)
		}
	}
}

// enable gives the groups below dir the controllers that dir has itself. What is refused is
// missing there, and seen by that.
func enable(dir string) {
	has, err := readAll(dir + "/cgroup.controllers")
	if err != nil {
		return // not of v2
	}
	on, _ := readAll(dir + "/cgroup.subtree_control")
	for _, c := range delegable {
		if slices.Contains(strings.Fields(string(has)), c) && !slices.Contains(strings.Fields(string(on)), c) {
			_ = writeFile(dir+"/cgroup.subtree_control", "+"+c)
		}
	}
}

// vacatePasses bounds the moving against somebody who starts processes all the time.
const vacatePasses = 20

// vacate moves the processes of a group into a leaf of it: daemons, shims that outlived their
// daemon, and in a container what else runs there.
func vacate(dir string) {
	leaf := filepath.Join(dir, LeafName)
	for range vacatePasses {
		pids, err := readPIDs(dir + "/cgroup.procs")
		if err != nil || len(pids) == 0 {
			return
		}
		if err := syscall.Mkdir(leaf, 0o755); err != nil && err != syscall.EEXIST {
			return
		}
		for _, pid := range pids {
			_ = writeFile(leaf+"/cgroup.procs", strconv.Itoa(pid))
		}
	}
}
