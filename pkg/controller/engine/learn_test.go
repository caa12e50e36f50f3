package engine

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// TestRelearns: what is expected of a time limit, and of jobs without one, is the same whether the
// ledger was told of each attempt of a job when it ended, or made at start from the job: waiting, and ended.
func TestRelearns(t *testing.T) {
	for _, limit := range []time.Duration{10 * time.Hour, 0} {
		t.Run(limit.String(), func(t *testing.T) { relearns(t, limit) })
	}
}

func relearns(t *testing.T, limit time.Duration) {
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	expects := func(told func(e *Engine, j *gang.Job)) (out []time.Duration) {
		e := &Engine{}
		e.plan.ledger = order.NewLedger(0)
		for i := range int64(40) {
			told(e, &gang.Job{ID: i + 1, Spec: &api.Spec{Size: 1, GPUsPerRank: 1}, TimeLimit: limit, Submit: begin, Wishes: new(gang.Wishes), Past: &gang.Past{}})
		}
		for _, ran := range []time.Duration{0, time.Hour, 4 * time.Hour} {
			out = append(out, e.plan.ledger.Mean(limit, ran, order.Peer{}).Round(time.Second),
				e.plan.ledger.Mean(limit, ran, order.Peer{Cards: 1, Job: 20}).Round(time.Second))
		}
		return out
	}
	// Three hours, of which two and a half are kept, then half an hour of which nothing is.
	stopped := func(j *gang.Job) {
		j.Kept = 150 * time.Minute
		j.Checkpoint = &gang.Checkpoint{Complete: true, Time: begin.Add(150 * time.Minute)}
	}
	ended := func(j *gang.Job) {
		stopped(j)
		j.Start, j.End = begin.Add(5*time.Hour), begin.Add(7*time.Hour)
		j.Verdict = &gang.Verdict{State: api.JobCompleted}
	}
	attempts := func(e *Engine, j *gang.Job) {
		stopped(j)
		e.learn(j, begin, begin.Add(3*time.Hour))
		e.learn(j, begin.Add(4*time.Hour), begin.Add(4*time.Hour+30*time.Minute))
	}
	for _, tt := range []struct {
		name        string
		told, again func(e *Engine, j *gang.Job)
	}{
		{"waiting", attempts, func(e *Engine, j *gang.Job) { stopped(j); e.relearn(j) }},
		{"ended", func(e *Engine, j *gang.Job) {
			attempts(e, j)
			ended(j)
			e.learn(j, j.Start, j.End)
		}, func(e *Engine, j *gang.Job) { ended(j); e.relearn(j) }},
	} {
		was, is := expects(tt.told), expects(tt.again)
		none := expects(func(*Engine, *gang.Job) {})
		for i := range was {
			if was[i] != is[i] || was[i] == none[i] && i < 2 {
				t.Errorf("%s: expected %v, made anew %v, from nothing %v", tt.name, was, is, none)
				break
			}
		}
	}
}

// What was ended by its time limit is known to run that long, as what completed is; a failure
// says nothing of how long the work takes.
func TestTimeoutsAreLearnt(t *testing.T) {
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	const limit = 10 * time.Hour
	expects := func(state api.JobState) time.Duration {
		e := &Engine{}
		e.plan.ledger = order.NewLedger(0)
		for i := range int64(40) {
			j := &gang.Job{ID: i + 1, Spec: &api.Spec{Size: 1, GPUsPerRank: 1}, TimeLimit: limit, Submit: begin, Wishes: new(gang.Wishes), Past: &gang.Past{Setbacks: gang.Setbacks{Verdict: &gang.Verdict{State: state}}}}
			e.learn(j, begin, begin.Add(limit))
		}
		return e.plan.ledger.Mean(limit, 0, order.Peer{})
	}
	completed, timeout, failed := expects(api.JobCompleted), expects(api.JobTimeout), expects(api.JobFailed)
	if timeout != completed || timeout <= failed {
		t.Errorf("expected after completions %v, time-outs %v, failures %v", completed, timeout, failed)
	}
}

// A job for several partitions has the highest tier of them, in whatever order they come.
func TestTierOfSeveralPartitions(t *testing.T) {
	all := []api.Partition{{Name: "high", Tier: 5}, {Name: "low", Tier: 1}, {Name: "least", Tier: -2}, {Name: "idle", Tier: -3}}
	for partitions, want := range map[string]int64{"low": 1, "high": 5, "low,high": 5, "high,low": 5, "least,idle": -2, "idle,least": -2, "idle": -3} {
		if got := tierOf(all, partitions); got != want {
			t.Errorf("%s: tier %d, want %d", partitions, got, want)
		}
	}
}

// What a failed job had kept of its work is not how long such work lives: a restart learns nothing from it.
func TestFailuresAreNotRelearnt(t *testing.T) {
	begin := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	e := &Engine{}
	e.plan.ledger = order.NewLedger(0)
	none := e.plan.ledger.Mean(10*time.Hour, time.Hour, order.Peer{})
	for i := range int64(40) {
		j := &gang.Job{ID: i + 1, Spec: &api.Spec{Size: 1, GPUsPerRank: 1}, TimeLimit: 10 * time.Hour, Submit: begin,
			Wishes: new(gang.Wishes), Past: &gang.Past{Progress: gang.Progress{Kept: 3 * time.Hour}, Setbacks: gang.Setbacks{Verdict: &gang.Verdict{State: api.JobFailed}}}}
		e.relearn(j)
	}
	if got := e.plan.ledger.Mean(10*time.Hour, time.Hour, order.Peer{}); got != none {
		t.Errorf("expected %v after forty failures, %v before", got, none)
	}
}

// TestTierChangesUnderWaitingJobs: who waits and who runs has the new tier of a partition in the round that changes it, and of a job for
// several partitions the highest counts.
func TestTierChangesUnderWaitingJobs(t *testing.T) {
	plans := &planRecorder{}
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "a", Default: true}, {Name: "b"}}
		plans.Recorder, o.Record = o.Record, plans
	})
	r.node("n1", 1)
	in := func(partition string) int64 {
		s := spec(1)
		s.Partition = partition
		return r.submit("", s)
	}
	runs, first, both, second := in("b"), in("a"), in("a,b"), in("b")
	root := Caller{Admin: true, User: "root"}
	var got []int64
	var tier int64
	if err := r.inspect(t.Context(), func() {
		plans.planned = func() {
			got = nil
			for _, w := range r.plan.queue.Slice() {
				got = append(got, w.Job)
			}
			tier = r.plan.running[0].Tier
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tier int
		want []int64
	}{{5, []int64{both, second, first}}, {-1, []int64{first, both, second}}, {0, []int64{first, both, second}}, {1, []int64{both, second, first}}} {
		if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "b", Tier: &c.tier}, true, root); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, c.want) || tier != int64(c.tier) {
			t.Errorf("tier %d: %v wait, want %v; job %d runs with tier %d", c.tier, got, c.want, runs, tier)
		}
	}
}

// planRecorder calls planned in the engine's goroutine when a plan was made.
type planRecorder struct {
	Recorder
	planned func()
}

func (p *planRecorder) Plan(d time.Duration, at time.Time) {
	p.Recorder.Plan(d, at)
	if p.planned != nil {
		p.planned()
	}
}
