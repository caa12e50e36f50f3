package engine

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/disk"
)

// BenchmarkLines is the answer to squeue over 10,000 jobs that wait.
func BenchmarkLines(b *testing.B) {
	r := newRig(b, disk.Open(b))
	r.node("n1", 1)
	for range 10 {
		a := &api.Array{}
		for i := range 1000 {
			a.Indices = append(a.Indices, i)
		}
		if _, err := r.Submit(b.Context(), &api.SubmitRequest{Spec: spec(1), Array: a}, me); err != nil {
			b.Fatal(err)
		}
	}
	q := &api.JobQuery{NoRanks: true, Lines: true}
	b.ReportAllocs()
	for b.Loop() {
		lines, err := r.Lines(b.Context(), q, me)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(lines)))
	}
}
