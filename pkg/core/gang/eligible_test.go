package gang

import (
	"fmt"
	"strings"
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
				ids := b.must(Submit{Spec: specOf(1), SpecHash: hashOf(specOf(1)), Partition: "main", Array: &api.Array{Indices: []int{0, 1}, Limit: 1}}).JobIDs
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
			if j := b.w.Job(id); !j.Eligible.Equal(want) {
				t.Errorf("running since it could start at %s, want %s", j.Eligible, want)
			}
		})
	}
}

// A job that is released before its hold came into force was not kept by it.
func TestEligibleWhileItRuns(t *testing.T) {
	b := newBench(t, 1)
	came := b.now.Wall
	id := b.submit(specOf(1))
	b.start(id)
	b.must(Requeue{Job: id, By: "ada", Hold: HeldUser})
	b.after(time.Second)
	b.must(Release{Job: id})
	if j := b.w.Job(id); !j.Eligible.Equal(came) {
		t.Errorf("running since it could start at %s, want %s", j.Eligible, came)
	}
}

// TestEligibleOfAnArray: elements that are offered again, after a restart or with another
// limit, could have started before; those that only the new limit lets go could not.
func TestEligibleOfAnArray(t *testing.T) {
	limit := func(n int) *int { return &n }
	for name, tt := range map[string]struct {
		limit int
		then  func(b *bench)
		want  string // hours after its submission that each of four could start, -: it can't
	}{
		"restart":      {2, func(b *bench) { b.reborn(time.Hour) }, "0 0 - -"},
		"more at once": {2, func(b *bench) { b.must(Update{Job: 1, ArrayLimit: limit(3)}) }, "0 0 2 -"},
		"fewer":        {3, func(b *bench) { b.must(Update{Job: 1, ArrayLimit: limit(1)}) }, "0 - - -"},
		"no limit":     {2, func(b *bench) { b.must(Update{Job: 1, ArrayLimit: limit(0)}) }, "0 0 2 2"},
		"a limit":      {0, func(b *bench) { b.must(Update{Job: 1, ArrayLimit: limit(2)}) }, "0 0 - -"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 4)
			came := b.now.Wall
			ids := b.must(Submit{Spec: specOf(1), SpecHash: hashOf(specOf(1)), Partition: "main", Array: &api.Array{Indices: []int{0, 1, 2, 3}, Limit: tt.limit}}).JobIDs
			b.after(2 * time.Hour)
			tt.then(b)
			b.after(time.Hour)
			var got []string
			for _, id := range ids {
				if c := b.w.Candidate(id); c != nil {
					got = append(got, fmt.Sprint(c.Eligible.Sub(came).Hours()))
				} else {
					got = append(got, "-")
				}
			}
			if text := strings.Join(got, " "); text != tt.want {
				t.Errorf("could start %s hours after the submission, want %s", text, tt.want)
			}
		})
	}
}
