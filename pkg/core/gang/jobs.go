package gang

import (
	"iter"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
)

// jobs are those in memory, and what changed of them since the last Take.
type jobs struct {
	byID    map[int64]*entry
	noEpoch *epoch // of those that have no nodes; nothing is written to it
	nextID  int64

	dirty    []*entry
	purged   []int64
	revived  []int64
	touched  []int64            // whose candidacy may have changed; with repeats
	prepared map[int64]struct{} // gangs of which another number of ranks is prepared
}

// entry is a job with what is derived from it; nothing in here is stored.
type entry struct {
	job      *Job
	asked    *sharedAsk
	*epoch                    // of an admitted gang; all others have [World].noEpoch
	dirty    map[int]struct{} // ranks changed since the last Take
	leaves   time.Duration    // when it leaves memory, on the clock that does not jump; 0: it has not ended
	left     int32            // members of past epochs that may still run, see Left
	owned    bool             // job was cloned since the last Take
	ownRanks bool             // so were its ranks
	allDirty bool             // all of them changed since the last Take
	waiting  bool             // its dependency is watched, see depend.go
	offered  bool             // element of a limited array: one of those that may be admitted next
}

// epoch is what is derived from the members of an admitted gang, and what was heard of them.
type epoch struct {
	prepared map[int]int // of a reserved gang: the port that was picked, by member that is prepared
	ranks    int         // of prepared members
	alive    int         // members neither stopped nor fenced
	open     int         // ranks with a process that has not exited
	body     *api.AssignmentBody
	stuck    map[int]string   // survivors by member
	deaf     map[int]bool     // members whose processes can't hear the notice. Nodes say it again after a restart
	heard    bool             // one at least can
	warned   map[int]string   // what ranks are warned of now
	ready    map[int]struct{} // ranks that said READY=1, while the gate waits
	// readyTasks are tasks of its steps that did.
	readyTasks map[api.TaskKey]struct{}
	guard      *guard        // of its watchdogs; nil: nothing was seen yet
	drainAt    time.Duration // when the drain under way began, on the clock that does not jump
	endAt      time.Duration // when a rank was last said to have ended by itself, not well, on the same clock
	asker      api.Asker     // who asked for the drain; not stored: a restart takes longer than an answer
	// stacks is where the processes of members were before they were stopped, by member. Nodes say it again after a restart.
	stacks map[int]*api.MemberStacks
}

// edit gives the job to write to: cloned once between two Takes.
func (js *jobs) edit(e *entry) *Job {
	if !e.owned {
		e.job = clone(e.job)
		e.owned = true
		js.dirty = append(js.dirty, e)
	}
	return e.job
}

// editRank gives the rank to write to.
func (js *jobs) editRank(e *entry, i int) *Rank {
	if !e.allDirty {
		if e.dirty == nil {
			e.dirty = map[int]struct{}{}
		}
		e.dirty[i] = struct{}{}
	}
	return &js.editRanks(e)[i]
}

// editRanks gives all ranks to write to. A job is edited each time that one of its members says something, and
// what most say is not of the ranks, of which there may be thousands.
func (js *jobs) editRanks(e *entry) []Rank {
	j := js.edit(e)
	if !e.ownRanks {
		j.Ranks = slices.Clone(j.Ranks)
		e.ownRanks = true
	}
	return j.Ranks
}

// clone copies a job but for its ranks: see [jobs.editRanks].
func clone(j *Job) *Job {
	c := j.Copy()
	c.Members = slices.Clone(j.Members)
	c.Used = maps.Clone(j.Used)
	c.Steps = slices.Clone(j.Steps)
	for i := range c.Steps {
		c.Steps[i].Parts = slices.Clone(c.Steps[i].Parts)
	}
	if j.Drain != nil {
		d := *j.Drain
		d.Later = slices.Clone(d.Later)
		d.Reports = slices.Clone(d.Reports)
		c.Drain = &d
	}
	return c
}

func (e *entry) appendRanks(rows []RankRow) []RankRow {
	if e.allDirty {
		rows = slices.Grow(rows, len(e.job.Ranks))
		for i, r := range e.job.Ranks {
			rows = append(rows, RankRow{Job: e.job.ID, Index: i, Rank: r})
		}
		return rows
	}
	rows = slices.Grow(rows, len(e.dirty))
	for _, i := range slices.Sorted(maps.Keys(e.dirty)) {
		rows = append(rows, RankRow{Job: e.job.ID, Index: i, Rank: e.job.Ranks[i]})
	}
	return rows
}

// takePrepared counts the prepared ranks of gangs of which that has changed.
func (js *jobs) takePrepared() map[int64]int {
	if len(js.prepared) == 0 {
		return nil
	}
	out := map[int64]int{}
	for id := range js.prepared {
		if e := js.byID[id]; e != nil && reserved(e.job) {
			out[id] = e.ranks
		}
	}
	clear(js.prepared)
	return out
}

// find is the newest form of a job in memory, nil when there is none.
func (js *jobs) find(id int64) *Job {
	if e := js.byID[id]; e != nil {
		return e.job
	}
	return nil
}

// all walks the jobs in memory by id.
func (js *jobs) all() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for _, id := range slices.Sorted(maps.Keys(js.byID)) {
			if !yield(js.byID[id].job) {
				return
			}
		}
	}
}

// living finds a job that has not ended.
func (js *jobs) living(id int64) (*entry, *api.Error) {
	e := js.byID[id]
	if e == nil {
		return nil, notFound(id)
	}
	if e.job.Verdict != nil {
		return nil, ended(e.job)
	}
	return e, nil
}

// element finds an element of an array all of whose elements are in memory. Their ids
// follow each other, their indices ascend.
func (js *jobs) element(arrayID int64, index int) *entry {
	first := js.byID[arrayID]
	if first == nil || first.job.Array == nil || first.job.ArrayID != arrayID {
		return nil // an element has none: what follows its array is others' jobs
	}
	lo, hi := arrayID, arrayID+int64(first.job.Array.Count)
	for lo < hi {
		mid := (lo + hi) / 2
		e := js.byID[mid]
		switch {
		case e == nil:
			return nil
		case e.job.ArrayIndex == index:
			return e
		case e.job.ArrayIndex < index:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return nil
}

// changed says that what the scheduler knows of a job, or whether it may be admitted, has changed.
func (js *jobs) changed(e *entry) { js.touched = append(js.touched, e.job.ID) }

// take gives what changed, each job once, by id.
func (js *jobs) take(ch *Changes) {
	slices.SortFunc(js.dirty, func(a, b *entry) int { return int(a.job.ID - b.job.ID) })
	for _, e := range js.dirty {
		e.job.Share()
		// One that has left memory since is here too: its end must reach the store.
		ch.Jobs = append(ch.Jobs, e.job)
		ch.Ranks = e.appendRanks(ch.Ranks)
		e.owned, e.ownRanks, e.allDirty, e.dirty = false, false, false, nil
	}
	slices.Sort(js.purged)
	ch.Purged, ch.Revived, ch.NextID = js.purged, unique(js.revived), js.nextID
	ch.Queue, ch.Prepared = unique(js.touched), js.takePrepared()
	js.dirty, js.purged, js.revived, js.touched = nil, nil, nil, nil
}
