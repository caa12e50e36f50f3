package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/lab/disk"
)

// A node is named once, in the order of its first rank, wherever its other ranks are.
func TestNodesOf(t *testing.T) {
	j := &gang.Job{Past: &gang.Past{Members: make([]gang.Member, 3)}}
	for _, n := range []string{"b", "b", "a", "", "b", "c", "a"} {
		r := gang.Rank{}
		r.Slot.Node = n
		j.Ranks = append(j.Ranks, r)
	}
	if got := nodesOf(j); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("%v", got)
	}
}

func BenchmarkNodesOf(b *testing.B) {
	j := &gang.Job{Past: &gang.Past{Members: make([]gang.Member, 2048)}, Ranks: make([]gang.Rank, 8*2048)}
	for i := range j.Ranks {
		j.Ranks[i].Slot.Node = fmt.Sprintf("n%05d", i/8)
	}
	for b.Loop() {
		nodesOf(j)
	}
}

// TestWhyOfWhatRunsOrWaits: who asks why hears what a job runs as, or what it waits for and what lets it go.
func TestWhyOfWhatRunsOrWaits(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 2)
	id, _ := r.running(2)
	begin := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	later, waits := spec(1), spec(2)
	later.Begin = begin
	array, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{0, 1, 2}, Limit: 1}}, me)
	if err != nil {
		t.Fatal(err)
	}
	laterID, waitsID := r.submit("", later), r.submit("", waits)
	why := func(id int64) string {
		t.Helper()
		got, err := r.Explain(t.Context(), r.view.job(id))
		if err != nil {
			t.Fatal(err)
		}
		return got.Why
	}
	if got := why(id); got != "not waiting: RUNNING" {
		t.Error(got)
	}
	if got, want := why(laterID), fmt.Sprintf("begins at %s\nthat is in ", begin.Format(time.RFC3339)); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, fmt.Sprintf("gctl update %d --begin=now lets it go at once", laterID)) {
		t.Errorf("%s\nwant %s...", got, want)
	}
	if got := why(waitsID); !strings.Contains(got, "in the queue; room for 0 of 2 ranks now, each needs 1 CPU\n") {
		t.Error(got)
	}
	lines := r.waitLines(&gang.Job{ID: array.JobID + 1, ArrayID: array.JobID, Array: &gang.ArrayInfo{Limit: 1}, Spec: &api.Spec{}, Past: &gang.Past{}})
	if want := []string{fmt.Sprintf("gctl update %d --array-limit=2 lets one more run", array.JobID)}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(2), TestOnly: true}, me)
	if err != nil || !strings.HasPrefix(reply.Why, "would wait: ") || !strings.Contains(reply.Why, "room for 0 of 2 ranks now") {
		t.Errorf("%+v, %v", reply, err)
	}
}

// TestWaitsOfACronJob: between its times it waits for the next one, after a failure for its back-off.
func TestWaitsOfACronJob(t *testing.T) {
	r := newRig(t, disk.Open(t))
	now := time.Unix(1e9, 0).UTC()
	j := &gang.Job{ID: 7, Eligible: now.Add(time.Hour), Spec: &api.Spec{Cron: &api.Cron{Schedule: "0 * * * *"}}, Past: &gang.Past{Epoch: 3}}
	if word, text := r.waits(j, now, true); word != "BeginTime" || text != "begins at 2001-09-09T02:46:40Z, as its cron table says: 0 * * * *" {
		t.Error(word, text)
	}
	j.BackoffUntil = now.Add(time.Minute)
	if word, text := r.waits(j, now, true); word != "BeginTime" || text != "runs again at 01:47:40, after a back-off: an attempt failed, or it had ended" {
		t.Error(word, text)
	}
}
