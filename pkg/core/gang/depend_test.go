package gang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
)

func on(kind api.DependencyKind, jobs ...int64) *api.Dependency {
	d := &api.Dependency{}
	for _, id := range jobs {
		d.On = append(d.On, api.Condition{Kind: kind, Job: id})
	}
	if jobs == nil {
		d.On = []api.Condition{{Kind: kind}}
	}
	return d
}

func (b *bench) depending(d *api.Dependency) int64 {
	s := specOf(1)
	s.Dependency = d
	return b.submit(s)
}

func (b *bench) array(n int, d *api.Dependency) (first int64) {
	s := specOf(1)
	s.Dependency = d
	a := &api.Array{}
	for i := range n {
		a.Indices = append(a.Indices, i)
	}
	return b.must(Submit{Spec: s, SpecHash: hashOf(s), Partition: "main", Array: a}).JobIDs[0]
}

// run takes a job of one rank to an exit with code.
func (b *bench) run(id int64, code int) {
	b.t.Helper()
	b.start(id)
	b.phase(id, b.w.Job(id).Members[0].Node, api.PhaseStopped, exit(0, code))
}

// waits checks what a job waits for, and that it is a candidate only when it is nothing.
func (b *bench) waits(id int64, want string) {
	b.t.Helper()
	j := b.w.Job(id)
	if j.Waits != want {
		b.t.Fatalf("job %d waits for %q, want %q", id, j.Waits, want)
	}
	if can := b.w.Candidate(id) != nil; can != (want == "") {
		b.t.Fatalf("job %d waits for %q, candidate: %v", id, want, can)
	}
}

func TestDependencyOnOneJob(t *testing.T) {
	for _, c := range []struct {
		kind               api.DependencyKind
		begun, good, bad   string // what is left after the start, after exit 0, after exit 1
		endGood, endBad    bool   // the dependent ends
		notRun, endsNotRun bool   // met, or ended, when the job is cancelled before it ran
	}{
		{api.After, "", "", "", false, false, true, false},
		{api.AfterAny, "afterany:1(unfulfilled)", "", "", false, false, true, false},
		{api.AfterOK, "afterok:1(unfulfilled)", "", "afterok:1(failed)", false, true, false, true},
		{api.AfterNotOK, "afternotok:1(unfulfilled)", "afternotok:1(failed)", "", true, false, true, false},
		{api.AfterCorr, "aftercorr:1(unfulfilled)", "", "aftercorr:1(failed)", false, true, false, true},
	} {
		for _, code := range []int{0, 1} {
			b := newBench(t, 2)
			first := b.submit(specOf(1))
			id := b.depending(on(c.kind, first))
			b.waits(id, string(c.kind)+":1(unfulfilled)")
			b.start(first)
			b.waits(id, c.begun)
			b.phase(first, "n1", api.PhaseStopped, exit(0, code))
			left, ends := c.good, c.endGood
			if code != 0 {
				left, ends = c.bad, c.endBad
			}
			if !ends {
				b.waits(id, left)
				continue
			}
			b.state(id, api.JobCancelled)
		}
		b := newBench(t, 2)
		first := b.submit(specOf(1))
		id := b.depending(on(c.kind, first))
		b.must(Cancel{Job: first})
		if c.notRun {
			b.waits(id, "")
		} else {
			b.state(id, api.JobCancelled)
		}
	}
}

func TestDependencyThatCanNeverBeMet(t *testing.T) {
	b := newBench(t, 2)
	first := b.submit(specOf(1))
	second := b.depending(on(api.AfterOK, first))
	third := b.depending(on(api.AfterOK, second))
	last := b.depending(on(api.AfterAny, third))
	keep := specOf(1)
	keep.Dependency, keep.InvalidDependency = on(api.AfterOK, first), api.InvalidWait
	kept := b.submit(keep)
	b.run(first, 3)
	for _, id := range []int64{second, third} {
		b.state(id, api.JobCancelled)
	}
	if got, want := b.w.Job(second).Verdict.Text, "dependency can never be met: afterok:1 (job 1 ended FAILED)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	b.waits(last, "")
	b.waits(kept, "afterok:1(failed)")
	if !b.w.Job(kept).Hopeless || b.w.Job(last).Hopeless {
		t.Error("who waits in vain is not told from who may start")
	}
	b.must(Update{Job: kept, Dependency: &api.Dependency{}})
	if b.w.Job(kept).Hopeless {
		t.Error("without a dependency it waits in vain")
	}
	elements := arrayOf(b, 2, specOf(1))
	afterArray := b.depending(on(api.AfterOK, elements[0]))
	for _, id := range elements {
		b.run(id, 3)
	}
	// The elements of an array may be a million: none of them is named.
	if got, want := b.w.Job(afterArray).Verdict.Text, fmt.Sprintf("dependency can never be met: afterok:%d", elements[0]); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// One that comes when it is already so ends too: whether it came before or after the
	// failure may make no difference to a script.
	late := b.depending(on(api.AfterOK, first))
	b.state(late, api.JobCancelled)
}

func TestAllAndAnyConditions(t *testing.T) {
	b := newBench(t, 4)
	x, y := b.submit(specOf(1)), b.submit(specOf(1))
	all := b.depending(on(api.AfterOK, x, y))
	either := on(api.AfterOK, x, y)
	either.Any = true
	any1 := b.depending(either)
	both := b.depending(either)
	b.must(Cancel{Job: both})
	b.run(x, 1)
	b.state(all, api.JobCancelled)
	b.waits(any1, "afterok:1(failed)?afterok:2(unfulfilled)")
	if b.w.Job(any1).Hopeless {
		t.Error("one of its conditions may still be met")
	}
	b.run(y, 0)
	b.waits(any1, "")
}

func TestDelayAfterTheStart(t *testing.T) {
	b := newBench(t, 2)
	x := b.submit(specOf(1))
	d := on(api.After, x)
	d.On[0].Delay = 10 * time.Minute
	id := b.depending(d)
	b.start(x)
	b.after(9 * time.Minute)
	b.waits(id, "after:1+10(unfulfilled)")
	b.after(time.Minute)
	b.waits(id, "")
	if got := b.w.Job(id).Eligible.Sub(b.w.Job(x).Start); got != 10*time.Minute {
		t.Errorf("eligible %s after the start", got)
	}
}

// TestDelayAfterTheLastOfAnArray: what was submitted behind it is none of it.
func TestDelayAfterTheLastOfAnArray(t *testing.T) {
	b := newBench(t, 4)
	x := b.array(2, nil)
	behind := b.submit(specOf(1))
	d := on(api.After, x)
	d.On[0].Delay = 10 * time.Minute
	id := b.depending(d)
	b.start(x)
	b.after(time.Minute)
	b.start(x + 1)
	b.after(time.Minute)
	b.start(behind)
	b.after(9*time.Minute - time.Second)
	b.waits(id, "after:1+10(unfulfilled)")
	b.after(time.Second)
	b.waits(id, "")
}

func TestDependencyOnAnArray(t *testing.T) {
	b := newBench(t, 8)
	x := b.array(3, nil)
	ok, notOK, any1 := b.depending(on(api.AfterOK, x)), b.depending(on(api.AfterNotOK, x)), b.depending(on(api.AfterAny, x))
	begun := b.depending(on(api.After, x))
	one := on(api.AfterOK, x)
	one.On[0].Index = intPtr(1)
	element := b.depending(one)
	none := on(api.AfterOK, x)
	none.On[0].Index = intPtr(7)
	b.state(b.depending(none), api.JobCancelled)
	b.run(x+1, 0)
	b.waits(element, "")
	b.waits(ok, "afterok:1(unfulfilled)")
	b.start(x)
	b.waits(begun, "after:1(unfulfilled)")
	b.start(x + 2)
	b.waits(begun, "")
	b.phase(x, b.w.Job(x).Members[0].Node, api.PhaseStopped, exit(0, 1))
	b.state(ok, api.JobCancelled)
	b.waits(notOK, "afternotok:1(unfulfilled)")
	b.phase(x+2, b.w.Job(x + 2).Members[0].Node, api.PhaseStopped, exit(0, 0))
	b.waits(notOK, "")
	b.waits(any1, "")
}

func TestCorrespondingElements(t *testing.T) {
	b := newBench(t, 8)
	x := b.array(3, nil)
	y := b.array(4, on(api.AfterCorr, x))
	b.state(y+3, api.JobCancelled) // nothing corresponds to it
	b.run(x+1, 0)
	b.waits(y, "aftercorr:1(unfulfilled)")
	b.waits(y+1, "")
	b.run(x, 1)
	b.state(y, api.JobCancelled)
	b.waits(y+2, "aftercorr:1(unfulfilled)")
}

// An array that one element is waited for of stays whole in memory: with another of its
// elements gone, who waits was told that it waits for nothing that exists.
func TestWaitedForArrayStaysWhole(t *testing.T) {
	b := newBench(t, 8)
	x := b.array(3, nil)
	d := on(api.AfterOK, x)
	d.On[0].Index = intPtr(2)
	last := b.depending(d)
	b.run(x+1, 0)
	b.after(3 * settings().KeepEnded)
	b.waits(last, "afterok:1_2(unfulfilled)")
	b.run(x+2, 0)
	b.waits(last, "")
	if len(b.w.deps.on) != 0 || len(b.w.deps.arrays) != 0 {
		t.Errorf("left over: %v %v", b.w.deps.on, b.w.deps.arrays)
	}
}

// An element is no array: a condition on an element of it is about nothing, and not about the
// jobs whose ids follow.
func TestElementOfAnElement(t *testing.T) {
	b := newBench(t, 8)
	x := b.array(3, nil)
	d := on(api.AfterSingle)
	d.On = append(d.On, on(api.AfterOK, x+2).On[0])
	d.On[1].Index, d.Any = intPtr(1), true
	b.waits(b.array(3, d), "afterok:3_1(failed)?singleton(unfulfilled)")
	for id := range b.w.deps.on {
		if id != x+2 {
			t.Errorf("somebody waits for job %d", id)
		}
	}
}

func TestSingletons(t *testing.T) {
	b := newBench(t, 4)
	named := func(name string, uid uint32, d *api.Dependency) int64 {
		s := specOf(1)
		s.Name, s.Dependency = name, d
		return b.must(Submit{Spec: s, SpecHash: hashOf(s), Partition: "main", UID: uid}).JobIDs[0]
	}
	x := named("a", 1, nil)
	single := named("a", 1, on(api.AfterSingle))
	next := named("a", 1, on(api.AfterSingle))
	otherName, otherUser := named("b", 1, on(api.AfterSingle)), named("a", 2, on(api.AfterSingle))
	b.waits(otherName, "")
	b.waits(otherUser, "")
	b.waits(single, "singleton(unfulfilled)")
	b.run(x, 1)
	b.waits(single, "")
	b.waits(next, "singleton(unfulfilled)")
	b.run(single, 0)
	b.waits(next, "")
	if len(b.w.deps.named) != 0 || len(b.w.deps.on) != 0 {
		t.Errorf("left over: %v %v", b.w.deps.named, b.w.deps.on)
	}
}

// An array is one job of its name: its elements don't wait for each other, the next array waits for all of them.
func TestSingletonsOfAnArray(t *testing.T) {
	b := newBench(t, 4)
	array := func() int64 {
		s := specOf(1)
		s.Name, s.Dependency = "chain", on(api.AfterSingle)
		return b.must(Submit{Spec: s, SpecHash: hashOf(s), Partition: "main", UID: 1, Array: &api.Array{Indices: []int{0, 1, 2}}}).JobIDs[0]
	}
	first, second := array(), array()
	for i := range int64(3) {
		b.waits(first+i, "")
		b.waits(second+i, "singleton(unfulfilled)")
	}
	b.run(first, 0)
	b.run(first+1, 1)
	b.waits(second, "singleton(unfulfilled)")
	b.run(first+2, 0)
	for i := range int64(3) {
		b.waits(second+i, "")
	}
}

// A job that is recalled may have left processes on a node that is out of reach.
func TestRecalledJobKnowsWhatItLeft(t *testing.T) {
	set := settings()
	set.KeepEnded = 3 * time.Minute // well before the lease ends
	b := benchWith(t, 2, set)
	s := specOf(1)
	s.NoRequeue = true
	id := b.submit(s)
	b.start(id)
	node := b.w.Job(id).Members[0].Node
	b.must(NodeGone{Node: node})
	b.after(set.NodeTimeout + set.DrainSlack + time.Minute)
	b.state(id, api.JobNodeFail)
	gone := b.w.Job(id)
	b.after(2 * set.KeepEnded)
	if b.w.Job(id) != nil || len(b.w.Node(node).Left) != 1 {
		t.Fatalf("job %v, left %v", b.w.Job(id), b.w.Node(node).Left)
	}
	d := specOf(1)
	d.Dependency = on(api.AfterAny, id)
	b.must(Submit{Spec: d, SpecHash: hashOf(d), Partition: "main", Recalled: []*Job{gone}}) // the bench verifies
}

// A singleton waits for a later job of its name that runs, also when that one does not end but
// goes back to the queue.
func TestSingletonGoesWhenALaterOneIsRequeued(t *testing.T) {
	b := newBench(t, 4)
	named := func(d *api.Dependency) int64 {
		s := specOf(1)
		s.Name, s.Dependency = "a", d
		return b.must(Submit{Spec: s, SpecHash: hashOf(s), Partition: "main", UID: 1}).JobIDs[0]
	}
	first := named(nil)
	single := named(on(api.AfterSingle))
	later := named(nil)
	b.start(later)
	b.run(first, 0)
	b.waits(single, "singleton(unfulfilled)")
	b.must(Requeue{Job: later})
	b.ack(later)
	b.state(later, api.JobPending)
	b.waits(single, "")
}

// A requeued job does not wait a second time; one that is waited for is judged by its last
// run, and stays in memory until then.
func TestDependencyAcrossRuns(t *testing.T) {
	b := newBench(t, 3)
	x := b.submit(specOf(1))
	b.run(x, 0)
	y := b.submit(specOf(1))
	id := b.depending(on(api.AfterOK, x, y))
	b.after(3 * b.w.set.KeepEnded)
	if b.w.Job(x) == nil {
		t.Fatal("left memory while it is waited for")
	}
	b.start(y)
	b.must(Requeue{Job: y})
	b.ack(y)
	b.waits(id, "afterok:2(unfulfilled)")
	b.run(y, 0)
	b.waits(id, "")
	b.start(id)
	b.must(Requeue{Job: id})
	b.ack(id)
	b.waits(id, "")
	b.after(2 * b.w.set.KeepEnded)
	if b.w.Job(x) != nil {
		t.Fatal("still in memory")
	}
}

func TestDependencyAfterARestart(t *testing.T) {
	b := newBench(t, 3)
	x := b.submit(specOf(1))
	b.run(x, 0)
	gone := b.w.Job(x)
	arr := b.array(2, nil)
	b.run(arr, 0)
	d := on(api.AfterOK, x, arr)
	d.On = append(d.On, api.Condition{Kind: api.AfterSingle})
	id := b.depending(d)
	b.after(b.w.set.KeepEnded + time.Second)
	saved := &Snapshot{NextID: b.w.NextID(), NextSeq: 1}
	for j := range b.w.Jobs() {
		saved.Jobs = append(saved.Jobs, j)
	}
	slices.Reverse(saved.Jobs)
	saved.Nodes = append(saved.Nodes, b.w.Nodes()...)
	b.w = Restore(b.now, b.w.set, saved)
	for _, n := range []string{"n1", "n2", "n3"} {
		b.hello(n)
	}
	b.waits(id, "afterok:2(unfulfilled),singleton(unfulfilled)")
	b.run(arr+1, 0)
	b.waits(id, "")

	// One that left memory comes back with the submission that names it.
	b.after(2 * b.w.set.KeepEnded)
	if b.w.Job(x) != nil {
		t.Fatal("still in memory")
	}
	s := specOf(1)
	s.Dependency = on(api.AfterOK, x)
	if out := b.step(Submit{Spec: s, SpecHash: hashOf(s), Partition: "main"}); out.Refused == nil ||
		out.Refused.Error() != "dependency afterok:1: no job 1; gqueue and gacct list your jobs" {
		t.Fatalf("%v", out.Refused)
	}
	b.waits(b.must(Submit{Spec: s, SpecHash: hashOf(s), Partition: "main", Recalled: []*Job{gone}}).JobIDs[0], "")
}

// TestOutcomesOfADependency: how up to four jobs ended is said, of more nobody reads it.
func TestOutcomesOfADependency(t *testing.T) {
	b := newBench(t, 1)
	b.unwritten()
	d := &api.Dependency{}
	add := func(j *Job) {
		j.ID = int64(len(d.On) + 1)
		j.Share()
		b.w.jobs.byID[j.ID] = &entry{job: j}
		d.On = append(d.On, api.Condition{Kind: api.AfterOK, Job: j.ID})
	}
	failed := func() *Job { return &Job{Past: &Past{Setbacks: Setbacks{Verdict: &Verdict{State: api.JobFailed}}}} }
	add(&Job{})
	array := failed()
	array.Array = &ArrayInfo{}
	add(array)
	d.On = append(d.On, api.Condition{Kind: api.AfterOK, Job: 99})
	for _, want := range []string{"", " (job 4 ended FAILED)", " (job 4 ended FAILED, job 5 ended FAILED)", " (job 4 ended FAILED, job 5 ended FAILED, job 6 ended FAILED)",
		" (job 4 ended FAILED, job 5 ended FAILED, job 6 ended FAILED, job 7 ended FAILED)", ""} {
		if got := b.w.deps.outcomes(d); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		add(failed())
	}
}
