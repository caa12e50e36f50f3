package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// TestWatchedOf: who is silent, of ranks and of tasks that live, and what is seen of cards.
func TestWatchedOf(t *testing.T) {
	silent, speaks := api.RankNote{Rank: 1, Silent: true}, api.RankNote{Rank: 2}
	m := &api.MemberNote{MemberKey: api.MemberKey{Job: 7, Epoch: 2}, Ranks: []api.RankNote{speaks, silent}, Watch: &api.WatchNote{Round: 5},
		Tasks: []api.TaskNote{{Step: 3, RankNote: silent}, {Step: 3, RankNote: speaks}, {Step: 4, RankNote: silent, Ended: true}}}
	differs(t, "watched", watchedOf("n1", m), &gang.Watched{Job: 7, Epoch: 2, Node: "n1", Silent: []int{1}, Tasks: []api.TaskKey{{Step: 3, Task: 1}}, Watch: api.WatchNote{Round: 5}})
	m.Watch, m.Ranks, m.Tasks = nil, nil, nil
	differs(t, "nothing", watchedOf("n1", m), &gang.Watched{Job: 7, Epoch: 2, Node: "n1"})
}

// TestNews: each figure of what a node sees is news when it changes, node by node; of a job that nobody speaks of nothing is.
func TestNews(t *testing.T) {
	var s rankNotes
	see := func(node string, edit func(*gang.Watched)) bool {
		w := &gang.Watched{Job: 7, Epoch: 2, Node: node}
		edit(w)
		return s.news(w)
	}
	silent := func(w *gang.Watched) { w.Silent = []int{1} }
	if see("n1", silent) {
		t.Error("of a job that nobody speaks of")
	}
	s.at(pairRuns(func(*gang.Job) {}))
	for i, edit := range []func(*gang.Watched){silent, func(w *gang.Watched) { w.Tasks = []api.TaskKey{{Step: 3}} }, func(w *gang.Watched) { w.Watch.Round = 1 }, func(w *gang.Watched) { w.Watch.Hung = true },
		func(w *gang.Watched) { w.Watch.Idle = 1 }, func(w *gang.Watched) { w.Watch.Blind = 1 }} {
		if !see("n1", edit) || see("n1", edit) || !see("n1", func(*gang.Watched) {}) {
			t.Errorf("%d: not news, or twice, or not when it is over", i)
		}
	}
	if see("n2", func(w *gang.Watched) { w.Watch.IdleFor = time.Hour }) {
		t.Error("how long it idles is news by itself")
	}
	if see("n1", silent); !see("n2", silent) {
		t.Error("what another node sees is no news")
	}
	if s.cut("n1"); !see("n1", silent) || see("n2", silent) {
		t.Error("after the session of n1 broke, of n1 nothing is news, or of n2 something")
	}
}

// TestPut: a node is believed about what is on it; each that is ready counts once, and an end is told of once.
func TestPut(t *testing.T) {
	var s rankNotes
	j := pairRuns(func(*gang.Job) {})
	put := func(node string, m api.MemberNote) bool { return s.put(j, node, &m, noon) }
	ready := func(ranks ...int) (out []api.RankNote) {
		for _, r := range ranks {
			out = append(out, api.RankNote{Rank: r, Ready: true})
		}
		return out
	}
	put("n1", api.MemberNote{Ranks: ready(-1, 0, 1, 2), Measure: &api.Measure{Node: "x", Seconds: 1}})
	put("n1", api.MemberNote{Ranks: ready(0)})
	put("n3", api.MemberNote{Ranks: ready(0), Measure: &api.Measure{Seconds: 2}})
	x := s.jobs[7]
	if len(x.ranks) != 1 || !x.ranks[0].Ready || x.ready != 1 {
		t.Errorf("%d are ready: %+v", x.ready, x.ranks)
	}
	if len(x.measures) != 1 || x.measures["n1"].Node != "n1" || x.measures["n1"].Seconds != 1 {
		t.Errorf("measures %+v", x.measures)
	}
	task := func(n int, ended bool) api.TaskNote {
		return api.TaskNote{Step: 3, RankNote: api.RankNote{Rank: n, Ready: true}, Ended: ended}
	}
	for i, c := range []struct {
		node  string
		tasks []api.TaskNote
		ended bool
		ready int
	}{
		{"n1", []api.TaskNote{task(0, true)}, false, 1}, // it is on n2
		{"n2", []api.TaskNote{task(0, false), task(2, false)}, false, 2},
		{"n2", []api.TaskNote{task(0, true), task(1, false)}, true, 3},
		{"n2", []api.TaskNote{task(0, true)}, false, 3},
	} {
		if got := put(c.node, api.MemberNote{Tasks: c.tasks}); got != c.ended || x.ready != c.ready {
			t.Errorf("%d: an end %t, %d are ready; want %t, %d", i, got, x.ready, c.ended, c.ready)
		}
	}
	if !s.ended(j, api.TaskKey{Step: 3}) || s.ended(j, api.TaskKey{Step: 3, Task: 1}) || s.ended(pairRuns(func(j *gang.Job) { j.Epoch = 3 }), api.TaskKey{Step: 3}) || s.ended(waitingJob(func(j *gang.Job) { j.ID = 8 }), api.TaskKey{}) {
		t.Error("which tasks have ended")
	}
	old := pairRuns(func(j *gang.Job) { j.Epoch = 1 })
	if s.put(old, "n1", &api.MemberNote{Ranks: []api.RankNote{{Rank: 0}}}, noon); !x.ranks[0].Ready {
		t.Error("what was said of the epoch before is believed")
	}
	if got := s.measured(j); len(got) != 1 || got[0].Member != 0 || got[0].Job != 7 || got[0].Epoch != 2 || got[0].Measure.Seconds != 1 {
		t.Errorf("measured %+v", got)
	}
	if got := s.measured(old); got != nil {
		t.Errorf("of another epoch %+v", got)
	}
	if s.settle(pairRuns(func(j *gang.Job) { j.Epoch, j.Steps = 3, nil })); len(x.tasks) != 2 {
		t.Error("tasks of another epoch are forgotten")
	}
	if s.settle(j); len(x.tasks) != 2 {
		t.Error("tasks of a step that runs are forgotten")
	}
	if s.settle(pairRuns(func(j *gang.Job) { j.Steps = nil })); len(x.tasks) != 0 {
		t.Error("tasks of a step that is over are kept")
	}
	more := s.watch(j)
	if s.drop([]int64{5, 7}); len(s.jobs) != 0 {
		t.Error("a job that was dropped is kept")
	}
	<-more
}

// TestSaidOf: a beat is as old as the node says, and a status no longer than it may be.
func TestSaidOf(t *testing.T) {
	long := strings.Repeat("x", api.MaxStatusBytes)
	for _, c := range []struct {
		n    api.RankNote
		beat time.Time
		n2   string
	}{{api.RankNote{Beats: 1, BeatAge: time.Second, Status: long}, noon.Add(-time.Second), long}, {api.RankNote{Beats: 1, BeatAge: -time.Second, Status: long + "y"}, noon, long}, {api.RankNote{BeatAge: time.Second}, time.Time{}, ""}} {
		if got := saidOf(c.n, noon); !got.beat.Equal(c.beat) || got.Status != c.n2 {
			t.Errorf("%+v: beat %s, %d bytes", c.n, got.beat, len(got.Status))
		}
	}
}

// TestNewlyReady: the core is told of all that are ready when one more is, while its gate waits.
func TestNewlyReady(t *testing.T) {
	var s rankNotes
	j := pairRuns(func(j *gang.Job) { j.Spec.ReadyTimeout = time.Hour })
	if _, ok := s.newlyReady(j); ok {
		t.Error("nobody has spoken")
	}
	s.put(j, "n2", &api.MemberNote{Ranks: []api.RankNote{{Rank: 1, Ready: true}}, Tasks: []api.TaskNote{{Step: 3, RankNote: api.RankNote{Rank: 1, Ready: true}}, {Step: 3}}}, noon)
	for what, other := range map[string]*gang.Job{"of another epoch": pairRuns(func(j *gang.Job) { j.Spec.ReadyTimeout, j.Epoch = time.Hour, 3 }), "without a gate": pairRuns(func(*gang.Job) {})} {
		if ev, ok := s.newlyReady(other); ok {
			t.Errorf("%s: %+v", what, ev)
		}
	}
	ev, ok := s.newlyReady(j)
	if !ok {
		t.Fatal("it is not told")
	}
	differs(t, "told", ev, gang.Ready{Job: 7, Epoch: 2, Ranks: []int{1}, Tasks: []api.TaskKey{{Step: 3, Task: 1}}})
	if ev, ok := s.newlyReady(j); ok {
		t.Errorf("told again: %+v", ev)
	}
}

// TestReadinessShown: who is ready of how many, in its epoch; nothing where nobody speaks of it.
func TestReadinessShown(t *testing.T) {
	batch := func(edit func(*gang.Job)) *gang.Job {
		return pairRuns(func(j *gang.Job) {
			j.Spec.Launch, j.Widest = api.LaunchBatch, gang.StepSet{Epoch: 2, Step: 3, Tasks: 2}
			edit(j)
		})
	}
	for what, c := range map[string]struct {
		j     *gang.Job
		ranks []int
		tasks []api.TaskKey
		want  *api.Readiness
	}{
		"nobody":                  {pairRuns(func(*gang.Job) {}), nil, nil, nil},
		"nobody of a gate":        {pairRuns(func(j *gang.Job) { j.Spec.ReadyTimeout = 90 * time.Second }), nil, nil, &api.Readiness{Size: 2, TimeoutSeconds: 90}},
		"nobody behind a gate":    {pairRuns(func(j *gang.Job) { j.Spec.ReadyTimeout, j.ReadyAt = 90*time.Second, noon }), nil, nil, &api.Readiness{Ranks: 2, Size: 2, TimeoutSeconds: 90, Time: noon}},
		"a gate before its start": {pairRuns(func(j *gang.Job) { j.Spec.ReadyTimeout, j.Epoch = time.Second, 0 }), nil, nil, nil},
		"one of two":              {pairRuns(func(*gang.Job) {}), []int{1}, nil, &api.Readiness{Ranks: 1, Size: 2}},
		"beyond its processes":    {batch(func(*gang.Job) {}), []int{1}, nil, nil},
		"its tasks":               {batch(func(*gang.Job) {}), nil, []api.TaskKey{{Step: 3}, {Step: 3, Task: 1}, {Step: 9}}, &api.Readiness{Ranks: 2, Size: 2}},
		"the script is":           {batch(func(*gang.Job) {}), []int{0}, []api.TaskKey{{Step: 3}, {Step: 3, Task: 1}}, &api.Readiness{Ranks: 1, Size: 1}},
		"tasks beside ranks":      {pairRuns(func(j *gang.Job) { j.Widest = gang.StepSet{Epoch: 2, Step: 3, Tasks: 2} }), nil, []api.TaskKey{{Step: 3}}, nil},
		"of a step that is over":  {batch(func(j *gang.Job) { j.Steps = nil }), nil, []api.TaskKey{{Step: 3}}, nil},
	} {
		var s rankNotes
		x := s.at(c.j)
		for _, r := range c.ranks {
			x.ranks[r] = rankNote{RankNote: api.RankNote{Ready: true}}
		}
		for _, k := range c.tasks {
			x.tasks[k] = taskNote{rankNote: rankNote{RankNote: api.RankNote{Ready: true}}}
		}
		for _, r := range []int{0, 5} { // who has spoken of something else
			if _, spoke := x.ranks[r]; !spoke {
				x.ranks[r] = rankNote{RankNote: api.RankNote{Status: "x"}}
			}
		}
		differs(t, what, s.readiness(c.j), c.want)
	}
}

// TestWaitReady: who waits for the ranks of a role, of the gang or of a step hears that they are ready, or why they will not be.
func TestWaitReady(t *testing.T) {
	job := func(edit func(*gang.Job)) *gang.Job {
		return pairRuns(func(j *gang.Job) {
			j.Spec.Roles = []api.Role{{Name: "lead", Count: 1}, {Name: "work", Count: 1}}
			edit(j)
		})
	}
	plain := func(*gang.Job) {}
	ofRanks, ofStep := party{store.OfRanks, 2}, party{3, 2}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	for i, c := range []struct {
		now   *gang.Job // as it is meanwhile; nil: it has left memory
		p     party
		role  string
		ready []int
		size  int
		err   string
	}{
		{job(plain), ofRanks, "", []int{0, 1}, 2, ""}, {job(plain), ofRanks, "work", []int{1}, 1, ""}, {job(plain), ofStep, "lead", []int{0}, 1, ""},
		{job(plain), ofRanks, "", []int{1}, 0, "left"}, {job(plain), ofRanks, "lead", []int{1}, 0, "left"}, {job(plain), ofStep, "", []int{0, 1}, 0, "left"},
		{job(plain), ofRanks, "wrok", nil, 0, `job 7 has no role "wrok"; did you mean work?`}, {job(plain), ofRanks, "zzz", nil, 0, `job 7 has no role "zzz"; it has lead, work`},
		{job(func(j *gang.Job) { j.Ranks[1].Exited = true }), ofRanks, "", []int{0}, 0, "the gang will not be ready: rank 1 of job 7 has ended"},
		{job(func(j *gang.Job) { j.Ranks[1].Exited = true }), ofRanks, "work", nil, 0, "role work will not be ready: rank 1 of job 7 has ended"},
		{job(func(j *gang.Job) { j.Steps = nil }), ofStep, "", nil, 0, "step 7.3 will not be ready: task 0 of step 7.3 has ended"},
		{nil, ofRanks, "", nil, 0, "epoch 2 of job 7 is over"}, {job(func(j *gang.Job) { j.Epoch = 3 }), ofRanks, "", nil, 0, "epoch 2 of job 7 is over"},
		{job(func(j *gang.Job) { j.Drain = &gang.Drain{} }), ofRanks, "", []int{0, 1}, 0, "job 7 is being stopped"}, {job(func(j *gang.Job) { j.Verdict = &gang.Verdict{} }), ofRanks, "", []int{0, 1}, 0, "job 7 is being stopped"},
	} {
		e := still()
		before := job(plain)
		for _, r := range c.ready {
			e.notes.at(before).ranks[r] = rankNote{RankNote: api.RankNote{Ready: true}}
		}
		if c.now != nil {
			e.view.putJob(c.now)
		}
		got, err := e.waitReady(gone, before, c.p, &api.ReadyWait{Role: c.role})
		if errText(err) != c.err || err == nil && got.Size != c.size {
			t.Errorf("%d: %+v, %v, want %d, %s", i, got, err, c.size, c.err)
		}
	}
	if err := noRole(pairRuns(plain), "x"); err.Error() != `job 7 has no role "x"; roles are given at the submission: gsubmit --role=x:N` || err.Code != api.CodeNotFound {
		t.Errorf("of a gang without roles: %v", err)
	}
}

// TestUnready: of those that are waited for one that is not ready, before others one that has ended.
func TestUnready(t *testing.T) {
	ofRanks, ofStep := party{-1, 3}, party{3, 2}
	job := func(exited ...int) *gang.Job {
		return pairRuns(func(j *gang.Job) {
			j.Ranks = append(j.Ranks, gang.Rank{})
			for _, r := range exited {
				j.Ranks[r].Exited = true
			}
		})
	}
	over := pairRuns(func(j *gang.Job) { j.Steps = nil })
	for i, c := range []struct {
		j            *gang.Job
		p            party
		first, count int
		ready        []int
		missing      int
		ended        bool
	}{
		{job(), ofRanks, 0, 3, nil, 0, false}, {job(), ofRanks, 0, 3, []int{0, 1, 2}, -1, false}, {job(), ofRanks, 0, 3, []int{0, 1}, 2, false}, {job(), ofRanks, 1, 2, []int{1, 2}, -1, false},
		{job(), ofRanks, 1, 1, []int{1}, -1, false}, {job(2), ofRanks, 0, 3, nil, 2, true}, {job(1, 2), ofRanks, 0, 3, nil, 1, true}, {job(2), ofRanks, 0, 2, []int{0, 1}, -1, false}, {job(1), ofRanks, 0, 3, []int{0, 1, 2}, -1, false},
		{job(), ofStep, 0, 2, nil, 0, false}, {job(), ofStep, 0, 2, []int{0, 1}, -1, false}, {job(0, 1), ofStep, 0, 2, []int{0}, 1, false}, {over, ofStep, 0, 2, []int{0}, 1, true}, {over, ofStep, 0, 2, []int{0, 1}, -1, false},
	} {
		var s rankNotes
		x := s.at(c.j)
		for _, n := range c.ready {
			if c.p.ofStep() {
				x.tasks[api.TaskKey{Step: 3, Task: n}] = taskNote{rankNote: rankNote{RankNote: api.RankNote{Ready: true}}}
			} else {
				x.ranks[n] = rankNote{RankNote: api.RankNote{Ready: true}}
			}
		}
		if missing, ended := s.unready(c.j, c.p, c.first, c.count); missing != c.missing || ended != c.ended {
			t.Errorf("%d: %d, %t, want %d, %t", i, missing, ended, c.missing, c.ended)
		}
	}
	var s rankNotes
	if missing, ended := s.unready(job(1), ofRanks, 1, 1); missing != 1 || ended {
		t.Errorf("where nobody has spoken: %d, %t", missing, ended)
	}
	s.at(pairRuns(func(j *gang.Job) { j.Epoch = 1 }))
	if missing, ended := s.unready(job(1), ofRanks, 1, 1); missing != 1 || ended {
		t.Errorf("of another epoch: %d, %t", missing, ended)
	}
}

// TestAcknowledgement: the core is told of a count that rose, and when nobody has anything left to save while a lead runs.
func TestAcknowledgement(t *testing.T) {
	stopping, saved := api.RankNote{Stopping: true}, api.RankNote{Saved: true}
	noticed := func(acked int) *gang.Job {
		return pairRuns(func(j *gang.Job) { j.Members[0].Noticed, j.Acked, j.Steps = true, acked, nil })
	}
	drains := func(acked int, lead time.Duration) *gang.Job {
		return pairRuns(func(j *gang.Job) { j.Drain, j.Steps = &gang.Drain{Acked: acked, Lead: lead}, nil })
	}
	runs := pairRuns(func(j *gang.Job) { j.Steps = nil })
	for i, c := range []struct {
		j     *gang.Job
		said  []api.RankNote
		want  gang.Acknowledged
		isNew bool
	}{
		{runs, []api.RankNote{saved, saved}, gang.Acknowledged{}, false},
		{noticed(0), []api.RankNote{stopping, {}}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 1}, true},
		{noticed(1), []api.RankNote{stopping, {}}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 1}, false},
		{noticed(2), []api.RankNote{saved, saved}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 2, Saved: true}, false},
		{drains(0, 0), []api.RankNote{stopping, {}}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 1}, true},
		{drains(1, 0), []api.RankNote{stopping, {}}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 1}, false},
		{drains(2, 0), []api.RankNote{saved, saved}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 2, Saved: true}, false},
		{drains(2, 1), []api.RankNote{saved, saved}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 2, Saved: true}, true},
		{drains(2, 1), []api.RankNote{saved, stopping}, gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 2}, false},
	} {
		var s rankNotes
		for r, n := range c.said {
			s.at(c.j).ranks[r] = rankNote{RankNote: n}
		}
		got, ok := s.acknowledgement(c.j)
		if ok != c.isNew {
			t.Errorf("%d: told %t", i, ok)
		}
		differs(t, "acknowledged", got, c.want)
	}
	var s rankNotes
	if n, all := s.acknowledged(runs); n != 0 || all {
		t.Errorf("where nobody has spoken: %d, %t", n, all)
	}
}

// TestShowTasks: what tasks said stands with their step; the oldest beat of who lives is the job's, and the status of a silent script is its widest step's.
func TestShowTasks(t *testing.T) {
	e := still()
	j := pairRuns(func(j *gang.Job) {
		j.Widest = gang.StepSet{Epoch: 2, Step: 3, Tasks: 2}
		j.Ranks[1].Exited = true
	})
	x := e.notes.at(j)
	said := func(status string, beat time.Duration) rankNote {
		n := rankNote{RankNote: api.RankNote{Status: status, Ready: true, Stopping: true}}
		if beat != 0 {
			n.beat = noon.Add(beat)
		}
		return n
	}
	x.tasks[api.TaskKey{Step: 3, Task: 1}] = taskNote{said("b", -3), false, "n2"}
	x.tasks[api.TaskKey{Step: 3}] = taskNote{said("a", -9), true, "n2"}
	x.tasks[api.TaskKey{Step: 8}] = taskNote{said("c", 0), false, "n2"}
	x.ranks[0], x.ranks[1] = said("", -2), said("", -99)
	got := e.show(j, false)
	if got.Status != "a" || !got.LastBeat.Equal(noon.Add(-3)) || got.Acknowledged != 0 {
		t.Errorf("status %q, last beat %s, %d acknowledged", got.Status, got.LastBeat, got.Acknowledged)
	}
	differs(t, "tasks", got.Steps[0].TaskList, []api.Task{{Task: 0, Node: "n2", LastBeat: noon.Add(-9), Status: "a", Ready: true, Stopping: true, Ended: true}, {Task: 1, Node: "n2", LastBeat: noon.Add(-3), Status: "b", Ready: true, Stopping: true}})
	x.ranks[0] = said("script", -4)
	j.Members[0].Noticed = true
	if got := e.show(j, false); got.Status != "script" || !got.LastBeat.Equal(noon.Add(-4)) || got.Acknowledged != 4 {
		t.Errorf("status %q, last beat %s, %d acknowledged", got.Status, got.LastBeat, got.Acknowledged)
	}
	j.Ranks[1].Exited = false
	for _, beats := range [][2]time.Duration{{-5, -2}, {-2, -5}, {-5, 0}, {0, -5}} {
		x.ranks[0], x.ranks[1] = said("", beats[0]), said("", beats[1])
		if got := e.show(j, false).LastBeat; !got.Equal(noon.Add(-5)) {
			t.Errorf("of %v the oldest is %s", beats, got)
		}
	}
	j.Widest = gang.StepSet{}
	x.tasks[api.TaskKey{}] = taskNote{rankNote: said("of no step", 0)}
	if got := e.show(j, false).Status; got != "" {
		t.Errorf("without a widest step the status is %q", got)
	}
	j.Verdict = &gang.Verdict{Trigger: -1}
	if got := e.show(j, false); got.Acknowledged != 0 {
		t.Errorf("of one that is over %d have acknowledged", got.Acknowledged)
	}
	j.Verdict, j.Epoch = nil, 3
	if got := e.show(j, false); got.Status != "" || !got.LastBeat.IsZero() || got.Steps[0].TaskList != nil {
		t.Errorf("of the epoch before %+v is shown", got)
	}
}

// TestEachMeasure: of what runs, and of nothing that waits or is over.
func TestEachMeasure(t *testing.T) {
	e := still()
	for id, edit := range map[int64]func(*gang.Job){1: func(*gang.Job) {}, 2: func(j *gang.Job) { j.Verdict = &gang.Verdict{} }, 3: func(j *gang.Job) { j.Members = nil }} {
		j := pairRuns(func(j *gang.Job) { j.ID = id; edit(j) })
		e.view.putJob(j)
		e.notes.at(j).measures["n2"] = &api.Measure{Seconds: float64(id)}
	}
	var got []float64
	e.EachMeasure(func(job int64, m *api.Measure) { got = append(got, float64(job), m.Seconds) })
	if !slices.Equal(got, []float64{1, 1}) {
		t.Errorf("%v", got)
	}
}

// TestNotesOfOthers: what a node says of gangs that are not there, or not in that epoch, is nothing.
func TestNotesOfOthers(t *testing.T) {
	e := still()
	e.view.putJob(pairRuns(func(*gang.Job) {}))
	e.view.putJob(pairRuns(func(j *gang.Job) { j.ID, j.Verdict = 8, &gang.Verdict{} }))
	for _, k := range []api.MemberKey{{Job: 99, Epoch: 2}, {Job: 7, Epoch: 1}, {Job: 8, Epoch: 2}} {
		if e.NodeNotes("n1", []api.MemberNote{{MemberKey: k, Ranks: []api.RankNote{{Status: "x"}}}}); len(e.notes.jobs) != 0 {
			t.Errorf("%+v is believed", k)
		}
	}
	if e.NodeNotes("n1", []api.MemberNote{{MemberKey: api.MemberKey{Job: 7, Epoch: 2}, Ranks: []api.RankNote{{Status: "x"}}}}); e.notes.jobs[7].ranks[0].Status != "x" {
		t.Error("its own are not")
	}
}

// TestSettle: after a commit what hangs on its jobs is up to date: who waits is woken, and who is over is forgotten.
func TestSettle(t *testing.T) {
	e := still()
	e.sweepQueue = make(chan int64, 9)
	over := func(id int64, edit func(*gang.Job)) *gang.Job {
		return pairRuns(func(j *gang.Job) { j.ID, j.Verdict = id, &gang.Verdict{}; edit(j) })
	}
	runs := pairRuns(func(j *gang.Job) { j.Checkpoint, j.Drain, j.Steps = &gang.Checkpoint{}, &gang.Drain{Lead: 1}, nil })
	for r := range 2 {
		e.notes.at(runs).ranks[r] = rankNote{RankNote: api.RankNote{Saved: true}}
	}
	changed, purged := e.stepWaiters.watch(7), e.notes.watch(over(5, func(*gang.Job) {}))
	if _, _, err := e.barriers.arrive(pairRuns(func(j *gang.Job) { j.ID = 4 }), barrierKey{-1, "b"}, 0, "", 2, nobodyEnded); err != nil {
		t.Fatal(err)
	}
	e.settle(&gang.Changes{Jobs: []*gang.Job{runs, over(1, func(*gang.Job) {}), over(2, func(j *gang.Job) { j.Checkpoint = &gang.Checkpoint{} }), over(3, func(j *gang.Job) { j.TaskCheckpoint = &gang.TaskCheckpoint{} }), over(4, func(*gang.Job) {})},
		Purged: []int64{5}})
	<-changed
	<-purged
	var swept []int64
	for len(e.sweepQueue) > 0 {
		swept = append(swept, <-e.sweepQueue)
	}
	if !slices.Equal(swept, []int64{2, 3, 4}) {
		t.Errorf("what is kept of %v is swept", swept)
	}
	if len(e.kept) != 1 || e.kept[0].ev != (gang.Acknowledged{Job: 7, Epoch: 2, Ranks: 2, Saved: true}) {
		t.Errorf("the core is told %+v", e.kept)
	}
	e.kept = nil
	if e.settle(&gang.Changes{}); len(e.kept)+len(e.sweepQueue) != 0 {
		t.Error("of nothing")
	}
	e.sweepQueue = make(chan int64, 1)
	for range 2 {
		e.forget(1) // who is full lets the next start do it
	}
}
