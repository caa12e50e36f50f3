package gang

import (
	"testing"

	"gangd/pkg/api"
)

// coordinated is a gang of one coordinator that ends it and two workers, all running.
func coordinated(t *testing.T) (*bench, int64) {
	t.Helper()
	b := newBench(t, 3)
	s := specOf(3)
	s.MaxRetries = intPtr(1)
	s.Roles = []api.Role{{Name: "coordinator", Count: 1, CPUsPerRank: 1, EndsGang: true}, {Name: "worker", Count: 2, CPUsPerRank: 1}}
	id := b.submit(s)
	b.start(id)
	return b, id
}

func own(r api.RankActual) api.RankActual {
	r.Own = true
	return r
}

func (b *bench) exits(id int64, ranks ...api.RankActual) {
	b.t.Helper()
	for _, r := range ranks {
		b.phase(id, b.w.Job(id).Ranks[r.Rank].Slot.Node, api.PhaseRunning, r)
	}
}

func (b *bench) stops(id int64, cause api.Cause, r api.RankActual) {
	b.t.Helper()
	b.say(b.w.Job(id).Ranks[r.Rank].Slot.Node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Stopping: cause, Ranks: []api.RankActual{r}})
}

func TestRoleEndsTheGang(t *testing.T) {
	for _, c := range []struct {
		name  string
		play  func(b *bench, id int64)
		state api.JobState // empty: it waits for another run
		ranks string
		text  string
	}{
		{"the coordinator is done", func(b *bench, id int64) {
			b.exits(id, exit(0, 0))
			for _, node := range []string{"n2", "n3"} {
				as := b.w.Desired(node)
				if s := as[0].Stop; s == nil || s.Cause != api.CauseCompleted || s.Text != "role coordinator is done" || s.Signal != "TERM" || s.Lead != 0 {
					t.Errorf("%s is told %+v", node, s)
				}
			}
			if as := b.w.Desired("n1"); as[0].Stop != nil {
				t.Errorf("n1 is told to stop what has ended: %+v", as[0].Stop)
			}
			if out := b.step(Cancel{Job: id}); out.Ignored != "the work is done: role coordinator is" {
				t.Errorf("cancel: %+v", out)
			}
			b.stops(id, "", exit(0, 0))
			b.stops(id, api.CauseCompleted, exit(1, 143))
			b.state(id, api.JobCompleting)
			b.stops(id, api.CauseCompleted, exit(2, 0))
		}, api.JobCompleted, "done canc done ", "role coordinator is done"},
		{"workers are done before", func(b *bench, id int64) {
			b.exits(id, exit(1, 0), exit(2, 0))
			b.state(id, api.JobRunning)
			b.exits(id, exit(0, 0))
			for r := range 3 {
				b.stops(id, "", exit(r, 0))
			}
		}, api.JobCompleted, "done done done ", ""},
		{"a worker fails after the coordinator's end was heard of", func(b *bench, id int64) {
			b.exits(id, exit(0, 0), own(exit(1, 1)))
			b.stops(id, "", exit(0, 0))
			b.stops(id, "", own(exit(1, 1)))
			b.stops(id, api.CauseCompleted, exit(2, 143))
		}, api.JobCompleted, "done fail canc ", "role coordinator is done"},
		{"a worker's failure is heard of first", func(b *bench, id int64) {
			b.exits(id, exit(1, 1))
			b.stops(id, "", own(exit(0, 0)))
			b.stops(id, "", own(exit(1, 1)))
			b.stops(id, api.CauseCrash, exit(2, 143))
		}, api.JobCompleted, "done fail canc ", "role coordinator is done"},
		{"a worker fails, and the coordinator is stopped for it", func(b *bench, id int64) {
			b.exits(id, exit(1, 1))
			b.stops(id, api.CauseCrash, exit(0, 0))
			b.stops(id, "", exit(1, 1))
			b.stops(id, api.CauseCrash, exit(2, 143))
		}, "", "bloc bloc bloc ", ""},
		{"the coordinator fails", func(b *bench, id int64) {
			b.exits(id, exit(0, 3))
			b.ack(id)
		}, "", "bloc bloc bloc ", ""},
		{"a node goes while the workers are stopped", func(b *bench, id int64) {
			b.exits(id, exit(0, 0))
			b.stops(id, "", exit(0, 0))
			b.stops(id, api.CauseCompleted, exit(1, 143))
			b.step(NodeGone{Node: "n3"})
			b.after(b.w.set.NodeTimeout)
		}, api.JobCompleted, "done canc canc ", "role coordinator is done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, id := coordinated(t)
			c.play(b, id)
			j := b.w.Job(id)
			if c.state == "" {
				if j.Verdict != nil || j.Used[api.CauseCrash] != 1 {
					t.Fatalf("verdict %+v, crash %d used", j.Verdict, j.Used[api.CauseCrash])
				}
			} else if j.Verdict == nil || j.Verdict.State != c.state || j.Verdict.Text != c.text || j.Verdict.ExitCode != 0 {
				t.Fatalf("verdict %+v, want %s %q", j.Verdict, c.state, c.text)
			}
			if got := ranksOf(j); got != c.ranks {
				t.Errorf("ranks are %s, want %s", got, c.ranks)
			}
			if f := b.w.Verify(); len(f) > 0 {
				t.Error(f)
			}
		})
	}
}

// All ranks of the role have to be done, and a role that says nothing ends nothing.
func TestRoleOfSeveralRanks(t *testing.T) {
	b := newBench(t, 4)
	s := specOf(4)
	s.Roles = []api.Role{{Name: "server", Count: 1, CPUsPerRank: 1}, {Name: "driver", Count: 2, CPUsPerRank: 1, EndsGang: true}, {Name: "worker", Count: 1, CPUsPerRank: 1}}
	id := b.submit(s)
	b.start(id)
	b.exits(id, exit(0, 0), exit(1, 0))
	b.state(id, api.JobRunning)
	b.exits(id, exit(2, 0))
	b.state(id, api.JobCompleting)
	if d := b.w.Job(id).Drain; d.Text != "role driver is done" || d.Moved != 1 {
		t.Errorf("drain %+v", d)
	}
}
