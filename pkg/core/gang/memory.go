package gang

import (
	"fmt"
	"time"

	"gangd/pkg/api"
)

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

// memory is which jobs are in memory, and for how long what they were submitted by is remembered.
type memory struct {
	set      *api.Settings
	clock    *clock
	jobs     *jobs
	nodes    *nodes
	specs    *specs
	holdings *holdings
	pools    *pools
	queue    *queue
	deps     *dependencies
	launches *launches
	fleet    *fleet

	keys      map[string]int64 // submission key -> first job, in memory or one of pastKeys
	leaving   []leaver         // ended jobs, by when they leave memory
	pastKeys  []pastKey        // of jobs that left memory before their time, by when they are forgotten
	mostEnded int              // ended jobs in memory: [MostEnded]
}

// leaveIn lets an ended job leave memory after a time.
func (m *memory) leaveIn(e *entry, d time.Duration) {
	e.leaves = m.clock.now.Mono + max(d, 1)
	m.leaving = append(m.leaving, leaver{e.job.ID, e.leaves})
	if len(m.leaving) == 1 {
		m.arm()
	}
}

func (m *memory) arm() {
	if len(m.leaving) > 0 {
		m.clock.in(m.leaving[0].at-m.clock.now.Mono, timer{kind: timerLeave})
	}
}

// next is the one that leaves first; nil: nobody does.
func (m *memory) next() *entry {
	for ; len(m.leaving) > 0; m.leaving = m.leaving[1:] {
		if e := m.jobs.byID[m.leaving[0].job]; e != nil && e.leaves == m.leaving[0].at {
			return e
		}
	}
	return nil
}

// purgeDue takes those out of memory whose time has come.
func (m *memory) purgeDue() {
	for range mostLeave {
		e := m.next()
		if e == nil || e.leaves > m.clock.now.Mono {
			m.arm()
			return
		}
		m.leaving = m.leaving[1:]
		m.purge(e, false)
	}
	m.clock.in(leavePause, timer{kind: timerLeave})
}

// makeRoom takes those that ended first out of memory where there are too many. Of some that must stay the next end finds
// two others.
func (m *memory) makeRoom() {
	for range 2 {
		if len(m.jobs.byID)-m.holdings.live <= m.mostEnded {
			return
		}
		e := m.next()
		if e == nil {
			return
		}
		m.leaving = m.leaving[1:]
		m.purge(e, true)
	}
}

// purge takes an ended job out of memory; early: before its time.
func (m *memory) purge(e *entry, early bool) {
	j := e.job
	if m.deps.watched(j) {
		m.leaveIn(e, m.set.KeepEnded)
		return
	}
	a := m.queue.arrays[j.ArrayID]
	if a != nil && j.ID == j.ArrayID && a.live > 1 {
		a.due = true
		return
	}
	m.forget(e, early)
	if a == nil {
		return
	}
	if a.live--; a.live == 0 {
		delete(m.queue.arrays, j.ArrayID)
	} else if first := m.jobs.byID[j.ArrayID]; a.live == 1 && a.due && first != nil {
		m.forget(first, early)
		delete(m.queue.arrays, j.ArrayID)
	}
}

func (m *memory) forget(e *entry, early bool) {
	j := e.job
	delete(m.jobs.byID, j.ID)
	if m.keys[j.Key] == j.ID {
		if delete(m.keys, j.Key); early {
			m.keepKey(j.Key, j.ID)
		}
	}
	if a := m.queue.arrays[j.ArrayID]; a != nil {
		a.tally(j, -1)
	}
	m.specs.dropAsk(e.asked)
	m.specs.drop(j)
	m.jobs.purged = append(m.jobs.purged, j.ID)
}

// pastKey is the key of a job that is not in memory any more.
type pastKey struct {
	key   string
	job   int64
	until time.Duration
}

// keepKey remembers a key for as long as any may be that was to be remembered.
func (m *memory) keepKey(key string, job int64) {
	m.forgetKeys()
	m.keys[key] = job
	m.pastKeys = append(m.pastKeys, pastKey{key, job, m.clock.now.Mono + m.set.KeepEnded})
}

// forgetKeys drops those whose time is over. A job that was recalled has its key again for itself.
func (m *memory) forgetKeys() {
	for ; len(m.pastKeys) > 0 && m.pastKeys[0].until <= m.clock.now.Mono; m.pastKeys = m.pastKeys[1:] {
		if p := &m.pastKeys[0]; m.keys[p.key] == p.job && m.jobs.byID[p.job] == nil {
			delete(m.keys, p.key)
		}
	}
}

func (m *memory) bring(j *Job) {
	m.specs.keep(j)
	e := &entry{job: j, asked: m.specs.ask(j), epoch: m.jobs.noEpoch}
	m.jobs.byID[j.ID] = e
	if len(j.Refusals) > 0 {
		m.launches.refused[j.ID] = e
	}
	if j.Key != "" {
		m.keys[j.Key] = j.ID
	}
	m.queue.enlist(e)
	if j.Verdict == nil {
		m.holdings.count(j)
	}
	if !admitted(j) {
		return
	}
	m.pools.count(j, 1)
	for i := range j.Members {
		if name := j.Members[i].Node; m.nodes.byName[name] == nil {
			m.fleet.restoreNode(&Node{Name: name})
		}
	}
	m.launches.place(e)
}

// recall brings back what a submission depends on and had left memory, and refuses what
// is not there.
func (m *memory) recall(d *api.Dependency, jobs []*Job) *api.Error {
	if d == nil {
		return nil
	}
	for _, j := range jobs {
		if m.jobs.byID[j.ID] == nil {
			m.bring(j)
			m.recountLeft(j.ID)
			m.leaveIn(m.jobs.byID[j.ID], m.set.KeepEnded)
		}
	}
	for i := range d.On {
		if c := &d.On[i]; c.Kind != api.AfterSingle && m.jobs.byID[c.Job] == nil {
			return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("dependency %s: no job %d", c, c.Job),
				Hint: "gqueue and gacct list your jobs", Reason: api.ReasonDependency, Subject: c.String()}
		}
	}
	return nil
}

// recountLeft finds what a job that was out of memory has left on nodes.
func (m *memory) recountLeft(job int64) {
	for _, h := range m.nodes.byName {
		for _, l := range h.node.Left {
			if l.Job == job {
				m.fleet.countLeft(l, 1)
			}
		}
	}
}

// submitted gives the ids that a key was answered with before.
func (m *memory) submitted(key string) []int64 {
	if key == "" {
		return nil
	}
	m.forgetKeys()
	first, ok := m.keys[key]
	if !ok {
		return nil
	}
	ids := []int64{first}
	if e := m.jobs.byID[first]; e != nil && e.job.Array != nil {
		for id := first + 1; id < first+int64(e.job.Array.Count); id++ {
			ids = append(ids, id)
		}
	}
	return ids
}
