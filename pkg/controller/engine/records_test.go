package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// ids are the jobs that a history query gives, in its order.
func (r *rig) ids(q api.HistoryQuery) []int64 {
	r.t.Helper()
	var out []int64
	err := r.History(r.t.Context(), &q, me, func(d *api.JobDetail) error {
		out = append(out, d.Job.JobID)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

func TestHistoryOfMemoryAndStore(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) { o.Settings.KeepEnded = 0 })
	a := r.submit("", spec(1))
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{0, 3}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	array := reply.JobID
	last := r.submit("", spec(1))
	if _, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: byID(a)}, me, anyone); err != nil {
		t.Fatal(err)
	}
	r.forgotten(a) // it is in the store alone
	ref := func(id int64, index int) api.JobRef { return api.JobRef{ID: id, Index: index} }
	for _, c := range []struct {
		name string
		q    api.HistoryQuery
		want []int64
	}{
		{"all", api.HistoryQuery{}, []int64{a, array, array + 1, last}},
		{"one", api.HistoryQuery{Refs: []api.JobRef{ref(a, -1)}}, []int64{a}},
		{"twice", api.HistoryQuery{Refs: []api.JobRef{ref(last, -1), ref(a, -1), ref(a, -1)}}, []int64{a, last}},
		{"an array", api.HistoryQuery{Refs: []api.JobRef{ref(array, -1)}}, []int64{array, array + 1}},
		{"an element", api.HistoryQuery{Refs: []api.JobRef{ref(array, 3)}}, []int64{array + 1}},
		{"no such element", api.HistoryQuery{Refs: []api.JobRef{ref(array, 4)}}, nil},
		{"none", api.HistoryQuery{Refs: []api.JobRef{ref(99, -1)}}, nil},
		{"my last", api.HistoryQuery{Refs: []api.JobRef{{Index: -1, Last: 1}}}, []int64{last}},
		{"nobody's", api.HistoryQuery{Users: []string{"nobody"}}, nil},
		{"of two users", api.HistoryQuery{Users: []string{"nobody", me.User}}, []int64{a, array, array + 1, last}},
		{"of one", api.HistoryQuery{Users: []string{me.User}}, []int64{a, array, array + 1, last}},
		{"before all", api.HistoryQuery{Until: time.Unix(1, 0)}, nil},
		{"after the end", api.HistoryQuery{Since: time.Now().Add(time.Hour)}, []int64{array, array + 1, last}}, // the others have not ended
	} {
		if got := r.ids(c.q); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A requeue that holds: the gang waits until it is released; a waiting one is held.
func TestRequeueHold(t *testing.T) {
	r := newRig(t, disk.Open(t))
	id := r.submit("", spec(1))
	reply, err := r.Act(t.Context(), "requeue-hold", &api.ActionRequest{JobQuery: byID(id)}, me, anyone)
	if err != nil || reply.Results[0].Error != nil {
		t.Fatalf("%v %+v", err, reply)
	}
	if j := r.view.job(id); j.Held != "user" {
		t.Errorf("held by %q", j.Held)
	}
	// Cancelled before it began, it keeps the reason that it waited for.
	if _, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: byID(id)}, me, anyone); err != nil {
		t.Fatal(err)
	}
	if got := r.show(r.view.job(id), false); got.State != api.JobCancelled || got.Reason != "JobHeldUser" {
		t.Errorf("%s, %s", got.State, got.Reason)
	}
}

func TestCommentIsChanged(t *testing.T) {
	r := newRig(t, disk.Open(t))
	s := spec(1)
	s.Comment = "first"
	id := r.submit("", s)
	for _, c := range []struct{ comment, want string }{{"", ""}, {"second", ""}, {"a\nb", "a comment may have 1024 bytes and no control characters"}} {
		reply, err := r.Update(t.Context(), &api.UpdateRequest{JobQuery: byID(id), Comment: &c.comment}, me, anyone, nil)
		if err == nil && reply.Results[0].Error != nil {
			err = reply.Results[0].Error
		}
		if errText(err) != c.want {
			t.Errorf("%q: %v", c.comment, err)
		}
	}
	if got := r.show(r.view.job(id), false).Comment; got != "second" {
		t.Error(got)
	}
}

// A message is an event, and nothing of the job is different after it.
func TestMessage(t *testing.T) {
	r := newRig(t, disk.Open(t))
	id := r.submit("", spec(1))
	say := func(text string) string {
		reply, err := r.Update(t.Context(), &api.UpdateRequest{JobQuery: byID(id), Message: &text}, me, anyone, nil)
		if err == nil && reply.Results[0].Error != nil {
			err = reply.Results[0].Error
		}
		return errText(err)
	}
	if got := say("the disk is full"); got != "" {
		t.Error(got)
	}
	if got := say("a\x1b[2J"); got != "a message may have 1 to 1024 bytes and no control characters" {
		t.Error(got)
	}
	evs, _, err := r.Events(t.Context(), id, 0, 0)
	if err != nil || !slices.ContainsFunc(evs, func(e api.Event) bool {
		return e.Type == api.EventMessage && e.Text == "the disk is full ("+me.User+")"
	}) {
		t.Errorf("%v %+v", err, evs)
	}
}

// Cards that two ranks name are counted once.
func TestTaken(t *testing.T) {
	s := &api.Spec{Size: 4, CPUsPerRank: 2}
	slots := []cluster.Slot{{Node: "n1", Cards: []string{"a", "b"}}, {Node: "n1", Cards: []string{"a", "b"}}, {Node: "n2", Cards: []string{"a"}}, {Node: "n2"}}
	if cpus, cards := taken(s, slots, ""); cpus != 8 || cards != 3 {
		t.Error(cpus, cards)
	}
	if cpus, cards := taken(s, slots, "n1"); cpus != 4 || cards != 2 {
		t.Error(cpus, cards)
	}
}

// Whose a hold is, and who may release it.
func TestWhoseHoldItIs(t *testing.T) {
	r := newRig(t, disk.Open(t))
	id := r.submit("", spec(1))
	root := Caller{UID: 0, User: "root", Admin: true}
	for i, c := range []struct {
		action, as string
		who        Caller
		held, err  string
	}{
		{"hold", "", me, "user", ""},
		{"hold", api.HoldAdmin, me, "user", ""}, // who is none can not
		{"hold", "", root, "admin", ""},
		{"release", "", me, "admin", fmt.Sprintf("job %d is held by an admin", id)},
		{"hold", api.HoldUser, me, "admin", ""}, // and can not take it away so
		{"hold", api.HoldUser, root, "user", ""},
		{"release", "", me, "", ""},
		{"hold", api.HoldAdmin, Caller{UID: me.UID, User: me.User, Admin: true}, "admin", ""}, // his own job
		{"release", "", root, "", ""},
		{"requeue-hold", api.HoldUser, root, "user", ""},
	} {
		reply, err := r.Act(t.Context(), c.action, &api.ActionRequest{JobQuery: byID(id), As: c.as}, c.who, anyone)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		if e := reply.Results[0].Error; e != nil {
			said = e.Message
		}
		if held := r.view.job(id).Held; held != c.held || said != c.err {
			t.Errorf("%d: %s by %s: held by %q, %q; want %q, %q", i, c.action, c.who.User, held, said, c.held, c.err)
		}
	}
}

// A component's name finds its job, and ends none of it.
func TestNamesOfComponents(t *testing.T) {
	r := newRig(t, disk.Open(t))
	s := spec(2)
	s.Name, s.Launch = "lead", api.LaunchBatch
	s.Roles = []api.Role{{Name: api.ComponentName(0), Count: 1, CPUsPerRank: 1, Component: &api.Component{}},
		{Name: api.ComponentName(1), Count: 1, CPUsPerRank: 1, Component: &api.Component{JobName: "side"}}}
	id := r.submit("k", s)
	for name, found := range map[string]int{"lead": 1, "side": 1, "other": 0} {
		if jobs, _, _ := r.Find(t.Context(), &api.JobQuery{Names: []string{name}}, me); len(jobs) != found {
			t.Errorf("%s: %d found", name, len(jobs))
		}
	}
	out, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Names: []string{"side"}}}, me, anyone)
	if err != nil || len(out.Results) != 1 || out.Results[0].Error == nil || out.Results[0].Error.Code != api.CodeConflict || r.view.job(id).Cancelled {
		t.Errorf("%+v, %v", out, err)
	}
}

// Who cancels an array means what is left of it; its elements are called as people see them.
func TestCancelWhatIsLeftOfAnArray(t *testing.T) {
	r := newRig(t, disk.Open(t))
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{0, 4, 7}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	array := reply.JobID
	cancel := func(refs ...api.JobRef) (said []string) {
		reply, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: refs}}, me, anyone)
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range reply.Results {
			if res.Error != nil {
				said = append(said, res.Error.Error())
			}
		}
		return said
	}
	whole, element := api.JobRef{ID: array, Index: -1}, api.JobRef{ID: array, Index: 4}
	if said := cancel(element); said != nil {
		t.Errorf("one element: %q", said)
	}
	if said, want := cancel(element), []string{fmt.Sprintf("job %d_4 has already ended: CANCELLED", array)}; !slices.Equal(said, want) {
		t.Errorf("once more: %q, want %q", said, want)
	}
	if said := cancel(whole); said != nil {
		t.Errorf("the rest: %q", said)
	}
	if said := cancel(whole); len(said) != 3 {
		t.Errorf("nothing is left: %q", said)
	}
}

// TestEndedWhileOthersAreCancelled: a job of a selection that ended since it was looked for is no error, a named one is.
func TestEndedWhileOthersAreCancelled(t *testing.T) {
	r := newRig(t, disk.Open(t))
	first, second := r.submit("a", spec(1)), r.submit("b", spec(1))
	for name, c := range map[string]struct {
		q    api.JobQuery
		want []int64
	}{
		"chosen": {api.JobQuery{Users: []string{me.User}}, []int64{second}},
		"named":  {api.JobQuery{Refs: []api.JobRef{{ID: first, Index: -1}, {ID: second, Index: -1}}}, []int64{first, second}},
	} {
		out, err := r.each(t.Context(), "cancel", &c.q, me, anyone, 0, func(_ context.Context, j *gang.Job, _ handFunc) waitFunc {
			return func() (out api.CancelResult) {
				if j.ID == first {
					out.Error = api.AlreadyEnded(j.ID, api.JobCompleted)
				}
				return out
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, res := range out.Results {
			got = append(got, res.JobID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: told of %d, want %d", name, got, c.want)
		}
	}
}

// TestIDsOfComponents: each component of a heterogeneous job has an id by which its job is found, in memory and in the history; nothing is
// done to it by itself, what waits for it waits for its job, and no other job has it. Those of a job of before have none.
func TestIDsOfComponents(t *testing.T) {
	r := newRig(t, disk.Open(t))
	component := func(i int) api.Role {
		return api.Role{Name: api.ComponentName(i), Count: 1, CPUsPerRank: 1, Component: &api.Component{}}
	}
	s := spec(3)
	s.Launch, s.Roles = api.LaunchBatch, []api.Role{component(0), component(1), component(2)}
	id, next := r.submit("k", s), r.submit("l", spec(1))
	if next != id+3 {
		t.Errorf("ids %d and %d: want three of the first", id, next)
	}
	of := func(id int64) []api.JobRef { return []api.JobRef{{ID: id, Index: -1}} }
	found := func(id int64, past bool) (out []int64) {
		jobs, _, err := r.Find(t.Context(), &api.JobQuery{Refs: of(id), Past: past}, me)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			out = append(out, j.ID)
		}
		return out
	}
	for asked, want := range map[int64][]int64{id: {id}, id + 1: {id}, id + 2: {id}, id + 3: {next}, id + 4: nil} {
		if got := found(asked, false); !slices.Equal(got, want) {
			t.Errorf("job %d: found %v, want %v", asked, got, want)
		}
	}
	if d, err := r.One(t.Context(), of(id + 2)[0], me); err != nil || d.ID != id {
		t.Errorf("one job %d: %v", id+2, err)
	}
	if got := r.components(r.view.job(id)); got[0].JobID != id || got[2].JobID != id+2 {
		t.Errorf("%+v", got)
	}
	waits := spec(1)
	waits.Dependency = &api.Dependency{On: []api.Condition{{Kind: api.AfterOK, Job: id + 1}}}
	if j := r.view.job(r.submit("m", waits)); j.Spec.Dependency.On[0].Job != id {
		t.Errorf("waits for %+v, want job %d", j.Spec.Dependency.On, id)
	}
	out, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: of(id + 1)}}, me, anyone)
	if err != nil || len(out.Results) != 1 || api.ReasonOf(out.Results[0].Error) != api.ReasonComponent || r.view.job(id).Cancelled {
		t.Errorf("cancelled by itself: %+v, %v", out, err)
	}
	before := *r.view.job(id)
	before.Spec = new(api.Spec)
	*before.Spec = *r.view.job(id).Spec
	before.Spec.Roles = []api.Role{component(0), component(1)}
	if n, got := before.Spec.IDs(), r.components(&before); n != 1 || got[1].JobID != 0 {
		t.Errorf("a job of before: %d ids, %+v", n, got)
	}
}
