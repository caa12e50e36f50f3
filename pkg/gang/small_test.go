package gang

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// eventsSince are the events of what was done since the last look, as TYPE NODE or NODES: TEXT.
func eventsSince(b *bench) (out []string) {
	for _, ev := range b.w.Take().Events {
		out = append(out, string(ev.Type)+" "+strings.Join(append(ev.Nodes, ev.Node), "")+": "+ev.Text)
	}
	return out
}

// TestEventsOfAStart: that all is prepared is an event of its own, with its nodes, before the start.
func TestEventsOfAStart(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	eventsSince(b)
	b.ready(id)
	evs := eventsSince(b)
	at := slices.Index(evs, string(api.EventPrepared)+" n1n2: ")
	if at < 0 || at+1 >= len(evs) || !strings.HasPrefix(evs[at+1], string(api.EventStarted)+" n1n2: ") {
		t.Errorf("%q", evs)
	}
}

// TestLaterCauses: what else would have ended a gang that is being stopped is kept once each, and stops nothing anew.
func TestLaterCauses(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(Preempt{Job: id, For: "job 9"})
	e := b.w.jobs[id]
	if b.w.drain(e, api.CausePreempted, -1, "again") || b.w.drain(e, api.CauseNodeLost, -1, "second") || b.w.drain(e, api.CauseNodeLost, -1, "third") {
		t.Error("a second drain began")
	}
	if d := b.w.Job(id).Drain; d.Cause != api.CausePreempted || d.Text != "preempted for job 9" || !slices.Equal(d.Later, []api.Cause{api.CauseNodeLost}) {
		t.Errorf("%+v", d)
	}
	b.must(Cancel{Job: id, By: "ada"})
	if d := b.w.Job(id).Drain; !slices.Equal(d.Later, []api.Cause{api.CauseNodeLost, api.CauseCancelled}) {
		t.Errorf("after a cancel: %+v", d)
	}
	if out := b.step(Cancel{Job: id, By: "ada"}); out.Ignored != "already being cancelled" {
		t.Errorf("a second cancel: %+v", out)
	}
}

// TestPhrases: how a state is said in the middle of a sentence.
func TestPhrases(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	says := func(want string) {
		t.Helper()
		if got := phrase(b.w.Job(id)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	says("waiting")
	b.must(b.spread(id))
	says("being started")
	b.ready(id)
	says("running")
	b.must(Cancel{Job: id, By: "ada"})
	says("being stopped")
	b.ack(id)
	says("over")
}

// TestMissedDeadline: what is said of a deadline names the limit, and how far it may be cut.
func TestMissedDeadline(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, j := range map[string]*Job{
		"it has no time limit":                                          {Spec: &api.Spec{}},
		"its time limit is 1h0m0s":                                      {Spec: &api.Spec{}, TimeLimit: time.Hour},
		"its time limit is 1h0m0s and may be cut to 1m0s":               {Spec: &api.Spec{TimeMin: time.Minute}, TimeLimit: time.Hour},
		"its time limit is " + limitText(0) + " and may be cut to 1m0s": {Spec: &api.Spec{TimeMin: time.Minute}},
		"its time limit is 1m0s":                                        {Spec: &api.Spec{TimeMin: time.Minute}, TimeLimit: time.Minute},
	} {
		j.Past = &Past{Deadline: at}
		if got := missed(j); got != "can't end by its deadline "+timeText(at)+" any more: "+want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if timeText(time.Time{}) != "none" {
		t.Error(timeText(time.Time{}))
	}
}

// TestFeaturesByHand: who said what a node has is an event, and a node that is not there has nothing.
func TestFeaturesByHand(t *testing.T) {
	b := newBench(t, 1)
	eventsSince(b)
	b.must(NodeFeatures{Node: "n1", By: "ada", Features: []string{"ib", "big"}})
	b.must(NodeFeatures{Node: "n1", Features: []string{"ib"}})
	if out := b.step(NodeFeatures{Node: "n1", Features: []string{"ib"}}); out.Ignored != "it has them already" {
		t.Errorf("the same: %+v", out)
	}
	if got := eventsSince(b); !slices.Equal(got, []string{string(api.EventNodeFeatures) + " n1: ib,big (ada)", string(api.EventNodeFeatures) + " n1: ib (by hand)"}) {
		t.Errorf("%q", got)
	}
	for _, ev := range []Event{NodeFeatures{Node: "n9"}, NodeResume{Node: "n9"}, NodeDrain{Node: "n9"}} {
		if out := b.step(ev); api.CodeOf(out.Refused) != api.CodeNotFound {
			t.Errorf("%T of no node: %+v", ev, out)
		}
	}
	if out := b.step(NodeResume{Node: "n1"}); out.Ignored != "in service already" {
		t.Errorf("resumed in service: %+v", out)
	}
}

// TestEventsOfPartitions: made, changed, and put back are told apart.
func TestEventsOfPartitions(t *testing.T) {
	b := newBench(t, 2)
	b.w.SetPartitions([]api.Partition{{Name: "main", Default: true}})
	eventsSince(b)
	put := func(old bool, r api.PartitionRequest) {
		t.Helper()
		if out := b.w.Step(b.now, PutPartition{Ask: r, Old: old, By: "root"}); !out.Applied {
			t.Fatalf("%+v: %+v", r, out)
		}
	}
	put(false, api.PartitionRequest{Name: "night", Nodes: &[]string{"n2"}})
	put(true, api.PartitionRequest{Name: "night", Tier: new(2)})
	var types []string
	for _, ev := range eventsSince(b) {
		word, _, _ := strings.Cut(ev, " ")
		types = append(types, word)
	}
	if !slices.Equal(types, []string{string(api.EventPartitionCreated), string(api.EventPartitionUpdated)}) {
		t.Errorf("%q", types)
	}
	// A node that comes back is in what is so now.
	b.must(NodeGone{Node: "n2"})
	b.hello("n2")
	if got := b.w.Node("n2").Res.Partitions; !slices.Equal(got, []string{"main", "night"}) {
		t.Errorf("n2 is in %v", got)
	}
	if out := b.w.Step(b.now, ResetPartitions{By: "root"}); !out.Applied {
		t.Errorf("put back: %+v", out)
	}
	if out := b.w.Step(b.now, ResetPartitions{By: "root"}); out.Applied || out.Ignored != "all is as configured" {
		t.Errorf("put back twice: %+v", out)
	}
}

// TestReadyOfNobody: numbers that are no rank's open no gate.
func TestReadyOfNobody(t *testing.T) {
	b := newBench(t, 2)
	s := specOf(2)
	s.ReadyTimeout = time.Minute
	id := b.submit(s)
	b.start(id)
	epoch := b.w.Job(id).Epoch
	for _, ranks := range [][]int{{-1}, {2}, {-1, 2}, nil} {
		if out := b.step(Ready{Job: id, Epoch: epoch, Ranks: ranks}); out.Ignored != "known to be ready" {
			t.Errorf("%v: %+v", ranks, out)
		}
	}
	if out := b.step(Ready{Job: id, Epoch: epoch, Tasks: []api.TaskKey{{Step: 7}}}); out.Ignored != "known to be ready" {
		t.Errorf("a task of no step: %+v", out)
	}
	if out := b.step(Ready{Job: id, Epoch: epoch + 1, Ranks: []int{0}}); out.Ignored != "no ready gate waits for it" {
		t.Errorf("another epoch: %+v", out)
	}
	b.must(Ready{Job: id, Epoch: epoch, Ranks: []int{0, 1}})
}

// TestTakeIsInOrder: what is committed has one order, whatever was changed first.
func TestTakeIsInOrder(t *testing.T) {
	b := newBench(t, 4)
	ids := []int64{b.submit(specOf(1)), b.submit(specOf(1)), b.submit(specOf(1))}
	b.w.Take()
	for _, n := range []string{"n3", "n1", "n4", "n2"} {
		b.must(NodeDrain{Node: n, User: "ada", Reason: "x"})
	}
	for _, i := range []int{2, 0, 1} {
		b.must(Hold{Job: ids[i]})
	}
	ch := b.w.Take()
	if !slices.IsSortedFunc(ch.Nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) }) || len(ch.Nodes) != 4 {
		t.Errorf("%d nodes, not by name", len(ch.Nodes))
	}
	if !slices.IsSortedFunc(ch.Jobs, func(a, b *Job) int { return int(a.ID - b.ID) }) || len(ch.Jobs) != 3 {
		t.Errorf("%d jobs, not by id", len(ch.Jobs))
	}
}

// TestArrayBounds: an array has elements, and not too many.
func TestArrayBounds(t *testing.T) {
	b := newBench(t, 1)
	for n, ok := range map[int]bool{0: false, 1: true, api.MaxArraySize: true, api.MaxArraySize + 1: false} {
		out := b.w.Step(b.now, Submit{Spec: specOf(1), SpecHash: "h", User: "ada", Partition: "main", Array: &api.Array{Indices: make([]int, n)}})
		if out.Applied != ok || !ok && api.CodeOf(out.Refused) != api.CodeInvalid {
			t.Errorf("%d elements: %+v", n, out)
		}
	}
}

// TestCapacity: how many tasks a node takes, by each thing that bounds them.
func TestCapacity(t *testing.T) {
	const g = 1 << 30
	whole := room{cpus: 8, cpusFree: 8, mem: 16 * g, memFree: 16 * g, cards: []string{"a", "b", "c", "d"}, cardFree: []string{"a", "b", "c", "d"}}
	part := whole
	part.cpusFree, part.memFree, part.cardFree = 5, 5*g, part.cardFree[:3]
	none := part
	none.cpusFree, none.cardFree = 0, nil
	unknown := part
	unknown.mem, unknown.memFree = 0, 0
	for _, c := range []struct {
		name    string
		r       room
		a       api.StepComponent
		perTask int
		want    int
	}{
		{"by CPUs", whole, api.StepComponent{}, 3, 2},
		{"all CPUs and some are taken", part, api.StepComponent{}, 1, 0},
		{"what is free", part, api.StepComponent{Exact: true, NoGPUs: true}, 2, 2},
		{"overcommit", part, api.StepComponent{Exact: true, NoGPUs: true, Overcommit: true}, 2, api.MaxStepTasks},
		{"overcommit of nothing", none, api.StepComponent{Exact: true, NoGPUs: true, Overcommit: true}, 2, 0},
		{"tasks of a node", whole, api.StepComponent{TasksPerNode: 3}, 1, 3},
		{"more tasks of a node than CPUs", whole, api.StepComponent{TasksPerNode: 30}, 1, 8},
		{"tasks of a node and no CPU", none, api.StepComponent{Exact: true, NoGPUs: true, TasksPerNode: 3}, 1, 0},
		{"cards of a task", part, api.StepComponent{Exact: true, GPUsPerTask: 2}, 1, 1},
		{"cards of a node", part, api.StepComponent{Exact: true, GPUsPerNode: 3}, 1, 5},
		{"too many cards of a node", part, api.StepComponent{Exact: true, GPUsPerNode: 4}, 1, 0},
		{"cards in all", part, api.StepComponent{Exact: true, GPUs: 9}, 1, 5},
		{"cards in all and none is free", room{cpus: 2, cpusFree: 2, cards: []string{"a"}}, api.StepComponent{Exact: true, GPUs: 1}, 1, 0},
		{"all cards and some are taken", part, api.StepComponent{Exact: true}, 1, 0},
		{"memory of a node", part, api.StepComponent{Exact: true, NoGPUs: true, MemoryPerNode: 5 * g}, 1, 5},
		{"too much memory of a node", part, api.StepComponent{Exact: true, NoGPUs: true, MemoryPerNode: 5*g + 1}, 1, 0},
		{"memory of a CPU", part, api.StepComponent{Exact: true, NoGPUs: true, MemoryPerCPU: g}, 2, 2},
		{"memory that is not counted", unknown, api.StepComponent{Exact: true, NoGPUs: true, MemoryPerNode: 99 * g, MemoryPerCPU: 99 * g}, 1, 5},
	} {
		if got := c.r.capacity(&api.StepAsk{StepComponent: c.a}, c.perTask); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestAsksAreToldApart: two jobs of one spec are one class only while all that decides where they may start is the same.
func TestAsksAreToldApart(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	job := func(edit func(*Job)) *Job {
		j := &Job{Spec: s, Partition: "main", Past: &Past{Refusals: []Refusal{{Node: "n1"}}}}
		edit(j)
		return j
	}
	plain := b.w.keyOfAsk(job(func(*Job) {}))
	if again := b.w.keyOfAsk(job(func(*Job) {})); again != plain {
		t.Errorf("%+v and %+v", plain, again)
	}
	for name, edit := range map[string]func(*Job){
		"constraint": func(j *Job) { j.Constraint = new("ib") }, "prefer": func(j *Job) { j.Prefer = new("ib") },
		"elsewhere": func(j *Job) { j.Elsewhere = true }, "spec": func(j *Job) { j.Spec = specOf(1) },
	} {
		if b.w.keyOfAsk(job(edit)) == plain {
			t.Errorf("%s makes no difference", name)
		}
	}
}
