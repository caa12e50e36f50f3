package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

func afterok(ids ...int64) *api.Dependency {
	d := &api.Dependency{}
	for _, id := range ids {
		d.On = append(d.On, api.Condition{Kind: api.AfterOK, Job: id})
	}
	return d
}

// What a job depends on is judged as it was, also when it has long left memory, and when
// the controller was restarted meanwhile.
func TestDependencyOnWhatLeftMemory(t *testing.T) {
	d := disk.New(t)
	open := func() *rig {
		st := d.Open(t)
		return newRigWith(t, st, func(o *Options) { o.Settings.KeepEnded = 0 })
	}
	r := open()
	gone := r.submit("", spec(1))
	if _, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: gone, Index: -1}}}}, me, anyone); err != nil {
		t.Fatal(err)
	}
	r.forgotten(gone)
	open1 := r.submit("", spec(1))
	s := spec(1)
	s.Dependency = afterok(open1)
	s.Dependency.On = append(s.Dependency.On, api.Condition{Kind: api.AfterAny, Job: gone})
	waiting := r.submit("", s)
	never := spec(1)
	never.Dependency = afterok(gone)
	if id := r.submit("", never); r.state(id) != api.JobCancelled {
		t.Errorf("depends on a cancelled job: %s", r.state(id))
	}
	kept := spec(1)
	kept.Dependency, kept.InvalidDependency = afterok(gone), api.InvalidWait
	keptID := r.submit("", kept)
	either := spec(1)
	either.Dependency = afterok(gone)
	either.Dependency.On, either.Dependency.Any = append(either.Dependency.On, api.Condition{Kind: api.AfterOK, Job: open1}), true
	eitherID := r.submit("", either)
	missing := spec(1)
	missing.Dependency = afterok(99)
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: missing}, me); err == nil || err.Error() != "dependency afterok:99: no job 99; gqueue and gacct list your jobs" {
		t.Errorf("%v", err)
	}
	hopeless := func() {
		t.Helper()
		for id, want := range map[int64]string{
			keptID:   fmt.Sprintf("DependencyNeverSatisfied: its dependency can never be met: afterok:1(failed); gcancel %d ends it", keptID),
			eitherID: "Dependency: waits for afterok:1(failed)?afterok:2",
		} {
			if shown := r.show(r.view.job(id), false); shown.Reason+": "+shown.Why != want {
				t.Errorf("%s: %s, want %s", shown.Reason, shown.Why, want)
			}
		}
	}
	hopeless()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}

	r = open()
	hopeless()
	j := r.view.job(waiting)
	if j.Waits != "afterok:2(unfulfilled)" {
		t.Errorf("waits for %q after the restart", j.Waits)
	}
	if shown := r.show(j, false); shown.Reason != "Dependency" || shown.Why != "waits for afterok:2" {
		t.Errorf("%s: %s", shown.Reason, shown.Why)
	}
}

// forgotten waits until a job has left memory.
func (r *rig) forgotten(id int64) {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); r.view.job(id) != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("job %d is still in memory", id)
		}
	}
}

func TestDependenciesOfOtherClients(t *testing.T) {
	index := -1
	for _, c := range []struct {
		d    *api.Dependency
		want string
	}{
		{&api.Dependency{}, "a dependency on 0 conditions: want 1 to 1000"},
		{&api.Dependency{On: make([]api.Condition, 1001)}, "a dependency on 1001 conditions: want 1 to 1000"},
		{&api.Dependency{On: []api.Condition{{Kind: "aftr", Job: 1}}}, `dependency kind "aftr" is not known`},
		{&api.Dependency{On: []api.Condition{{Kind: api.AfterOK}}}, "dependency afterok:0: want a kind and a job, for singleton none"},
		{&api.Dependency{On: []api.Condition{{Kind: api.AfterSingle, Job: 3}}}, "dependency singleton: want a kind and a job, for singleton none"},
		{&api.Dependency{On: []api.Condition{{Kind: api.AfterOK, Job: 3, Index: &index}}}, "dependency afterok:3_-1: want a kind and a job, for singleton none"},
	} {
		if err := checkDependency(c.d, 1); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// pastStore has jobs that left memory.
type pastStore struct {
	store.Store
	jobs map[int64]*gang.Job
	err  error // of reading an array
}

func (s pastStore) Job(_ context.Context, id int64) (*gang.Job, error) {
	if j := s.jobs[id]; j != nil {
		return j, nil
	}
	return nil, store.ErrNotFound
}

func (s pastStore) Jobs(_ context.Context, f store.HistoryFilter) (out []*gang.Job, err error) {
	for _, j := range s.jobs {
		if j.ArrayID == f.ArrayID {
			out = append(out, j)
		}
	}
	return out, s.err
}

// TestRecallOfAnArray: whoever depends on an array is judged by all its elements, those that left memory and those in it, each once.
func TestRecallOfAnArray(t *testing.T) {
	past := pastStore{jobs: map[int64]*gang.Job{}}
	for id := int64(4); id <= 6; id++ {
		past.jobs[id] = &gang.Job{ID: id, ArrayID: 4, Array: &gang.ArrayInfo{Count: 3}, Wishes: new(gang.Wishes), Past: &gang.Past{}}
	}
	for _, tt := range []struct{ in, want []int64 }{
		{nil, []int64{4, 5, 6}}, {[]int64{5}, []int64{4, 6}}, {[]int64{4}, []int64{5, 6}}, {[]int64{4, 6}, []int64{5}}, {[]int64{4, 5, 6}, nil},
	} {
		have := func(id int64) *gang.Job {
			if slices.Contains(tt.in, id) {
				return past.jobs[id]
			}
			return nil
		}
		jobs, err := recall(t.Context(), past, afterok(4), have, 0)
		var got []int64
		for _, j := range jobs {
			got = append(got, j.ID)
		}
		if slices.Sort(got); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("with %v in memory %v are read, want %v, %v", tt.in, got, tt.want, err)
		}
	}
	past.err = errors.New("no disk")
	if _, err := recall(t.Context(), past, afterok(4), func(int64) *gang.Job { return nil }, 0); err == nil || err.Error() != "read array 4: no disk" {
		t.Errorf("%v", err)
	}
}

// TestConditionsOfAnArray: what the core has to weigh and keep is bounded for all elements together, and what is said
// twice counts once.
func TestConditionsOfAnArray(t *testing.T) {
	on := func(n int, kind api.DependencyKind) *api.Dependency {
		d := &api.Dependency{}
		for i := range n {
			c := api.Condition{Kind: kind, Job: int64(1 + i)}
			if kind == api.AfterSingle {
				c.Job = 0
			}
			d.On = append(d.On, c)
		}
		return d
	}
	for _, c := range []struct {
		d    *api.Dependency
		jobs int
		ok   bool
	}{{on(1000, api.AfterOK), 1, true}, {on(5, api.AfterOK), 10000, true}, {on(6, api.AfterOK), 10000, false}, {on(1000, api.AfterSingle), 10000, true}} {
		if err := checkDependency(c.d, c.jobs); (err == nil) != c.ok {
			t.Errorf("%d conditions for %d jobs: %v", len(c.d.On), c.jobs, err)
		}
	}
	twice := on(2, api.AfterSingle)
	if err := checkDependency(twice, 1); err != nil || len(twice.On) != 1 {
		t.Errorf("%v, %v", twice.On, err)
	}
}
