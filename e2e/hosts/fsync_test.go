package hosts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// inject has strace do something to every fsync of a daemon from now on, until the daemon
// or the returned function ends it, which gives one line for each fsync.
func (l *lab) inject(d *daemon, what string) (stop func() []string) {
	l.t.Helper()
	tally.Need(l.t, "strace")
	pid := d.outer()
	if pid == 0 {
		l.t.Fatal("the daemon does not run")
	}
	trace := filepath.Join(l.dir, "log", "strace")
	cmd := exec.Command("strace", "-f", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:"+what, "-p", strconv.Itoa(pid))
	var errs strings.Builder
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	l.until("strace holds the daemon", func() bool {
		select {
		case <-done: // with the daemon, whose end may not be told yet, or because it could not
			select {
			case <-d.gone:
				return true
			case <-time.After(5 * time.Second):
				tally.Skip(l.t, "strace can't trace here: %s", errs.String())
			}
		default:
		}
		return tracer(pid) == cmd.Process.Pid || !d.running()
	})
	return func() []string {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it lets go
		<-done
		b, _ := os.ReadFile(trace)
		return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
	}
}

// submitters submit until stopped; what they were told they keep.
type submitters struct {
	l    *lab
	stop atomic.Bool
	wg   sync.WaitGroup
	mu   sync.Mutex
	ids  map[int64]int // times that an id was given out
	errs []string
}

func (l *lab) submitters(n int, args ...string) *submitters {
	s := &submitters{l: l, ids: map[int64]int{}}
	for range n {
		s.wg.Go(func() {
			for !s.stop.Load() {
				out, errs, code := l.run("gsubmit", append([]string{"--parsable", "-o", "/dev/null"}, args...)...)
				id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
				s.mu.Lock()
				if code != 0 || err != nil {
					s.errs = append(s.errs, fmt.Sprintf("exit %d: %s%s", code, out, errs))
				} else {
					s.ids[id]++
				}
				s.mu.Unlock()
			}
		})
	}
	return s
}

func (s *submitters) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids)
}

// end stops them and checks that each id was given out once and is known.
func (s *submitters) end() {
	s.l.t.Helper()
	s.stop.Store(true)
	s.wg.Wait()
	known := s.l.known()
	var lost, twice []string
	for id, n := range s.ids {
		if known[id] == "" {
			lost = append(lost, fmt.Sprintf("job %d", id))
		}
		if n > 1 {
			twice = append(twice, fmt.Sprintf("id %d, %d times", id, n))
		}
	}
	tally.Checked(s.l.t, "acknowledged jobs lost", lost...)
	tally.Checked(s.l.t, "ids used twice", twice...)
}

// known are the states of all jobs that the controller has.
func (l *lab) known() map[int64]string {
	l.t.Helper()
	out := map[int64]string{}
	for line := range strings.Lines(l.must("gqueue", "-h", "-t", "all", "-o", "%i %T")) {
		f := strings.Fields(line)
		id, _ := strconv.ParseInt(f[0], 10, 64)
		out[id] = f[1]
	}
	return out
}

// One fsync returns EIO while 8 clients submit, and the next ones would not, as the kernel
// has it: gangd ends at once with the reason, without another fsync, and starts from what is
// on disk with everything that it had acknowledged.
func TestFsyncFails(t *testing.T) {
	l := build(t, options{nodes: 1})
	keeps := l.submit("--wrap", l.rank("done", 4))
	l.runs(keeps, 1, 1)
	for round := range rounds(2) {
		s := l.submitters(8, "-H", "--wrap", "true")
		before := s.count()
		l.until("jobs are accepted", func() bool { return s.count() > before+20 })
		d := l.daemon("ctl")
		stop := l.inject(d, "error=EIO:when=1")
		tally.Did("fsync of gangd failing with EIO", 1)
		l.until("gangd has ended", func() bool { return !d.running() })
		var again []string
		for _, line := range stop() {
			if strings.Contains(line, "fsync") || strings.Contains(line, "fdatasync") {
				again = append(again, line)
			}
		}
		tally.Checked(t, "fsyncs after a failed one", again[min(1, len(again)):]...)
		if d.code != 1 || !strings.Contains(l.log("ctl"), "disk I/O error") {
			t.Errorf("round %d: gangd ended with %d\n%s", round, d.code, l.log("ctl"))
		}
		at := s.count()
		l.gangd()
		l.until("jobs are accepted again", func() bool { return s.count() > at+20 })
		s.end()
		if len(s.errs) > 0 {
			t.Errorf("gsubmit: %q", s.errs)
		}
		l.must("gangd", "verify")
		t.Logf("round %d: %d jobs accepted, %d of them before the failure", round, s.count(), at)
	}
	if j := l.job(keeps); j.State != api.JobRunning || j.Epoch != 1 {
		t.Errorf("the running job is %s in epoch %d", j.State, j.Epoch)
	}
	l.touch("done")
	if j := l.wait(keeps, api.JobFailed); j.ExitCode == nil || *j.ExitCode != 4 {
		t.Errorf("ended with %v", j.ExitCode)
	}
}

// Each fsync takes a third of a second: everything goes on, only slower, and nodes are not
// taken for lost. gangd killed in the middle of one starts again.
func TestFsyncSlow(t *testing.T) {
	l := build(t, options{nodes: 2, gangd: []string{`heartbeat = "100ms"`}})
	stop := l.inject(l.daemon("ctl"), "delay_enter=300000")
	tally.Did("fsync of gangd slowed to 0.3 s", 1)
	s := l.submitters(16, "--wrap", "exit 0")
	l.until("jobs are accepted", func() bool { return s.count() > 60 })
	for _, n := range l.names() {
		if got := l.node(n).State; got != api.NodeUp {
			t.Errorf("%s is %s behind a slow disk", n, got)
		}
	}
	l.kill9("ctl")
	tally.Did("kill -9 of gangd", 1)
	stop()
	l.gangd()
	at := s.count()
	l.until("jobs are accepted again", func() bool { return s.count() > at+20 })
	s.end()
	if len(s.errs) > 0 {
		t.Errorf("gsubmit: %q", s.errs)
	}
	l.within(2*time.Minute, "all jobs have ended", func() bool { return l.must("gqueue", "-h") == "" })
}
