package engine

import (
	"context"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/disk"
)

func byID(ids ...int64) (q api.JobQuery) {
	for _, id := range ids {
		q.Refs = append(q.Refs, api.JobRef{ID: id, Index: -1})
	}
	return q
}

func TestUpdateWithinTheSitesLimits(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "main", Default: true, DefaultTime: time.Hour, MaxTime: 4 * time.Hour}, {Name: "long"}}
	})
	s := spec(1)
	s.Notice = &api.Notice{Signal: "USR1", Lead: 10 * time.Minute}
	id := r.submit("", s)
	admin := Caller{User: "root", Admin: true}
	for _, c := range []struct {
		req  api.UpdateRequest
		who  Caller
		want string
	}{
		{api.UpdateRequest{}, me, "nothing to change was given"},
		{api.UpdateRequest{TimeLimit: new(5 * time.Hour)}, me, "time limit 5 h is above the 4 h that partition main allows; ask for --time=240 or less (minutes)"},
		{api.UpdateRequest{TimeLimit: new(5 * time.Minute)}, me, ""}, // shorter than its notice's lead
		{api.UpdateRequest{Priority: new(int64(3))}, me, "only an admin may set a priority above 0; lower your own with --nice"},
		{api.UpdateRequest{Nice: new(int64(-3))}, me, "only an admin may raise a priority with --nice=-3"},
		{api.UpdateRequest{Partition: new("lon")}, me, `no partition "lon"; partitions here: main, long`},
		{api.UpdateRequest{Dependency: afterok(id)}, me, "dependency afterok:1: a job can wait only for one that was submitted before it"},
		{api.UpdateRequest{Name: new("a\nb")}, me, `name "a\nb" is empty or has control characters`},
		{api.UpdateRequest{ArrayLimit: new(3)}, me, "job 1 is not of an array"},
		{api.UpdateRequest{TimeLimit: new(3 * time.Hour), Nice: new(int64(7)), Name: new("x")}, me, ""},
		{api.UpdateRequest{Priority: new(int64(100)), Partition: new("long"), TimeLimit: new(time.Duration(0))}, admin, ""},
	} {
		c.req.JobQuery = byID(id)
		reply, err := r.Update(t.Context(), &c.req, c.who, anyone, nil)
		if err == nil && reply.Results[0].Error != nil {
			err = reply.Results[0].Error
		}
		if got := errText(err); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.req, got, c.want)
		}
	}
	if j := r.view.job(id); j.TimeLimit != 0 || j.Priority != 100 || j.Name != "x" || j.Partition != "long" {
		t.Errorf("%s %d %s %s", j.TimeLimit, j.Priority, j.Name, j.Partition)
	}
}

// TestNoTextIsReadForEachJob: what is wrong for whatever job is said once, and not with each element of an array.
func TestNoTextIsReadForEachJob(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(*Options) {})
	id := r.submit("", spec(1))
	for _, req := range []api.UpdateRequest{{Constraint: new("((((")}, {Prefer: new("a&")}, {Partition: new("none")}} {
		req.JobQuery = byID(id)
		if reply, err := r.Update(t.Context(), &req, me, anyone, nil); err == nil {
			t.Errorf("%+v is answered for each job: %+v", req, reply.Results)
		}
	}
}

// TestNiceIsChanged: what nice takes off is shown as such, and off what an admin gave.
func TestNiceIsChanged(t *testing.T) {
	r := newRig(t, disk.Open(t))
	s := spec(1)
	s.Nice = 5
	id := r.submit("", s)
	admin := Caller{User: "root", Admin: true}
	for _, c := range []struct {
		req            api.UpdateRequest
		nice, priority int64
	}{
		{api.UpdateRequest{Nice: new(int64(50))}, 50, -50},
		{api.UpdateRequest{Nice: new(int64(20))}, 20, -20},
		{api.UpdateRequest{Priority: new(int64(80))}, 20, 80},
		{api.UpdateRequest{Nice: new(int64(0))}, 0, 100},
	} {
		c.req.JobQuery = byID(id)
		if reply, err := r.Update(t.Context(), &c.req, admin, anyone, nil); err != nil || reply.Results[0].Error != nil {
			t.Fatalf("%v %+v", err, reply)
		}
		if j := r.show(r.view.job(id), false); j.Nice != c.nice || j.Priority != c.priority {
			t.Errorf("%+v: nice %d priority %d, want %d and %d", c.req, j.Nice, j.Priority, c.nice, c.priority)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A job is run once more as it was: with the name and place it had at last, waiting for
// nothing. Of an array, only what did not complete.
func TestRerun(t *testing.T) {
	r := newRig(t, disk.Open(t))
	s := spec(1)
	s.Hold, s.Begin = true, time.Now().Add(time.Hour)
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s, Array: &api.Array{Indices: []int{0, 3, 7}, Limit: 2}}, me)
	if err != nil {
		t.Fatal(err)
	}
	first := reply.JobID
	again := func(ref api.JobRef, failed bool) (*api.SubmitReply, string) {
		out, err := r.Rerun(t.Context(), &api.RerunRequest{Ref: ref, Failed: failed}, me)
		return out, errText(err)
	}
	whole := api.JobRef{ID: first, Index: -1}
	if _, got := again(whole, true); got != "no element of array 1 has failed: 0 completed, 3 have not ended" {
		t.Error(got)
	}
	if _, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: byID(first + 1)}, me, anyone); err != nil {
		t.Fatal(err)
	}
	out, got := again(whole, true)
	if got != "" || out.Count != 1 {
		t.Fatalf("%+v %s", out, got)
	}
	j := r.view.job(out.JobID)
	if j.ArrayIndex != 3 || j.Held != "" || j.Eligible.After(time.Now()) || j.Array.Limit != 2 {
		t.Errorf("%+v", j)
	}
	if out, got = again(whole, false); got != "" || out.Count != 3 {
		t.Errorf("%+v %s", out, got)
	}
	if _, got = again(api.JobRef{ID: first, Index: 0}, true); got != "job 1_0 has not failed: PENDING" {
		t.Error(got)
	}
	if out, got = again(api.JobRef{ID: first, Index: 7}, false); got != "" || r.view.job(out.JobID).ArrayIndex != 7 {
		t.Errorf("%+v %s", out, got)
	}
	_, err = r.Rerun(t.Context(), &api.RerunRequest{Ref: whole}, Caller{UID: 1, User: "eve"})
	if got := errText(err); got != "job 1_0 belongs to ada: only its owner may run it once more" {
		t.Error(got)
	}
}

// toldTo notes who is told what.
type toldTo []string

func (s *toldTo) Signal(_ context.Context, node string, o api.SignalOrder) (int, error) {
	*s = append(*s, node+": "+o.Message)
	return 1, nil
}

// TestMessageIsForScriptsOfSlurmsWords: others hear nothing in their output.
func TestMessageIsForScriptsOfSlurmsWords(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 8)
	for _, c := range []struct {
		launch api.Launch
		words  bool
		want   int
	}{{api.LaunchBatch, true, 1}, {api.LaunchBatch, false, 0}, {api.LaunchRanks, true, 0}} {
		id, _ := r.runningWith(1, func(s *api.Spec) { s.Launch, s.LastWords = c.launch, c.words })
		var told toldTo
		if err := r.tell(t.Context(), r.view.job(id), "hello", &told); err != nil || len(told) != c.want {
			t.Errorf("%+v: %v, %v", c, told, err)
		}
	}
}

// TestAskedAnew: parts of a waiting job's request are judged as a submission of its owner, and the others stay.
func TestAskedAnew(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "main", Default: true}}
	})
	s := spec(1)
	s.Env, s.Args = []string{"A=b"}, []string{"x"}
	id := r.submit("", s)
	whole, err := r.whole(t.Context(), r.view.job(id))
	if err != nil {
		t.Fatal(err)
	}
	ask := *whole
	ask.Size, ask.CPUsPerRank, ask.Output, ask.WorkDir, ask.Account = 2, 3, "other.out", "/other", "nobody"
	for _, c := range []struct {
		parts []api.SpecPart
		ask   *api.Spec
		want  string
	}{
		{[]api.SpecPart{api.PartResources}, nil, "parts of no request"},
		{[]api.SpecPart{"script"}, &ask, `"script" is no part of a request that can be changed`},
		{[]api.SpecPart{api.PartResources}, &api.Spec{}, "size 0: want 1 to 65536 ranks"},
		{[]api.SpecPart{api.PartWorkDir}, &api.Spec{WorkDir: "d"}, `work_dir "d" is not absolute`},
		{[]api.SpecPart{api.PartResources, api.PartOutput}, &ask, ""},
	} {
		req := api.UpdateRequest{JobQuery: byID(id), Ask: c.ask, Parts: c.parts}
		reply, err := r.Update(t.Context(), &req, me, anyone, nil)
		if err == nil && reply.Results[0].Error != nil {
			err = reply.Results[0].Error
		}
		if got := errText(err); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.parts, got, c.want)
		}
	}
	now, err := r.whole(t.Context(), r.view.job(id))
	if err != nil {
		t.Fatal(err)
	}
	if now.Size != 2 || now.CPUsPerRank != 3 || now.Output != "other.out" || now.WorkDir != whole.WorkDir || now.Account != whole.Account ||
		now.Env[0] != "A=b" || now.Args[0] != "x" || string(now.Script) != string(whole.Script) {
		t.Errorf("%+v", now)
	}
}
