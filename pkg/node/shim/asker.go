package shim

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/proc"
)

// A rank, a trap or a script may ask for the end of its own job. The answer and the stop leave the controller
// together, and the stop is often the faster one: it would end who asked before they know that it was granted,
// and `scontrol requeue $SLURM_JOB_ID || echo failed` would say that it was not. So the process that asked is told when
// its connection is closed, and those that wait for it and have no handler a moment later; everybody else at once.

// asker is the process of this member that asked for the stop; pid 0: it was somebody else.
type asker struct {
	pid   int
	chain []int         // it and its ancestors here, when the stop came
	since time.Duration // when the others were told, monotonic
	heard time.Duration // when it was seen to have had its answer; 0: not yet
	told  map[int]bool  // who was there when the stop came
}

const (
	answerWait = 500 * time.Millisecond // longest that a stop waits for an answer
	answerRead = 200 * time.Millisecond // to end with the answer, and for those who wait for who asked to see how it ended
)

func (m *member) asked(a api.Asker) {
	if a.PID > 0 && a.Boot == m.state.BootID {
		m.asker.pid = a.PID
	}
}

// markAsks finds who asked, where it is one of these, and its ancestors among them.
func (m *member) markAsks(procs []supervise.Process, stats map[int]proc.Stat, sig unix.Signal) {
	a := &m.asker
	if a.pid == 0 {
		return
	}
	t := clock(unix.CLOCK_MONOTONIC)
	if a.chain == nil {
		// It may have ended by now, and who waits for it not have seen that.
		if p, ok := proc.ReadStat(a.pid); ok {
			for p, ok = stats[p.PPID]; ok; p, ok = stats[p.PPID] {
				a.chain = append(a.chain, p.PID)
			}
		}
		if _, here := stats[a.pid]; here {
			a.chain = append(a.chain, a.pid)
		}
		if a.since = t; a.chain == nil { // it is of another member, or its answer is known
			a.pid = 0
			return
		}
		a.told = make(map[int]bool, len(stats))
		for pid := range stats {
			a.told[pid] = true
		}
	}
	_, lives := stats[a.pid]
	if a.heard == 0 && (!lives || !proc.HasSocket(a.pid)) {
		a.heard = t
	}
	for i := range procs {
		p := &procs[i]
		switch late := t - a.since; {
		case late >= answerWait || !slices.Contains(a.chain, p.PID):
		case p.PID == a.pid:
			p.Asks = a.heard == 0 || t-a.heard < answerRead
		case a.heard == 0 || lives || t-a.heard < answerRead:
			s := proc.ReadSignals(p.PID)
			p.Asks = !s.Takes(sig) && !s.Ignores(sig)
		}
	}
}

// tellBorn gives the signal to what a process that was let run on has started meanwhile.
func (m *member) tellBorn(parent int, sig unix.Signal) {
	if m.asker.told == nil {
		return
	}
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
