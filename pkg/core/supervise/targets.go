package supervise

import (
	"slices"

	"gangd/pkg/api"
)

// Process is one process of a member as the choice of targets needs it.
type Process struct {
	PID     int
	Rank    int  // -1: it could not be told
	Main    bool // the process that the shim started for the rank
	Shell   bool // Main, and a shell just now: not after `exec python`
	Catches bool // it has a handler for the signal; of a stop only a Shell is asked
	Ignores bool // it is a Shell that ignores the signal
	Saves   bool // the signal would end it, and it brings bytes to a checkpoint that is being stored
	Blocks  bool // it Saves or Asks, and blocks the signal just now: to wait for it, or for as long as it forks
	Asks    bool // it asked for this stop, or waits for who did, and has not heard the answer
	Client  bool // it only waits for others: it is counted as alive, and gets no signal but, of a rank, the stop signal at last
	Step    bool // of a step, its launcher too
	Told    bool // of a step whose tasks were sent their stop signal
}

// SignalTargets picks who gets a signal that somebody sends, handler or not. The ranks of a gang without a
// batch script are what the tasks of a step are to one with: what is for steps is for them, as for ranks. named are the
// ranks of ScopeNamed.
func SignalTargets(scope api.SignalScope, named []int, batch bool, procs []Process) []int {
	if scope == api.ScopeSteps && !batch {
		scope = api.ScopeRanks
	}
	var out []int
	for _, p := range procs {
		if p.Client {
			continue
		}
		in := false
		switch scope {
		case api.ScopeFull:
			in = true
		case api.ScopeBatch:
			in = p.Main
		case api.ScopeRanks:
			in = !p.Main || !p.Shell
		case api.ScopeNamed:
			in = (!p.Main || !p.Shell) && slices.Contains(named, p.Rank)
		case api.ScopeSteps:
			in = p.Step
		}
		if in {
			out = append(out, p.PID)
		}
	}
	return out
}

// NoticeTargets picks who gets a notice: of its scope those who have a handler. A notice tells
// a program to save; one that can't would only die of it, and take the rank with it. With
// batch the script's shell is in the scope only when it is named, as in Slurm; the script of a
// rank is as much of the rank as its programs.
//
// A rank whose script alone is meant and does not take the notice passes it on to what runs in
// it; passed says that there is one.
func NoticeTargets(scope api.SignalScope, batch bool, procs []Process) (pids []int, passed bool) {
	deaf := map[int]bool{}
	for _, p := range procs {
		if p.Main && !p.Catches {
			deaf[p.Rank] = true
		}
	}
	for _, p := range procs {
		in := true
		switch scope {
		case api.ScopeBatch:
			in = p.Main || deaf[p.Rank]
		case api.ScopeRanks:
			in = !batch || !p.Main || !p.Shell
		case api.ScopeSteps:
			in = p.Step
		}
		if in && p.Catches && !p.Client {
			pids = append(pids, p.PID)
		}
	}
	return pids, scope == api.ScopeBatch && len(deaf) > 0
}

// Listens tells whether a notice has somebody here who can hear it. One for the script alone goes to all others where
// the script does not take it, on whatever node that is: there anybody counts.
func Listens(scope api.SignalScope, batch bool, procs []Process) bool {
	if scope == api.ScopeBatch {
		return slices.ContainsFunc(procs, func(p Process) bool { return p.Catches && !p.Client })
	}
	pids, _ := NoticeTargets(scope, batch, procs)
	return len(pids) > 0
}

// StopTargets picks who gets the stop signal now. It comes once: what was told by its step is
// left alone. Those who wait get it when the rest of their rank is gone, see [Deferred], or when
// their checkpoint is stored: the bytes would be cut off; or when they have heard the answer.
func StopTargets(procs []Process) (now, wait []Process) {
	for _, p := range procs {
		switch {
		case p.Saves || p.Asks || Deferred(p, procs):
			wait = append(wait, p)
		case (!p.Client || p.Main) && !p.Told:
			now = append(now, p)
		}
	}
	return now, wait
}

// Deferred tells whether a rank's main process gets the stop signal only when the rest of
// its rank is gone. A shell without a handler would die in milliseconds and end the rank
// while its program still saves; so would one that only holds an allocation. One that ignores
// the signal has made its choice, and runs on. With nothing else alive there is nobody to wait for.
func Deferred(p Process, procs []Process) bool {
	if !p.Main || !p.Client && (!p.Shell || p.Catches || p.Ignores) {
		return false
	}
	for _, o := range procs {
		if o.PID != p.PID && (o.Rank == p.Rank || o.Rank < 0) && !(o.Main && o.Rank != p.Rank) {
			return true
		}
	}
	return false
}
