package engine

import (
	"context"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/nearest"
)

// wake lets those look again who wait for ranks to be ready; the owner's mu is held.
func (x *saidJob) wake() {
	if x.more != nil {
		close(x.more)
		x.more = nil
	}
}

// wake is for what changes without a word of a rank.
func (s *said) wake(job int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.jobs[job]; x != nil {
		x.wake()
	}
}

// newlyReady gives all ranks that are ready when there is one that the core has not been
// told of and its ready gate waits.
func (s *said) newlyReady(j *gang.Job) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.jobs[j.ID]
	if x == nil || x.epoch != j.Epoch || x.told == x.ready || !gang.AwaitsReady(j) {
		return nil
	}
	x.told = x.ready
	var out []int
	for r := range gang.Processes(j) {
		if x.ranks[r].Ready {
			out = append(out, r)
		}
	}
	return out
}

// readiness is what is shown of it, nil where nobody speaks of it; s.mu is held.
func (s *said) readiness(j *gang.Job) *api.Readiness {
	x := s.jobs[j.ID]
	r := &api.Readiness{Size: gang.Processes(j), TimeoutSeconds: int64(j.Spec.ReadyTimeout.Seconds()), Time: j.ReadyAt}
	if x != nil && x.epoch == j.Epoch {
		r.Ranks = x.ready
	}
	if r.Ranks == 0 && (r.TimeoutSeconds == 0 || j.Epoch == 0) {
		return nil
	}
	return r
}

// waitReady waits until every rank of a role, or of the gang, has said READY=1.
func (e *Engine) waitReady(ctx context.Context, j *gang.Job, ask *api.ReadyWait) (*api.CallResult, error) {
	first, count, whom := 0, gang.Processes(j), "the gang"
	if ask.Role != "" {
		var ok bool
		if first, count, ok = j.Spec.RoleRanks(ask.Role); !ok {
			return nil, noRole(j, ask.Role)
		}
		whom = "role " + ask.Role
	}
	for {
		more := e.said.watch(j) // before the look, or what happens in between is missed
		now := e.view.job(j.ID)
		switch {
		case now == nil || now.Epoch != j.Epoch:
			return nil, api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", j.Epoch, j.ID)
		case now.Drain != nil || now.Verdict != nil:
			return nil, api.Errorf(api.CodeConflict, "job %d is being stopped", j.ID)
		}
		missing := e.said.unready(now, first, count)
		if missing < 0 {
			return &api.CallResult{Size: count}, nil
		}
		if now.Ranks[missing].Exited {
			return nil, api.Errorf(api.CodeConflict, "%s will not be ready: rank %d of job %d has ended", whom, missing, j.ID)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// watch is closed at the next change that may make a wait for readiness end.
func (s *said) watch(j *gang.Job) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(j)
	if x.more == nil {
		x.more = make(chan struct{})
	}
	return x.more
}

// unready is a rank of those that has not said READY=1, one that has ended before others;
// -1: none.
func (s *said) unready(j *gang.Job, first, count int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	ranks, missing := s.of(j), -1
	for r := first; r < first+count; r++ {
		if !ranks[r].Ready && (missing < 0 || j.Ranks[r].Exited && !j.Ranks[missing].Exited) {
			missing = r
		}
	}
	return missing
}

// noRole refuses a role that the gang does not have.
func noRole(j *gang.Job, role string) *api.Error {
	e := api.Errorf(api.CodeNotFound, "job %d has no role %q", j.ID, role)
	var names []string
	for i := range j.Spec.Roles {
		names = append(names, j.Spec.Roles[i].Name)
	}
	switch near := nearest.Of(role, names); {
	case len(names) == 0:
		e.Hint = "roles are given at the submission: gsubmit --role=" + role + ":N"
	case near != "":
		e.Hint = "did you mean " + near + "?"
	default:
		e.Hint = "it has " + strings.Join(names, ", ")
	}
	return e
}
