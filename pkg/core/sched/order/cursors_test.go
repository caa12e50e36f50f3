package order

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
)

// TestCursorsKeepTheOrder: classes are gone through as if all candidates but those of a dropped class were in one list.
func TestCursorsKeepTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		for job := range int64(rapid.IntRange(1, 20).Draw(t, "jobs")) {
			c := candidate(job+1, api.Spec{Size: rapid.IntRange(1, 5).Draw(t, "class")})
			c.Priority = rapid.Int64Range(1, 9).Draw(t, "priority")
			q.Insert(c)
		}
		left := slices.Clone(q.Slice())
		var h Cursors
		h.Fill(&q)
		for head, more := h.First(); more; head, more = h.First() {
			if len(left) == 0 || head.Candidate != left[0] || head.Class != q.JobClass(head.Candidate.Job) {
				t.Fatalf("job %d of class %+v, left are %+v", head.Candidate.Job, head.Class.key, left)
			}
			if left = left[1:]; rapid.Bool().Draw(t, "pass") {
				h.Pass()
			} else {
				left = slices.DeleteFunc(left, func(c *Candidate) bool { return q.JobClass(c.Job) == head.Class })
				h.Drop()
			}
		}
		if len(left) > 0 {
			t.Fatalf("left are %+v", left)
		}
	})
}
