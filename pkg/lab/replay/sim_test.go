package replay

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/trace"
)

func job(id string, submit, duration, limit int, ranks, cards int) trace.Job {
	return trace.Job{ID: id, Submit: time.Duration(submit) * time.Second, Duration: time.Duration(duration) * time.Second,
		Limit: time.Duration(limit) * time.Second, Ranks: ranks, Cards: cards}
}

func run(t testing.TB, jobs []trace.Job, nodes int, p Planner, opt Options) *Result {
	t.Helper()
	opt.Settings = api.DefaultSettings()
	s, err := New(&trace.Trace{Jobs: jobs}, Uniform(nodes, Node{CPUs: 64, Cards: 8, VRAM: 1 << 30}), p, opt)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if bad := s.world.Verify(); len(bad) > 0 {
		t.Fatalf("the world disagrees with itself: %q", bad)
	}
	return r
}

func product(preempt order.Preempt) Planner {
	return NewProduct(order.Policy{BackfillDepth: 1, Order: order.OrderFIFO, Preempt: preempt})
}

// TestPlays: two whole-node jobs on one node, one after the other; the third ends by its
// limit.
func TestPlays(t *testing.T) {
	r := run(t, []trace.Job{job("a", 0, 100, 200, 1, 8), job("b", 10, 50, 200, 1, 8), job("c", 20, 500, 30, 1, 8)}, 1, product(order.PreemptOff), Options{})
	want := []Outcome{
		{ID: "a", End: 100 * time.Second, Epochs: 1, GPUs: 8},
		{ID: "b", Submit: 10 * time.Second, Start: 100 * time.Second, End: 150 * time.Second, Delay: 90 * time.Second, Epochs: 1, GPUs: 8},
		{ID: "c", Submit: 20 * time.Second, Start: 150 * time.Second, End: 180 * time.Second, Delay: 130 * time.Second, Epochs: 1, GPUs: 8, TimedOut: true},
	}
	if diff := cmp.Diff(want, r.Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if r.Makespan != 180 || r.Utilisation != 1 || r.TimedOut != 1 || r.Delay.Max != 130 || r.Completion.Average != (100+140+160)/3.0 {
		t.Errorf("%+v", r)
	}
}

// TestPreempts: the urgent job takes the node; the other one keeps its work but for what a
// preemption costs, and pays the restart.
func TestPreempts(t *testing.T) {
	urgent := job("urgent", 100, 50, 60, 1, 8)
	urgent.Priority = 10
	r := run(t, []trace.Job{job("long", 0, 300, 400, 1, 8), urgent}, 1, product(order.PreemptTier),
		Options{Costs: Costs{Restart: func(cards int) time.Duration { return time.Duration(cards) * time.Second }, Lost: 20 * time.Second}})
	want := []Outcome{
		{ID: "long", End: 378 * time.Second, Delay: 78 * time.Second, Epochs: 2, GPUs: 8},
		{ID: "urgent", Submit: 100 * time.Second, Start: 100 * time.Second, End: 150 * time.Second, Epochs: 1, GPUs: 8},
	}
	if diff := cmp.Diff(want, r.Outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if r.Preemptions != 1 || r.LostSeconds != 160 {
		t.Errorf("%d preemptions, %v card-seconds lost", r.Preemptions, r.LostSeconds)
	}
}

// TestFragmentation: three of four cards of a node lie idle beside one that is used.
func TestFragmentation(t *testing.T) {
	r := run(t, []trace.Job{job("a", 0, 100, 0, 1, 2)}, 2, product(order.PreemptOff), Options{})
	if r.Utilisation != 2.0/16 || r.Fragmentation != 6.0/14 {
		t.Errorf("utilisation %v, fragmentation %v", r.Utilisation, r.Fragmentation)
	}
}

func TestNamesWhatNeverFits(t *testing.T) {
	s, err := New(&trace.Trace{Jobs: []trace.Job{job("small", 0, 5, 0, 1, 1), job("large", 0, 5, 0, 3, 8)}},
		Uniform(2, Node{CPUs: 8, Cards: 8}), product(order.PreemptOff), Options{Settings: api.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run()
	if want := "job large (3 ranks of 8 cards) can't start on the empty cluster; 1 jobs wait"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// restless stops a gang for another one for ever.
type restless struct{ Product }

func (r *restless) Plan(now time.Time) Decision {
	d := r.Product.Plan(now)
	if len(d.Starts) == 1 {
		d.Preempt, d.Again = []Preempt{{Job: d.Starts[0].Job, For: 3 - d.Starts[0].Job}}, true
	}
	return d
}

func TestNamesAnEndlessMove(t *testing.T) {
	s, err := New(&trace.Trace{Jobs: []trace.Job{job("a", 0, 5, 0, 1, 8), job("b", 0, 5, 0, 1, 8)}}, Uniform(1, Node{CPUs: 8, Cards: 8}),
		&restless{*NewProduct(order.Policy{BackfillDepth: 1})}, Options{Settings: api.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run()
	if want := "at 0 s: 1000 plans in one instant and no end: gangs are stopped for each other, now a for b; a preempt_min_run keeps what has just started"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// blind fails the test when a planner is shown what no user says.
type blind struct {
	*Product
	t    *rapid.T
	jobs map[int64]trace.Job
}

func (b *blind) Waits(c *order.Candidate) {
	if j := b.jobs[c.Job]; c.TimeLimit != j.Limit || c.Ask.Spec.TimeLimit != 0 {
		b.t.Fatalf("job %d was submitted with limit %v: it is shown with %v", c.Job, j.Limit, c.TimeLimit)
	}
	b.Product.Waits(c)
}

func (b *blind) Begin(nodes []*cluster.Node) { b.Product.Begin(nodes) }

// TestAnyTrace: whatever the trace, every job ends once, after its submission, having
// worked for its duration or up to its limit; no more cards are in use than there are; and
// the same trace gives the same result.
func TestAnyTrace(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(rt, "jobs")
		jobs := make([]trace.Job, n)
		shown := map[int64]trace.Job{}
		at := 0
		for i := range jobs {
			at += rapid.IntRange(0, 50).Draw(rt, "gap")
			ranks := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(rt, "ranks")
			jobs[i] = job(string(rune('a'+i%26))+string(rune('0'+i/26)), at, rapid.IntRange(1, 300).Draw(rt, "duration"),
				rapid.SampledFrom([]int{0, 30, 300, 1000}).Draw(rt, "limit"), ranks, rapid.SampledFrom([]int{1, 2, 4, 8}).Draw(rt, "cards"))
			jobs[i].Priority = int64(rapid.IntRange(0, 2).Draw(rt, "priority"))
			shown[int64(i+1)] = jobs[i]
		}
		preempt := rapid.SampledFrom([]order.Preempt{order.PreemptOff, order.PreemptTier}).Draw(rt, "preempt")
		once := func() *Result {
			return run(t, jobs, 3, &blind{product(preempt).(*Product), rt, shown}, Options{Costs: Costs{Restart: RestartOfTraces}})
		}
		r := once()
		for i, o := range r.Outcomes {
			j := &jobs[i]
			if o.End < o.Start || o.Start < j.Submit || o.Delay < 0 || !o.TimedOut && o.End-o.Start < j.Duration {
				rt.Fatalf("%+v of %+v", o, j)
			}
			if o.TimedOut && (j.Limit == 0 || j.Duration <= j.Limit) {
				rt.Fatalf("%s was ended by a limit of %v", o.ID, j.Limit)
			}
		}
		for _, s := range r.Series {
			if s.Busy < 0 || s.Busy > r.Cards || s.Broken < 0 {
				rt.Fatalf("%+v of %d cards", s, r.Cards)
			}
		}
		again := once()
		r.PlanTime, r.PlanMax, r.Wall, r.JobsPerSecond = again.PlanTime, again.PlanMax, again.Wall, again.JobsPerSecond
		if diff := cmp.Diff(r, again); diff != "" {
			rt.Fatalf("another result of the same trace:\n%s", diff)
		}
	})
}

// yielders counts who said that it can be stopped without a loss.
type yielders struct {
	Product
	yes, no int
}

func (y *yielders) Waits(c *order.Candidate) {
	if c.KeepsWork {
		y.yes++
	} else {
		y.no++
	}
	y.Product.Waits(c)
}

// TestSimulatedJobsYield: jobs of a trace hand their work over and may run again without
// bound, and the core tells the scheduler so while they wait.
func TestSimulatedJobsYield(t *testing.T) {
	y := &yielders{Product: *NewProduct(order.Policy{BackfillDepth: 1})}
	sim, err := New(&trace.Trace{Jobs: []trace.Job{job("a", 0, 5, 0, 1, 8)}}, Uniform(1, Node{CPUs: 8, Cards: 8}), y,
		Options{Settings: api.DefaultSettings()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.Run(); err != nil || y.yes == 0 || y.no > 0 {
		t.Errorf("%d yield, %d do not: %v", y.yes, y.no, err)
	}
}
