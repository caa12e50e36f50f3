package sim

import (
	"errors"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// History is what a site wants kept of ended jobs; the zero value is what a site has that
// says nothing.
type History struct {
	Memory time.Duration // keep_ended; 0: as Settings has it
	Keep   time.Duration // history_keep
	Jobs   int           // history_jobs
}

// forgetting is how long after the last end everything has to be forgotten that is to be:
// looks are a minute apart, and what is depended on is kept for another Memory.
const forgetting = 3 * time.Minute

// ending is what the history goes by of an ended job.
type ending struct {
	at    time.Time
	array int64 // 0: of none
}

func endingOf(j *gang.Job) ending {
	if j.End.IsZero() { // it never started
		return ending{j.Submit, j.ArrayID}
	}
	return ending{j.End, j.ArrayID}
}

// apply sets it.
func (h *History) apply(r *run) {
	if *h == (History{}) {
		return
	}
	if h.Memory > 0 {
		r.set.KeepEnded = h.Memory
	}
	r.set.HistoryKeep, r.set.HistoryJobs = h.Keep, h.Jobs
}

// mayForget says whether the controller may have forgotten a job by now.
func (t *truth) mayForget(id int64) bool {
	mine, over := t.over[id]
	at := mine.at
	set := &t.r.set
	age := t.r.instant().Wall.Sub(at)
	if !over || age < set.KeepEnded {
		return false
	}
	if set.HistoryKeep > 0 && age >= set.HistoryKeep {
		return true
	}
	later := 0
	for _, o := range t.over {
		if o.at.After(at) {
			later++
		}
	}
	return set.HistoryJobs > 0 && later >= set.HistoryJobs
}

// remembered: each acknowledged job is there, or was over so long that it may be forgotten.
func (t *truth) remembered(g *gangd) {
	w := g.drv.World()
	for index, ids := range t.acked {
		for _, id := range ids {
			if w.Job(id) != nil {
				continue
			}
			j, err := g.store.Job(t.r.ctx, id)
			if errors.Is(err, store.ErrNotFound) && t.mayForget(id) {
				continue
			}
			if err != nil || j.Verdict == nil {
				t.r.fail("I3", "job %d of submission %d was acknowledged and is not there: %v", id, index, err)
			}
		}
	}
}

// settledHistory reports whether what is to be forgotten has had the time for it.
func (r *run) settledHistory() bool {
	if r.sc.History == (History{}) || r.sc.Lean { // a day has shown it by then
		return true
	}
	last := began
	for _, o := range r.truth.over {
		if o.at.After(last) {
			last = o.at
		}
	}
	return r.instant().Wall.Sub(last) > 2*r.set.KeepEnded+forgetting
}

// forgotten: at the end nothing is there that nobody wants to keep. An array is one.
func (t *truth) forgotten(g *gangd) {
	arrays := map[int64]bool{} // that stay
	for id, o := range t.over {
		arrays[o.array] = arrays[o.array] || !t.mayForget(id)
	}
	for id, o := range t.over {
		if !t.mayForget(id) || o.array != 0 && arrays[o.array] {
			continue
		}
		if _, err := g.store.Job(t.r.ctx, id); err == nil {
			t.r.fail("history", "job %d ended %s and is still there", id, o.at)
		}
	}
	t.r.res.Forgotten += len(t.over) - t.kept(g)
}

// kept counts the ended jobs in the store.
func (t *truth) kept(g *gangd) int {
	jobs, err := g.store.Jobs(t.r.ctx, store.HistoryFilter{})
	if err != nil {
		t.r.fail("history", "%v", err)
	}
	return len(jobs)
}
