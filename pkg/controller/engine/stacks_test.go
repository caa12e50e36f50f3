package engine

import (
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// oddOnes are four ranks of which the last is elsewhere.
func oddOnes() *api.MemberStacks {
	at := func(f string, ranks ...int) api.StackGroup {
		g := api.StackGroup{Kind: "python3", Count: len(ranks), Threads: []api.ThreadStack{{Does: api.DoesLock, Frames: []string{f}}}}
		for _, r := range ranks {
			g.Processes = append(g.Processes, api.StackProcess{Rank: r, PID: 100 + r})
		}
		return g
	}
	return &api.MemberStacks{Groups: []api.StackGroup{at("all_reduce (c10d.py)", 0, 1, 2), at("recv (c10d.py)", 3)}}
}

const oddOne = "rank 3 on n1 is in recv (c10d.py), 3 others are in all_reduce (c10d.py)"

// TestStacks: of a job that runs as it is now, also where a node does not answer; of one that was stopped for a hang as it was then, with
// the frames for who owns it and without them in what is shown to all; of others it is refused.
func TestStacks(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, k := r.runningWith(4, func(s *api.Spec) { s.StallRetries = new(int) })
	find := func() *gang.Job {
		j, err := r.One(t.Context(), api.JobRef{ID: id, Index: -1}, me)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	if s, err := r.Engine.Stacks(t.Context(), find()); err != nil || !s.Live || s.Stacks.Text != "no process could be looked at; no answer from n1" {
		t.Errorf("%+v %v", s, err)
	}
	r.seen = map[string]*api.MemberStacks{"n1": oddOnes()}
	if s, err := r.Engine.Stacks(t.Context(), find()); err != nil || !s.Live || s.Stacks.Text != oddOne || len(s.Stacks.Groups) != 2 {
		t.Errorf("%+v %v", s, err)
	}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseRunning, Stopping: api.CauseStalled, Stacks: oddOnes()}}})
	if err := r.inspect(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Engine.Stacks(t.Context(), find()); err != nil || s.Live || s.Stacks.Text != oddOne {
		t.Errorf("while it is stopped: %+v %v", s, err)
	}
	ranks := make([]api.RankActual, 4)
	for i := range ranks {
		ranks[i] = api.RankActual{Rank: i, PID: 100 + i, Exited: true, ExitCode: 143}
	}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseStopped, Stopping: api.CauseStalled, Ranks: ranks, Stacks: oddOnes()}}})
	if err := r.inspect(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	s, err := r.Engine.Stacks(t.Context(), find())
	if err != nil || s.Live || s.Epoch != 1 || s.Stacks.Text != oddOne || len(s.Stacks.Groups) != 2 || s.Stacks.Odd[0].Node != "n1" {
		t.Errorf("of the end: %+v %v", s, err)
	}
	d, err := r.Detail(t.Context(), find())
	if err != nil || len(d.Attempts) != 1 || d.Attempts[0].Stacks == nil || d.Attempts[0].Stacks.Text != oddOne || len(d.Attempts[0].Stacks.Groups) != 0 || !strings.HasSuffix(d.Job.Verdict, oddOne) {
		t.Errorf("%+v %v", d, err)
	}
	why, err := r.Explain(t.Context(), find())
	if err != nil || !strings.Contains(why.Why, oddOne) {
		t.Errorf("%+v %v", why, err)
	}
	id = r.submit("held", func() api.Spec { s := spec(1); s.Hold = true; return s }())
	if s, err := r.Engine.Stacks(t.Context(), find()); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("%+v %v", s, err)
	}
}
