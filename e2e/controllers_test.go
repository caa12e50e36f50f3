package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gangd/e2e/tally"
	"gangd/pkg/api"
	"gangd/pkg/store/pgserver"
)

// sites of several controllers: how large, and for how often.
type severalSize struct{ rounds, waiting, submitters, gangs int }

func sizeOfSeveral() severalSize {
	if n := rounds(1); n > 1 {
		return severalSize{n, 10_000, 8, 20}
	}
	return severalSize{1, 50, 3, 2}
}

// severalWays are what happens to the leader, or to the database, and how long submissions may stand still on a
// quiet machine (what acceptance asks for); CI holds them to patience alone.
var severalWays = []struct {
	name string
	long bool // not in CI
	do   func(s *several)
}{
	{"kill -9", false, func(s *several) { s.signal(syscall.SIGKILL) }},
	{"TERM", false, func(s *several) { s.signal(syscall.SIGTERM) }},
	{"STOP for 10 s, CONT", true, func(s *several) {
		pid := s.leader()
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		s.later = append(s.later, func() {
			time.Sleep(10*time.Second - time.Since(s.began))
			_ = syscall.Kill(pid, syscall.SIGCONT)
			s.gone(pid)
		})
	}},
	{"database restarted at once", true, func(s *several) { s.restartDatabase() }},
}

// several is a cluster of two controllers under submissions.
type several struct {
	*cluster
	size  severalSize
	began time.Time // of the round
	later []func()  // before the round ends

	mu    sync.Mutex
	acked []int64
	when  []time.Time
	bad   []string
}

// Two controllers on one database: whatever happens to the leader, submissions go on within seconds, none
// that was acknowledged is lost or done twice, and no rank notices.
func TestControllers(t *testing.T) {
	if _, err := pgserver.Find(); err != nil {
		tally.Skip(t, "%v", err)
	}
	s := &several{size: sizeOfSeveral()}
	s.cluster = start(t, "--controllers=2", "--postgres", "--nodes=2", "--cpus=64", "--set=heartbeat=1s")
	witness := filepath.Join(s.tmp, "witness")
	release := filepath.Join(s.tmp, "release")
	script := s.script("gang.sh", fmt.Sprintf("#!/bin/sh\necho \"$GANG_JOB_ID $GANG_EPOCH $GANG_RANK\" >> %s\nwhile [ ! -e %s ]; do sleep 0.2; done\n", witness, release))
	var gangs []int64
	for range s.size.gangs {
		gangs = append(gangs, s.submit("--size=2", "--ranks-per-node=1", script))
	}
	for _, id := range gangs {
		s.wait(id, api.JobRunning)
	}
	if s.size.waiting > 0 {
		s.submit("--hold", fmt.Sprintf("--array=0-%d", s.size.waiting-1), "--wrap=true")
	}
	s.until("both controllers to be able to lead", func() bool {
		b, _ := os.ReadFile(filepath.Join(s.dir, "state", "n1", "controllers"))
		return strings.Contains(string(b), "gangd2") && strings.Contains(string(b), `"version":3`)
	})
	for _, way := range severalWays {
		if way.long && s.size.rounds == 1 {
			continue
		}
		var gaps []time.Duration
		for range s.size.rounds {
			gaps = append(gaps, s.round(way.do))
		}
		slices.Sort(gaps)
		at := func(p int) time.Duration { return gaps[min(len(gaps)*p/100, len(gaps)-1)].Round(time.Millisecond) }
		t.Logf("%s: %d rounds, last to first acknowledged submission p50 %s, p99 %s, max %s", way.name, len(gaps), at(50), at(99), at(100))
		tally.Did(way.name+" of one of two controllers", len(gaps))
	}
	s.audit(gangs, witness, release)
}

// leader is the process that leads.
func (s *several) leader() (pid int) {
	s.until("somebody to lead", func() bool {
		var p api.PingReply
		out, _, code := s.run("gctl", "ping", "--json")
		if code == 0 {
			s.client().Decode(&p, "gctl", "ping", "--json")
		}
		_ = out
		pid = p.PID
		return pid > 0
	})
	return pid
}

// signal sends one to the leader, and sees to it that another process stands by after the round.
func (s *several) signal(sig syscall.Signal) {
	pid := s.leader()
	if err := syscall.Kill(pid, sig); err != nil {
		s.t.Fatal(err)
	}
	s.later = append(s.later, func() { s.gone(pid) })
}

// gone waits for the end of a controller and starts it again.
func (s *several) gone(pid int) {
	for _, name := range []string{"gangd", "gangd2"} {
		b, _ := os.ReadFile(filepath.Join(s.dir, "run", name+".pid"))
		if strings.TrimSpace(string(b)) == strconv.Itoa(pid) {
			s.must("gangd", "dev", "--restart="+name, "--dir="+s.dir)
			return
		}
	}
	s.t.Errorf("pid %d is no controller", pid)
}

func (s *several) restartDatabase() {
	dir := filepath.Join(s.dir, "postgres")
	b, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		s.t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, _ := strconv.Atoi(line)
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
		s.t.Fatal(err)
	}
	s.until("the database to end", func() bool { return syscall.Kill(pid, 0) != nil })
	if _, err := pgserver.Start(context.Background(), pgserver.Options{Dir: dir, Stays: true}); err != nil {
		s.t.Fatal(err)
	}
}

// round is one: submitters at work, something happens, and they go on. It gives the longest time between two
// acknowledged submissions.
func (s *several) round(do func(*several)) time.Duration {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	from := len(s.acked)
	for range s.size.submitters {
		all.Go(func() {
			for ctx.Err() == nil {
				s.ask()
			}
		})
	}
	count := func() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.when) }
	s.until("submissions before", func() bool { return count() > from+s.size.submitters })
	s.began = time.Now()
	do(s)
	acted := time.Now()
	s.until("submissions after", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, at := range s.when[from:] {
			if at.After(acted.Add(2500 * time.Millisecond)) { // a leader that was killed is missed after that
				n++
			}
		}
		return n > s.size.submitters
	})
	for _, f := range s.later {
		f()
	}
	s.later = nil
	cancel()
	all.Wait()
	when := slices.Clone(s.when[from:])
	slices.SortFunc(when, time.Time.Compare)
	longest := time.Duration(0)
	for i := 1; i < len(when); i++ {
		longest = max(longest, when[i].Sub(when[i-1]))
	}
	return longest
}

// ask submits one job, which has to be acknowledged.
func (s *several) ask() {
	out, errs, code := s.run("gsubmit", "--parsable", "--hold", "--wrap=true")
	id, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if code != 0 || err != nil {
		s.bad = append(s.bad, fmt.Sprintf("gsubmit: exit %d, %q: %s", code, out, errs))
		return
	}
	s.acked, s.when = append(s.acked, id), append(s.when, time.Now())
}

// audit looks at what was promised.
func (s *several) audit(gangs []int64, witness, release string) {
	tally.Checked(s.t, "gsubmit exits 0 throughout", s.bad...)
	var jobs struct{ Jobs []api.Job }
	s.client().Decode(&jobs, "gqueue", "--json")
	there := map[int64]bool{}
	for i := range jobs.Jobs {
		there[jobs.Jobs[i].JobID] = true
	}
	var lost, twice []string
	seen := map[int64]bool{}
	for _, id := range s.acked {
		if !there[id] {
			lost = append(lost, fmt.Sprintf("job %d", id))
		}
		if seen[id] {
			twice = append(twice, fmt.Sprintf("job %d", id))
		}
		seen[id] = true
	}
	tally.Checked(s.t, "an acknowledged job is there", lost...)
	tally.Checked(s.t, "an id is given out once", twice...)
	if err := os.WriteFile(release, nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
	var ended []string
	for _, id := range gangs {
		if j := s.wait(id, api.JobCompleted); j.Epoch != 1 {
			ended = append(ended, fmt.Sprintf("job %d completed in epoch %d", id, j.Epoch))
		}
	}
	b, err := os.ReadFile(witness)
	if err != nil {
		s.t.Fatal(err)
	}
	if n := strings.Count(string(b), "\n"); n != 2*len(gangs) {
		ended = append(ended, fmt.Sprintf("%d ranks were started, of %d gangs of 2", n, len(gangs)))
	}
	tally.Checked(s.t, "no rank is ended or started again by a take-over", ended...)
}
