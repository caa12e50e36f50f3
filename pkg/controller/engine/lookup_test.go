package engine

import (
	"fmt"
	"testing"

	"gangd/pkg/api"
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
