package engine

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/store/memstore"
)

// running starts a gang of size ranks on n1.
func (r *rig) running(size int) (int64, api.MemberKey) {
	r.t.Helper()
	return r.runningWith(size, func(*api.Spec) {})
}

func (r *rig) runningWith(size int, edit func(*api.Spec)) (int64, api.MemberKey) {
	r.t.Helper()
	s := spec(size)
	edit(&s)
	id := r.submit("", s)
	k := api.MemberKey{Job: id, Epoch: 1}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseReady, Port: 7000}}})
	ranks := make([]api.RankActual, size)
	for i := range ranks {
		ranks[i] = api.RankActual{Rank: i, PID: 100 + i}
	}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseRunning, Ranks: ranks}}})
	if err := r.inspect(r.t.Context(), func() {}); err != nil {
		r.t.Fatal(err)
	}
	if s := r.state(id); s != api.JobRunning {
		r.t.Fatalf("job %d is %s", id, s)
	}
	return id, k
}

func (r *rig) put(k api.MemberKey, rank int, data string) (*api.CallResult, error) {
	return r.NodeCall(r.t.Context(), "n1", &api.Call{MemberKey: k, Rank: rank, Put: &api.CheckpointPut{}}, strings.NewReader(data), nil)
}

func (r *rig) got(k api.MemberKey, rank int) string {
	var b bytes.Buffer
	if _, err := r.NodeCall(r.t.Context(), "n1", &api.Call{MemberKey: k, Get: &api.CheckpointGet{Rank: rank}}, nil, &b); err != nil {
		return "error: " + err.Error()
	}
	return b.String()
}

func TestCheckpointCalls(t *testing.T) {
	r := newRig(t, memstore.New())
	r.node("n1", 4)
	id, k := r.running(2)
	if res, err := r.put(k, 0, "a"); err != nil || res.Complete {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := r.got(k, 0); got != "error: job 1 has no complete checkpoint; one is complete when every rank has put its own in the same epoch" {
		t.Errorf("got %q", got)
	}
	if res, err := r.put(k, 1, "b"); err != nil || !res.Complete || res.Bytes != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if a, b := r.got(k, 0), r.got(k, 1); a != "a" || b != "b" {
		t.Errorf("got %q and %q", a, b)
	}
	for _, c := range []struct {
		node string
		k    api.MemberKey
		code api.Code
		text string
	}{
		{"n1", api.MemberKey{Job: id, Epoch: 9}, api.CodeStaleEpoch, "epoch 9 of job 1 is over; the current one is 1; what an earlier one saves must not replace it"},
		{"n1", api.MemberKey{Job: 77, Epoch: 1}, api.CodeStaleEpoch, "epoch 1 is over: the job has ended"},
		{"n2", k, api.CodePermission, "rank 0 of job 1 is not on node n2"},
	} {
		_, err := r.NodeCall(t.Context(), c.node, &api.Call{MemberKey: c.k, Put: &api.CheckpointPut{}}, strings.NewReader("stale"), nil)
		if api.CodeOf(err) != c.code || err.Error() != c.text {
			t.Errorf("%s %+v: %v", c.node, c.k, err)
		}
	}
	if a := r.got(k, 0); a != "a" {
		t.Errorf("a refused put left %q", a)
	}
}

func TestBarrierCalls(t *testing.T) {
	r := newRig(t, memstore.New())
	r.node("n1", 4)
	id, k := r.running(2)
	come := func(ctx context.Context, rank int, key string) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := r.NodeCall(ctx, "n1", &api.Call{MemberKey: k, Rank: rank, Barrier: &api.Barrier{Name: "x", Key: key}}, nil, nil)
			done <- err
		}()
		return done
	}
	for range 2 { // a name may be used again
		first := come(t.Context(), 0, "")
		if err := <-come(t.Context(), 1, ""); err != nil {
			t.Fatal(err)
		}
		if err := <-first; err != nil {
			t.Fatal(err)
		}
	}
	// A repeat of an arrival that was released is answered; one that left is not counted.
	a, b := come(t.Context(), 0, "k0"), come(t.Context(), 1, "k1")
	if err := <-a; err != nil {
		t.Fatal(err)
	}
	if err := <-b; err != nil {
		t.Fatal(err)
	}
	if err := <-come(t.Context(), 0, "k0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := come(ctx, 0, "k2")
	cancel()
	if err := <-left; err == nil {
		t.Error("a caller that went away was released")
	}
	waits := come(t.Context(), 1, "k3")
	select {
	case err := <-waits:
		t.Errorf("released with an absent rank: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}}}, me, anyone); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err == nil || err.Error() != "barrier x: job 1 is being stopped" {
		t.Errorf("err %v", err)
	}
}

func TestNotesAreShownAndCommitNothing(t *testing.T) {
	r := newRig(t, memstore.New())
	r.node("n1", 4)
	id, k := r.running(2)
	before := r.store.Lineage()
	note := func(node string, k api.MemberKey, status string) {
		r.NodeNotes(node, []api.MemberNote{{MemberKey: k, Ranks: []api.RankNote{{Rank: 0, Beats: 3, BeatAge: time.Second, Status: status, Stopping: true}, {Rank: 99}}}})
	}
	note("n1", k, "step 1")
	note("n1", api.MemberKey{Job: id, Epoch: 5}, "stale")
	note("n2", k, "a stranger")
	j, err := r.One(t.Context(), api.JobRef{ID: id, Index: -1}, me.UID)
	if err != nil {
		t.Fatal(err)
	}
	shown := r.show(j, true)
	if shown.Status != "step 1" || shown.Ranks[0].Status != "step 1" || time.Since(shown.Ranks[0].LastBeat) < time.Second || !shown.Ranks[1].LastBeat.IsZero() {
		t.Errorf("%+v", shown)
	}
	if r.store.Lineage() != before {
		t.Error("a note was committed")
	}
}

// The lead of a notice ends when each rank has nothing left to save or has ended, whichever
// of the two is heard of last.
func TestLeadEndsWhenAllHaveSavedOrEnded(t *testing.T) {
	stopping, saved := api.RankNote{Stopping: true}, api.RankNote{Stopping: true, Saved: true}
	for _, c := range []struct {
		name  string
		play  func(say func(rank int, n api.RankNote), exit func(rank int))
		acked int
		over  bool
	}{
		{"all have saved", func(say func(int, api.RankNote), _ func(int)) { say(0, saved); say(1, saved) }, 2, true},
		{"all are stopping", func(say func(int, api.RankNote), _ func(int)) { say(0, stopping); say(1, stopping) }, 2, false},
		{"one has saved, one is stopping", func(say func(int, api.RankNote), _ func(int)) { say(0, saved); say(1, stopping) }, 2, false},
		{"one was stopping and has ended, then one has saved", func(say func(int, api.RankNote), exit func(int)) {
			say(0, stopping)
			exit(0)
			say(1, saved)
		}, 2, true},
		{"one has saved, then one ends that was stopping", func(say func(int, api.RankNote), exit func(int)) {
			say(1, saved)
			say(0, stopping)
			exit(0)
		}, 2, true},
		{"one has saved, then one ends that said nothing", func(say func(int, api.RankNote), exit func(int)) { say(1, saved); exit(0) }, 1, true},
		{"one has ended, the other is stopping", func(say func(int, api.RankNote), exit func(int)) { exit(0); say(1, stopping) }, 1, false},
		{"nobody says anything", func(_ func(int, api.RankNote), exit func(int)) { exit(0) }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, memstore.New())
			r.node("n1", 4)
			id, k := r.runningWith(2, func(s *api.Spec) { s.Notice = &api.Notice{Signal: "USR1", Lead: time.Hour, Scope: api.ScopeRanks} })
			if _, err := r.Do(t.Context(), gang.Requeue{Job: id}); err != nil {
				t.Fatal(err)
			}
			ma := api.MemberActual{MemberKey: k, Phase: api.PhaseRunning, Stopping: api.CauseRequeued, Noticed: true}
			c.play(func(rank int, n api.RankNote) {
				n.Rank = rank
				r.NodeNotes("n1", []api.MemberNote{{MemberKey: k, Ranks: []api.RankNote{n}}})
			}, func(rank int) {
				now := ma
				now.Ranks = []api.RankActual{{Rank: rank, PID: 100 + rank, Exited: true}}
				r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{now}})
			})
			var d *gang.Drain
			for range 2 { // what a commit brings about is stepped in the next round
				if err := r.inspect(t.Context(), func() { d = r.world.Job(id).Drain }); err != nil {
					t.Fatal(err)
				}
			}
			if d == nil || d.Acked != c.acked || (d.Lead == 0) != c.over {
				t.Errorf("drain %+v, want %d acknowledged, lead over %t", d, c.acked, c.over)
			}
		})
	}
}
