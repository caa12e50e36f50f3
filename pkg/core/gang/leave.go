package gang

import "time"

// MostEnded bounds how many ended jobs are in memory, some 3 KB each: of a million that end within [api.Settings].KeepEnded those
// that ended first leave early. Their keys are remembered all the same, and the store has them whole.
const MostEnded = 50_000

// Those that are to leave at the same time, a million after a pause of the machine, go by mostLeave within each leavePause:
// 10 us each, so that who plans and answers meanwhile notices nothing.
const (
	mostLeave  = 256
	leavePause = 50 * time.Millisecond
)

// leaver is an ended job that is to leave memory. It stands for nothing where the job was queued again, or is to leave at
// another time.
type leaver struct {
	job int64
	at  time.Duration
}

// leaveIn lets an ended job leave memory after a time.
func (w *World) leaveIn(e *entry, d time.Duration) {
	e.leaves = w.clock.now.Mono + max(d, 1)
	w.leaving = append(w.leaving, leaver{e.job.ID, e.leaves})
	if len(w.leaving) == 1 {
		w.armLeave()
	}
}

func (w *World) armLeave() {
	if len(w.leaving) > 0 {
		w.clock.in(w.leaving[0].at-w.clock.now.Mono, timer{kind: timerLeave})
	}
}

// nextLeaver is the one that leaves first; nil: nobody does.
func (w *World) nextLeaver() *entry {
	for ; len(w.leaving) > 0; w.leaving = w.leaving[1:] {
		if e := w.jobs.byID[w.leaving[0].job]; e != nil && e.leaves == w.leaving[0].at {
			return e
		}
	}
	return nil
}

// purgeDue takes those out of memory whose time has come.
func (w *World) purgeDue() {
	for range mostLeave {
		e := w.nextLeaver()
		if e == nil || e.leaves > w.clock.now.Mono {
			w.armLeave()
			return
		}
		w.leaving = w.leaving[1:]
		w.purge(e, false)
	}
	w.clock.in(leavePause, timer{kind: timerLeave})
}

// makeRoom takes those that ended first out of memory where there are too many. Of some that must stay the next end finds
// two others.
func (w *World) makeRoom() {
	for range 2 {
		if len(w.jobs.byID)-w.site.holdings.live <= w.mostEnded {
			return
		}
		e := w.nextLeaver()
		if e == nil {
			return
		}
		w.leaving = w.leaving[1:]
		w.purge(e, true)
	}
}

// purge takes an ended job out of memory; early: before its time.
func (w *World) purge(e *entry, early bool) {
	j := e.job
	if w.deps.watched(j) {
		w.leaveIn(e, w.set.KeepEnded)
		return
	}
	a := w.queue.arrays[j.ArrayID]
	if a != nil && j.ID == j.ArrayID && a.live > 1 {
		a.due = true
		return
	}
	w.forget(e, early)
	if a == nil {
		return
	}
	if a.live--; a.live == 0 {
		delete(w.queue.arrays, j.ArrayID)
	} else if first := w.jobs.byID[j.ArrayID]; a.live == 1 && a.due && first != nil {
		w.forget(first, early)
		delete(w.queue.arrays, j.ArrayID)
	}
}

func (w *World) forget(e *entry, early bool) {
	j := e.job
	delete(w.jobs.byID, j.ID)
	if w.keys[j.Key] == j.ID {
		if delete(w.keys, j.Key); early {
			w.keepKey(j.Key, j.ID)
		}
	}
	if a := w.queue.arrays[j.ArrayID]; a != nil {
		a.tally(j, -1)
	}
	w.specs.dropAsk(e.asked)
	w.specs.drop(j)
	w.jobs.purged = append(w.jobs.purged, j.ID)
}

// pastKey is the key of a job that is not in memory any more.
type pastKey struct {
	key   string
	job   int64
	until time.Duration
}

// keepKey remembers a key for as long as any may be that was to be remembered.
func (w *World) keepKey(key string, job int64) {
	w.forgetKeys()
	w.keys[key] = job
	w.pastKeys = append(w.pastKeys, pastKey{key, job, w.clock.now.Mono + w.set.KeepEnded})
}

// forgetKeys drops those whose time is over. A job that was recalled has its key again for itself.
func (w *World) forgetKeys() {
	for ; len(w.pastKeys) > 0 && w.pastKeys[0].until <= w.clock.now.Mono; w.pastKeys = w.pastKeys[1:] {
		if p := &w.pastKeys[0]; w.keys[p.key] == p.job && w.jobs.byID[p.job] == nil {
			delete(w.keys, p.key)
		}
	}
}
