package sim

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// crashScenario is one that is played again with a crash at each of its commits and sendings.
type crashScenario struct {
	name  string
	sc    Scenario
	pairs bool           // two crashes too
	ends  []api.JobState // of job 0, whatever crashed but a shim
}

// Calm of each is late enough that every point of it comes before.
var crashScenarios = []crashScenario{
	{name: "submit", pairs: true, ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(1, 2), Calm: 6 * s1, Jobs: []Job{{At: 2 * s1, Runs: Behaviour{For: 400 * ms}}}}},
	{name: "admit", pairs: true, ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 6 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 600 * ms}}}}},
	{name: "prepare", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(3, 1), Calm: 15 * s1, Seed: 4, Jobs: []Job{{At: 2500 * ms, Ranks: 2, Nodes: 2, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 2 * s1, Do: Refuse, Node: "n1", For: 1500 * ms}}}},
	{name: "go", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(3, 2), Calm: 9 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 6, Runs: Behaviour{For: s1, Skew: 200 * ms}}}}},
	{name: "crash drain", ends: []api.JobState{api.JobFailed},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 17 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, MaxRetries: 1, Grace: s1, Runs: Behaviour{For: 4 * s1, FailEpochs: 9, FailCode: 3, OnTerm: TermLate}}}}},
	{name: "cancel race", ends: []api.JobState{api.JobCancelled, api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 11 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, Runs: Behaviour{For: 2 * s1, OnTerm: TermSaves}}},
			Faults: []Fault{on(api.EventRankExited, 1, 0, Fault{Do: Cancel}), on(api.EventStarted, 1, 1995*ms, Fault{Do: Cancel})}}},
	{name: "node loss", ends: []api.JobState{api.JobCompleted, api.JobNodeFail},
		sc: Scenario{Nodes: nodes(3, 1), Calm: 50 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 15 * s1}}},
			Faults: []Fault{on(api.EventStarted, 1, s1, Fault{Do: Cut, Node: "n1", For: 20 * s1})}}},
	{name: "preemption", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 17 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, Lead: s1, Runs: Behaviour{For: 3 * s1, OnTerm: TermSaves}}, {At: 3 * s1, Priority: 2, Runs: Behaviour{For: s1}}},
			Faults: []Fault{on(api.EventStarted, 1, 1500*ms, Fault{Do: Preempt})}}},
	{name: "requeue", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 15 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, Runs: Behaviour{For: 3 * s1, Daemon: true}}},
			Faults: []Fault{on(api.EventStarted, 1, s1, Fault{Do: Requeue})}}},
	{name: "checkpoint", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 15 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, MaxRetries: 1, Runs: Behaviour{For: 3 * s1, Checkpoints: true, FailEpochs: 1, FailCode: 3, OnTerm: TermSaves}}}}},
	{name: "time limit", ends: []api.JobState{api.JobTimeout},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 15 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, TimeLimit: 3 * s1, Lead: s1, Grace: s1, Runs: Behaviour{For: 40 * s1, OnTerm: TermIgnored}}}}},
	{name: "array", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 1), Calm: 13 * s1, Jobs: []Job{{At: 2 * s1, Array: 4, Limit: 2, Runs: Behaviour{For: s1}}}}},
	{name: "dependency", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(1, 1), Calm: 13 * s1, Jobs: []Job{{At: 2 * s1, Runs: Behaviour{For: s1}}, {At: 2200 * ms, AfterOK: 1, Runs: Behaviour{For: s1}}}}},
	{name: "steps", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 2), Calm: 20 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 4, Nodes: 2, Batch: true, Grace: 2 * s1, Runs: Behaviour{Awaits: true}, Steps: []Step{
			{After: 100 * ms, Tasks: 2, Nodes: 2, Runs: Behaviour{For: s1, Skew: 200 * ms}}, {After: 300 * ms, Tasks: 2, Runs: Behaviour{For: 3 * s1, Checkpoints: true, OnTerm: TermSaves}}}}},
			Faults: []Fault{on(api.EventStarted, 1, 2*s1, Fault{Do: Requeue})}}},
	{name: "script end", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 2), Calm: 15 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 4, Nodes: 2, Batch: true, Lead: 4 * s1, Scope: api.ScopeBatch, Runs: Behaviour{For: 2 * s1, Daemon: true},
			Steps: []Step{{After: 100 * ms, Tasks: 4, Nodes: 2, Runs: Behaviour{For: 40 * s1, OnTerm: TermSaves, OnNotice: NoticeHeard}}}}}}},
	{name: "role end", ends: []api.JobState{api.JobCompleted},
		sc: Scenario{Nodes: nodes(2, 2), Calm: 13 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 3, Lead0: true, Runs: Behaviour{For: s1, Skew: 20 * s1, OnTerm: TermSaves}}}}},
}

// summary is what the crash points of a scenario came to.
type summary struct {
	points, reached int
	pairs           int
	bad             []string
	took            time.Duration
}

// points plays a scenario with one crash each, of which every step-th: of the controller
// beside each commit, of who sends beside each sending, and of a node's daemon and of a shim
// beside each commit.
func (c *crashScenario) points(step int) (*summary, error) {
	began := time.Now()
	sc := c.sc
	sc.Name = c.name
	all, err := CrashPoints(&sc, 700*ms)
	if err != nil {
		return &summary{bad: []string{err.Error()}}, nil
	}
	for _, f := range []Fault{{Do: CrashNoded, Node: "n1", For: 300 * ms}, {Do: CrashShim}} {
		more, err := AtEach(&sc, AtCommit, f)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	s := &summary{}
	err = c.sweep(s, every(all, step))
	s.points, s.took = len(every(all, step)), time.Since(began)
	return s, err
}

// every is each n-th of the variants.
func every(all []*Scenario, n int) []*Scenario {
	var out []*Scenario
	for i := 0; i < len(all); i += max(n, 1) {
		out = append(out, all[i])
	}
	return out
}

// twice plays a scenario with a crash at each point, and for each of them with another one at
// each point that comes after it in that run.
func (c *crashScenario) twice(s *summary, step int) error {
	began := time.Now()
	sc := c.sc
	sc.Name = c.name
	singles, err := CrashPoints(&sc, 300*ms)
	if err != nil {
		return err
	}
	var all []*Scenario
	for _, one := range every(singles, step) {
		res, err := Run(one, Options{})
		if err != nil {
			return err
		}
		first := one.Faults[len(one.Faults)-1].When
		from := Point{On: AtSend, N: 1} // of a first crash at a commit, the other order is in here too
		if first.On == AtSend {
			from = first
		} else {
			all = append(all, again(one, Point{On: AtCommit, N: first.N}, res.Commits, CrashGangd)...)
		}
		all = append(all, again(one, from, res.Sends, CrashSender)...)
	}
	all = every(all, step)
	s.pairs = len(all)
	err = c.sweep(s, all)
	s.took += time.Since(began)
	return err
}

// again are the variants of a scenario with one more crash at each point of a site.
func again(one *Scenario, from Point, n int, do Kind) []*Scenario {
	var out []*Scenario
	for i := from.N; i <= n; i++ {
		for _, after := range []bool{false, true} {
			two := one.clone()
			f := Fault{Do: do, For: 300 * ms, When: Point{On: from.On, N: i, After: after}}
			two.Name = fmt.Sprintf("%s, and %s", one.Name, f.When)
			two.Faults = append(two.Faults, f)
			out = append(out, two)
		}
	}
	return out
}

// sweep plays variants; all have to hold, and where no shim died the job ends as it should.
func (c *crashScenario) sweep(s *summary, all []*Scenario) error {
	bad := make([]string, len(all))
	crashes := make([]int, len(all))
	var next atomic.Int64
	var g errgroup.Group
	for range max(*workers, 1) {
		g.Go(func() error {
			for i := int(next.Add(1)) - 1; i < len(all); i = int(next.Add(1)) - 1 {
				var err error
				if bad[i], crashes[i], err = c.one(all[i]); err != nil {
					return fmt.Errorf("%s: %w", all[i].Name, err)
				}
			}
			return nil
		})
	}
	err := g.Wait()
	for i := range all {
		s.reached += crashes[i]
		if bad[i] != "" {
			s.bad = append(s.bad, all[i].Name+": "+bad[i])
		}
	}
	return err
}

// deaths looks in a trace for a shim that died: what it had not said is lost, and its gang runs
// again or not as if its node were lost.
type deaths bool

func (d *deaths) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("shim of")) && bytes.Contains(line, []byte("dies")) {
		*d = true
	}
	return len(line), nil
}

// one plays a variant: what is wrong, and how many crashes there were.
func (c *crashScenario) one(sc *Scenario) (bad string, crashes int, err error) {
	var died deaths
	r := newRun(sc, Options{Trace: &died})
	defer r.disk.close()
	if err := r.begin(); err != nil {
		return "", 0, err
	}
	r.play()
	state := api.JobState("")
	if j := r.truth.jobs[r.ids[0]]; j != nil {
		state = gang.JobState(j)
	}
	r.end()
	for _, k := range []Kind{CrashGangd, CrashNoded, CrashShim, CrashSender} {
		crashes += r.res.Faults[k]
	}
	last := sc.Faults[len(sc.Faults)-1]
	switch {
	case r.failed != nil:
		bad = r.failed.Error()
	case crashes == 0 && (last.Do == CrashGangd || last.Do == CrashSender):
		bad = "the point was not reached"
	case !bool(died) && !slices.Contains(c.ends, state):
		bad = fmt.Sprintf("it ended %s, want %v", state, c.ends)
	}
	return bad, crashes, nil
}

// A crash of anything at any point of a scenario changes nothing of what has to hold.
func TestCrashPoints(t *testing.T) {
	step, stepTwo := 14, 400
	if *full {
		step, stepTwo = 1, 1
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "scenario\tpoints\tcrashes\tpairs\tviolations\ttime\t")
	for i := range crashScenarios {
		c := &crashScenarios[i]
		s, err := c.points(step)
		if err == nil && c.pairs && len(s.bad) == 0 {
			err = c.twice(s, stepTwo)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range s.bad[:min(len(s.bad), 5)] {
			t.Error(bad)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t\n", c.name, s.points, s.reached, s.pairs, len(s.bad), s.took.Round(time.Second/10))
	}
	_ = w.Flush()
	t.Logf("crash points:\n%s", b.String())
}
