package storetest

import (
	"context"
	"fmt"
	"testing"

	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

func mustBegin(t *testing.T, s store.Store, name string) []store.Run {
	t.Helper()
	before := s.Lineage()
	all, err := s.Begin(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	if s.Lineage() != before {
		t.Error("a run that begins counted as a commit")
	}
	return all
}

func testRuns(t *testing.T, p Place) {
	s := mustOpen(t, p)
	same(t, "the first", mustBegin(t, s, "a"), []store.Run{{Name: "a"}})
	mustCommit(t, s, Submitted(NewJob(1, 1)))
	mustCommit(t, s, Submitted(NewJob(2, 1)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, p)
	same(t, "the second", mustBegin(t, s, "b"), []store.Run{{Name: "a"}, {Name: "b", Began: 2}})
	if err := s.Advance(context.Background(), 700, 1); err != nil {
		t.Fatal(err)
	}
	same(t, "after a copy was accepted", mustBegin(t, s, "c"), []store.Run{{Name: "b", Began: 2}, {Name: "c", Began: 700}})
	mustCommit(t, s, &gang.Changes{NextID: 9})
	var all []store.Run
	for i := range store.KeptRuns {
		all = mustBegin(t, s, fmt.Sprint(i))
	}
	if len(all) != store.KeptRuns || all[0] != (store.Run{Name: "0", Began: 701}) {
		t.Errorf("%d runs are remembered, the first %v", len(all), all[0])
	}
	mustVerify(t, s)
}
