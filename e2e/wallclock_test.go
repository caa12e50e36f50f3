package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// The wall clock of a machine is everybody's, and no namespace has one of its own. So the
// daemons are built with another package time, whose Now adds what a file says: all of their
// code is as it is delivered, and every reading of the wall clock in it goes through there.
// The ranks are shells, which read the machine's true clock. The file is mapped, because Now is
// also called by the scheduler's timers, which must not enter a system call.
const wallOffset = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var wallFile string // set by the linker

var wallPage *int64

func init() {
	fd, err := open(wallFile)
	if err != nil {
		panic(err)
	}
	b, err := syscall.Mmap(int(fd), 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	wallPage = (*int64)(unsafe.Pointer(&b[0]))
	closefd(fd)
}

func wallOffset() int64 {
	if wallPage == nil {
		return 0
	}
	return atomic.LoadInt64(wallPage)
}
`

// wallClock is the wall clock of daemons built by [buildWithWallClock].
type wallClock struct{ file string }

func (w wallClock) set(t *testing.T, offset time.Duration) {
	t.Helper()
	f, err := os.OpenFile(w.file, os.O_WRONLY|os.O_CREATE, 0o644) // in place: it is mapped
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := binary.Write(f, binary.NativeEndian, int64(offset/time.Second)); err != nil {
		t.Fatal(err)
	}
}

// buildWithWallClock builds all programs with a wall clock that can be set.
func buildWithWallClock(t *testing.T) (bin string, w wallClock) {
	t.Helper()
	dir := t.TempDir()
	w = wallClock{filepath.Join(dir, "offset")}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	b, err := os.ReadFile(source)
	if err != nil {
		t.Skipf("Go's own sources are not here: %v", err)
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(b), now) != 1 {
		t.Fatalf("%s is not as it was: Now reads the clock in another way", source)
	}
	replaced := strings.Replace(string(b), now, now+"\tsec += wallOffset()\n", 1)
	overlay := map[string]map[string]string{"Replace": {
		source: filepath.Join(dir, "time.go"),
		filepath.Join(filepath.Dir(source), "zwalloffset.go"): filepath.Join(dir, "offset.go"),
	}}
	doc, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"time.go": replaced, "offset.go": wallOffset, "overlay.json": string(doc)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bin = filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-ldflags", "-X time.wallFile="+w.file, "-o", bin, "../cmd/...")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build with a wall clock of its own: %v\n%s", err, out)
	}
	return bin, w
}

// The wall clock is set back by an hour, and later ahead by two, while gangs run: notices and
// ends come when they would have come, with gnoded killed in between and gangd restarted;
// nothing else is moved by it.
func TestWallClockIsSet(t *testing.T) {
	t.Parallel()
	chaos(t)
	limit, lead := 6*time.Second, 2*time.Second
	if rounds(1) > 1 {
		limit, lead = 30*time.Second, 10*time.Second
	}
	bin, wall := buildWithWallClock(t)
	for _, jump := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			wall.set(t, 0)
			c := startIn(t, bin, "--nodes=4", "--set", "node_timeout=20s")
			c.script("prog", witnessProgram)
			bystander := c.submit(c.script("b.sh", strings.Replace(beating, "sleep 0.02", "sleep 0.2", 1)))
			c.epochRuns(bystander, 1)
			sleeps := c.submit("-o", "/dev/null", "--begin=now+2", "--wrap", "sleep 600")
			id := c.submit("-o", "/dev/null", fmt.Sprintf("--time=0:%d", int(limit.Seconds())), fmt.Sprintf("--signal=USR1@%d", int(lead.Seconds())),
				c.script("outer.sh", "#!/bin/bash\n./prog program\ntouch next-line-ran\n"))
			c.until("it has started", func() bool { return len(lines(t, filepath.Join(c.tmp, "w.program"))) == 1 })
			began := c.witness("program")["start"][0].at
			node := c.wait(id, api.JobRunning).Ranks[0].Node
			c.kill(node)
			time.Sleep(limit / 6)
			wall.set(t, jump)
			c.spawn(node)
			time.Sleep(limit / 6)
			c.kill("gangd")
			c.restart("gangd")
			line := c.must("gqueue", "-h", "-j", fmt.Sprint(id))
			t.Logf("gqueue in between: %s", strings.TrimSpace(line))
			c.until("it has ended", func() bool { return len(c.witness("program")["TERM"]) == 1 })
			j := c.wait(id, api.JobTimeout)
			w := c.witness("program")
			if len(w["USR1"]) != 1 || len(w["TERM"]) != 1 || j.Epoch != 1 {
				t.Fatalf("%d USR1 and %d TERM in %d epochs, want one of each in one", len(w["USR1"]), len(w["TERM"]), j.Epoch)
			}
			within(t, "USR1, error", (w["USR1"][0].at.Sub(began) - (limit - lead)).Abs(), 100*time.Millisecond)
			within(t, "TERM, error", (w["TERM"][0].at.Sub(began) - limit).Abs(), 100*time.Millisecond)
			if b := c.job(bystander); b.State != api.JobRunning || b.Epoch != 1 || len(c.seen(bystander).term) != 0 {
				t.Errorf("the gang beside it is %s in epoch %d\n%s", b.State, b.Epoch, c.story(bystander))
			}
			t.Logf("a job that was to begin in 2 s is %s", c.job(sleeps).State)
			for _, n := range c.nodes() {
				if n.State != api.NodeUp {
					t.Errorf("node %s is %s because %q", n.Name, n.State, n.Reason)
				}
			}
		})
	}
}
