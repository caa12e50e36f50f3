package sim

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"gangd/pkg/api"
)

// Failure is a scenario that violated an invariant.
type Failure struct {
	Scenario  *Scenario
	Violation *Violation
}

// Total is what many runs came to.
type Total struct {
	Counts
	Runs     int
	Failures []Failure // in the order of the scenarios
	Wall     time.Duration
}

// Sweep plays n scenarios, several at a time, each by one goroutine; it gives back when all
// have ended, or after atMost failures (0: all).
func Sweep(n, workers, atMost int, scenario func(i int) *Scenario) (*Total, error) {
	began := time.Now()
	s := &sweep{total: &Total{Counts: newCounts()}, n: n, atMost: atMost, failed: map[int]Failure{}, scenario: scenario}
	var all sync.WaitGroup
	for range max(workers, 1) {
		all.Go(s.work)
	}
	all.Wait()
	for _, i := range slices.Sorted(maps.Keys(s.failed)) {
		s.total.Failures = append(s.total.Failures, s.failed[i])
	}
	s.total.Wall = time.Since(began)
	return s.total, s.err
}

type sweep struct {
	scenario func(i int) *Scenario
	n        int
	atMost   int

	mu     sync.Mutex
	next   int
	err    error
	failed map[int]Failure
	total  *Total
}

func (s *sweep) take() (i int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= s.n || s.err != nil || s.atMost > 0 && len(s.failed) >= s.atMost {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

func (s *sweep) work() {
	for {
		i, ok := s.take()
		if !ok {
			return
		}
		sc := s.scenario(i)
		res, err := Run(sc, Options{})
		s.mu.Lock()
		if err != nil {
			s.err = fmt.Errorf("%s: %w", sc.Name, err)
		} else {
			s.total.Runs++
			s.total.add(&res.Counts)
			if res.Violation != nil {
				s.failed[i] = Failure{sc, res.Violation}
			}
		}
		s.mu.Unlock()
	}
}

func newCounts() Counts { return Counts{Faults: map[Kind]int{}, Outcomes: map[api.JobState]int{}} }

func (c *Counts) add(o *Counts) {
	c.Events += o.Events
	c.Commits += o.Commits
	c.Sends += o.Sends
	c.Starts += o.Starts
	c.TakeOvers += o.TakeOvers
	c.Steps += o.Steps
	c.Tasks += o.Tasks
	c.Jobs += o.Jobs
	c.Ended += o.Ended
	c.Virtual += o.Virtual
	for k, n := range o.Faults {
		c.Faults[k] += n
	}
	for k, n := range o.Outcomes {
		c.Outcomes[k] += n
	}
}

// Table prints what happened, for people.
func (t *Total) Table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, n any) { fmt.Fprintf(w, "%s\t%v\t\n", name, n) }
	row("schedules", t.Runs)
	row("violations", len(t.Failures))
	row("events", t.Events)
	row("commits", t.Commits)
	row("sends", t.Sends)
	row("gangs started", t.Starts)
	row("take-overs", t.TakeOvers)
	row("steps begun", t.Steps)
	row("tasks started", t.Tasks)
	row("jobs accepted", t.Jobs)
	row("jobs ended", t.Ended)
	for _, k := range slices.Sorted(maps.Keys(t.Outcomes)) {
		row("  "+string(k), t.Outcomes[k])
	}
	faults := 0
	for _, n := range t.Faults {
		faults += n
	}
	row("faults", faults)
	for _, k := range slices.Sorted(maps.Keys(t.Faults)) {
		row("  "+string(k), t.Faults[k])
	}
	row("virtual time", t.Virtual.Round(time.Second))
	row("wall time", t.Wall.Round(time.Second/10))
	_ = w.Flush() // the errors are those of out
}
