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
	most  time.Duration // longest that any of them waits
	heard bool          // who asked was seen to have had its answer
	told  map[int]bool  // who was there when the stop came
}

// awaiting is one of those.
type awaiting struct {
	pid  int
	gone bool // it was seen to have ended
	let  bool // it is told like any other
	// had is how much time it had for what is its turn now. For how long it could run and had no CPU is none of that: on a
	// machine that has much to do an interpreter needs seconds to end.
	had          time.Duration
	seen         time.Duration // at the last look
	ran, starved time.Duration // until then
}

// What each of them has time for: to hear its answer; then to end with it; who waits for that, to make something of it. All of
// it together takes no longer than answerMost by the clock, and no more than half of the grace.
const (
	answerWait = 500 * time.Millisecond
	answerRead = 250 * time.Millisecond
	answerUsed = 500 * time.Millisecond
	answerMost = 5 * time.Second
)

func (m *member) asked(a api.Asker) {
	if a.PID > 0 && a.Boot == m.state.BootID && m.asker.by.PID == 0 {
		m.asker.by = a
	}
}

// begin finds who asked and who is above, as far as they are of this member.
func (a *asker) begin(stats map[int]proc.Stat, t, grace time.Duration) {
	a.since, a.most = t, min(answerMost, grace/2)
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
		w := awaiting{pid: pid, seen: t}
		if _, lives := stats[pid]; lives {
			here = true
			w.ran, w.starved, _ = proc.Scheduled(pid)
		} else if w.gone = true; here {
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
		o, _ := m.mach.Outlook(now())
		if a.begin(stats, t, o.Left); a.chain == nil {
			return
		}
	}
	waits := map[int]bool{}
	for i := range a.chain {
		w := &a.chain[i]
		s, lives := stats[w.pid]
		if !lives {
			if !w.gone && i+1 < len(a.chain) {
				a.chain[i+1].had = 0 // it is the next one's turn
			}
			w.gone = true
			continue
		}
		w.look(s.State, t)
		if i == 0 && !a.heard && !proc.HasSocket(w.pid) {
			a.heard, w.had = true, 0
		}
		if !w.let {
			w.let = !a.waits(i, t)
			waits[w.pid] = !w.let
		}
	}
	for i := range procs {
		if p := &procs[i]; waits[p.PID] {
			s := proc.ReadSignals(p.PID)
			p.Asks = p.PID == a.by.PID || !s.Catches(sig) && !s.Ignores(sig)
			p.Blocks = p.PID != a.by.PID && p.Asks && s.Blocks(sig)
		}
	}
}

// waits says whether one of them is not to be told yet.
func (a *asker) waits(i int, t time.Duration) bool {
	most := answerUsed
	switch {
	case t-a.since >= a.most:
		return false
	case i == 0 && !a.heard:
		most = answerWait
	case i == 0:
		most = answerRead
	case !a.chain[i-1].gone:
		return !a.chain[i-1].let
	}
	return a.chain[i].had < most
}

// look counts the time since the last one, as far as it was the process's own.
func (w *awaiting) look(state byte, t time.Duration) {
	ran, starved, known := proc.Scheduled(w.pid)
	switch {
	case known && state == 'R': // for how long it waits by now the kernel says when it is over
		w.had += ran - w.ran
	case state == 'D': // a disk, or what was swapped out, keeps it waiting
	default:
		w.had += max(t-w.seen-(starved-w.starved), 0)
	}
	w.seen, w.ran, w.starved = t, ran, starved
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
