package stepclient

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/wire/stepwire"
)

// tally is how the tasks have ended so far.
type tally struct {
	worst  int
	began  int       // the code of the task whose failure ended the step, with FirstCode
	first  time.Time // when the first task ended
	waited bool
}

func (s *step) exited(i int, f stepwire.Frame) {
	var e stepwire.Ended
	if json.Unmarshal(f.Data, &e) != nil {
		return
	}
	s.mu.Lock()
	s.parts[i].tasks[f.Task] = &e
	s.tally.worst = max(s.tally.worst, e.Code)
	if s.tally.first.IsZero() {
		s.tally.first = time.Now()
	}
	bad := e.Code != 0
	kill := s.o.KillOnBad || s.o.KillAsJob && s.reply.Fail == api.FailAny
	if kill && s.o.FirstCode && s.tally.began == 0 && !s.killed {
		s.tally.began = e.Code
	}
	s.mu.Unlock()
	s.toViewers(stepwire.Exit, f.Task, f.Data)
	s.poke() // the main loop reports ends, those that come together in one line
	if bad && kill && !s.isKilled() {
		s.say(s.words().ending, s.text())
		s.Kill(false)
	}
}

func (s *step) isKilled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}

func (s *step) text() string { return api.StepText(s.reply.JobID, s.reply.StepID) }

// launchFor is how long launchers may take to come, as Slurm's own launch time-out.
const launchFor = 60 * time.Second

// importTell is how often a person is told how far an import is.
const importTell = 10 * time.Second

// wait is the life of a step that has begun.
func (s *step) wait(ctx context.Context) (int, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGCONT, syscall.SIGWINCH)
	signal.Ignore(syscall.SIGPIPE)
	defer signal.Stop(signals)
	begun := time.Now()
	s.active.Store(begun.UnixNano())
	told := map[uint32]bool{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var report, limit <-chan time.Time
	var recorded <-chan struct{}
	if s.o.Ask.TimeLimit > 0 {
		limit = time.After(s.o.Ask.TimeLimit)
	}
	reading := false
	for {
		if s.launched() && !reading {
			reading = true
			s.feed(ctx)
		}
		if why := s.refusal(); why != "" {
			s.callOff()
			return 0, fmt.Errorf(s.words().launch, s.text(), errors.New(why))
		}
		if s.over() {
			s.report(told)
			if s.anySignal() && !s.tally.waited && !s.aborted {
				s.say(s.words().ended, s.text())
			}
			s.toViewers(stepwire.Done, 0, nil)
			return s.code(), nil
		}
		if s.lostNode() && !s.isKilled() {
			s.mu.Lock()
			s.failed = true
			s.mu.Unlock()
			s.error(s.words().lost, s.text())
			s.Kill(false)
		}
		select {
		case <-ctx.Done():
			s.Kill(true)
			return 0, context.Cause(ctx)
		case <-s.changed:
			if report == nil {
				report = time.After(reportAfter)
			}
		case <-report:
			report = nil
			s.report(told)
		case sig := <-signals:
			s.signalled(sig)
		case <-limit:
			limit = nil
			s.late.Store(true)
			if s.o.own() {
				s.error("step %s reached its time limit of %s", s.text(), when.Words(s.o.Ask.TimeLimit))
			}
			recorded = s.recordLate(ctx)
		case <-recorded:
			recorded = nil
			s.Kill(false)
		case <-tick.C:
			if err := s.checkLaunch(ctx, &begun); err != nil {
				s.Kill(true)
				return 0, err
			}
			s.checkWait()
			s.checkIdle()
		}
	}
}

// recordFor is how long a step that is over its limit waits for the controller to have that on record: a busy one
// answers within a second.
const recordFor = 2 * time.Second

// recordLate has the controller end the step for its time limit, so that the cause is on record before the tasks end.
func (s *step) recordLate(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	s.running.Go(func() {
		defer close(done)
		ctx, stop := context.WithTimeout(ctx, recordFor)
		defer stop()
		_, _ = s.c.SignalStep(ctx, s.o.Job, s.reply.StepID, api.StepSignal{Cause: api.CauseTimeout})
	})
	return done
}

// reportAfter gathers the ends of tasks that come together.
const reportAfter = 20 * time.Millisecond

func (s *step) launched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.parts, func(p part) bool { return p.conn == nil && !p.done })
}

func (s *step) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !slices.ContainsFunc(s.parts, func(p part) bool { return !p.done })
}

func (s *step) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *step) lostNode() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.parts, func(p part) bool { return p.lost })
}

// code is the worst of the tasks', with FirstCode that of the task which ended the others; of
// a step that lost a node it is not 0.
func (s *step) code() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tally.worst == 0 && (s.failed || slices.ContainsFunc(s.parts, func(p part) bool { return p.lost })) {
		return 1
	}
	return cmp.Or(s.tally.began, s.tally.worst)
}

// checkLaunch asks the controller what has become of a step whose nodes do not come. The time that they
// have does not run while an image is being imported.
func (s *step) checkLaunch(ctx context.Context, from *time.Time) error {
	begun := *from
	if s.launched() || time.Since(begun) < 2*time.Second && s.o.Ask.Container == nil {
		return nil
	}
	a, err := s.c.AttachStep(ctx, s.o.Job, s.reply.StepID)
	if err == nil && a.Step.Status != "" {
		*from = time.Now()
		if time.Since(s.toldImport) >= importTell {
			s.toldImport = time.Now()
			s.say("%s", a.Step.Status)
		}
		return nil
	}
	switch code := api.CodeOf(err); {
	case err != nil && (code == api.CodeNotFound || code == api.CodeAlreadyEnded || code == api.CodeConflict):
		return fmt.Errorf(s.words().launch, s.text(), err)
	case time.Since(begun) > launchFor:
		var missing []string
		s.mu.Lock()
		for i := range s.parts {
			if s.parts[i].conn == nil {
				missing = append(missing, s.reply.Nodes[i].Name)
			}
		}
		s.mu.Unlock()
		_, _ = s.c.SignalStep(ctx, s.o.Job, s.reply.StepID, api.StepSignal{})
		return fmt.Errorf(s.words().noWord, s.text(), strings.Join(missing, ","), when.Words(launchFor))
	}
	return nil
}

// checkWait ends the tasks that go on for too long after the first has ended (--wait).
func (s *step) checkWait() {
	s.mu.Lock()
	first, waited := s.tally.first, s.tally.waited
	late := s.o.Wait > 0 && !first.IsZero() && !waited && !s.killed && time.Since(first) >= s.o.Wait
	s.tally.waited = waited || late
	s.mu.Unlock()
	if late {
		s.say(s.words().first, int(s.o.Wait/time.Second))
		s.states()
		s.say(s.words().ending, s.text())
		s.sayAborted()
		s.Kill(false)
	}
}

// checkIdle ends a step at which nobody types and that shows nothing (--idle-timeout).
func (s *step) checkIdle() {
	if s.o.Idle <= 0 || s.isKilled() || time.Since(time.Unix(0, s.active.Load())) < s.o.Idle {
		return
	}
	s.error("step %s: nothing was typed or shown for %s; ending it", s.text(), when.Words(s.o.Idle))
	s.forward("HUP") // a shell at a terminal takes no TERM
	s.Kill(false)
}

func (s *step) states() {
	groups := map[string][]int{}
	s.mu.Lock()
	for i := range s.parts {
		for t, e := range s.parts[i].tasks {
			word := "running"
			switch {
			case e != nil && e.Code != 0:
				word = "exited abnormally"
			case e != nil:
				word = "exited"
			}
			groups[word] = append(groups[word], int(t))
		}
	}
	s.mu.Unlock()
	for _, word := range []string{"running", "exited abnormally", "exited"} {
		if tasks := groups[word]; len(tasks) > 0 {
			s.say(s.words().state, s.text(), taskText(tasks), word)
		}
	}
}

// report says how tasks ended that did not end well, each once: one line for those of a node
// that ended alike.
func (s *step) report(told map[uint32]bool) {
	if s.silent {
		return
	}
	for i := range s.parts {
		alike := map[string][]int{}
		s.mu.Lock()
		for t, e := range s.parts[i].tasks {
			if e == nil || told[t] {
				continue
			}
			told[t] = true
			if text := endText(e); text != "" {
				alike[text] = append(alike[text], int(t))
			}
		}
		s.mu.Unlock()
		texts := make([]string, 0, len(alike))
		for text := range alike {
			texts = append(texts, text)
		}
		slices.SortFunc(texts, func(a, b string) int { return slices.Min(alike[a]) - slices.Min(alike[b]) })
		for _, text := range texts {
			s.out.Lock()
			s.error("%s: %s: %s", s.reply.Nodes[i].Name, taskText(alike[text]), text)
			s.out.Unlock()
		}
	}
}

// anySignal: a task was ended by TERM or KILL, which is rarely its own doing.
func (s *step) anySignal() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.parts, func(p part) bool {
		for _, e := range p.tasks {
			if e != nil && (e.Signal == int(syscall.SIGTERM) || e.Signal == int(syscall.SIGKILL)) {
				return true
			}
		}
		return false
	})
}

// endText is Slurm's word for how a task ended; empty: well.
func endText(e *stepwire.Ended) string {
	switch {
	case e.Signal != 0:
		text := signalText(e.Signal)
		if e.Core {
			text += " (core dumped)"
		}
		return text
	case e.Code != 0:
		return fmt.Sprintf("Exited with exit code %d", e.Code)
	}
	return ""
}

// signalText is strsignal(3) of glibc: Go's words with a capital.
func signalText(n int) string {
	t := unix.Signal(n).String()
	return strings.ToUpper(t[:1]) + t[1:]
}

// taskText names tasks: "task 3", "tasks 0-3,5".
func taskText(tasks []int) string {
	slices.Sort(tasks)
	if len(tasks) == 1 {
		return fmt.Sprintf("task %d", tasks[0])
	}
	return "tasks " + hostlist.Ranges(tasks)
}
