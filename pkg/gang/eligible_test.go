package gang

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestEligibleSince: a job could have started since nothing but room has kept it, and the
// scheduler is told so of what waits and of what runs.
func TestEligibleSince(t *testing.T) {
	for name, tt := range map[string]struct {
		submit func(b *bench) int64
		free   func(b *bench)
		begin  time.Duration // that its owner asked for, after the submission
	}{
		"at once": {submit: func(b *bench) int64 { return b.submit(specOf(1)) }},
		"held": {
			submit: func(b *bench) int64 {
				id := b.submit(specOf(1))
				b.must(Hold{Job: id})
				return id
			},
			free: func(b *bench) { b.must(Release{Job: 1}) },
		},
		"dependency": {
			submit: func(b *bench) int64 {
				b.run(b.submit(specOf(1)), 0)
				first := b.submit(specOf(1))
				b.start(first)
				return b.depending(on(api.AfterAny, first))
			},
			free: func(b *bench) { b.phase(2, b.w.Job(2).Members[0].Node, api.PhaseStopped, exit(0, 0)) },
		},
		"limit of its array": {
			submit: func(b *bench) int64 {
				ids := b.must(Submit{Spec: specOf(1), Partition: "main", Array: &api.Array{Indices: []int{0, 1}, Limit: 1}}).JobIDs
				b.start(ids[0])
				return ids[1]
			},
			free: func(b *bench) { b.phase(1, b.w.Job(1).Members[0].Node, api.PhaseStopped, exit(0, 0)) },
		},
		"held until before it is to begin": {
			submit: func(b *bench) int64 {
				s := specOf(1)
				s.Begin = b.now.Wall.Add(3 * time.Hour)
				id := b.submit(s)
				b.must(Hold{Job: id})
				return id
			},
			free:  func(b *bench) { b.must(Release{Job: 1}) },
			begin: 3 * time.Hour,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4)
			want := b.now.Wall.Add(tt.begin)
			id := tt.submit(b)
			b.after(2 * time.Hour)
			if tt.free != nil {
				if c := b.w.Candidate(id); c != nil {
					t.Fatalf("it is not kept: %+v", c)
				}
				if tt.begin == 0 {
					want = b.now.Wall
				}
				tt.free(b)
			}
			b.after(time.Hour)
			c := b.w.Candidate(id)
			if c == nil || !c.Eligible.Equal(want) {
				t.Fatalf("candidate %+v, want one since %s", c, want)
			}
			b.start(id)
			if r := b.w.Running(id); !r.Eligible.Equal(want) {
				t.Errorf("running %+v, want one since %s", r, want)
			}
		})
	}
}
