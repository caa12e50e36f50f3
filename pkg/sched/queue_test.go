package sched

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestLess(t *testing.T) {
	at := func(s int) time.Time { return epoch0.Add(time.Duration(s) * time.Second) }
	want := []*Candidate{
		{Job: 9, Priority: 2, Size: 1, Submit: at(9)},
		{Job: 8, Priority: 1, Size: 4, Submit: at(8)},
		{Job: 7, Priority: 1, Size: 2, Submit: at(1)},
		{Job: 5, Priority: 1, Size: 2, Submit: at(2)},
		{Job: 6, Priority: 1, Size: 2, Submit: at(2)},
		{Job: 1, Priority: -1, Size: 64, Submit: at(0)},
	}
	for i, a := range want {
		for j, b := range want {
			if Less(a, b) != (i < j) {
				t.Errorf("Less(job %d, job %d) = %t", a.Job, b.Job, Less(a, b))
			}
		}
	}
}

// TestQueueIsASortedMap compares with sorting a map after each change.
func TestQueueIsASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		model := make(map[int64]*Candidate)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			job := rapid.Int64Range(1, 12).Draw(t, "job")
			c := &Candidate{Job: job, Priority: rapid.Int64Range(0, 2).Draw(t, "priority"), Size: rapid.IntRange(1, 2).Draw(t, "size"), Submit: epoch0}
			switch rapid.IntRange(0, 2).Draw(t, "step") {
			case 0:
				q.Insert(c)
				model[job] = c
			case 1:
				q.Update(c)
				model[job] = c
			case 2:
				if q.Remove(job) != (model[job] != nil) {
					t.Fatalf("remove of job %d reports the wrong thing", job)
				}
				delete(model, job)
			}
			want := make([]*Candidate, 0, len(model))
			for _, c := range model {
				want = append(want, c)
			}
			slices.SortFunc(want, compare)
			if !slices.Equal(q.Slice(), want) || q.Len() != len(model) || q.Get(job) != model[job] {
				t.Fatalf("queue %v, want %v", q.Slice(), want)
			}
		}
	})
}
