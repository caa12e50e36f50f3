package engine

import (
	"context"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

func roles(s *api.Spec) {
	s.Roles = []api.Role{{Name: "coordinator", Count: 1, CPUsPerRank: 1}, {Name: "worker", Count: 2, CPUsPerRank: 1}}
}

func (r *rig) isReady(k api.MemberKey, ranks ...int) {
	var notes []api.RankNote
	for _, rank := range ranks {
		notes = append(notes, api.RankNote{Rank: rank, Ready: true})
	}
	r.NodeNotes("n1", []api.MemberNote{{MemberKey: k, Ranks: notes}})
}

// awaits asks for readiness as rank 1 and gives the answer when it comes.
func (r *rig) awaits(ctx context.Context, k api.MemberKey, role string) <-chan string {
	out := make(chan string, 1)
	go func() {
		_, err := r.NodeCall(ctx, "n1", &api.Call{MemberKey: k, Rank: 1, Ready: &api.ReadyWait{Role: role}}, nil, nil)
		text := "ready"
		if err != nil {
			text = err.Error()
		}
		out <- text
	}()
	return out
}

func stillWaits(t *testing.T, what string, c <-chan string) {
	t.Helper()
	select {
	case text := <-c:
		t.Errorf("%s: %s", what, text)
	case <-time.After(20 * time.Millisecond):
	}
}

func TestWaitForReadiness(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 8)
	id, k := r.runningWith(3, roles)
	coordinator, workers, all := r.awaits(t.Context(), k, "coordinator"), r.awaits(t.Context(), k, "worker"), r.awaits(t.Context(), k, "")
	stillWaits(t, "nobody is ready", coordinator)
	r.isReady(k, 0)
	if got := <-coordinator; got != "ready" {
		t.Error(got)
	}
	r.isReady(k, 1)
	stillWaits(t, "one worker of two is ready", workers)
	stillWaits(t, "two of three are ready", all)
	r.isReady(k, 1, 2)
	if got := <-workers; got != "ready" {
		t.Error(got)
	}
	if got := <-all; got != "ready" {
		t.Error(got)
	}
	if got := <-r.awaits(t.Context(), k, "workre"); got != `job 1 has no role "workre"; did you mean worker?` {
		t.Error(got)
	}
	j, _ := r.One(t.Context(), api.JobRef{ID: id, Index: -1}, me)
	if shown := r.show(j, true).Ready; shown == nil || shown.Ranks != 3 || shown.Size != 3 {
		t.Errorf("shown %+v", shown)
	}
}

// A wait that can't come to its end says so: the rank has ended, or the job is being stopped.
func TestWaitForReadinessInVain(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 8)
	id, k := r.runningWith(3, roles)
	ends, stops := r.awaits(t.Context(), k, "coordinator"), r.awaits(t.Context(), k, "worker")
	stillWaits(t, "nobody has ended", ends)
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: 0, PID: 100, Exited: true}}}}})
	if got := <-ends; got != "role coordinator will not be ready: rank 0 of job 1 has ended" {
		t.Error(got)
	}
	stillWaits(t, "nobody stops it", stops)
	if _, err := r.Do(t.Context(), gang.Cancel{Job: id}); err != nil {
		t.Fatal(err)
	}
	if got := <-stops; got != "job 1 is being stopped" {
		t.Error(got)
	}
}

// The gate is passed when the last rank has said so, and it is told to the core once.
func TestReadyGatePasses(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 8)
	id, k := r.runningWith(3, func(s *api.Spec) { s.ReadyTimeout = time.Hour })
	look := func() api.Job {
		t.Helper()
		if err := r.inspect(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
		j, err := r.One(t.Context(), api.JobRef{ID: id, Index: -1}, me)
		if err != nil {
			t.Fatal(err)
		}
		return r.show(j, true)
	}
	r.isReady(k, 0, 2)
	if j := look(); j.Reason != "NotReady" || j.Ready.Ranks != 2 || !j.Ready.Time.IsZero() || j.State != api.JobRunning || !j.Ranks[2].Ready {
		t.Errorf("%s %s, ready %+v", j.State, j.Reason, j.Ready)
	}
	r.isReady(k, 0, 1, 2)
	if j := look(); j.Reason != "None" || j.Ready.Ranks != 3 || j.Ready.Time.IsZero() || j.Ready.TimeoutSeconds != 3600 {
		t.Errorf("%s, ready %+v", j.Reason, j.Ready)
	}
	before := r.store.Lineage()
	r.isReady(k, 0, 1, 2)
	look()
	if r.store.Lineage() != before {
		t.Error("a repeat was committed")
	}
	r.NodeGone("n1") // and what its ranks have said with it
	if j := look(); j.Ready == nil || j.Ready.Ranks != 3 {
		t.Errorf("behind the gate, with nobody to say so: %+v", j.Ready)
	}
}
