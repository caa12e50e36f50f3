package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// seen is a run as it can be judged afterwards: beside the invariants, what was recorded and
// what the processes did.
type seen struct {
	*Result
	events []api.Event
	jobs   map[int]*gang.Job // by index of Scenario.Jobs
	ids    map[int]int64
	lines  []traced
}

// traced is one line of the trace.
type traced struct {
	at   time.Duration
	text string
}

// observe plays a scenario; act, if any, plans what a scenario can't say.
func observe(sc *Scenario, act func(r *run)) (*seen, error) {
	var trace bytes.Buffer
	r := newRun(sc, Options{Trace: &trace})
	defer r.disk.close()
	if err := r.begin(); err != nil {
		return nil, err
	}
	if act != nil {
		act(r)
	}
	r.play()
	s := &seen{Result: &r.res, jobs: map[int]*gang.Job{}, ids: r.ids}
	if r.failed == nil && r.gangd != nil {
		evs, err := r.gangd.store.Events(r.ctx, 0, 0, 0)
		if err != nil {
			return nil, err
		}
		s.events = evs
		for i, id := range r.ids {
			s.jobs[i] = r.truth.jobs[id]
		}
	}
	r.end()
	r.res.Violation = r.failed
	r.res.Hash, r.res.Events, r.res.Virtual = r.hash, r.done, r.now
	for l := range strings.Lines(trace.String()) {
		f := strings.Fields(l)
		at, err := strconv.ParseFloat(f[0], 64)
		if err != nil {
			return nil, err
		}
		s.lines = append(s.lines, traced{time.Duration(at * float64(time.Second)), strings.Join(f[2:], " ")})
	}
	return s, nil
}

// when gives the time of the n-th event of a type of a job, -1 where there is none.
func (s *seen) when(t api.EventType, job, n int) time.Duration {
	for i := range s.events {
		ev := &s.events[i]
		if ev.Type == t && (ev.JobID == 0 || ev.JobID == s.ids[job]) {
			if n--; n == 0 {
				return ev.Time.Sub(began)
			}
		}
	}
	return -1
}

// count counts the events of a type of a job.
func (s *seen) count(t api.EventType, job int) int {
	n := 0
	for s.when(t, job, n+1) >= 0 {
		n++
	}
	return n
}

// lineOf gives the n-th line with a text, -1 where there is none.
func (s *seen) lineOf(text string, n int) time.Duration {
	for _, l := range s.lines {
		if strings.Contains(l.text, text) {
			if n--; n == 0 {
				return l.at
			}
		}
	}
	return -1
}

// ended says what is wrong when a job did not end so, in that epoch (0: any).
func (s *seen) ended(job int, state api.JobState, epoch int) string {
	j := s.jobs[job]
	switch {
	case j == nil:
		return fmt.Sprintf("job %d is not there", job)
	case gang.JobState(j) != state || epoch > 0 && j.Epoch != epoch:
		return fmt.Sprintf("job %d is %s in epoch %d, want %s in %d", job, gang.JobState(j), j.Epoch, state, epoch)
	}
	return ""
}

// once: each job has ended once, and once more for each time that it was queued again.
func (s *seen) once() string {
	n := map[int64]int{}
	for i := range s.events {
		switch s.events[i].Type {
		case api.EventEnded:
			n[s.events[i].JobID]++
		case api.EventRequeued:
			n[s.events[i].JobID]--
		}
	}
	for _, id := range sortedKeys(n) {
		if n[id] != 1 {
			return fmt.Sprintf("job %d has ended %d times", id, n[id])
		}
	}
	return ""
}

func sortedKeys(m map[int64]int) []int64 {
	var out []int64
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// firstOf is the first complaint.
func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// unless is a complaint that a condition takes away.
func unless(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}
