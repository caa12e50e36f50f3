package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// The ready gate: a job that was submitted with a ready time-out has come up when each of its
// ranks has said READY=1, or has ended well before it could. Until then it runs and is shown
// as not ready; what is not ready in time has failed to launch. Who has said so is not
// stored, the nodes say it again to a new controller; that the gate was passed is.

// Ready: these ranks of an epoch have said READY=1.
type Ready struct {
	Job   int64
	Epoch int
	Ranks []int
}

func (Ready) event() {}

// AwaitsReady reports whether the ready gate of a job is still to be passed.
func AwaitsReady(j *Job) bool {
	return j.Spec.ReadyTimeout > 0 && j.ReadyAt.IsZero() && j.Drain == nil && j.Verdict == nil && admitted(j) && !reserved(j)
}

func (w *World) saidReady(ev Ready) Outcome {
	e := w.jobs[ev.Job]
	if e == nil || e.job.Epoch != ev.Epoch || !AwaitsReady(e.job) {
		return ignored("no ready gate waits for it")
	}
	more := false
	for _, r := range ev.Ranks {
		if r < 0 || r >= len(e.job.Ranks) || !hasProcess(e.job, r) {
			continue
		}
		if _, known := e.ready[r]; !known {
			if e.ready == nil {
				e.ready = map[int]struct{}{}
			}
			e.ready[r] = struct{}{}
			more = true
		}
	}
	if !more {
		return ignored("known to be ready")
	}
	w.passReady(e)
	return applied()
}

// passReady opens the ready gate when nobody is waited for any more.
func (w *World) passReady(e *entry) {
	if !AwaitsReady(e.job) || len(w.unready(e)) > 0 {
		return
	}
	j := w.edit(e)
	w.timers.cancel(timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
	j.ReadyAt = w.now.Wall
	w.emitJob(j, api.Event{Type: api.EventReady, Size: Processes(j), Seconds: seconds(w.now.Wall.Sub(j.Start))})
}

// unready lists the ranks that the ready gate waits for.
func (w *World) unready(e *entry) []int {
	var out []int
	for r := range Processes(e.job) {
		if _, ok := e.ready[r]; !ok && e.job.Ranks[r].State == api.RankRunning {
			out = append(out, r)
		}
	}
	return out
}

func (w *World) armReady(j *Job) {
	if j.Spec.ReadyTimeout > 0 && j.ReadyAt.IsZero() {
		w.in(j.Spec.ReadyTimeout, timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
	}
}

// readyTimeout: not every rank was ready in time. Ranks on nodes without a session are not
// judged: what they said may be on its way, and their node comes back or is lost.
func (w *World) readyTimeout(e *entry) {
	if e == nil || !AwaitsReady(e.job) {
		return
	}
	j, late := e.job, w.unready(e)
	away := func(r int) bool { return !w.nodes[j.Ranks[r].Slot.Node].node.Connected }
	if slices.ContainsFunc(late, away) {
		w.in(w.set.NodeTimeout, timer{kind: timerReady, job: j.ID, epoch: j.Epoch})
		return
	}
	w.drain(e, api.CauseLaunch, late[0], fmt.Sprintf("%s not ready within %s (%d of %d were)", rankList(j, late), j.Spec.ReadyTimeout,
		Processes(j)-len(late), Processes(j)))
}

// rankList names ranks for people: "rank 3 (worker)", "ranks 1, 2, 5 and 12 more".
func rankList(j *Job, ranks []int) string {
	if len(ranks) == 1 {
		return rankName(j, ranks[0])
	}
	const most = 8
	names := make([]string, min(most, len(ranks)))
	for i := range names {
		names[i] = strconv.Itoa(ranks[i])
	}
	if more := len(ranks) - most; more > 0 {
		return fmt.Sprintf("ranks %s and %d more", strings.Join(names, ", "), more)
	}
	return fmt.Sprintf("ranks %s and %s", strings.Join(names[:len(names)-1], ", "), names[len(names)-1])
}
