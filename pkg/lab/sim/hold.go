package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
)

// Who is told of an end: package supervise chooses among the processes of a member, as it does
// for package shim, after which the rest is modelled.

const (
	heldFirst = time.Millisecond // as in package shim
	heldSlow  = 20 * time.Millisecond
)

// processes lists who lives in the member.
func (s *shimProc) processes(notice bool) []supervise.Process {
	var out []supervise.Process
	for _, p := range s.m.containment(s.key) {
		x := supervise.Process{PID: p.pid, Rank: -1, Main: p.main, Shell: p.shell(), Client: p.waits()}
		switch {
		case len(s.spec.ranks) == 1:
			x.Rank = s.spec.ranks[0]
		case p.launch == nil && p.client == nil:
			x.Rank = p.rank
		}
		x.Catches = !x.Client && (notice || x.Shell) && p.catches(notice)
		x.Told = p.launch != nil && p.launch.told
		out = append(out, x)
	}
	return out
}

func (s *shimProc) pid(pid int) *proc {
	for _, p := range s.m.containment(s.key) {
		if p.pid == pid {
			return p
		}
	}
	return nil
}

// notify gives the notice to those that it is for.
func (s *shimProc) notify(scope api.SignalScope) {
	procs := s.processes(true)
	pids, passed := supervise.NoticeTargets(scope, s.spec.batch, procs)
	s.heard = s.heard || supervise.Listens(scope, s.spec.batch, procs)
	s.dirty = s.dirty || s.state.Deaf == s.heard
	s.state.Deaf = !s.heard
	s.m.r.truth.noticed(s, scope)
	for _, pid := range pids {
		s.pid(pid).notice()
	}
	if passed && s.spec.batch && !s.state.Passed {
		s.state.Passed, s.dirty = true, true
	}
}

// stop sends the stop signal. A shell without a handler is stopped until the rest of its rank
// is gone.
func (s *shimProc) stop() {
	for _, l := range s.steps {
		l.p.after(s.m.hop(), func() { l.draining = true })
	}
	now, wait := supervise.StopTargets(s.processes(false))
	for _, x := range wait {
		p := s.pid(x.PID)
		p.held = true
		s.holding, s.holdStep = append(s.holding, p), heldFirst
	}
	for _, x := range now {
		s.pid(x.PID).term()
	}
	for _, l := range s.steps {
		l.told = true
	}
}

// checkHeld lets the shells go whose rank has nobody else left.
func (s *shimProc) checkHeld() {
	if len(s.holding) == 0 {
		return
	}
	all := s.processes(false)
	var kept []*proc
	for _, p := range s.holding {
		switch {
		case p.ended || p.killed: // somebody ended it
		case supervise.Deferred(supervise.Process{PID: p.pid, Rank: p.rank, Main: true, Shell: true}, all):
			kept = append(kept, p)
		default:
			p.term()
		}
	}
	s.holding, s.holdStep = kept, min(2*s.holdStep, heldSlow)
}
