package session

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gangd/pkg/api"
)

func TestDiffSendsOnlyWhatChanged(t *testing.T) {
	specs := map[string]*api.Spec{"a": {Name: "a"}, "b": {Name: "b"}}
	one, two := assign(1, 1, "a"), assign(2, 1, "a")
	open := one
	open.Gate = &api.Gate{MasterPort: 20001}
	stop := open
	stop.Stop = &api.Stop{Cause: api.CauseCancelled, Signal: "TERM"}
	alone := assign(5, 1, "a")
	alone.Gate = &api.Gate{Alone: true}
	opened := func(port int, limit time.Duration) api.Assignment {
		a := assign(5, 1, "a")
		a.Gate = &api.Gate{MasterPort: port, TimeLimit: limit}
		return a
	}
	bare := func(a api.Assignment) api.Assignment { a.Body = nil; return a }

	steps := []struct {
		name string
		want []api.Assignment
		out  []*api.Desired
	}{
		{"the first set is full, empty or not", nil, []*api.Desired{{Revision: 1, Full: true}}},
		{"nothing changed", nil, nil},
		{"a member comes with body and spec", []api.Assignment{one},
			[]*api.Desired{{Revision: 2, Assignments: []api.Assignment{one}, Specs: map[string]*api.Spec{"a": specs["a"]}}}},
		{"a second one of the same spec without it", []api.Assignment{one, two},
			[]*api.Desired{{Revision: 3, Assignments: []api.Assignment{two}}}},
		{"the gate opens", []api.Assignment{open, two}, []*api.Desired{{Revision: 4, Assignments: []api.Assignment{bare(open)}}}},
		{"an equal gate is no change", []api.Assignment{func() api.Assignment { a := open; a.Gate = &api.Gate{MasterPort: 20001}; return a }(), two}, nil},
		{"a stop", []api.Assignment{stop, two}, []*api.Desired{{Revision: 5, Assignments: []api.Assignment{bare(stop)}}}},
		{"both are recorded", nil, []*api.Desired{{Revision: 6, Forget: []api.MemberKey{key(1, 1), key(2, 1)}}}},
		{"a spec nobody used is sent again", []api.Assignment{assign(3, 1, "a")},
			[]*api.Desired{{Revision: 7, Assignments: []api.Assignment{assign(3, 1, "a")}, Specs: map[string]*api.Spec{"a": specs["a"]}}}},
		{"one that is given up is forgotten", []api.Assignment{bare(assign(3, 1, "a"))}, []*api.Desired{{Revision: 8, Forget: []api.MemberKey{key(3, 1)}}}},
		{"and one that was never told of", []api.Assignment{bare(assign(3, 1, "a")), bare(assign(4, 1, "a"))},
			[]*api.Desired{{Revision: 9, Forget: []api.MemberKey{key(4, 1)}}}},
		{"once", []api.Assignment{bare(assign(3, 1, "a")), bare(assign(4, 1, "a"))}, nil},
		{"until it is known gone", nil, nil},
		{"a member that its node opens", []api.Assignment{alone}, []*api.Desired{{Revision: 10, Assignments: []api.Assignment{alone},
			Specs: map[string]*api.Spec{"a": specs["a"]}}}},
		{"it says that it did, with a port", []api.Assignment{opened(20005, 0)}, nil},
		{"another time limit", []api.Assignment{opened(20005, 1)}, []*api.Desired{{Revision: 11, Assignments: []api.Assignment{bare(opened(20005, 1))}}}},
		{"nothing changed there", []api.Assignment{opened(20005, 1)}, nil},
	}
	s := newSent()
	for _, step := range steps {
		if d := cmp.Diff(step.out, told(t, s, step.want, specs)); d != "" {
			t.Fatalf("%s: (-want +got)\n%s", step.name, d)
		}
	}
}

// told is all that a peer is sent; every spec of it was in memory at some moment.
func told(t interface {
	Helper()
	Fatal(...any)
}, s *sentState, want []api.Assignment, specs map[string]*api.Spec) (out []*api.Desired) {
	t.Helper()
	for d, err := range s.diff(want, from(specs)) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d)
	}
	return out
}

func from(specs map[string]*api.Spec) func(string) (*api.Spec, error) {
	return func(hash string) (*api.Spec, error) { return specs[hash], nil }
}

// TestSpecsAreReadAsTheyAreSent: never more of them are in memory than one message has.
func TestSpecsAreReadAsTheyAreSent(t *testing.T) {
	var want []api.Assignment
	for i := range 20 {
		want = append(want, assign(int64(i+1), 1, fmt.Sprint("s", i)))
	}
	read, sent := 0, 0
	for d, err := range newSent().diff(want, func(string) (*api.Spec, error) {
		read++
		return &api.Spec{Script: make([]byte, specChunk)}, nil
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if sent += len(d.Specs); read-sent > 1 {
			t.Fatalf("%d scripts were read when %d had been sent", read, sent)
		}
	}
	if sent != 20 {
		t.Errorf("%d of 20 were sent", sent)
	}
	broken := errors.New("the disk is gone")
	n := 0
	for _, err := range newSent().diff(want, func(string) (*api.Spec, error) { return nil, broken }) {
		if n++; !errors.Is(err, broken) || n > 1 {
			t.Errorf("message %d of an unreadable spec: %v", n, err)
		}
	}
}

func TestDiffSplitsLargeSpecs(t *testing.T) {
	specs := map[string]*api.Spec{}
	var want []api.Assignment
	for i := range 10 {
		hash := fmt.Sprint("s", i)
		specs[hash] = &api.Spec{Script: make([]byte, specChunk/2)}
		if i == 4 {
			specs[hash] = &api.Spec{Script: make([]byte, 3*specChunk)}
		}
		want = append(want, assign(int64(i+1), 1, hash))
	}
	out := told(t, newSent(), want, specs)
	if len(out) != 6 {
		t.Fatalf("%d messages, want 6 of at most %d bytes of scripts", len(out), specChunk)
	}
	got := map[string]bool{}
	for i, d := range out {
		size := int64(0)
		for _, s := range d.Specs {
			size += s.TextBytes()
		}
		if size > specChunk && len(d.Specs) > 1 {
			t.Errorf("message %d has %d scripts of %d bytes", i, len(d.Specs), size)
		}
		if (i == len(out)-1) != d.Full {
			t.Errorf("message %d: full %v: only the last is the set", i, d.Full)
		}
		for h := range d.Specs {
			got[h] = true
		}
	}
	if len(got) != 10 {
		t.Errorf("%d specs sent, want 10", len(got))
	}
}

// TestPeerFollows: whatever is desired in whatever order, the peer's view built from the
// differences alone equals it, and no spec that is named is ever missing.
func TestPeerFollows(t *testing.T) {
	specs := map[string]*api.Spec{}
	for i := range 4 {
		specs[fmt.Sprint("s", i)] = &api.Spec{Name: fmt.Sprint(i)}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, cache, view := newSent(), newSpecCache(), map[api.MemberKey]api.Assignment{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			want := drawSet(t)
			for _, d := range told(t, s, slices.Collect(maps.Values(want)), specs) {
				applyTo(t, view, &cache, d)
			}
			if d := cmp.Diff(want, view); d != "" {
				t.Fatalf("view differs (-want +got)\n%s", d)
			}
			if len(cache.refs) != len(s.specs) {
				t.Fatalf("the node keeps %d specs, the hub thinks %d", len(cache.refs), len(s.specs))
			}
		}
	})
}

func drawSet(t *rapid.T) map[api.MemberKey]api.Assignment {
	want := map[api.MemberKey]api.Assignment{}
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, 15), 0, 8).Draw(t, "members") {
		a := assign(int64(n/2+1), n%2+1, fmt.Sprint("s", n%4))
		if rapid.Bool().Draw(t, "open") {
			a.Gate = &api.Gate{MasterPort: 20000 + n}
		}
		if rapid.Bool().Draw(t, "stop") {
			a.Stop = &api.Stop{Signal: "TERM", Grace: 1}
		}
		want[a.MemberKey] = a
	}
	return want
}

func applyTo(t *rapid.T, view map[api.MemberKey]api.Assignment, cache *specCache, d *api.Desired) {
	cp := *d
	if err := cache.apply(&cp); err != nil {
		t.Fatal(err)
	}
	if d.Full {
		clear(view)
	}
	for _, a := range d.Assignments {
		if a.Body == nil {
			a.Body = view[a.MemberKey].Body
		} else if cp.Specs[a.Body.SpecHash] == nil {
			t.Fatalf("no spec %s with job %d", a.Body.SpecHash, a.Job)
		}
		view[a.MemberKey] = a
	}
	for _, k := range d.Forget {
		delete(view, k)
	}
}
