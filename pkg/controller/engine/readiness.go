package engine

import (
	"context"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/nearest"
)

// wake lets those look again who wait for ranks to be ready; the owner's mu is held.
func (x *jobNotes) wake() {
	if x.more != nil {
		close(x.more)
		x.more = nil
	}
}

// newlyReady is all that are ready when there is one that the core has not been told of and
// its ready gate waits.
func (s *rankNotes) newlyReady(j *gang.Job) (ev gang.Ready, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.jobs[j.ID]
	if x == nil || x.epoch != j.Epoch || x.coreReady == x.ready || !gang.AwaitsReady(j) {
		return ev, false
	}
	x.coreReady = x.ready
	ev = gang.Ready{Job: j.ID, Epoch: j.Epoch}
	for r := range gang.Processes(j) {
		if x.ranks[r].Ready {
			ev.Ranks = append(ev.Ranks, r)
		}
	}
	for k, n := range x.tasks {
		if n.Ready {
			ev.Tasks = append(ev.Tasks, k)
		}
	}
	return ev, true
}

// readiness is what is shown of it, nil where nobody speaks of it; s.mu is held.
func (s *rankNotes) readiness(j *gang.Job) *api.Readiness {
	x := s.jobs[j.ID]
	r := &api.Readiness{Size: gang.Processes(j), TimeoutSeconds: int64(j.Spec.ReadyTimeout.Seconds()), Time: j.ReadyAt}
	if x != nil && x.epoch == j.Epoch {
		for k, n := range x.ranks {
			if n.Ready && k < r.Size {
				r.Ranks++
			}
		}
		if w := gang.Widest(j); r.Ranks == 0 && gang.StepOf(j, w.Step) != nil && w.Tasks > 0 && j.Spec.Launch == api.LaunchBatch {
			r.Size = w.Tasks // the script has said nothing: its tasks answer for it
			for k, n := range x.tasks {
				if n.Ready && k.Step == w.Step {
					r.Ranks++
				}
			}
		}
	}
	if !r.Time.IsZero() {
		r.Ranks = r.Size // whoever has ended since says nothing any more
	}
	if r.Ranks == 0 && (r.TimeoutSeconds == 0 || j.Epoch == 0) {
		return nil
	}
	return r
}

// waitReady waits until every rank of a role, or of the gang, has said READY=1; from a task
// without a role, every task of its step.
func (e *Engine) waitReady(ctx context.Context, j *gang.Job, p party, ask *api.ReadyWait) (*api.CallResult, error) {
	first, count, whom := 0, p.size, p.text(j)
	if ask.Role != "" {
		var ok bool
		if first, count, ok = j.Spec.RoleRanks(ask.Role); !ok {
			return nil, noRole(j, ask.Role)
		}
		p.step, whom = store.OfRanks, "role "+ask.Role
	}
	for {
		more := e.notes.watch(j) // before the look, or what happens in between is missed
		now := e.view.job(j.ID)
		switch {
		case now == nil || now.Epoch != j.Epoch:
			return nil, api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", j.Epoch, j.ID)
		case now.Drain != nil || now.Verdict != nil:
			return nil, api.Errorf(api.CodeConflict, "job %d is being stopped", j.ID)
		}
		missing, ended := e.notes.unready(now, p, first, count)
		if missing < 0 {
			return &api.CallResult{Size: count}, nil
		}
		if ended {
			return nil, api.Errorf(api.CodeConflict, "%s will not be ready: %s has ended", whom, p.member(j, missing))
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// watch is closed at the next change that may make a wait for readiness end.
func (s *rankNotes) watch(j *gang.Job) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(j)
	if x.more == nil {
		x.more = make(chan struct{})
	}
	return x.more
}

// unready is one of those that has not said READY=1, one that has ended before others; -1:
// none.
func (s *rankNotes) unready(j *gang.Job, p party, first, count int) (missing int, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missing = -1
	x := s.jobs[j.ID]
	if x == nil || x.epoch != j.Epoch {
		return first, false
	}
	over := p.ofStep() && gang.StepOf(j, p.step) == nil
	for r := first; r < first+count && !ended; r++ {
		ready, gone := false, false
		if p.ofStep() {
			n := x.tasks[api.TaskKey{Step: p.step, Task: r}]
			ready, gone = n.Ready, n.ended || over
		} else {
			ready, gone = x.ranks[r].Ready, j.Ranks[r].Exited
		}
		if !ready && (missing < 0 || gone) {
			missing, ended = r, gone
		}
	}
	return missing, ended
}

// noRole refuses a role that the gang does not have.
func noRole(j *gang.Job, role string) *api.Error {
	e := api.Errorf(api.CodeNotFound, "job %d has no role %q", j.ID, role)
	var names []string
	for i := range j.Spec.Roles {
		names = append(names, j.Spec.Roles[i].Name)
	}
	if e.Hint = nearest.Hint(role, names, "it has "+strings.Join(names, ", ")); len(names) == 0 {
		e.Hint = "roles are given at the submission: gsubmit --role=" + role + ":N"
	}
	return e
}
