package engine

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched"
	"gangd/pkg/lab/disk"
)

// TestDrop: purged jobs are in no answer, and what is kept of their ids never outgrows the jobs.
func TestDrop(t *testing.T) {
	v := &view{}
	for id := range int64(100) {
		v.putJob(&gang.Job{ID: id + 1, ArrayIndex: -1, UID: 7, Wishes: new(gang.Wishes), Past: &gang.Past{}})
	}
	for id := int64(2); id <= 100; id++ {
		v.drop([]int64{id})
		var got []int64
		for _, j := range v.snapshot(func(*gang.Job) bool { return true }) {
			got = append(got, j.ID)
		}
		if len(got) != 100-int(id)+1 || got[0] != 1 || slices.Contains(got, id) || !slices.IsSorted(got) {
			t.Fatalf("%d dropped: %v", id, got)
		}
		if len(v.jobs) > 2*v.known+1 || v.known != len(got) {
			t.Fatalf("%d places for %d jobs, counted %d", len(v.jobs), len(got), v.known)
		}
	}
	if ids := v.newest(1, 7); !slices.Equal(ids, []int64{1}) {
		t.Errorf("the newest is %v", ids)
	}
	if len(v.whole(50)) != 0 {
		t.Error("a purged job is found")
	}
	v.putJob(&gang.Job{ID: 101, Wishes: new(gang.Wishes), Past: &gang.Past{}})
	v.drop([]int64{101})
	v.putJob(&gang.Job{ID: 101, Wishes: new(gang.Wishes), Past: &gang.Past{}})
	if len(v.jobs) != 2 || v.jobs[0].id != 1 || v.jobs[1].id != 101 || v.known != 2 {
		t.Errorf("%d jobs in %v", v.known, v.jobs)
	}
	if v.drop([]int64{1, 101}); len(v.jobs) != 0 || v.known != 0 {
		t.Errorf("nothing is left but %d jobs in %v", v.known, v.jobs)
	}
}

// TestElement: an array is all its elements, and one of them is the one, the first too.
func TestElement(t *testing.T) {
	e := &Engine{}
	v := &e.view
	for i := range 3 {
		v.putJob(&gang.Job{ID: int64(4 + i), ArrayID: 4, ArrayIndex: 2 * i, Wishes: new(gang.Wishes), Past: &gang.Past{}})
	}
	v.putJob(&gang.Job{ID: 7, ArrayIndex: -1, Wishes: new(gang.Wishes), Past: &gang.Past{}})
	for _, c := range []struct {
		id    int64
		index int
		want  []int64
	}{{4, -1, []int64{4, 5, 6}}, {4, 0, []int64{4}}, {4, 2, []int64{5}}, {4, 1, nil}, {5, -1, []int64{5}}, {7, -1, []int64{7}}, {7, 0, nil}, {8, -1, nil}} {
		var got []int64
		for _, j := range e.byRef(api.JobRef{ID: c.id, Index: c.index}) {
			got = append(got, j.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d_%d: %v, want %v", c.id, c.index, got, c.want)
		}
	}
}

// TestReasonIsMadeUnlocked: the text names other jobs, and whoever looks these up takes the lock.
func TestReasonIsMadeUnlocked(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	r.submit("runs", spec(4))
	r.submit("first", spec(4))
	last, named := r.submit("behind", spec(4)), 0
	err := r.inspect(t.Context(), func() {
		v := r.schedView()
		v.Names = func(job int64) string {
			named++
			if !r.view.mu.TryLock() {
				t.Error("the view is locked while a text is made")
				return ""
			}
			r.view.mu.Unlock()
			return r.jobName(job)
		}
		r.view.mu.Lock()
		r.view.plan = sched.Make(time.Now(), v, r.policy())
		r.view.mu.Unlock()
	})
	if reason, ok := r.view.reason(last); err != nil || !ok || named == 0 {
		t.Errorf("reason %+v, %d jobs named, %v", reason, named, err)
	}
}

func BenchmarkDrop(b *testing.B) {
	v := &view{}
	for id := range int64(b.N + 1_000_000) {
		v.putJob(&gang.Job{ID: id + 1, Wishes: new(gang.Wishes), Past: &gang.Past{}})
	}
	b.ResetTimer()
	for i := range b.N {
		v.drop([]int64{int64(i + 1)})
	}
}
