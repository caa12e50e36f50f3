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
	e := b.w.jobs.byID[id]
	b.w.stops.drain(e, api.CausePreempted, -1, "again")
	b.w.stops.drain(e, api.CauseNodeLost, -1, "second")
	b.w.stops.drain(e, api.CauseNodeLost, -1, "third")
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
		"its time limit is 1 h":                                         {Spec: &api.Spec{}, TimeLimit: time.Hour},
		"its time limit is 1 h and may be cut to 60 s":                  {Spec: &api.Spec{TimeMin: time.Minute}, TimeLimit: time.Hour},
		"its time limit is " + limitText(0) + " and may be cut to 60 s": {Spec: &api.Spec{TimeMin: time.Minute}},
		"its time limit is 60 s":                                        {Spec: &api.Spec{TimeMin: time.Minute}, TimeLimit: time.Minute},
	} {
		j.Wishes = &Wishes{Deadline: at}
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
		j := &Job{Spec: s, Partition: "main", Wishes: new(Wishes), Past: &Past{Setbacks: Setbacks{Refusals: []Refusal{{Node: "n1"}}}}}
		edit(j)
		return j
	}
	plain := b.w.specs.keyOfAsk(job(func(*Job) {}))
	if again := b.w.specs.keyOfAsk(job(func(*Job) {})); again != plain {
		t.Errorf("%+v and %+v", plain, again)
	}
	for name, edit := range map[string]func(*Job){
		"constraint": func(j *Job) { j.Constraint = new("ib") }, "prefer": func(j *Job) { j.Prefer = new("ib") },
		"elsewhere": func(j *Job) { j.Elsewhere = true }, "spec": func(j *Job) { j.Spec = specOf(1) },
	} {
		if b.w.specs.keyOfAsk(job(edit)) == plain {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// TestUntil: a limit counts where it ends before the deadline, and the grace comes behind either.
func TestUntil(t *testing.T) {
	w, at := newBench(t, 1).w, epoch0
	due, spec := at.Add(time.Hour), specOf(1)
	for _, c := range []struct {
		deadline time.Time
		limit    time.Duration
		want     time.Time
	}{
		{due, 2 * time.Hour, due}, {due, 30 * time.Minute, at.Add(30 * time.Minute)}, {due, 0, due},
		{time.Time{}, time.Minute, at.Add(time.Minute)}, {time.Time{}, 0, time.Time{}},
	} {
		j := &Job{Spec: spec, Wishes: &Wishes{Deadline: c.deadline}, Past: new(Past)}
		want := c.want
		if !want.IsZero() {
			want = want.Add(graceOf(&w.set, j))
		}
		if got := endsBy(&w.set, j, c.limit, at); !got.Equal(want) {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// TestTheFirstCardOfANode: and one of no node.
func TestTheFirstCardOfANode(t *testing.T) {
	b := newBench(t, 1)
	b.must(CardDrain{Node: "n1", UUID: "GPU-n1-0", Reason: "fan"})
	if c := b.w.Node("n1").Res.Cards[0]; c.State != api.CardQuarantined {
		t.Errorf("%+v", c)
	}
	if out := b.step(CardDrain{Node: "n9", UUID: "GPU-n1-0"}); api.CodeOf(out.Refused) != api.CodeNotFound {
		t.Errorf("%+v", out)
	}
}

// TestTheFirstImageStays: what the first member that is ready was prepared with is what all of the job's epochs run.
func TestTheFirstImageStays(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	for i, image := range []string{"", "sha256:a"} {
		b.say(b.w.Job(id).Members[i].Node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseReady, Port: 4000, Image: image})
	}
	if got := b.w.Job(id).Image; got != "sha256:a" {
		t.Errorf("%q", got)
	}
}

// TestImagesOfSteps: the first digest of a name stays, for so many names.
func TestImagesOfSteps(t *testing.T) {
	b := stepBench(t)
	b.unwritten()
	begin(b, api.StepAsk{Container: &api.Container{Image: "one"}})
	e := b.w.jobs.byID[1]
	found := func(digest string) bool { return b.w.steps.stepImage(e, 0, 0, &api.StepActual{Image: digest}) }
	if imageOf(e.job, "one") != "" || found("") || !found("sha256:1") || found("sha256:2") || imageOf(e.job, "one") != "sha256:1" {
		t.Errorf("%+v", e.job.StepImages)
	}
	for n, want := range map[int]bool{maxStepImages - 1: true, maxStepImages: false} {
		b.w.jobs.edit(e).StepImages = make([]StepImage, n)
		if found("sha256:3") != want {
			t.Errorf("one more than %d: %v", n, !want)
		}
	}
}

// TestAnnounces: a stop is told of, but for the proof that follows ranks which all ended by themselves.
func TestAnnounces(t *testing.T) {
	for _, c := range []struct {
		cause  api.Cause
		moved  int
		launch api.Launch
		want   bool
	}{
		{api.CauseCrash, 0, api.LaunchRanks, true}, {api.CauseCompleted, 0, api.LaunchRanks, false}, {api.CauseCompleted, 1, api.LaunchRanks, true},
		{api.CauseCompleted, 1, api.LaunchBatch, false}, {api.CauseCancelled, 0, api.LaunchBatch, true},
	} {
		j := &Job{Spec: &api.Spec{Launch: c.launch}, Past: &Past{Attempt: Attempt{Drain: &Drain{Cause: c.cause, Moved: c.moved}}}}
		if announces(j) != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// TestWhenARankEnded: as its node says, or, where that does not know, when it was heard of.
func TestWhenARankEnded(t *testing.T) {
	said := epoch0.Add(-time.Minute)
	for _, late := range []bool{false, true} {
		for _, ended := range []time.Time{{}, said} {
			b := newBench(t, 3)
			id := b.submit(specOf(1))
			b.start(id)
			r := exit(0, 0)
			r.Ended = ended
			if late {
				b.cutOff("n1")
				b.ended(id, "n1", r)
			} else {
				b.phase(id, "n1", api.PhaseStopped, r)
			}
			want := ended
			if ended.IsZero() {
				want = b.now.Wall
			}
			if got := b.w.Job(id).Ranks[0].End; !got.Equal(want) {
				t.Errorf("late %v: %s, want %s", late, got, want)
			}
		}
	}
}

// TestPeakOfAnAttempt: the largest of its ranks.
func TestPeakOfAnAttempt(t *testing.T) {
	j := &Job{Ranks: []Rank{{VRAMPeak: 3}, {VRAMPeak: 9}, {VRAMPeak: 5}}, Past: &Past{}}
	if got := epochRow(j).VRAMPeak; got != 9 {
		t.Errorf("%d", got)
	}
}

// TestTimesOfAPartition: the default may be the longest.
func TestTimesOfAPartition(t *testing.T) {
	b := newBench(t, 1)
	b.w.SetPartitions([]api.Partition{{Name: "main", Default: true}})
	for d, ok := range map[time.Duration]bool{time.Hour: true, time.Hour + 1: false, 0: true} {
		out := b.w.Step(b.now, PutPartition{Ask: api.PartitionRequest{Name: "main", MaxTime: new(time.Hour), DefaultTime: new(d)}, Old: true})
		if (out.Refused == nil) != ok {
			t.Errorf("%s: %+v", d, out)
		}
	}
	// One of the file is put back whoever is in it.
	b.submit(specOf(1))
	b.w.Step(b.now, PutPartition{Ask: api.PartitionRequest{Name: "main", State: new(api.PartitionDown)}, Old: true})
	b.w.Step(b.now, ResetPartitions{By: "root"})
	if p := b.w.site.partitions.find("main"); p.State != api.PartitionUp && p.State != "" || p.MaxTime != 0 {
		t.Errorf("%+v", p)
	}
}

// TestOutdated: a word of another epoch than the one that has nodes.
func TestOutdated(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	if b.w.reports.outdated(api.MemberKey{Job: id, Epoch: 0}) || b.w.reports.outdated(api.MemberKey{Job: 99, Epoch: 1}) {
		t.Error("of a job that waits, or is not there")
	}
	b.start(id)
	if b.w.reports.outdated(api.MemberKey{Job: id, Epoch: 1}) || !b.w.reports.outdated(api.MemberKey{Job: id, Epoch: 7}) {
		t.Error("of a job that runs")
	}
}

// TestPassed: that a script does not take its notice is told to the other nodes, once.
func TestPassed(t *testing.T) {
	b := stepBench(t)
	e := b.w.jobs.byID[1]
	b.w.Take()
	if !b.w.reports.passed(e, 0, &api.MemberActual{Passed: true}) || b.w.reports.passed(e, 0, &api.MemberActual{Passed: true}) || b.w.reports.passed(e, 1, &api.MemberActual{}) {
		t.Error("it is said once")
	}
	if got := b.w.Take().Dirty; !slices.Equal(got, []string{"n2"}) {
		t.Errorf("told are %v", got)
	}
}

// TestCutOff: more than half of the nodes, and two at least.
func TestCutOff(t *testing.T) {
	for _, c := range []struct {
		nodes, away int
		want        bool
	}{{1, 1, false}, {2, 1, false}, {2, 2, true}, {3, 2, true}, {4, 2, false}, {4, 3, true}} {
		b := newBench(t, c.nodes)
		b.w.nodes.away = c.away
		if b.w.nodes.cutOff() != c.want {
			t.Errorf("%+v", c)
		}
	}
}

// TestWhatCanNotRunAgain: a job that waited for others when it ended, and one that would be too late.
func TestWhatCanNotRunAgain(t *testing.T) {
	b := newBench(t, 1)
	waits := b.depending(on(api.AfterOK, b.submit(specOf(1))))
	b.must(Cancel{Job: waits})
	s := specOf(1)
	s.Deadline = epoch0.Add(time.Minute)
	late := b.submit(s)
	b.must(Cancel{Job: late})
	b.must(Requeue{Job: late, Ended: true})
	b.must(Cancel{Job: late})
	b.after(time.Minute)
	refused := func(id int64, want string) {
		t.Helper()
		out := b.step(Requeue{Job: id, Ended: true})
		if api.CodeOf(out.Refused) != api.CodeConflict || !strings.Contains(out.Refused.Message, want) {
			t.Errorf("job %d: %+v", id, out)
		}
	}
	refused(waits, "waited for")
	refused(late, "has passed")
}

// TestADayIsNotTooLong: a reservation that comes each day may last one, and the planner is told of it.
func TestADayIsNotTooLong(t *testing.T) {
	b := newBench(t, 1)
	if got := b.w.SchedReservations(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	r := b.reservation("talk", time.Hour, 24*time.Hour, []string{"n1"}, api.FlagDaily)
	b.must(PutReservation{R: r})
	got := b.w.SchedReservations()
	if len(got) != 1 || got[0].Name != "talk" || got[0].Every != 24*time.Hour || !got[0].ClearBy.Equal(r.Start.Add(-b.w.set.StartTimeout)) {
		t.Errorf("%+v", got)
	}
}

// TestALaterDeadlineIntoAReservation is refused as a longer limit is.
func TestALaterDeadlineIntoAReservation(t *testing.T) {
	b := newBench(t, 1)
	s := timed(1, 4*time.Hour)
	s.TimeMin, s.Deadline = time.Minute, epoch0.Add(30*time.Minute)
	id := b.submit(s)
	admit := b.spread(id)
	admit.TimeLimit = 20 * time.Minute
	b.must(admit)
	b.must(PutReservation{R: b.reservation("talk", time.Hour, time.Hour, []string{"n1"})})
	e := b.w.jobs.byID[id]
	if err := b.w.site.reservations.longerIntoReservation(e, 4*time.Hour, epoch0.Add(50*time.Minute)); err != nil {
		t.Errorf("before it begins: %v", err)
	}
	if err := b.w.site.reservations.longerIntoReservation(e, 4*time.Hour, epoch0.Add(2*time.Hour)); err == nil {
		t.Error("into it")
	}
}

// TestRoomsInOrder: those that are named first, then those from the relative one on.
func TestRoomsInOrder(t *testing.T) {
	for _, c := range []struct {
		ask  api.StepAsk
		want string
	}{
		{api.StepAsk{}, "n1 n2 n3"}, {asks(api.StepComponent{NodeList: []string{"n1"}}), "n1 n2 n3"}, {asks(api.StepComponent{NodeList: []string{"n3", "n3"}}), "n3 n1 n2"},
		{asks(api.StepComponent{Relative: 2}), "n3"}, {asks(api.StepComponent{Relative: 1, NodeList: []string{"n1"}}), "n1 n2 n3"}, {asks(api.StepComponent{Relative: 3}), ""}, {asks(api.StepComponent{Relative: -1}), ""},
		{asks(api.StepComponent{Exclude: []string{"n1"}}), "n2 n3"}, {asks(api.StepComponent{NodeList: []string{"n4"}}), ""},
	} {
		rooms, err := chooseRooms(&Job{}, &c.ask, roomsOf(1, 1, 1))
		var names []string
		for _, r := range rooms {
			names = append(names, r.node)
		}
		if got := strings.Join(names, " "); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%+v: %s, %v", c.ask, got, err)
		}
	}
	for how, ok := range map[string]bool{"plane=0": false, "plane=1": true, "plane=-1": false, "plane": false, "cyclic": true, "": true, "round": false} {
		if err := number(how, []StepPart{{}, {}}, []int{1, 1}); (err == nil) != ok {
			t.Errorf("%q: %v", how, err)
		}
	}
}

// TestStepOfAnArray: what its indices have in common.
func TestStepOfAnArray(t *testing.T) {
	for want, indices := range map[int][][]int{2: {{0, 2, 4}, {5, 7}}, 1: {{5}, {0, 2, 5}, {0, 1, 3}, {3, 2, 1}, {1, 2, 3, 5}}, 3: {{0, 3, 6, 9}}} {
		for _, list := range indices {
			if got := arrayInfo(&api.Array{Indices: list}); got.Step != want || got.Count != len(list) || got.Max != slices.Max(list) {
				t.Errorf("%v: %+v", list, got)
			}
		}
	}
	if out := newBench(t, 1).step(Submit{User: "ada"}); api.CodeOf(out.Refused) != api.CodeInvalid {
		t.Errorf("without a spec: %+v", out)
	}
}

// TestIdleIsWarnedOnce: a node that goes on being idle is no news.
func TestIdleIsWarnedOnce(t *testing.T) {
	b := watchBench(t, func(set *api.Settings, _ *api.Spec) { set.IdleLimit, set.IdleEnd = time.Hour, 10*time.Minute })
	for _, w := range []Watched{{Node: "n1", Watch: api.WatchNote{Idle: 1}}, {Node: "n2", Watch: api.WatchNote{Idle: 1}}, {Node: "n1", Watch: api.WatchNote{Idle: 2}}} {
		w.Job, w.Epoch = 1, 1
		b.must(w)
	}
	if evs := b.took(api.EventIdleWarned); len(evs) != 1 {
		t.Errorf("%+v", evs)
	}
}

// TestSpecsLeaveWithTheirJobs: nothing of a job is kept when it has left memory.
func TestSpecsLeaveWithTheirJobs(t *testing.T) {
	b := newBench(t, 1)
	one, two := b.submit(specOf(1)), b.submit(specOf(1))
	for i, id := range []int64{one, two} {
		b.must(Cancel{Job: id})
		b.after(b.w.set.KeepEnded + time.Second)
		if left := len(b.w.specs.byKey); left != 1-i {
			t.Errorf("%d specs after job %d has left", left, id)
		}
	}
}

// TestTaskCheckpointsAreTold: each is an event with its task.
func TestTaskCheckpointsAreTold(t *testing.T) {
	b := taskBench(t, nil)
	step := b.srun(2)
	b.w.Take()
	b.puts(step, 1)
	for _, ev := range b.w.Take().Events {
		if ev.Type == api.EventCheckpoint && ev.Task != nil && *ev.Task == (api.TaskKey{Step: step, Task: 1}) {
			return
		}
	}
	t.Error("no event")
}
