package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

func mailed(size int, types ...api.NotifyType) *api.Spec {
	s := specOf(size)
	s.Notify = []api.Notify{{To: "ada@uni.example", Types: types}}
	return s
}

// told says what lies in the outbox, in order: drafts with a question mark, those given up with a cross.
func (b *bench) told() string {
	var out []string
	for _, l := range b.w.Outbox() {
		text := fmt.Sprintf("%s %s", l.Ref, l.Type)
		switch {
		case l.Draft:
			text += "?"
		case !l.GivenUp.IsZero():
			text += " x"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func (b *bench) wantTold(want string) {
	b.t.Helper()
	if got := b.told(); got != want {
		b.t.Fatalf("letters are %q, want %q", got, want)
	}
}

func TestLettersOfAJob(t *testing.T) {
	all := []api.NotifyType{api.NotifyBegin, api.NotifyEnd, api.NotifyFail, api.NotifyRequeue, api.NotifyTimeLimit, api.NotifyPreempt}
	for _, c := range []struct {
		name  string
		types []api.NotifyType
		code  int
		want  string
	}{
		{"an end in good order", all, 0, "1 BEGIN, 1 END"},
		{"a failure is one letter", all, 3, "1 BEGIN, 1 FAIL"},
		{"a failure is an end for who asks for that alone", []api.NotifyType{api.NotifyEnd}, 3, "1 END"},
		{"an end in good order is no failure", []api.NotifyType{api.NotifyFail}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, 1)
			b.run(b.submit(mailed(1, c.types...)), c.code)
			b.wantTold(c.want)
		})
	}
	t.Run("requeued, then cancelled", func(t *testing.T) {
		b := newBench(t, 1)
		id := b.submit(mailed(1, api.NotifyRequeue, api.NotifyFail, api.NotifyEnd))
		b.start(id)
		b.must(Requeue{Job: id, By: "ada"})
		b.ack(id)
		b.wantTold("1 REQUEUE")
		b.must(Cancel{Job: id, By: "ada"})
		b.wantTold("1 REQUEUE, 1 END")
	})
	t.Run("a dependency that can never be met", func(t *testing.T) {
		b := newBench(t, 1)
		first := b.submit(specOf(1))
		s := mailed(1, api.NotifyInvalidDepend, api.NotifyEnd)
		s.Dependency = on(api.AfterOK, first)
		b.submit(s)
		w := mailed(1, api.NotifyInvalidDepend)
		w.Dependency, w.InvalidDependency = on(api.AfterOK, first), api.InvalidWait
		b.submit(w)
		b.run(first, 1)
		b.wantTold("2 INVALID_DEPEND, 3 INVALID_DEPEND")
	})
}

// What is committed is what a restart finds: an event and its letter are of one batch.
func TestALetterIsOfTheCommitOfItsEvent(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(mailed(1, api.NotifyEnd))
	b.start(id)
	b.w.Take()
	b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
	ch := b.w.Take()
	if len(ch.Letters) != 1 || ch.Letters[0].Letter.Type != api.NotifyEnd || !slices.ContainsFunc(ch.Events, func(e api.Event) bool { return e.Type == api.EventEnded }) {
		t.Fatalf("the commit has letters %+v with events %+v", ch.Letters, ch.Events)
	}
	l := ch.Letters[0].Letter
	b.must(LettersDone{Sent: []LetterRef{{ID: l.ID, Rev: l.Rev}}})
	if ch := b.w.Take(); len(ch.Letters) != 1 || ch.Letters[0].Letter != nil {
		t.Fatalf("a delivered letter: %+v", ch.Letters)
	}
	if out := b.step(LettersDone{Sent: []LetterRef{{ID: l.ID}}}); out.Applied {
		t.Error("a letter was delivered twice")
	}
}

func TestPartsOfTheTimeLimit(t *testing.T) {
	parts := func() *api.Spec {
		s := mailed(1, api.NotifyTimeLimit, api.NotifyTimeLimit90, api.NotifyTimeLimit80, api.NotifyTimeLimit50)
		s.TimeLimit = 100 * time.Second
		return s
	}
	b := newBench(t, 1)
	id := b.submit(parts())
	b.start(id)
	began := b.now.Wall
	b.after(100*time.Second + time.Nanosecond)
	b.wantTold("1 TIME_LIMIT_50, 1 TIME_LIMIT_80, 1 TIME_LIMIT_90")
	for _, l := range b.w.Outbox() {
		if at := l.Time.Sub(began); at != time.Duration(l.Type.Percent())*time.Second {
			t.Errorf("%s after %v", l.Type, at)
		}
	}

	t.Run("a new limit moves what was not told", func(t *testing.T) {
		b := newBench(t, 1)
		id := b.submit(parts())
		b.start(id)
		b.after(60 * time.Second)
		longer := 1000 * time.Second
		b.must(Update{Job: id, TimeLimit: &longer})
		b.after(739 * time.Second)
		b.wantTold("1 TIME_LIMIT_50")
		b.after(time.Second)
		b.wantTold("1 TIME_LIMIT_50, 1 TIME_LIMIT_80")
	})
	t.Run("what passed while nobody looked is told once, the largest", func(t *testing.T) {
		b := newBench(t, 1)
		id := b.submit(parts())
		b.start(id)
		b.after(51 * time.Second)
		ch := b.w.Take()
		saved := &Snapshot{Jobs: []*Job{b.w.Job(id)}, Nodes: b.w.Nodes(), NextID: ch.NextID, NextSeq: ch.NextSeq, Letters: b.w.Outbox()}
		b.now.Wall = b.now.Wall.Add(44 * time.Second)
		b.w = Restore(b.now, settings(), saved)
		b.after(0)
		b.wantTold("1 TIME_LIMIT_50, 1 TIME_LIMIT_90")
	})
	t.Run("a run again tells anew", func(t *testing.T) {
		b := newBench(t, 1)
		id := b.submit(parts())
		b.start(id)
		b.after(51 * time.Second)
		b.must(Requeue{Job: id, By: "ada"})
		b.ack(id)
		b.start(id)
		b.after(51 * time.Second)
		b.wantTold("1 TIME_LIMIT_50, 1 TIME_LIMIT_50")
	})
}

func arrayOf(b *bench, n int, s *api.Spec) (ids []int64) {
	a := &api.Array{}
	for i := range n {
		a.Indices = append(a.Indices, i)
	}
	return b.must(Submit{Spec: s, SpecHash: hashOf(s), User: "ada", Partition: "main", Array: a}).JobIDs
}

// An array is one letter, with what became of its elements; a restart in its middle changes nothing.
func TestAnArrayIsOneLetter(t *testing.T) {
	const n = 1000
	b := newBench(t, 1)
	b.w.set.KeepEnded = 5 * time.Second
	quick := func(ev Event) { // without the recount of 1,000 jobs
		if out := b.w.Step(b.now, ev); !out.Applied {
			t.Fatalf("%T: %+v", ev, out)
		}
	}
	ids := arrayOf(b, n, mailed(1, api.NotifyBegin, api.NotifyEnd, api.NotifyFail))
	for i, id := range ids {
		quick(b.spread(id))
		for _, phase := range []api.MemberPhase{api.PhaseReady, api.PhaseRunning, api.PhaseStopped} {
			ma := api.MemberActual{MemberKey: b.key(id), Phase: phase, Port: 4000}
			if phase == api.PhaseStopped {
				ma.Ranks = []api.RankActual{exit(0, i/998)}
			}
			quick(NodeReport{Node: "n1", Actual: api.Actual{Members: []api.MemberActual{ma}}})
		}
		if i == 500 {
			b.wantTold("1_* BEGIN, 1_* END?")
			b.after(time.Minute) // most of it has left memory
			ch := b.w.Take()
			var jobs []*Job
			for j := range b.w.Jobs() {
				jobs = append(jobs, j)
			}
			b.w = Restore(b.now, b.w.set, &Snapshot{Jobs: jobs, Nodes: b.w.Nodes(), NextID: ch.NextID, NextSeq: ch.NextSeq, Letters: b.w.Outbox()})
			b.hello("n1")
		}
	}
	b.wantTold("1_* BEGIN, 1_* FAIL")
	if bad := b.w.Verify(); len(bad) > 0 {
		t.Error(bad)
	}
	l := b.w.Outbox()[1]
	if a := l.Array; a.Count != n || a.States[api.JobCompleted] != 998 || a.States[api.JobFailed] != 2 || !slices.Equal(a.Failed, []int{998, 999}) || a.MaxExit != 1 {
		t.Errorf("the letter says %+v", l.Array)
	}
}

func TestElementsByThemselves(t *testing.T) {
	b := newBench(t, 1)
	for _, id := range arrayOf(b, 2, mailed(1, api.NotifyEnd, api.NotifyFail, api.NotifyArrayTasks)) {
		b.run(id, 0)
	}
	b.wantTold("1_0 END, 1_1 END")
}

// Who has too many letters that wait gets one for all that come then, and nobody else less.
func TestALetterForMany(t *testing.T) {
	b := newBench(t, 1)
	for id := range int64(mostLetters) {
		b.w.record.outbox.put(-id-1, &api.Letter{ID: -id - 1, User: "ada", To: "ada@uni.example", Type: api.NotifyEnd})
	}
	for range 3 {
		b.run(b.submit(mailed(1, api.NotifyEnd)), 0)
	}
	more := b.w.record.outbox.letters[b.w.record.outbox.more[address{user: "ada", to: "ada@uni.example"}]]
	if more == nil || more.More[api.NotifyEnd] != 3 || len(b.w.record.outbox.letters) != mostLetters+1 {
		t.Fatalf("%d letters, the last is %+v", len(b.w.record.outbox.letters), more)
	}
	// What was handed over before it grew is not all of it.
	if b.step(LettersDone{Sent: []LetterRef{{ID: more.ID, Rev: 1}}}).Applied {
		t.Error("a letter went that had grown since")
	}
	b.must(LettersDone{Sent: []LetterRef{{ID: more.ID, Rev: more.Rev}}})
}

func TestGivenUpLettersStayOnRecord(t *testing.T) {
	b := newBench(t, 1)
	b.run(b.submit(mailed(1, api.NotifyEnd)), 0)
	l := b.w.Outbox()[0]
	b.must(LettersDone{GivenUp: []LetterRef{{ID: l.ID, Error: "refused"}}})
	b.wantTold("1 END x")
	b.must(LettersDone{Again: true})
	b.wantTold("1 END")
	b.must(LettersDone{GivenUp: []LetterRef{{ID: l.ID, Error: "refused"}}})
	b.after(api.GivenUpKept + time.Hour)
	b.step(LettersDone{})
	b.wantTold("")
}

// A report is asked for by itself, is of each job that began, and waits beside what people are told.
func TestReports(t *testing.T) {
	b := newBench(t, 2)
	s := mailed(1, api.NotifyEnd)
	s.Report = true
	b.run(b.submit(s), 3)
	b.wantTold("1 END, 1 REPORT")
	if l := b.w.Outbox()[1]; l.To != "n1" || l.Target != "" {
		t.Errorf("%+v", l)
	}
	never := b.submit(s)
	b.must(Cancel{Job: never, By: "ada"})
	b.wantTold("1 END, 1 REPORT, 2 END")

	// Of an array each element has its own.
	b = newBench(t, 1)
	ids := arrayOf(b, 2, s)
	for _, id := range ids {
		b.run(id, 0)
	}
	b.wantTold("1_* END, 1_0 REPORT, 1_1 REPORT")

	// Too many that wait are nobody's news.
	b = newBench(t, 1)
	for id := range int64(mostLetters) {
		b.w.record.outbox.put(-id-1, &api.Letter{ID: -id - 1, User: "ada", To: "n7", Type: api.NotifyReport})
	}
	b.run(b.submit(s), 0)
	if all := b.w.Outbox(); len(all) != mostLetters+1 || all[mostLetters].Type != api.NotifyEnd {
		t.Errorf("%d letters, the last is %+v", len(all), all[len(all)-1])
	}
}

// TestLettersAreValues: a letter that was handed out is not changed by what comes after; the last one of an array has the state that
// says most of it, not that of its last element.
func TestLettersAreValues(t *testing.T) {
	b := newBench(t, 2)
	ids := arrayOf(b, 3, mailed(1, api.NotifyEnd, api.NotifyBegin, api.NotifyRequeue))
	for i, id := range ids {
		before := b.w.Outbox()
		was := text(before)
		b.run(id, []int{0, 3, 0}[i])
		if text(before) != was {
			t.Fatalf("changed by the end of job %d:\n%s\n%s", id, was, text(before))
		}
	}
	all := b.w.Outbox()
	if i := slices.IndexFunc(all, func(l *api.Letter) bool { return l.Type == api.NotifyEnd }); i < 0 || all[i].State != api.JobFailed || all[i].ExitCode != 3 || all[i].Draft {
		t.Errorf("%s", text(all))
	}
}

// TestNotifyTypes: which kinds of letters each event is, the one that says most first.
func TestNotifyTypes(t *testing.T) {
	type types = []api.NotifyType
	ended := func(s api.JobState, c api.Cause) api.Event {
		return api.Event{Type: api.EventEnded, State: s, Cause: c}
	}
	stop := func(c api.Cause) api.Event { return api.Event{Type: api.EventDrainStarted, Cause: c} }
	for _, c := range []struct {
		job  *Job
		ev   api.Event
		want types
	}{
		{nil, api.Event{Type: api.EventStarted}, types{api.NotifyBegin}},
		{nil, ended(api.JobCompleted, api.CauseCompleted), types{api.NotifyEnd}},
		{nil, ended(api.JobCancelled, api.CauseCancelled), types{api.NotifyEnd}},
		{nil, ended(api.JobFailed, api.CauseCrash), types{api.NotifyFail, api.NotifyEnd}},
		{&Job{Wishes: &Wishes{Waits: "afterok:1"}}, ended(api.JobCancelled, api.CauseCancelled), types{api.NotifyInvalidDepend, api.NotifyEnd}},
		{&Job{Wishes: &Wishes{Waits: "afterok:1"}, Past: &Past{Setbacks: Setbacks{CancelledBy: "ada"}}}, ended(api.JobCancelled, api.CauseCancelled), types{api.NotifyEnd}},
		{&Job{Wishes: &Wishes{Waits: "afterok:1"}}, ended(api.JobFailed, api.CauseCrash), types{api.NotifyFail, api.NotifyEnd}},
		{nil, api.Event{Type: api.EventDependencyFailed}, types{api.NotifyInvalidDepend}},
		{nil, stop(api.CauseTimeout), types{api.NotifyTimeLimit}},
		{nil, stop(api.CauseStalled), types{api.NotifyStall}},
		{nil, stop(api.CauseGPUHang), types{api.NotifyStall}},
		{nil, stop(api.CausePreempted), types{api.NotifyPreempt}},
		{nil, stop(api.CauseCrash), nil},
		{nil, api.Event{Type: api.EventDrainCompleted, Outcome: string(api.RankBlocked)}, types{api.NotifyRequeue}},
		{nil, api.Event{Type: api.EventDrainCompleted, Outcome: string(api.RankFailed)}, nil},
		{nil, api.Event{Type: api.EventRequeued}, types{api.NotifyRequeue}},
		{nil, api.Event{Type: api.EventIdleWarned}, types{api.NotifyIdle}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 50}, types{api.NotifyTimeLimit50}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 80}, types{api.NotifyTimeLimit80}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 90}, types{api.NotifyTimeLimit90}},
		{nil, api.Event{Type: api.EventTimeLimitNear, Percent: 70}, nil},
		{nil, api.Event{Type: api.EventHeld}, nil},
	} {
		j := c.job
		if j == nil {
			j = &Job{}
		}
		j.Share()
		if got := notifyTypes(j, &c.ev); !slices.Equal(got, c.want) {
			t.Errorf("%s %s%s%s: %v, want %v", c.ev.Type, c.ev.Cause, c.ev.State, c.ev.Outcome, got, c.want)
		}
	}
}

// TestTheRecordOfLettersIsBounded: those that were given up first are forgotten, and those that lie there for too long.
func TestTheRecordOfLettersIsBounded(t *testing.T) {
	b := newBench(t, 1)
	b.unwritten()
	for i := range int64(mostGivenUp + 2) {
		b.w.record.outbox.put(i+1, &api.Letter{ID: i + 1, GivenUp: epoch0.Add(time.Duration(i) * time.Second)})
	}
	left := func(want, first int64) {
		t.Helper()
		b.w.record.outbox.forgetGivenUp(b.w.clock.now.Wall)
		if all := b.w.record.outbox.givenUp(); int64(len(all)) != want || all[0].ID != first {
			t.Errorf("%d letters, the first is %d", len(all), all[0].ID)
		}
	}
	left(mostGivenUp, 3)
	b.w.clock.now.Wall = epoch0.Add(2*time.Second + api.GivenUpKept)
	left(mostGivenUp, 3)
	b.w.clock.now.Wall = b.w.clock.now.Wall.Add(1)
	left(mostGivenUp-1, 4)
}
