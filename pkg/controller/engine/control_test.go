package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// TestAsAdmin: a hold is an admin's where an admin says so, or holds the job of somebody else.
func TestAsAdmin(t *testing.T) {
	for _, c := range []struct {
		as    string
		who   Caller
		owner uint32
		want  bool
	}{
		{"", Caller{UID: 1, Admin: true}, 2, true}, {"", Caller{UID: 2, Admin: true}, 2, false}, {api.HoldAdmin, Caller{UID: 2, Admin: true}, 2, true}, {api.HoldUser, Caller{UID: 1, Admin: true}, 2, false},
		{"", Caller{UID: 1}, 2, false}, {api.HoldAdmin, Caller{UID: 1}, 2, false}, {api.HoldSpecial, Caller{UID: 1, Admin: true}, 2, true},
	} {
		if got := asAdmin(c.as, c.who, c.owner); got != c.want {
			t.Errorf("%q by %+v of %d: %t", c.as, c.who, c.owner, got)
		}
	}
}

// results are those of an answer in a few words.
func results(reply *api.CancelReply) (out []string) {
	for _, r := range reply.Results {
		text := r.Idle
		if r.Error != nil {
			text = r.Error.Error()
		}
		out = append(out, fmt.Sprintf("%s(%d): %s", r.Ref, r.JobID, text))
	}
	return out
}

// TestEach: a selection acts on what its caller may act on; what is named and can't be had is an error of its own, and an array that goes on is no mistake.
func TestEach(t *testing.T) {
	r := newRig(t, disk.Open(t))
	mine, others := r.submit("", spec(1)), int64(0)
	if reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1)}, Caller{UID: 2, User: "bob"}); err != nil {
		t.Fatal(err)
	} else {
		others = reply.JobID
	}
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{0, 1}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	array := reply.JobID
	if _, err := r.Do(t.Context(), gang.Cancel{Job: array}); err != nil {
		t.Fatal(err)
	}
	my := func(uid uint32) bool { return uid == me.UID }
	at := func(id int64, index int) api.JobRef { return api.JobRef{ID: id, Index: index} }
	over := fmt.Sprintf("job %d_0 has already ended: CANCELLED", array)
	for i, c := range []struct {
		q    api.JobQuery
		want []string
		err  string
	}{
		{api.JobQuery{}, nil, "no job was named: give ids, or select by name, user, state, partition or node"},
		{api.JobQuery{Partitions: []string{"x"}}, nil, `no partition "x"; partitions here: main`},
		{api.JobQuery{Refs: []api.JobRef{at(mine, -1), at(others, -1), at(99, -1)}}, []string{"99(0): no job 99; list jobs with gqueue, ended ones with gacct",
			"1(1): ", "2(2): job 2 belongs to bob: only its owner or an admin may hold it"}, ""},
		{api.JobQuery{Names: []string{"job"}}, []string{"1(1): ", "3_1(4): "}, ""},
		{api.JobQuery{Users: []string{"bob"}}, nil, ""},
		{api.JobQuery{Accounts: []string{"x"}}, nil, ""},
		{api.JobQuery{States: []api.JobState{api.JobCancelled}}, []string{"3_0(3): " + over}, ""},
		{api.JobQuery{Refs: []api.JobRef{at(array, -1)}}, []string{"3_1(4): "}, ""},
		{api.JobQuery{Refs: []api.JobRef{at(array, 0), at(array, 1)}}, []string{"3_0(3): " + over, "3_1(4): "}, ""},
		{api.JobQuery{Refs: []api.JobRef{at(array, 0)}}, []string{"3_0(3): " + over}, ""},
		{api.JobQuery{Refs: []api.JobRef{at(mine, -1), at(array, 0), at(array, 1)}}, []string{"1(1): ", "3_0(3): " + over, "3_1(4): "}, ""},
	} {
		var asked []int64
		got, err := r.each(t.Context(), "hold", &c.q, me, my, 0, func(_ context.Context, j *gang.Job, _ handFunc) waitFunc {
			if j.Verdict != nil {
				return answered(api.AlreadyEnded(j.Ref(), gang.JobState(j)))
			}
			return answered(nil)
		})
		if errText(err) != c.err {
			t.Errorf("%d: %v, want %s", i, err, c.err)
		}
		if err != nil {
			continue
		}
		if got.SchemaVersion != api.SchemaVersion || got.Results == nil || !slices.Equal(results(got), c.want) {
			t.Errorf("%d: %q\nwant %q (asked %v)", i, results(got), c.want, asked)
		}
	}
}

// TestOverAlready: who has ended is no mistake of who named an array of which some go on; who can't be had is.
func TestOverAlready(t *testing.T) {
	for want, r := range map[bool]*api.CancelResult{true: {Error: api.AlreadyEnded("7", api.JobFailed)}, false: {Error: api.Errorf(api.CodePermission, "no")}} {
		if overAlready(r) != want {
			t.Errorf("%v: %t", r.Error, !want)
		}
	}
	if overAlready(&api.CancelResult{}) {
		t.Error("one that was done has ended before")
	}
}

// TestMissing: a job that has left memory has ended; of others no more is said than that there is none.
func TestMissing(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) { o.Settings.KeepEnded = 0 })
	id := r.submit("", spec(1))
	if _, err := r.Do(t.Context(), gang.Cancel{Job: id}); err != nil {
		t.Fatal(err)
	}
	r.forgotten(id)
	for _, c := range []struct {
		ref  api.JobRef
		may  Allowed
		code api.Code
	}{
		{api.JobRef{ID: id, Index: -1}, anyone, api.CodeAlreadyEnded},
		{api.JobRef{ID: id, Index: -1}, func(uint32) bool { return false }, api.CodeNotFound},
		{api.JobRef{ID: id, Index: 0}, anyone, api.CodeNotFound}, {api.JobRef{ID: id, Index: 1}, anyone, api.CodeNotFound},
		{api.JobRef{ID: 99, Index: -1}, anyone, api.CodeNotFound}, {api.JobRef{Index: -1, Last: 1}, anyone, api.CodeAlreadyEnded}, {api.JobRef{Index: -1, Last: 2}, anyone, api.CodeNotFound},
	} {
		reply, failed := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{c.ref}}}, me, c.may)
		if failed != nil {
			t.Fatal(failed)
		}
		err := reply.Results[0].Error
		if err.Code != c.code || c.code == api.CodeAlreadyEnded && err.Message != "job 1 has already ended: CANCELLED" {
			t.Errorf("%+v: %v", c.ref, err)
		}
	}
}

// TestActions: each action on a job does what it says, whose hold it is included, and says where there was nothing to do.
func TestActions(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 8)
	runs, _ := r.running(8)
	id := r.submit("", func() api.Spec { s := spec(1); s.Hold = true; return s }())
	admin := Caller{UID: me.UID, User: "ada", Admin: true}
	act := func(action string, req api.ActionRequest, who Caller) string {
		t.Helper()
		reply, err := r.Act(t.Context(), action, &req, who, anyone)
		if err != nil {
			t.Fatal(err)
		}
		return results(reply)[0]
	}
	for i, c := range []struct {
		action, as string
		who        Caller
		want, held string
	}{
		{"release", "", me, "2(2): ", ""},
		{"hold", "", me, "2(2): ", "user"},
		{"hold", "", me, "2(2): *", "user"},
		{"requeue-hold", api.HoldSpecial, me, "2(2): ", "special"},
		{"release", "", me, "2(2): ", ""},
		{"requeue-hold", api.HoldAdmin, admin, "2(2): ", "admin"},
		{"release", "", me, "2(2): job 2 is held by an admin", "admin"},
		{"hold", api.HoldUser, admin, "2(2): ", "user"},
		{"release", "", admin, "2(2): ", ""},
		{"requeue-hold", "", me, "2(2): ", "user"},
	} {
		got := act(c.action, api.ActionRequest{JobQuery: byID(id), As: c.as}, c.who)
		if held := r.view.job(id).Held; held != c.held || !matches(got, c.want) {
			t.Errorf("%d: %s as %q: %s, held by %q; want %s, %q", i, c.action, c.as, got, held, c.want, c.held)
		}
	}
	if got := act("requeue", api.ActionRequest{JobQuery: byID(runs), Now: true}, me); got != fmt.Sprintf("%d(%d): ", runs, runs) || r.view.job(runs).Drain == nil || r.view.job(runs).Drain.Cause != api.CauseRequeued {
		t.Errorf("requeue: %s, %+v", got, r.view.job(runs).Drain)
	}
	if _, err := r.Do(t.Context(), gang.Cancel{Job: id}); err != nil {
		t.Fatal(err)
	}
	if got := act("requeue", api.ActionRequest{JobQuery: byID(id)}, me); got != "2(2): job 2 has already ended: CANCELLED" {
		t.Errorf("of one that is over: %s", got)
	}
	if got := act("requeue", api.ActionRequest{JobQuery: byID(id), Ended: true}, me); got != "2(2): " || r.view.job(id).Verdict != nil {
		t.Errorf("of one that is over, too: %s", got)
	}
}

// matches compares a text with one that may end in a star.
func matches(got, want string) bool {
	if n := len(want) - 1; n >= 0 && want[n] == '*' {
		return len(got) > n && got[:n] == want[:n]
	}
	return got == want
}

// TestSignalIsForWhatRuns: a signal has a name and a scope, and a job that does not run gets none.
func TestSignalIsForWhatRuns(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, _ := r.running(1)
	waits := r.submit("", spec(4))
	var sent []api.SignalOrder
	to := signalling(func(o api.SignalOrder) (int, error) { sent = append(sent, o); return 2, nil })
	for _, c := range []struct {
		id            int64
		signal, scope string
		err, result   string
	}{
		{id, "SIGUSR1", "", `signal "SIGUSR1" is no signal: want a name as TERM or USR1`, ""},
		{id, "USR1", "x", `scope "x": want ranks or steps or batch or full, or nothing`, ""},
		{waits, "USR1", "", "", "2(2): job 2 is PENDING: only a running job can be signalled"},
		{id, "USR1", "", "", "1(1): "}, {id, "HUP", "full", "", "1(1): "},
	} {
		reply, err := r.Signal(t.Context(), &api.CancelRequest{JobQuery: byID(c.id), Signal: c.signal, Scope: api.SignalScope(c.scope)}, me, anyone, to)
		if errText(err) != c.err || err == nil && results(reply)[0] != c.result {
			t.Errorf("%s: %v, %+v", c.signal, err, reply)
		}
	}
	k := api.MemberKey{Job: id, Epoch: 1}
	differs(t, "orders", sent, []api.SignalOrder{{MemberKey: k, Signal: "USR1", Scope: api.ScopeRanks}, {MemberKey: k, Signal: "HUP", Scope: api.ScopeFull}})
}

// signalling is a node that is asked to signal.
type signalling func(api.SignalOrder) (int, error)

func (s signalling) Signal(_ context.Context, _ string, o api.SignalOrder) (int, error) { return s(o) }

// TestTell: a message goes to the first node of a script that runs; that it ended meanwhile is no mistake.
func TestTell(t *testing.T) {
	e := still()
	job := func(edit func(*gang.Job)) *gang.Job {
		return pairRuns(func(j *gang.Job) { j.Spec.Launch, j.Spec.LastWords = api.LaunchBatch, true; edit(j) })
	}
	for what, c := range map[string]struct {
		j    *gang.Job
		says error
		told bool
		err  string
	}{
		"runs":        {job(func(*gang.Job) {}), nil, true, ""},
		"ranks":       {job(func(j *gang.Job) { j.Spec.Launch = api.LaunchRanks }), nil, false, ""},
		"other words": {job(func(j *gang.Job) { j.Spec.LastWords = false }), nil, false, ""},
		"is stopped":  {job(func(j *gang.Job) { j.Drain = &gang.Drain{} }), nil, false, ""},
		"nowhere":     {job(func(j *gang.Job) { j.Members = nil }), nil, false, ""},
		"ended":       {job(func(*gang.Job) {}), api.Errorf(api.CodeConflict, "x"), true, ""},
		"gone":        {job(func(*gang.Job) {}), api.Errorf(api.CodeNotFound, "x"), true, ""},
		"cut off":     {job(func(*gang.Job) {}), api.Errorf(api.CodeUnavailable, "x"), true, "x"},
	} {
		var sent []api.SignalOrder
		err := e.tell(t.Context(), c.j, "hello", signalling(func(o api.SignalOrder) (int, error) { sent = append(sent, o); return 1, c.says }))
		want := []api.SignalOrder(nil)
		if c.told {
			want = []api.SignalOrder{{MemberKey: api.MemberKey{Job: 7, Epoch: 2}, Message: "hello"}}
		}
		if errText(err) != c.err {
			t.Errorf("%s: %v", what, err)
		}
		differs(t, what, sent, want)
	}
}

// TestWordsOnNodes: a deadline lies ahead, a feature is a word, and what is said of a node is done to it.
func TestWordsOnNodes(t *testing.T) {
	r := atNoon(t, func(*Options) {})
	r.node("n1", 4)
	root := Caller{User: "root", Admin: true}
	now := noon.Add(time.Millisecond)
	for _, c := range []struct {
		action string
		req    api.NodeAction
		want   string
	}{
		{"drain", api.NodeAction{Reason: "x", Deadline: now}, "the deadline 2026-03-01T12:00:00Z has passed; give a later one: --deadline=now+10minutes, say, or none to let running work end by itself"},
		{"features", api.NodeAction{Features: []string{"ok", ""}}, `feature "": want a word of letters, digits, '_', '-', '.' and ':'`},
		{"features", api.NodeAction{Features: []string{"a*2"}}, `feature "a*2": want a word of letters, digits, '_', '-', '.' and ':'`},
		{"fence", api.NodeAction{}, "*"},
		{"drain", api.NodeAction{Reason: "fans", Deadline: now.Add(1), Down: true}, ""}, // the first after now
		{"resume", api.NodeAction{}, ""},
		{"drain", api.NodeAction{Reason: "fans", Deadline: now.Add(time.Hour)}, ""},
		{"forget", api.NodeAction{}, "*"},
	} {
		if err := r.NodeAction(t.Context(), c.action, "n1", &c.req, root); errText(err) != c.want && (c.want != "*" || err == nil) {
			t.Errorf("%s: %v, want %s", c.action, err, c.want)
		}
	}
	n := r.view.node("n1")
	if n.Admin != "fans" || n.DrainUser != "root" || n.Down || !n.DrainBy.Equal(now.Add(time.Hour)) {
		t.Errorf("%+v", n)
	}
}

// TestAsError: an error of ours is told as it is, any other as one of the controller.
func TestAsError(t *testing.T) {
	if asError(nil) != nil {
		t.Error("nothing is an error")
	}
	if err := fmt.Errorf("x: %w", errLeft); asError(err) != errLeft {
		t.Errorf("%+v", asError(err))
	}
	if err := asError(errors.New("bad page")); err.Code != api.CodeInternal || err.Message != "bad page" {
		t.Errorf("%+v", err)
	}
}

// TestManyAreHandedInByOne: a call over many jobs prepares one after the other, so that it takes one processor at most; no more than some of
// what all such calls handed in waits for the engine at a time; and a long refusal is not repeated for each.
func TestManyAreHandedInByOne(t *testing.T) {
	r := newRig(t, disk.Open(t))
	indices := make([]int, 2*maxMany)
	for i := range indices {
		indices[i] = i
	}
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: indices}}, me)
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			var at, most atomic.Int32
			got, err := r.each(t.Context(), "hold", &api.JobQuery{Refs: []api.JobRef{{ID: reply.JobID, Index: -1}}}, me, anyone, 0,
				func(_ context.Context, j *gang.Job, hand handFunc) waitFunc {
					most.Store(max(most.Load(), at.Add(1)))
					defer at.Add(-1)
					runtime.Gosched()
					wait := hand(gang.Hold{Job: j.ID})
					if n := len(r.many); n > maxMany {
						t.Errorf("%d wait at a time", n)
					}
					return func() api.CancelResult {
						_, _ = wait()
						return api.CancelResult{Error: &api.Error{Code: api.CodeInvalid, Message: strings.Repeat("é", 5000), Hint: "short"}}
					}
				})
			if err != nil || len(got.Results) != len(indices) || most.Load() != 1 {
				t.Errorf("%d results, %d prepared at a time, %v", len(got.Results), most.Load(), err)
				return
			}
			if e := got.Results[9].Error; len(e.Message) > maxSaid || !utf8.ValidString(e.Message) || e.Hint != "short" {
				t.Errorf("%d bytes: %q", len(e.Message), e.Message)
			}
		})
	}
	calls.Wait()
	if n := len(r.many); n != 0 {
		t.Errorf("%d are still waited for", n)
	}
}

// TestUpdateOfManyIsJudgedOnce: what jobs that are alike ask for is judged once for all, and jobs that are not alike each by their own;
// conditions count for each job that is to have them.
func TestUpdateOfManyIsJudgedOnce(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{0, 1, 2, 3, 4, 5, 6, 7}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	other := r.submit("other", spec(2))
	c := r.change(&api.UpdateRequest{Constraint: new("fast|fast")}, me)
	for id := reply.JobID; id <= other; id++ {
		_, err := c.of(t.Context(), r.view.job(id))
		if err == nil || !strings.Contains(err.Error(), "fast") {
			t.Errorf("job %d: %v", id, err)
		}
	}
	if len(c.judged) != 2 {
		t.Errorf("%d judgements", len(c.judged))
	}
	var on []api.Condition
	for i := range maxConditions {
		on = append(on, api.Condition{Kind: api.AfterAny, Job: 1, Delay: 0, Index: new(i)})
	}
	indices := make([]int, maxWaits/maxConditions+1)
	for i := range indices {
		indices[i] = i
	}
	if reply, err = r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: indices}}, me); err != nil {
		t.Fatal(err)
	}
	_, err = r.Update(t.Context(), &api.UpdateRequest{JobQuery: byID(reply.JobID), Dependency: &api.Dependency{On: on}}, me, anyone, nil)
	if errText(err) != "this would be done to 51 jobs: at most 50 at a time; let one small job wait for what these shall wait for, and these for that job" {
		t.Errorf("%v", err)
	}
}
