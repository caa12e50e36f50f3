package proc

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Detect tries what this process may use and answers the best kind and the directory below
// which the groups of members are made ("" for [Group]). base, when not empty, is tried
// before the places found by itself. It has really made, killed and removed a group there.
func Detect(base string) (kind, dir string) {
	mounts, err := mounts()
	if err != nil {
		return Group, ""
	}
	self, _ := readAll("/proc/self/cgroup")
	for _, d := range candidates(mounts, string(self), base, "cgroup2") {
		if usable(Cgroup2, d) {
			return Cgroup2, d
		}
	}
	for _, d := range candidates(mounts, string(self), base, "cgroup") {
		if usable(Cgroup1, d) {
			return Cgroup1, d
		}
	}
	return Group, ""
}

// candidates lists places for a file system type: the given one, below our own group (which
// a service manager may have delegated to us), below the root.
func candidates(ms []mount, self, base, fs string) []string {
	var out []string
	for _, m := range ms {
		if m.fs != fs || m.readOnly {
			continue
		}
		controller := ""
		if fs == "cgroup" {
			switch {
			case m.has("freezer"):
				controller = "freezer"
			case m.has("pids"):
				controller = "pids"
			default:
				continue
			}
		}
		if base != "" && (base == m.point || strings.HasPrefix(base, m.point+"/")) {
			out = append(out, base)
		}
		if own := ownGroup(self, controller); own != "" && own != "/" {
			out = append(out, filepath.Join(m.path(own), "gangd"))
		}
		out = append(out, filepath.Join(m.point, "gangd"))
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

// usable does with a probe group what will be done with a member's.
func usable(kind, dir string) bool {
	made := syscall.Mkdir(dir, 0o755) == nil
	if !made && !exists(dir) {
		return false
	}
	ok := try(kind, filepath.Join(dir, "probe."+strconv.Itoa(os.Getpid())))
	if !ok && made {
		_ = syscall.Rmdir(dir)
	}
	return ok
}

// probeWait bounds the wait for a probe to be empty: an ended process leaves its group a
// moment after it was waited for.
const probeWait = time.Second

func try(kind, probe string) bool {
	runtime.LockOSThread() // the v1 kind moves the thread in and out again
	defer runtime.UnlockOSThread()
	_ = syscall.Rmdir(probe) // of a process that had our pid and died here
	c, err := Make(kind, probe, "", Limits{})
	if err != nil {
		return false
	}
	started := tryStart(c)
	return KillContainment(kind, probe, "", probeWait) == nil && started
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

// DetectAll answers every usable kind but [Group] with its directory: for tests and for
// an operator who wants to see what there is.
func DetectAll() map[string]string {
	out := map[string]string{}
	mounts, err := mounts()
	if err != nil {
		return out
	}
	self, _ := readAll("/proc/self/cgroup")
	for kind, fs := range map[string]string{Cgroup2: "cgroup2", Cgroup1: "cgroup"} {
		for _, d := range candidates(mounts, string(self), "", fs) {
			if usable(kind, d) {
				out[kind] = d
				break
			}
		}
	}
	return out
}
