package supervise

import "gangd/pkg/api"

// Process is one process of a member as the choice of targets needs it.
type Process struct {
	PID     int
	Rank    int  // -1: it could not be told
	Main    bool // the process that the shim started for the rank
	Shell   bool // Main, and a shell just now: not after `exec python`
	Catches bool // it has a handler for the stop signal
	Client  bool // it only waits for others: it is counted as alive, and gets no signal
}

// NoticeTargets picks who gets a notice or a signal order of a scope.
func NoticeTargets(scope api.SignalScope, procs []Process) []int {
	var out []int
	for _, p := range procs {
		if p.Client {
			continue
		}
		batch := p.Main
		ranks := !p.Main || !p.Shell
		if scope == api.ScopeFull || scope == api.ScopeBatch && batch || scope == api.ScopeRanks && ranks {
			out = append(out, p.PID)
		}
	}
	return out
}

// Deferred tells whether a rank's main process gets the stop signal only when the rest of
// its rank is gone. A shell without a handler would die in milliseconds and end the rank
// while its program still saves. With nothing else alive there is nobody to wait for.
func Deferred(p Process, procs []Process) bool {
	if !p.Main || !p.Shell || p.Catches {
		return false
	}
	for _, o := range procs {
		if o.PID != p.PID && (o.Rank == p.Rank || o.Rank < 0) && !(o.Main && o.Rank != p.Rank) {
			return true
		}
	}
	return false
}
