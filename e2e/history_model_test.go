package e2e

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"gangd/pkg/api"
)

// call is what a client asked for of one job: submit, hold, release, cancel, requeue, show.
type call string

// said is the answer.
type said struct {
	unknown bool // the connection broke: it happened, or will, or never
	code    api.Code
	id      int64 // submit
	state   api.JobState
	held    bool // show
	epoch   int
}

// phase is a job as far as its owner's calls can tell.
type phase int

const (
	absent phase = iota
	waiting
	up       // reserved or running: it has an epoch
	draining // COMPLETING
	ended
)

// owned is the state of the model: one job.
type owned struct {
	phase     phase
	id        int64
	epoch     int
	held      bool
	cancelled bool
}

// byItself lists what a job may become without anybody's call: it starts when it is not
// held, it is stopped when a drain is over. The jobs of these histories never end by
// themselves and no node is lost, so there is nothing more. Rolling back a reservation
// brings it back to waiting.
func (s owned) byItself() []owned {
	n := s
	switch s.phase {
	case waiting:
		if s.held || s.cancelled {
			return nil
		}
		n.phase, n.epoch = up, s.epoch+1
	case up:
		n.phase = waiting
	case draining:
		n.phase = waiting
		if s.cancelled {
			n.phase = ended
		}
	default:
		return nil
	}
	return []owned{n}
}

// reach is what a job may have become before the next call takes effect. Between two calls
// on one job few steps fit: a drain, a start, a start that is rolled back and the next.
func (s owned) reach() []owned {
	all := []owned{s}
	for from := 0; from < len(all) && len(all) < 6; from++ {
		all = append(all, all[from].byItself()...)
	}
	return all
}

// after is the effect of a call on a job, and whether the answer fits; a call whose answer is
// unknown also may have had no effect.
func (s owned) after(c call, a said) []owned {
	if s.phase == absent && c != "submit" {
		return nil
	}
	var next []owned
	ok := a.unknown || a.code == ""
	over := a.unknown || a.code == api.CodeAlreadyEnded
	n := s
	switch {
	case c == "submit":
		if s.phase == absent {
			n.phase, n.id = waiting, a.id
		}
		if ok && n.id == a.id {
			next = append(next, n)
		}
	case c == "show":
		if ok && a.fits(s) {
			next = append(next, s)
		}
	case s.phase == ended:
		if over {
			next = append(next, s)
		}
	case c == "hold":
		if ok { // of one that runs it takes effect when it waits again
			n.held = true
			next = append(next, n)
		}
		if s.phase != waiting && a.unknown {
			next = append(next, s)
		}
	case !ok:
	case c == "release":
		n.held = false
		next = append(next, n)
	case c == "cancel":
		n.cancelled = true
		if s.phase == up || s.phase == draining {
			d := n
			d.phase = draining
			next = append(next, d)
		}
		if s.phase == up || s.phase == waiting { // reserved only, or not even that
			n.phase = ended
			next = append(next, n)
		}
	case c == "requeue":
		if s.phase == up {
			d := n
			d.phase = draining
			next = append(next, d)
			n.phase = waiting // it was reserved only
		}
		next = append(next, n)
	}
	if a.unknown {
		next = append(next, s)
	}
	return next
}

func (a said) fits(s owned) bool {
	shown := map[phase][]api.JobState{waiting: {api.JobPending}, up: {api.JobReserved, api.JobRunning}, draining: {api.JobCompleting}, ended: {api.JobCancelled}}
	if a.unknown {
		return true
	}
	for _, st := range shown[s.phase] {
		if st == a.state && a.epoch == s.epoch && (a.held == s.held || s.phase == ended) {
			return true
		}
	}
	return false
}

var jobModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{owned{}} },
	Step: func(state, in, out any) []any {
		seen := map[owned]bool{}
		var next []any
		for _, from := range state.(owned).reach() {
			for _, to := range from.after(in.(call), out.(said)) {
				if !seen[to] {
					seen[to] = true
					next = append(next, to)
				}
			}
		}
		return next
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%s -> %+v", in, out) },
}).ToModel()

// linearizable checks one job's history and says what came of it.
func linearizable(ops []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(jobModel, ops, time.Minute)
}

// The model takes what may happen and refuses what may not: without this it could take
// anything.
func TestHistoryModel(t *testing.T) {
	t.Parallel()
	op := func(at int64, c call, a said) porcupine.Operation {
		r := at + 5
		if a.unknown {
			r = math.MaxInt64
		}
		return porcupine.Operation{Input: c, Output: a, Call: at, Return: r}
	}
	show := func(at int64, st api.JobState, epoch int, held bool) porcupine.Operation {
		return op(at, "show", said{state: st, epoch: epoch, held: held})
	}
	done, lost := said{}, said{unknown: true}
	submitted := op(0, "submit", said{id: 7})
	for name, c := range map[string]struct {
		want porcupine.CheckResult
		ops  []porcupine.Operation
	}{
		"a life":                    {porcupine.Ok, []porcupine.Operation{show(10, api.JobRunning, 1, false), op(20, "requeue", done), show(30, api.JobCompleting, 1, false), show(40, api.JobRunning, 2, false), op(50, "cancel", done), show(60, api.JobCompleting, 2, false), show(70, api.JobCancelled, 2, false)}},
		"a retry":                   {porcupine.Ok, []porcupine.Operation{op(10, "submit", said{id: 7})}},
		"two ids for one key":       {porcupine.Illegal, []porcupine.Operation{op(10, "submit", said{id: 8})}},
		"held, then runs":           {porcupine.Illegal, []porcupine.Operation{op(10, "hold", done), show(20, api.JobPending, 0, true), show(30, api.JobRunning, 1, true)}},
		"runs, then held":           {porcupine.Ok, []porcupine.Operation{op(10, "hold", done), show(20, api.JobRunning, 1, true)}},
		"a hold is forgotten":       {porcupine.Illegal, []porcupine.Operation{op(10, "hold", done), show(20, api.JobPending, 0, false)}},
		"a hold may be lost":        {porcupine.Ok, []porcupine.Operation{op(10, "hold", lost), show(20, api.JobPending, 0, false)}},
		"or not":                    {porcupine.Ok, []porcupine.Operation{op(10, "hold", lost), show(20, api.JobPending, 0, true)}},
		"not both":                  {porcupine.Illegal, []porcupine.Operation{op(10, "hold", lost), show(20, api.JobPending, 0, true), show(30, api.JobPending, 0, false)}},
		"cancelled, then starts":    {porcupine.Illegal, []porcupine.Operation{show(10, api.JobRunning, 1, false), op(20, "cancel", done), show(30, api.JobRunning, 2, false)}},
		"cancelled, then queued":    {porcupine.Illegal, []porcupine.Operation{op(20, "cancel", done), show(30, api.JobPending, 0, false)}},
		"an epoch comes back":       {porcupine.Illegal, []porcupine.Operation{show(10, api.JobRunning, 2, false), show(20, api.JobRunning, 1, false)}},
		"cancel twice":              {porcupine.Ok, []porcupine.Operation{op(10, "cancel", done), op(20, "cancel", said{code: api.CodeAlreadyEnded})}},
		"an end is taken back":      {porcupine.Illegal, []porcupine.Operation{op(10, "cancel", said{code: api.CodeAlreadyEnded}), op(20, "requeue", done)}},
		"restart without a requeue": {porcupine.Illegal, []porcupine.Operation{show(10, api.JobCompleting, 1, false)}},
	} {
		if got := linearizable(append([]porcupine.Operation{submitted}, c.ops...)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
