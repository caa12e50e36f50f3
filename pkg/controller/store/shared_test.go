package store

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

func TestKnownIsASnapshot(t *testing.T) {
	t0 := time.Unix(1e9, 0)
	over := &gang.Verdict{State: api.JobCompleted}
	k := KnownOf(&gang.Snapshot{
		Jobs: []*gang.Job{
			{ID: 3, Key: "c", Wishes: new(gang.Wishes), Past: &gang.Past{}}, {ID: 2, Key: "b", Wishes: new(gang.Wishes), Past: &gang.Past{Setbacks: gang.Setbacks{Verdict: over}, Attempt: gang.Attempt{End: t0.Add(time.Second)}}},
			{ID: 1, Key: "a", Wishes: new(gang.Wishes), Past: &gang.Past{Setbacks: gang.Setbacks{Verdict: over}, Attempt: gang.Attempt{End: t0}}}, {ID: 4, Submit: t0, Wishes: new(gang.Wishes), Past: &gang.Past{Setbacks: gang.Setbacks{Verdict: over}}}, // it never started
		},
		Nodes:        []*gang.Node{{Name: "n2"}, {Name: "n1"}},
		Reservations: []*api.Reservation{{Name: "r"}},
		Claims:       []byte("[]"), NextID: 5, NextSeq: 9,
	}, 7, 2)
	s := k.Snapshot(t0)
	var ids []int64
	for _, j := range s.Jobs {
		ids = append(ids, j.ID)
	}
	if !slices.Equal(ids, []int64{2, 3}) || len(s.Keys) != 2 || s.Keys["b"] != 2 || s.Keys["c"] != 3 {
		t.Errorf("jobs %v, keys %v", ids, s.Keys)
	}
	few := KnownOf(s, 7, 2)
	few.Jobs[5] = &gang.Job{ID: 5, Key: "d", Wishes: new(gang.Wishes), Past: &gang.Past{Setbacks: gang.Setbacks{Verdict: over}, Attempt: gang.Attempt{End: t0.Add(time.Minute)}}}
	few.Keys = map[string]int64{"z": 9}
	cut := few.snapshot(t0, 1)
	if len(cut.Jobs) != 2 || cut.Jobs[0].ID != 3 || cut.Jobs[1].ID != 5 || cut.Keys["b"] != 2 || cut.Keys["z"] != 9 || len(cut.Keys) != 4 {
		t.Errorf("one that has ended of two: jobs %v, keys %v", cut.Jobs, cut.Keys)
	}
	if len(s.Nodes) != 2 || s.Nodes[0].Name != "n1" || len(s.Reservations) != 1 || string(s.Claims) != "[]" || s.NextID != 5 || s.NextSeq != 9 {
		t.Errorf("snapshot %+v", s)
	}
	if k.Lineage != 7 || k.Term != 2 || len(k.Jobs) != 2 {
		t.Errorf("known %+v", k)
	}
}
