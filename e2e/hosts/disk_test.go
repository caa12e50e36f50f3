package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

const mib = 1 << 20

// fill takes room on a host's state directory until so much is free.
func (l *lab) fill(host string, leave int64) { l.t.Helper(); l.fillAt(host, l.state(host), leave) }

func (l *lab) fillAt(host, dir string, leave int64) {
	l.t.Helper()
	dir = l.hosts[host].path(dir)
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		l.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	for left := int64(st.Bavail)*st.Bsize - leave; left > 0; {
		n, err := f.Write(make([]byte, min(left, mib)))
		left -= int64(n)
		if errors.Is(err, syscall.ENOSPC) && leave == 0 {
			return
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// fillInodes takes every inode of a host's state directory.
func (l *lab) fillInodes(host string) {
	l.t.Helper()
	dir := filepath.Join(l.hosts[host].path(l.state(host)), "inodes")
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		l.t.Fatal(err)
	}
	for {
		f, err := os.CreateTemp(dir, "")
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		if err != nil {
			l.t.Fatal(err)
		}
		f.Close()
	}
}

// room gives back what fill and fillInodes took.
func (l *lab) room(host string) {
	l.t.Helper()
	for _, dir := range []string{l.state(host), "/run"} {
		dir = l.hosts[host].path(dir)
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, "filler")), os.RemoveAll(filepath.Join(dir, "inodes"))); err != nil {
			l.t.Fatal(err)
		}
	}
}

const diskFull = "gsubmit: state disk full: the job could not be kept, so it was not accepted; free space on the controller's state directory, then submit again\n"

// refusedFull checks that a submission is refused because the disk is full.
func (l *lab) refusedFull() {
	l.t.Helper()
	if out, errs, code := l.run("gsubmit", "--wrap", "true"); code != api.ExitRefused || errs != diskFull || out != "" {
		l.t.Errorf("a submission on a full disk: exit %d\n got %s%s\nwant %s", code, out, errs, diskFull)
	}
}

// The controller's disk fills up while gangs run: submissions are refused, ends are still
// recorded, also with not one byte free, and all goes on by itself when there is room.
func TestControllersDiskFull(t *testing.T) {
	l := build(t, options{nodes: 2, tmpfs: map[string]string{"ctl": "size=96m"}})
	running := map[int64]int{} // id -> code
	for i := range 6 {
		id := l.submit("--size=2", "--ranks-per-node=1", "--wrap", l.rank(fmt.Sprintf("go%d", i), 10+i))
		running[id] = 10 + i
		l.wait(id, api.JobRunning)
	}
	l.fill("ctl", 32*mib)
	tally.Did("state disk of gangd filled up", 1)
	l.refusedFull()
	ends := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			l.touch(fmt.Sprintf("go%d", i))
		}
		for id, code := range running {
			if code < 10+from || code >= 10+to {
				continue
			}
			if j := l.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != code {
				t.Errorf("job %d ended with %v, want %d", id, j.ExitCode, code)
			}
		}
	}
	ends(0, 3)
	l.fill("ctl", 0)
	l.refusedFull()
	ends(3, 6)
	l.refusedFull()
	pid := l.daemon("ctl").pid
	l.room("ctl")
	id := l.submit("--wrap", "exit 0")
	l.wait(id, api.JobCompleted)
	if l.daemon("ctl").pid != pid || !l.daemon("ctl").running() {
		t.Error("gangd did not live through it")
	}
	l.must("gangd", "verify")
	tally.Checked(t, "ends lost on a full disk")
}

// Not one inode left for gangd: what it needs is open already, so nothing is refused.
func TestControllersInodesFull(t *testing.T) {
	l := build(t, options{nodes: 1, tmpfs: map[string]string{"ctl": "size=256m,nr_inodes=100"}})
	l.fillInodes("ctl")
	tally.Did("inodes of gangd's state disk used up", 1)
	id := l.submit("--wrap", "exit 3")
	if j := l.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 3 {
		t.Errorf("ended with %v", j.ExitCode)
	}
	if _, errs, code := l.run("gangd", "token", "new"); code != api.ExitRefused || !strings.Contains(errs, "no space left on device") {
		t.Errorf("a token without an inode: exit %d, %s", code, errs)
	}
	// A controller that starts there says what is wrong, and starts when it is mended.
	l.kill9("ctl")
	l.room("ctl")
	l.gangd()
	l.wait(l.submit("--wrap", "true"), api.JobCompleted)
}

// A node's disk, its inodes, or the memory that holds its members are used up: what can't be
// prepared there is refused and goes elsewhere, what runs there ends with its true code, and
// the node is named.
func TestNodesDiskFull(t *testing.T) {
	const small = "size=64m" // a container's usual: members are kept on disk then
	for _, c := range []struct {
		what, memory string
		fill         func(*lab)
	}{
		{"bytes", small, func(l *lab) { l.fill("n1", 0) }},
		{"inodes", small, func(l *lab) { l.fillInodes("n1") }},
		{"memory", "size=300m", func(l *lab) { l.fillAt("n1", "/run", 0) }},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := build(t, options{nodes: 2, gangd: []string{`retry_backoff = "50ms"`, `start_timeout = "5s"`},
				memory: c.memory, tmpfs: map[string]string{"n1": "size=4m,nr_inodes=400"}})
			id := l.submit("--nodelist=n1", "--wrap", l.rank("go", 9))
			l.runs(id, 1, 1)
			c.fill(l)
			tally.Did("state disk of gnoded filled up, "+c.what, 1)
			l.touch("go")
			// Its shim can't write the result, and tells it all the same.
			j := l.wait(id, api.JobFailed)
			if j.ExitCode == nil || *j.ExitCode != 9 || j.Cause != api.CauseCrash {
				t.Errorf("job %d: %v, cause %s\n%s", id, j.ExitCode, j.Cause, l.story(id))
			}
			l.until("the member is removed", func() bool {
				left, _ := filepath.Glob(l.hosts["n1"].path(l.state("n1")) + "/m/*/state.json")
				more, _ := filepath.Glob(l.hosts["n1"].path("/run/gnoded/*/*/state.json"))
				return len(left)+len(more) == 0
			})
			c.fill(l) // what that member had, too
			var later []int64
			for range 8 {
				later = append(later, l.submit("--exclusive", "--wrap", "true"))
			}
			for _, id := range later {
				l.wait(id, api.JobCompleted)
			}
			l.until("n1 is out of service", func() bool { s := l.node("n1").State; return s == api.NodeDrained || s == api.NodeDraining })
			if n := l.node("n1"); !strings.Contains(n.Reason, "no job can be held here: ") || !strings.Contains(n.Reason, "no space left on device") {
				t.Errorf("n1 is %s because %q", n.State, n.Reason)
			}
			l.room("n1")
			l.until("n1 is back by itself", func() bool { return l.node("n1").State == api.NodeUp })
			l.wait(l.submit("--nodelist=n1", "--wrap", "true"), api.JobCompleted)
		})
	}
}

// A checkpoint that finds the controller's disk full is refused, and takes none of the room
// that ends are recorded in.
func TestCheckpointOnFullDisk(t *testing.T) {
	l := build(t, options{nodes: 1, tmpfs: map[string]string{"ctl": "size=96m"}})
	id := l.submit("-o", filepath.Join(l.tmp, "out"), "--wrap",
		`until [ -e go ]; do sleep 0.05; done; head -c 16000000 /dev/zero | gckpt put -; echo "code $?"; until [ -e done ]; do sleep 0.05; done; exit 11`)
	ends := l.submit("--wrap", l.rank("end", 12))
	l.wait(id, api.JobRunning)
	l.wait(ends, api.JobRunning)
	l.fill("ctl", 20*mib)
	tally.Did("state disk of gangd filled up", 1)
	l.touch("go")
	var out string
	l.until("the checkpoint is answered", func() bool {
		b, _ := os.ReadFile(filepath.Join(l.tmp, "out"))
		out = string(b)
		return strings.Contains(out, "code ")
	})
	if !strings.Contains(out, "state disk full") || !strings.Contains(out, "code 1") {
		t.Errorf("gckpt put on a full disk: %s", out)
	}
	l.fill("ctl", 0)
	l.touch("end")
	if j := l.wait(ends, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 12 {
		t.Errorf("ended with %v", j.ExitCode)
	}
	l.room("ctl")
	l.touch("done")
	if j := l.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 11 {
		t.Errorf("ended with %v", j.ExitCode)
	}
}

// gangd ends and is started on a disk without one free byte, or without one free inode: it
// starts with all that it had, refuses new jobs, and records ends. Only a start after an end
// in good order needs inodes, and says so.
func TestControllerStartsOnFullDisk(t *testing.T) {
	for _, c := range []struct {
		what string
		sig  syscall.Signal
		fill func(*lab)
	}{
		{"bytes", syscall.SIGKILL, func(l *lab) { l.fill("ctl", 0) }},
		{"bytes", syscall.SIGTERM, func(l *lab) { l.fill("ctl", 0) }},
		{"inodes", syscall.SIGKILL, func(l *lab) { l.fillInodes("ctl") }},
	} {
		t.Run(fmt.Sprintf("%s after %s", c.what, c.sig), func(t *testing.T) {
			l := build(t, options{nodes: 1, tmpfs: map[string]string{"ctl": "size=96m,nr_inodes=200"}})
			id := l.submit("--wrap", l.rank("go", 13))
			held := l.submit("-H", "--wrap", "true")
			l.runs(id, 1, 1)
			c.fill(l)
			tally.Did("state disk of gangd filled up", 1)
			l.daemon("ctl").kill(c.sig)
			if c.sig == syscall.SIGKILL {
				c.fill(l) // what its end gave back
			}
			l.gangd()
			if c.what == "bytes" {
				l.refusedFull()
			}
			l.touch("go")
			if j := l.wait(id, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 13 {
				t.Errorf("ended with %v", j.ExitCode)
			}
			l.room("ctl")
			l.must("gcancel", fmt.Sprint(held))
			l.wait(l.submit("--wrap", "true"), api.JobCompleted)
			l.must("gangd", "verify")
		})
	}
}
