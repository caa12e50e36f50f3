package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// TestLookUpInMemoryAndHistory: what a reference means is the same whether jobs are in memory or have left it; a query that asks for the
// present alone finds what is in memory alone, and @ is the same job in both.
func TestLookUpInMemoryAndHistory(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) { o.Settings.KeepEnded = 0 })
	r.submit("lives", spec(1)) // 1
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{2, 5, 7}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	array := reply.JobID // 2, 3, 4
	over := r.submit("over", spec(1))
	for _, id := range []int64{array, array + 1, array + 2, over} {
		if _, err := r.Do(t.Context(), gang.Cancel{Job: id}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []int64{array, array + 1, array + 2, over} {
		r.forgotten(id)
	}
	ref := func(text string) api.JobRef {
		ref, err := api.ParseJobRef(text)
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	for _, c := range []struct{ ref, present, past string }{
		{"1", "[1]", "[1]"}, {"2", "[]", "[2 3 4]"}, {"2_2", "[]", "[2]"}, {"2_5", "[]", "[3]"}, {"2_7", "[]", "[4]"}, {"2_3", "[]", "[]"},
		{"3", "[]", "[3]"}, {"4", "[]", "[4]"}, {"5", "[]", "[5]"}, {"@", "[]", "[5]"}, {"@~1", "[]", "[2 3 4]"}, {"@~2", "[1]", "[1]"}, {"@~3", "[]", "[]"}, {"6", "[]", "[]"},
	} {
		for past, want := range map[bool]string{false: c.present, true: c.past} {
			jobs, missing, err := r.Find(t.Context(), &api.JobQuery{Refs: []api.JobRef{ref(c.ref)}, All: true, Past: past}, me)
			ids := []int64{}
			for _, j := range jobs {
				ids = append(ids, j.ID)
			}
			if err != nil || fmt.Sprint(ids) != want || (len(jobs) == 0) != (len(missing) == 1) {
				t.Errorf("%s, past %t: %v, missing %v, %v, want %s", c.ref, past, ids, missing, err, want)
			}
		}
	}
	// Several at once, each once, with filters that narrow as they do in memory.
	q := &api.JobQuery{Refs: []api.JobRef{ref("@"), ref("5"), ref("2"), ref("2_5")}, Past: true, States: []api.JobState{api.JobCancelled}}
	jobs, missing, err := r.Find(t.Context(), q, me)
	if err != nil || len(jobs) != 4 || len(missing) != 0 {
		t.Errorf("%d jobs, %v, %v", len(jobs), missing, err)
	}
	// Nobody else's are his last.
	if jobs, missing, err := r.Find(t.Context(), &api.JobQuery{Refs: []api.JobRef{ref("@")}, Past: true}, Caller{UID: me.UID + 1, User: "bob"}); err != nil || len(jobs) != 0 || len(missing) != 1 {
		t.Errorf("@ of another: %d jobs, %v, %v", len(jobs), missing, err)
	}
}

// countingStore counts what is read of jobs.
type countingStore struct {
	store.Store
	jobs, arrays int
}

func (s *countingStore) Job(ctx context.Context, id int64) (*gang.Job, error) {
	s.jobs++
	return s.Store.Job(ctx, id)
}

func (s *countingStore) Jobs(ctx context.Context, f store.HistoryFilter) ([]*gang.Job, error) {
	s.arrays++
	return s.Store.Jobs(ctx, f)
}

// TestElementsOfThePastAreFoundOneByOne: one element of an array that has left memory costs a few reads and not all of the array, whatever
// indices it has; so does saying of many references that they have ended.
func TestElementsOfThePastAreFoundOneByOne(t *testing.T) {
	for _, indices := range [][]int{{0, 1, 2, 3, 4, 5, 6}, {3, 5, 7, 9, 11}, {1, 2, 40, 41, 97, 98, 1000}, {7}} {
		st := &countingStore{Store: disk.Open(t)}
		r := newRigWith(t, st, func(o *Options) { o.Settings.KeepEnded = 0 })
		reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: indices}}, me)
		if err != nil {
			t.Fatal(err)
		}
		for i := range indices {
			if _, err := r.Do(t.Context(), gang.Cancel{Job: reply.JobID + int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range indices {
			r.forgotten(reply.JobID + int64(i))
		}
		st.jobs, st.arrays = 0, 0
		var asked []api.JobRef
		for index := range 1002 {
			at := slices.Index(indices, index)
			ref := api.JobRef{ID: reply.JobID, Index: index}
			j, sure, err := r.pastElement(t.Context(), ref)
			if err != nil || !sure || (j == nil) != (at < 0) || j != nil && j.ID != reply.JobID+int64(at) {
				t.Errorf("%v: element %d: %v, %t, %v", indices, index, j, sure, err)
			}
			asked = append(asked, ref)
		}
		if most := 1002 * 5; st.jobs > most || st.arrays > 0 {
			t.Errorf("%v: %d reads of jobs, %d of arrays", indices, st.jobs, st.arrays)
		}
		got, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: append(asked, api.JobRef{ID: reply.JobID, Index: -1})}}, me, anyone)
		if err != nil {
			t.Fatal(err)
		}
		over := 0
		for i := range got.Results {
			if overAlready(&got.Results[i]) {
				over++
			}
		}
		// The last are too many to be looked for.
		if want := len(indices) - len(slices.DeleteFunc(slices.Clone(indices), func(i int) bool { return i < maxPastAsked })); over != want || st.arrays > 0 {
			t.Errorf("%v: %d have ended, want %d; %d reads of arrays", indices, over, want, st.arrays)
		}
	}
}
