package storetest

import (
	"context"
	"fmt"
	"testing"

	"gangd/pkg/controller/store"
)

func released(job int64, epoch int, name string, keys ...string) store.Release {
	r := store.Release{SetKey: ranksOf(job, epoch), Name: name, Keys: map[int]string{}}
	for rank, key := range keys {
		r.Keys[rank] = key
	}
	return r
}

func mustRelease(t *testing.T, s store.Store, all ...store.Release) {
	t.Helper()
	for _, r := range all {
		if err := s.PutRelease(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func wantReleases(t *testing.T, s store.Store, want ...store.Release) {
	t.Helper()
	got, err := s.Releases(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "releases", got, want)
}

func testReleases(t *testing.T, p Place) {
	s := mustOpen(t, p)
	before := s.Lineage()
	wantReleases(t, s)
	a, odd := released(1, 1, "a", "k0", "k1"), released(1, 1, "it's; \"odd\" \u00e9", "", "k'1")
	other := released(2, 7, "a", "x")
	mustRelease(t, s, a, odd, other)
	wantReleases(t, s, a, odd, other)
	again := released(1, 1, "a", "k2", "k3")
	mustRelease(t, s, again)
	wantReleases(t, s, odd, other, again)
	if s.Lineage() != before {
		t.Error("a release counted as a commit")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	wantReleases(t, s, odd, other, again)
	next := released(1, 2, "b", "k0", "k1") // a new epoch: the old one's are of no use
	mustRelease(t, s, next)
	wantReleases(t, s, other, next)
	if err := s.DropReleases(context.Background(), 2); err != nil {
		t.Fatal(err)
	}
	wantReleases(t, s, next)
	mustVerify(t, s)
}

func testReleasesBounded(t *testing.T, p Place) {
	s := mustOpen(t, p)
	other := released(3, 1, "kept", "k")
	mustRelease(t, s, other)
	want := []store.Release{other}
	for i := range store.KeptReleases + 10 {
		r := released(4, 1, fmt.Sprintf("step %d", i), "k")
		mustRelease(t, s, r)
		if i >= 10 {
			want = append(want, r)
		}
	}
	wantReleases(t, s, want...)
}

// What one step releases takes no place of another's.
func testReleasesOfSteps(t *testing.T, p Place) {
	s := mustOpen(t, p)
	of := func(step int, name string) store.Release {
		r := released(6, 1, name, "k")
		r.Step = step
		return r
	}
	want := []store.Release{of(0, "a"), of(1, "a"), of(store.OfRanks, "a")}
	mustRelease(t, s, want...)
	wantReleases(t, s, want...)
	for i := range store.KeptReleases + 3 {
		r := of(1, fmt.Sprint("b", i))
		mustRelease(t, s, r)
		want = append(want, r)
	}
	want = append([]store.Release{want[0], want[2]}, want[len(want)-store.KeptReleases:]...)
	wantReleases(t, s, want...)
}
