package shim

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// A rank, a trap or a script may ask for the end of its own job. The answer and the stop leave the controller
// together, and the stop is often the faster one: it would end who asked before they know that it was granted,
// and `scontrol requeue $SLURM_JOB_ID || echo failed` would say that it was not. So the process that asked is told when
// its connection is closed, and those that wait for it and have no handler when they have seen how it ended; everybody
// else at once. Who waits for it is known from before the answer: it may end, and be waited for, before the stop is here.

// asker is the process of this member that asked for the stop, and those above it; none: it was somebody else.
type asker struct {
	by    api.Asker
	chain []awaiting    // who asked, and upwards who waits for whom
	since time.Duration // when the others were told, monotonic
	heard time.Duration // when who asked was seen to have had its answer; 0: not yet
	told  map[int]bool  // who was there when the stop came
}

// awaiting is one of those.
type awaiting struct {
	pid     int
	gone    time.Duration // when it was seen to have ended; 0: not yet
	starved time.Duration // how long it had waited for a CPU when the others were told
	let     bool          // it is told like any other
}

const (
	answerWait = 500 * time.Millisecond // longest that a stop waits for an answer
	answerRead = 250 * time.Millisecond // to end with the answer, and for who waits for that to see it
	// answerMost bounds all of it together with the time for which a process could run and was not let: where a machine
	// has much to do, that is no time in which it could have read its answer.
	answerMost = 1500 * time.Millisecond
)

func (m *member) asked(a api.Asker) {
	if a.PID > 0 && a.Boot == m.state.BootID && m.asker.by.PID == 0 {
		m.asker.by = a
	}
}

// begin finds who asked and who is above, as far as they are of this member.
func (a *asker) begin(stats map[int]proc.Stat, t time.Duration) {
	a.since = t
	here := false
	if a.by.Above == "" { // by an older controller
		for p := stats[a.by.PID]; stats[p.PPID].PID > 0; p = stats[p.PPID] {
			a.by.Above += " " + strconv.Itoa(p.PPID)
		}
	}
	for _, text := range append([]string{strconv.Itoa(a.by.PID)}, strings.Fields(a.by.Above)...) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			break
		}
		w := awaiting{pid: pid}
		if _, lives := stats[pid]; lives {
			here, w.starved = true, proc.Starved(pid)
		} else if w.gone = t; here {
			break // the rest are not of this member
		}
		a.chain = append(a.chain, w)
	}
	if !here { // it is of another member
		*a = asker{by: api.Asker{PID: -1}}
		return
	}
	a.told = make(map[int]bool, len(stats))
	for pid := range stats {
		a.told[pid] = true
	}
}

// markAsks finds who is not to be told yet.
func (m *member) markAsks(procs []supervise.Process, stats map[int]proc.Stat, sig unix.Signal) {
	a := &m.asker
	if a.by.PID <= 0 {
		return
	}
	t := clock(unix.CLOCK_MONOTONIC)
	if a.chain == nil {
		if a.begin(stats, t); a.chain == nil {
			return
		}
	}
	waits := map[int]bool{}
	for i := range a.chain {
		w := &a.chain[i]
		s, lives := stats[w.pid]
		switch {
		case lives && i == 0 && a.heard == 0 && !proc.HasSocket(w.pid):
			a.heard = t
		case !lives && w.gone == 0:
			w.gone = t
		}
		if lives && !w.let {
			w.let = !a.waits(i, &s, t)
			waits[w.pid] = !w.let
		}
	}
	for i := range procs {
		if p := &procs[i]; waits[p.PID] {
			s := proc.ReadSignals(p.PID)
			p.Asks = p.PID == a.by.PID || !s.Takes(sig) && !s.Ignores(sig)
		}
	}
}

// waits says whether one of them is not to be told yet.
func (a *asker) waits(i int, s *proc.Stat, t time.Duration) bool {
	w, from, most := &a.chain[i], a.since, answerWait
	switch {
	case i == 0 && a.heard > 0:
		from, most = a.heard, answerRead
	case i > 0 && a.chain[i-1].gone == 0:
		return !a.chain[i-1].let
	case i > 0:
		from, most = a.chain[i-1].gone, answerRead
	}
	if t-a.since >= answerMost {
		return false
	}
	return s.State == 'R' || t-from-max(proc.Starved(w.pid)-w.starved, 0) < most
}

// tellBorn gives the signal to what a process that was let run on has started meanwhile. The process is stopped first, until
// its own signal: it could start one more between the look and that, and the one more would outlive it.
func (m *member) tellBorn(parent int, sig unix.Signal) {
	if m.asker.told == nil {
		return
	}
	send(parent, unix.SIGSTOP)
	awaitStop(parent, time.Now().Add(stopWait))
	stats := m.stats()
	for pid, s := range stats {
		if m.asker.told[pid] {
			continue
		}
		for p, ok := s, true; ok; p, ok = stats[p.PPID] {
			if p.PPID == parent {
				m.asker.told[pid] = true
				deliver(pid, sig)
				break
			}
		}
	}
}
