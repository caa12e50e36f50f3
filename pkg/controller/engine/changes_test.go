package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// TestUpdateOf: what a request asks for is what the core is told, within what the site allows and its nodes have.
func TestUpdateOf(t *testing.T) {
	e := still()
	e.own.Policy.Partitions = []api.Partition{{Name: "main", Default: true, DefaultTime: time.Hour, MaxTime: 4 * time.Hour}, {Name: "night", MaxTime: 2 * time.Hour}, {Name: "day"}}
	res := &cluster.Node{Name: "n1", Has: cluster.Amounts{cluster.CPUs: 8, cluster.Memory: 1 << 30}, Ready: true, Partitions: []string{"main", "night"}, Features: []string{"fast", "ib"}}
	e.view.putNode(&gang.Node{Name: "n1", State: api.NodeUp, Res: res.Counted()})
	admin := Caller{User: "root", Admin: true}
	job := func(edit func(*gang.Job)) *gang.Job {
		return waitingJob(func(j *gang.Job) {
			j.Spec.Nice, j.Priority, j.TimeLimit = 5, -5, 3*time.Hour
			edit(j)
		})
	}
	plain := func(*gang.Job) {}
	for i, c := range []struct {
		r    api.UpdateRequest
		j    *gang.Job
		who  Caller
		want gang.Update
		err  string
	}{
		{api.UpdateRequest{Name: new("x"), Begin: &noon, Deadline: &noon, ArrayLimit: new(3), Dependency: &api.Dependency{}, Comment: new("c"), Message: new("m")}, job(plain), me,
			gang.Update{Name: new("x"), Begin: &noon, Deadline: &noon, ArrayLimit: new(3), Dependency: &api.Dependency{}, Comment: new("c"), Message: new("m")}, ""},
		{api.UpdateRequest{Nice: new(int64(7))}, job(plain), me, gang.Update{Nice: new(int64(7)), Priority: new(int64(-7))}, ""},
		{api.UpdateRequest{Nice: new(int64(0))}, job(plain), me, gang.Update{Nice: new(int64(0)), Priority: new(int64(0))}, ""},
		{api.UpdateRequest{Priority: new(int64(0))}, job(plain), me, gang.Update{Priority: new(int64(0))}, ""},
		{api.UpdateRequest{Nice: new(int64(1))}, job(func(j *gang.Job) { j.Priority = 50 }), me, gang.Update{}, "only an admin may raise the priority of job 7 above 0"},
		{api.UpdateRequest{Nice: new(int64(5))}, job(func(j *gang.Job) { j.Priority = 50 }), me, gang.Update{Nice: new(int64(5)), Priority: new(int64(50))}, ""},
		{api.UpdateRequest{Nice: new(int64(1))}, job(func(j *gang.Job) { j.Priority = 50 }), admin, gang.Update{Nice: new(int64(1)), Priority: new(int64(54))}, ""},
		{api.UpdateRequest{TimeLimit: new(4 * time.Hour)}, job(plain), me, gang.Update{TimeLimit: new(4 * time.Hour)}, ""},
		{api.UpdateRequest{TimeLimit: new(time.Duration(0))}, job(plain), me, gang.Update{TimeLimit: new(time.Hour)}, ""},
		{api.UpdateRequest{TimeLimit: new(5 * time.Hour)}, job(plain), me, gang.Update{}, "time limit 5 h is above the 4 h that partition main allows; ask for --time=240 or less (minutes)"},
		{api.UpdateRequest{Partition: new("night")}, job(plain), me, gang.Update{}, "time limit 3 h is above the 2 h that partition night allows; ask for --time=120 or less (minutes)"},
		{api.UpdateRequest{Partition: new("night"), TimeLimit: new(time.Hour)}, job(plain), me, gang.Update{Partition: new("night"), TimeLimit: new(time.Hour)}, ""},
		{api.UpdateRequest{Partition: new("main,night")}, job(plain), me, gang.Update{Partition: new("main,night"), TimeLimit: new(3 * time.Hour)}, ""},
		{api.UpdateRequest{Partition: new("x")}, job(plain), me, gang.Update{}, `no partition "x"; partitions here: main, night, day`},
		{api.UpdateRequest{Partition: new("day")}, job(plain), me, gang.Update{}, "*"},
		{api.UpdateRequest{Name: new("x")}, job(func(j *gang.Job) { j.Partition = "day" }), me, gang.Update{Name: new("x")}, ""},
		{api.UpdateRequest{Constraint: new("ib")}, job(plain), me, gang.Update{Constraint: new("ib")}, ""},
		{api.UpdateRequest{Constraint: new("roce")}, job(plain), me, gang.Update{}, "*"},
		{api.UpdateRequest{Constraint: new("ib&")}, job(plain), me, gang.Update{}, "*"},
		{api.UpdateRequest{Prefer: new("fast")}, job(plain), me, gang.Update{Prefer: new("fast")}, ""},
		{api.UpdateRequest{Prefer: new("fast&")}, job(plain), me, gang.Update{}, "*"},
		{api.UpdateRequest{Prefer: new("fast")}, job(func(j *gang.Job) { j.Constraint = new("roce") }), me, gang.Update{}, "*"},
	} {
		got, err := e.change(&c.r, c.who).of(t.Context(), c.j)
		if errText(err) != c.err && (c.err != "*" || err == nil) || err != nil && got != nil {
			t.Errorf("%d: %+v, %v, want %s", i, got, err, c.err)
			continue
		}
		if err == nil {
			c.want.Job, c.want.By = 7, c.who.User
			differs(t, c.err, *got, c.want)
		}
	}
}

// TestUpdateAnswersEachJob: an update of several says of each what became of it, and its message is told where the script hears it.
func TestUpdateAnswersEachJob(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	runs, _ := r.runningWith(1, func(s *api.Spec) { s.Launch, s.LastWords = api.LaunchBatch, true })
	over := r.submit("", spec(1))
	if _, err := r.Do(t.Context(), gang.Cancel{Job: over}); err != nil {
		t.Fatal(err)
	}
	var sent []api.SignalOrder
	to := signalling(func(o api.SignalOrder) (int, error) { sent = append(sent, o); return 1, nil })
	reply, err := r.Update(t.Context(), &api.UpdateRequest{JobQuery: byID(runs, over), Message: new("hello")}, me, anyone, to)
	if err != nil || !slices.Equal(results(reply), []string{"1(1): ", "2(2): job 2 has already ended: CANCELLED"}) {
		t.Errorf("%v, %v", reply, err)
	}
	differs(t, "told", sent, []api.SignalOrder{{MemberKey: api.MemberKey{Job: runs, Epoch: 1}, Message: "hello (ada)"}})
	if _, err := r.Update(t.Context(), &api.UpdateRequest{JobQuery: byID(runs), Comment: new("c")}, me, anyone, to); err != nil || len(sent) != 1 {
		t.Errorf("without a message told is %+v, %v", sent[1:], err)
	}
}

// TestRunOnceMore: a job as it was, by its owner alone; what it waited for and began at is over, a deadline only when it has passed.
func TestRunOnceMore(t *testing.T) {
	r := newRig(t, disk.Open(t))
	s := spec(1)
	s.Args, s.Env, s.Deadline = []string{"a"}, []string{"B=c"}, time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	s.Dependency, s.Hold = afterok(r.submit("", spec(1))), true
	id := r.submit("", s)
	if _, err := r.Update(t.Context(), &api.UpdateRequest{JobQuery: byID(id), Name: new("other")}, me, anyone, nil); err != nil {
		t.Fatal(err)
	}
	ref := api.JobRef{ID: id, Index: -1}
	if _, err := r.Rerun(t.Context(), &api.RerunRequest{Ref: ref}, Caller{UID: 5, User: "eve"}); errText(err) != "job 2 belongs to ada: only its owner may run it once more" {
		t.Errorf("%v", err)
	}
	if _, err := r.Rerun(t.Context(), &api.RerunRequest{Ref: api.JobRef{ID: 99, Index: -1}}, me); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("%v", err)
	}
	if _, err := r.Rerun(t.Context(), &api.RerunRequest{Ref: ref, Failed: true}, me); errText(err) != "job 2 has not failed: PENDING" {
		t.Errorf("%v", err)
	}
	out, err := r.Rerun(t.Context(), &api.RerunRequest{Ref: ref, Key: "k"}, me)
	if err != nil {
		t.Fatal(err)
	}
	j := r.view.job(out.JobID)
	if j.Name != "other" || j.Dependency != nil || j.Held != "" || !j.Deadline.Equal(s.Deadline) || j.Key != "1000 k" || j.ID == id {
		t.Errorf("%+v", j)
	}
	whole, err := r.whole(t.Context(), j)
	if err != nil || !slices.Equal(whole.Args, s.Args) || !slices.Equal(whole.Env, s.Env) || !bytes.Equal(whole.Script, s.Script) {
		t.Errorf("%+v, %v", whole, err)
	}
	if text, err := r.Script(t.Context(), j); err != nil || !bytes.Equal(text, s.Script) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := r.Do(t.Context(), gang.Cancel{Job: id}); err != nil {
		t.Fatal(err)
	}
	if out, err := r.Rerun(t.Context(), &api.RerunRequest{Ref: ref, Failed: true}, me); err != nil || out.Count != 1 {
		t.Errorf("one that failed: %+v, %v", out, err)
	}
	past := r.view.job(id).Copy()
	past.Deadline = time.Now().Add(-time.Hour)
	r.view.mu.Lock()
	r.view.putJob(past)
	r.view.mu.Unlock()
	if out, err = r.Rerun(t.Context(), &api.RerunRequest{Ref: ref}, me); err != nil || !r.view.job(out.JobID).Deadline.IsZero() {
		t.Errorf("its deadline has passed: %+v, %v", out, err)
	}
}

// TestWhoIsChosenAgain: of an array all, those that failed, or one; in their order, with its limit.
func TestWhoIsChosenAgain(t *testing.T) {
	e := still()
	e.store = pastStore{}
	put := func(id int64, index int, s api.JobState) *gang.Job {
		j := waitingJob(func(j *gang.Job) {
			j.ID, j.ArrayID, j.ArrayIndex, j.Array = id, 20, index, &gang.ArrayInfo{Count: 4, Limit: 3}
			if s != "" {
				j.Verdict = &gang.Verdict{State: s}
			}
		})
		e.view.putJob(j)
		return j
	}
	failed, done := put(20, 9, api.JobFailed), put(21, 4, api.JobCompleted)
	put(22, 2, "")
	put(23, 1, api.JobCancelled)
	for i, c := range []struct {
		j      *gang.Job
		index  int
		failed bool
		want   []int
		limit  int
		err    string
	}{
		{failed, -1, false, []int{1, 2, 4, 9}, 3, ""}, {failed, -1, true, []int{1, 9}, 3, ""}, {failed, 9, true, []int{9}, 0, ""}, {done, 4, false, []int{4}, 0, ""},
		{done, 4, true, nil, 0, "job 20_4 has not failed: COMPLETED"},
	} {
		got, err := e.again(t.Context(), c.j, &api.RerunRequest{Ref: api.JobRef{ID: 20, Index: c.index}, Failed: c.failed})
		if errText(err) != c.err || err == nil && (!slices.Equal(got.Indices, c.want) || got.Limit != c.limit) {
			t.Errorf("%d: %+v, %v", i, got, err)
		}
	}
	put(20, 9, api.JobCompleted)
	put(23, 1, api.JobCompleted)
	if _, err := e.again(t.Context(), failed, &api.RerunRequest{Ref: api.JobRef{ID: 20, Index: -1}, Failed: true}); errText(err) != "no element of array 20 has failed: 3 completed, 1 have not ended" {
		t.Errorf("%v", err)
	}
	older := waitingJob(func(j *gang.Job) { j.ID, j.ArrayID, j.ArrayIndex = 24, 20, 5 })
	e.store = pastStore{jobs: map[int64]*gang.Job{21: done, 24: older}}
	if all, err := e.elements(t.Context(), 20); err != nil || len(all) != 5 || all[4] != older {
		t.Errorf("%d elements, %v", len(all), err)
	}
	e.store = pastStore{err: errUnread}
	if _, err := e.elements(t.Context(), 20); errText(err) != "read array 20: bad page" {
		t.Errorf("%v", err)
	}
}

// TestWithin: whose a job is, and whether it was known between two moments, both included.
func TestWithin(t *testing.T) {
	over := func(end time.Time) *gang.Job {
		return waitingJob(func(j *gang.Job) { j.Submit, j.End, j.Verdict = noon, end, &gang.Verdict{} })
	}
	waits := waitingJob(func(j *gang.Job) { j.Submit = noon })
	hour := noon.Add(time.Hour)
	for i, c := range []struct {
		q    api.HistoryQuery
		j    *gang.Job
		want bool
	}{
		{api.HistoryQuery{}, waits, true},
		{api.HistoryQuery{Until: noon}, waits, true}, {api.HistoryQuery{Until: noon.Add(-1)}, waits, false}, {api.HistoryQuery{Since: hour}, waits, true},
		{api.HistoryQuery{Since: hour}, over(hour), true}, {api.HistoryQuery{Since: hour.Add(1)}, over(hour), false}, {api.HistoryQuery{Since: noon}, over(time.Time{}), true}, {api.HistoryQuery{Since: noon.Add(1)}, over(time.Time{}), false},
	} {
		if got := within(&c.q, c.j); got != c.want {
			t.Errorf("%d: %t", i, got)
		}
	}
}

// TestDependencyChecks: the last that is right and the first that is wrong of each figure.
func TestDependencyChecks(t *testing.T) {
	on := func(c api.Condition) *api.Dependency { return &api.Dependency{On: []api.Condition{c}} }
	many := func(n int) *api.Dependency {
		d := &api.Dependency{}
		for range n {
			d.On = append(d.On, api.Condition{Kind: api.AfterOK, Job: 1})
		}
		return d
	}
	for i, c := range []struct {
		d  *api.Dependency
		ok bool
	}{
		{nil, true}, {many(0), false}, {many(1), true}, {many(maxConditions), true}, {many(maxConditions + 1), false},
		{on(api.Condition{Kind: api.AfterOK, Job: 1, Index: new(0), Delay: 0}), true}, {on(api.Condition{Kind: api.AfterOK, Job: 1, Index: new(-1)}), false}, {on(api.Condition{Kind: api.AfterOK, Job: 1, Delay: -1}), false},
		{on(api.Condition{Kind: api.AfterOK, Job: -1}), false}, {on(api.Condition{Kind: api.AfterOK}), false}, {on(api.Condition{Kind: api.AfterSingle}), true}, {on(api.Condition{Kind: api.AfterSingle, Job: 1}), false}, {on(api.Condition{Kind: "x", Job: 1}), false},
	} {
		err := checkDependency(c.d, 1)
		var refused *api.Error
		if errors.As(err, &refused); (err == nil) != c.ok || refused != nil && (refused.Reason != api.ReasonDependency || refused.Code != api.CodeInvalid) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestRecallAtStart: what waiting jobs depend on is brought back once, and nothing for those that do not wait any more.
func TestRecallAtStart(t *testing.T) {
	past := pastStore{jobs: map[int64]*gang.Job{}}
	for _, id := range []int64{1, 2, 3} {
		past.jobs[id] = waitingJob(func(j *gang.Job) { j.ID = id })
	}
	waits := func(id int64, edit func(*gang.Job), on ...int64) *gang.Job {
		return waitingJob(func(j *gang.Job) { j.ID, j.Waits, j.Dependency = id, "x", afterok(on...); edit(j) })
	}
	saved := &gang.Snapshot{Jobs: []*gang.Job{waits(5, func(*gang.Job) {}, 1, 4), waits(4, func(*gang.Job) {}, 1, 99), waits(6, func(j *gang.Job) { j.Waits = "" }, 2), waits(7, func(j *gang.Job) { j.Verdict = &gang.Verdict{} }, 3)}}
	if err := recallSaved(t.Context(), past, saved); err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, j := range saved.Jobs {
		ids = append(ids, j.ID)
	}
	if !slices.Equal(ids, []int64{5, 4, 6, 7, 1}) {
		t.Errorf("%v", ids)
	}
	if _, err := recall(t.Context(), &unreadStore{fails: "job"}, afterok(1), func(int64) *gang.Job { return nil }, 0); errText(err) != "read job 1: bad page" {
		t.Errorf("%v", err)
	}
}

// epochsStore has the attempts of a job.
type epochsStore struct {
	store.Store
	rows []gang.EpochRow
}

func (s epochsStore) Epochs(context.Context, int64) ([]gang.EpochRow, error) { return s.rows, nil }

// TestLogPlaces: where the output of a rank is, attempt by attempt: those that started, from where each begins.
func TestLogPlaces(t *testing.T) {
	e := still()
	slots := func(nodes ...string) (out []cluster.Slot) {
		for _, n := range nodes {
			out = append(out, cluster.Slot{Node: n})
		}
		return out
	}
	rows := []gang.EpochRow{
		{Epoch: 1, Started: noon, Slots: slots("n1", "n2"), OutStarts: []int64{0, 7}, ErrStarts: []int64{0, 9}},
		{Epoch: 2, Slots: slots("n3", "n3")}, // never started
		{Epoch: 3, Started: noon, Slots: slots("n1", "n3"), OutStarts: []int64{5}},
		{Epoch: 4, Started: noon, Slots: slots("n1", "n2"), OutStarts: []int64{1, 1}}}
	e.store = epochsStore{rows: rows}
	job := func(edit func(*gang.Job)) *gang.Job {
		return pairRuns(func(j *gang.Job) {
			j.Epoch, j.Spec.Output, j.Spec.WorkDir = 4, "/o", "/w"
			j.Ranks[1].OutStart, j.Ranks[1].ErrStart = 20, 30
			edit(j)
		})
	}
	plain := func(*gang.Job) {}
	for what, c := range map[string]struct {
		j      *gang.Job
		stderr bool
		want   []place
	}{
		"not told yet":  {job(plain), false, []place{{"n2", "/o", 1, 7, true, false}, {"n3", "/o", 3, 0, true, true}, {"n2", "/o", 4, 20, false, true}}},
		"runs":          {job(func(j *gang.Job) { j.Ranks[1].PID = 9 }), false, []place{{"n2", "/o", 1, 7, true, false}, {"n3", "/o", 3, 0, true, true}, {"n2", "/o", 4, 20, true, true}}},
		"has exited":    {job(func(j *gang.Job) { j.Ranks[1].Exited = true }), true, []place{{"n2", "/o", 1, 7, true, false}, {"n3", "/o", 3, 0, true, true}, {"n2", "/o", 4, 20, true, true}}},
		"is stopped":    {job(func(j *gang.Job) { j.Drain = &gang.Drain{} }), false, []place{{"n2", "/o", 1, 7, true, false}, {"n3", "/o", 3, 0, true, true}, {"n2", "/o", 4, 20, true, true}}},
		"its errors":    {job(func(j *gang.Job) { j.Spec.Error, j.Verdict = "/e-%r", &gang.Verdict{} }), true, []place{{"n2", "/e-0", 1, 9, true, false}, {"n3", "/e-1", 3, 0, true, false}, {"n2", "/e-2", 4, 30, true, false}}},
		"by their node": {job(func(j *gang.Job) { j.Spec.Output, j.Verdict = "/o-%N-%n", &gang.Verdict{} }), false, nil},
	} {
		got, err := e.logPlaces(t.Context(), c.j, 1, c.stderr)
		if err != nil {
			t.Fatal(err)
		}
		if what == "by their node" {
			if len(got) != 3 || got[0].path == got[1].path || got[0].path != got[2].path {
				t.Errorf("%s: %+v", what, got)
			}
			continue
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v\nwant %+v", what, got, c.want)
		}
	}
	e.store = epochsStore{rows: rows[1:2]}
	if _, err := e.logPlaces(t.Context(), job(plain), 1, false); errText(err) != "job 7 has not started yet: it has no output; wait for it with glog -f 7, or see why with gqueue --why 7" {
		t.Errorf("%v", err)
	}
	for rank, want := range []int{0, 1, 0, 2} {
		if got := nodeIndex(&gang.EpochRow{Slots: slots("b", "a", "b", "c")}, rank); got != want {
			t.Errorf("rank %d is on node %d", rank, got)
		}
	}
}

// onDisk reads a file as a node does, and notes what it was asked.
type onDisk struct {
	text string
	asks []api.LogRead
}

func (d *onDisk) ReadLog(_ context.Context, _ string, q api.LogRead, w io.Writer) error {
	d.asks = append(d.asks, q)
	from := q.Offset
	if from < 0 {
		from = max(0, int64(len(d.text))+from)
	}
	_, err := io.WriteString(w, d.text[from:])
	return err
}

// TestLogOfAnAttempt: its own part of a file that later ones go on in, its tail, or all there is.
func TestLogOfAnAttempt(t *testing.T) {
	j := pairRuns(func(j *gang.Job) { j.UID, j.GID, j.User = 5, 6, "ada" })
	places := []place{{node: "n1", path: "/o", epoch: 1}, {node: "n1", path: "/p", epoch: 2}, {node: "n1", path: "/o", epoch: 3, start: 3}, {node: "n1", path: "/o", epoch: 4, start: 5}}
	for i, c := range []struct {
		n      int
		tail   int64
		want   string
		offset int64
	}{{1, 0, "abc", 0}, {2, 0, "abcdefgh", 0}, {3, 0, "de", 3}, {4, 0, "fgh", 5}, {1, 2, "gh", -2}} {
		d := &onDisk{text: "abcdefgh"}
		var out bytes.Buffer
		err := attemptLog(t.Context(), j, places, c.n, &api.LogQuery{Tail: c.tail}, d, &out)
		want := api.LogRead{Path: places[c.n-1].path, UID: 5, GID: 6, User: "ada", Offset: c.offset}
		if err != nil || out.String() != c.want || len(d.asks) != 1 || d.asks[0] != want {
			t.Errorf("%d: %q, %v, asked %+v", i, out.String(), err, d.asks)
		}
	}
	d := &onDisk{text: "ab"}
	var out bytes.Buffer
	if err := attemptLog(t.Context(), j, places, 1, &api.LogQuery{}, d, &out); err != nil || out.String() != "ab" {
		t.Errorf("of a file that was cut: %q, %v", out.String(), err)
	}
	l := &limitedWriter{w: &out, left: 3}
	for _, c := range []struct {
		text string
		n    int
		err  error
	}{{"xy", 2, nil}, {"zz", 1, io.ErrShortWrite}, {"z", 0, io.ErrShortWrite}, {"", 0, nil}} {
		if n, err := l.Write([]byte(c.text)); n != c.n || err != c.err {
			t.Errorf("%q: %d, %v", c.text, n, err)
		}
	}
	for n, want := range map[int]string{0: "0 times", 1: "once", 2: "2 times"} {
		if got := times(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// TestLogAsks: which rank there is none of, and which attempt.
func TestLogAsks(t *testing.T) {
	e := still()
	e.store = epochsStore{rows: []gang.EpochRow{{Epoch: 2, Started: noon, Slots: []cluster.Slot{{Node: "n1"}, {Node: "n2"}}}}}
	j := pairRuns(func(j *gang.Job) { j.Spec.Output, j.Spec.WorkDir = "/o", "/w" })
	for i, c := range []struct {
		q    api.LogQuery
		want string
		err  string
	}{
		{api.LogQuery{Rank: -1}, "abcd", ""}, {api.LogQuery{Rank: 1, Tail: 2}, "cd", ""}, {api.LogQuery{Attempt: 1, Rank: 1}, "abcd", ""},
		{api.LogQuery{Rank: 2}, "", "job 7 has no rank 2; its ranks are 0 to 1"}, {api.LogQuery{Attempt: 2}, "", "job 7 has no attempt 2: it has started once; gctl show job 7 lists them"},
	} {
		var out bytes.Buffer
		if err := e.Log(t.Context(), j, &c.q, &onDisk{text: "abcd"}, &out); errText(err) != c.err || out.String() != c.want {
			t.Errorf("%d: %q, %v", i, out.String(), err)
		}
	}
	var told positions
	c := newCopyCounter(&told, 3, 4)
	if told.at != (api.LogPosition{Epoch: 3, Offset: 4}) || c.next != 4 {
		t.Errorf("%+v, next %d", told.at, c.next)
	}
	if n, err := c.Write([]byte("ab")); n != 2 || err != nil || c.n != 2 || c.next != 6 {
		t.Errorf("%d, %v, %+v", n, err, c)
	}
	var tail positions
	c = newCopyCounter(&tail, 3, -4)
	if _, err := c.Write([]byte("ab")); err != nil || c.next != -4 || c.n != 2 || tail.at.Epoch != 0 {
		t.Errorf("before it is told where the tail begins: %+v, %+v", c, tail.at)
	}
	c.Began(0)
	if _, err := c.Write([]byte("c")); err != nil || c.next != 1 || tail.at.Epoch != 3 {
		t.Errorf("then %+v, %+v", c, tail.at)
	}
	if newCopyCounter(&told, 3, 0); told.at != (api.LogPosition{Epoch: 3}) {
		t.Errorf("from the beginning: %+v", told.at)
	}
	for id, want := range map[int64]bool{7: true, 8: false} {
		e.view.putJob(j)
		if e.running(id, 2) != want || e.running(id, 3) {
			t.Errorf("job %d runs: %t", id, !want)
		}
	}
	e.view.putJob(pairRuns(func(j *gang.Job) { j.Members = nil }))
	if e.running(7, 2) {
		t.Error("what is nowhere runs")
	}
}

// TestLooksAtTheHistory: from when on jobs are kept, by age and by number, and never what is in memory.
func TestLooksAtTheHistory(t *testing.T) {
	e := still()
	for i, c := range []struct {
		keep     time.Duration
		jobs     int
		nth      time.Time
		ended    time.Duration // in memory for so long
		want     time.Time
		unbroken error
	}{
		{0, 0, noon, 0, time.Time{}, nil}, {time.Hour, 0, noon, 0, noon.Add(-time.Hour), nil}, {time.Hour, 5, noon.Add(-time.Minute), 0, noon.Add(-time.Minute), nil}, {time.Hour, 5, noon.Add(-2 * time.Hour), 0, noon.Add(-time.Hour), nil},
		{0, 1, noon.Add(-time.Minute), time.Hour, noon.Add(-time.Hour), nil}, {time.Hour, 0, noon, 2 * time.Hour, noon.Add(-2 * time.Hour), nil}, {time.Hour, 1, noon, 0, noon.Add(-time.Hour), errUnread},
	} {
		e.own.Settings.HistoryKeep, e.own.Settings.HistoryJobs, e.own.Settings.KeepEnded = c.keep, c.jobs, c.ended
		e.store = nthStore{at: c.nth, err: c.unbroken}
		e.past.jobs = 4
		if e.look(t.Context()); !e.past.before.Equal(c.want) || e.past.jobs != 0 {
			t.Errorf("%d: before %s, want %s", i, e.past.before, c.want)
		}
	}
	h := &e.past
	h.texts = texts{}
	e.own.Settings.HistoryKeep, e.own.Settings.HistoryJobs = 0, 0
	now := e.opt.Clock.Now().Mono
	for i, c := range []struct {
		edit func()
		at   time.Duration
		ok   bool
	}{
		{func() { h.looked, h.more, h.before = 0, false, time.Time{} }, now, true}, {func() { h.looked = 5 }, 0, false}, {func() { h.more = true }, now, true}, {func() { h.more, h.before = false, noon }, now, true},
		{func() { h.before, h.texts.before = time.Time{}, noon }, now, true},
		{func() { h.texts.before, e.own.Settings.HistoryKeep = time.Time{}, 1 }, 5 + historyLook, true}, {func() { e.own.Settings.HistoryKeep, e.own.Settings.HistoryJobs = 0, 1 }, 5 + historyLook, true},
	} {
		c.edit()
		if at, ok := e.nextLook(); at != c.at || ok != c.ok {
			t.Errorf("%d: looks again at %s, %t", i, at, ok)
		}
	}
}

type nthStore struct {
	store.Store
	at  time.Time
	err error
}

func (s nthStore) EndedNth(context.Context, int) (time.Time, error) { return s.at, s.err }

// TestRecallable: a dependency that was read before its turn came is judged by what is there still: of an array all or nothing.
func TestRecallable(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(o *Options) { o.Settings.HistoryJobs, o.Settings.HistoryKeep = 0, time.Hour })
	array := func(id int64) *gang.Job { return waitingJob(func(j *gang.Job) { j.ID, j.ArrayID = id, 50 }) }
	there := r.ended(spec(1))
	single := r.world.Job(there)
	for i, c := range []struct {
		jobs  []*gang.Job
		going int64
		want  int
	}{{nil, 0, 0}, {[]*gang.Job{single}, 0, 1}, {[]*gang.Job{single, array(50), array(51)}, 0, 1}, {[]*gang.Job{waitingJob(func(j *gang.Job) { j.ID = 60 })}, 0, 0}, {[]*gang.Job{single}, there, 1}} {
		r.past.going = map[int64]bool{c.going: true}
		got, err := r.recallable(t.Context(), c.jobs)
		if err != nil || len(got) != c.want {
			t.Errorf("%d: %d of %d, %v", i, len(got), len(c.jobs), err)
		}
	}
	ev, err := r.recallAgain(t.Context(), gang.Update{Recalled: []*gang.Job{single, array(50)}})
	if u, ok := ev.(gang.Update); err != nil || !ok || len(u.Recalled) != 1 {
		t.Errorf("%+v, %v", ev, err)
	}
	r.own.Settings.HistoryKeep = 0
	if got, err := r.recallable(t.Context(), []*gang.Job{array(50)}); err != nil || len(got) != 1 {
		t.Errorf("where nothing is forgotten %d are left, %v", len(got), err)
	}
	if ev, err := r.recallAgain(t.Context(), gang.Tick{}); err != nil || ev != (gang.Tick{}) {
		t.Errorf("%+v, %v", ev, err)
	}
}

// TestWhyInFull: why a job waits has its reason, what lets it go, its deadline and the last try; of what runs what its watchdogs think.
func TestWhyInFull(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 1)
	s := spec(1)
	s.TimeLimit, s.Deadline = time.Hour, time.Now().Add(48*time.Hour).UTC().Truncate(time.Second)
	runs, waits := r.submit("", s), r.submit("", s)
	got, err := r.Explain(t.Context(), r.view.job(waits))
	if err != nil || got.JobID != waits || got.State != api.JobPending || got.Reason != "Resources" || got.SchemaVersion != api.SchemaVersion {
		t.Errorf("%+v, %v", got, err)
	}
	latest := "\ndeadline " + s.Deadline.Format(time.RFC3339) + ": it ends with state DEADLINE when it has not started by "
	if !strings.Contains(got.Why, "room for 0 of 1 rank now") || !strings.Contains(got.Why, latest) {
		t.Errorf("%s", got.Why)
	}
	if list := r.show(r.view.job(waits), false); list.Reason != "Resources" || list.Why != "room for 0 of 1 rank now, each needs 1 CPU" {
		t.Errorf("the list has %s: %s", list.Reason, list.Why)
	}
	text, err := r.Lines(t.Context(), &api.JobQuery{Refs: byID(waits).Refs}, me)
	if err != nil || !strings.Contains(string(text), "Resources") {
		t.Errorf("%q, %v", text, err)
	}
	if got, err := r.Explain(t.Context(), r.view.job(runs)); err != nil || got.Why != "not waiting: RESERVED" || got.State != api.JobReserved {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := r.Do(t.Context(), gang.Cancel{Job: waits, By: "ada"}); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Explain(t.Context(), r.view.job(waits)); err != nil || !strings.Contains(got.Why, ": CANCELLED: cancelled by ada\nwaited ") || !strings.HasSuffix(got.Why, ", and never started") {
		t.Errorf("%+v, %v", got, err)
	}
	imports := r.view.job(runs).Copy()
	imports.Members = slices.Clone(imports.Members)
	imports.Members[0].Importing = api.Import{Bytes: 1 << 20}
	if got, err := r.Explain(t.Context(), imports); err != nil || got.Why != "not waiting: RESERVED: importing its image: 1M on n1" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWhatASubmissionWouldDo: start, take somebody's place or wait, by a plan with it at its place in the queue; nothing of it is kept.
func TestWhatASubmissionWouldDo(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "low", Default: true}, {Name: "high", Tier: 1}}
		o.Policy.Preempt = order.PreemptTier
	})
	r.node("n1", 2)
	ask := func(edit func(*api.SubmitRequest)) *api.SubmitReply {
		t.Helper()
		q := &api.SubmitRequest{Spec: spec(2), TestOnly: true}
		edit(q)
		reply, err := r.Submit(t.Context(), q, me)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if got := ask(func(*api.SubmitRequest) {}); got.Why != "would start now on n1" || !slices.Equal(got.StartsOn, []string{"n1"}) || got.JobID != 0 || got.Count != 1 {
		t.Errorf("%+v", got)
	}
	if got := ask(func(q *api.SubmitRequest) { q.Spec.Hold = true }); got.StartsOn != nil || got.Why != "would be held until gctl release; if it were not, it would start now on n1" {
		t.Errorf("%+v", got)
	}
	if got := ask(func(q *api.SubmitRequest) { q.Array = &api.Array{Indices: []int{0, 1, 2}} }); got.Count != 3 || got.Why != "the first of its elements would start now on n1" {
		t.Errorf("%+v", got)
	}
	r.submit("", spec(2))
	if got := ask(func(*api.SubmitRequest) {}); !strings.HasPrefix(got.Why, "would wait: ") || got.StartsOn != nil {
		t.Errorf("%+v", got)
	}
	if got := ask(func(q *api.SubmitRequest) { q.Spec.Partition = "high" }); !strings.HasPrefix(got.Why, "would take the place of job 1: ") || got.StartsOn != nil {
		t.Errorf("%+v", got)
	}
	if got := ask(func(q *api.SubmitRequest) { q.Spec.Partition, q.Spec.Begin = "high", time.Now().Add(time.Hour) }); !strings.Contains(got.Why, "; if that were now, it would take the place of job 1: ") {
		t.Errorf("%+v", got)
	}
	if jobs, _ := r.List(t.Context(), &api.JobQuery{All: true}); len(jobs) != 1 || jobs[0].State != api.JobReserved {
		t.Errorf("%+v", jobs)
	}
	for want, ids := range map[string][]int64{"job 1": {1}, "jobs 1, 9": {1, 9}} {
		if got := r.jobNames(ids); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSubmissionsAreWhatWasAsked: how many elements, who they are of, and that no client says that a job comes again.
func TestSubmissionsAreWhatWasAsked(t *testing.T) {
	r := newRig(t, disk.Open(t))
	s := spec(1)
	s.Cron = &api.Cron{Schedule: "@daily"}
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s, Array: &api.Array{Indices: []int{1, 4}}}, me)
	if err != nil || reply.SchemaVersion != api.SchemaVersion || reply.Count != 2 || reply.JobID != 1 || len(reply.Warnings) != 1 {
		t.Fatalf("%+v, %v", reply, err)
	}
	j := r.view.job(2)
	if j.Spec.Cron != nil || j.ArrayIndex != 4 || j.ArrayID != 1 || j.UID != me.UID || j.GID != me.GID || j.User != "ada" || j.Partition != "main" {
		t.Errorf("%+v", j)
	}
	s = spec(1)
	s.Dependency = afterok(99)
	if reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me); reply != nil || errText(err) != "dependency afterok:99: no job 99; gqueue and gacct list your jobs" {
		t.Errorf("on none: %+v, %v", reply, err)
	}
}
