package engine

import (
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

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
			r := newRig(t, disk.Open(t))
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
