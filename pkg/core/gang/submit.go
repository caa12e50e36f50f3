package gang

import (
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

// array is what the elements of one array have to know of each other.
type array struct {
	limit   int
	waiting []int64   // elements that have not ended, by id
	active  int       // elements that are admitted
	above   int       // so many were admitted when a person lowered the limit below that; fewer as they end
	offered int       // elements that may be admitted next
	live    int       // elements in memory
	begun   int       // elements in memory that have begun, or will not
	start   time.Time // the latest at which one began
	over    int       // elements in memory that have ended
	bad     int       // those of them that did not complete
	due     bool      // the first element's time in memory is over; it stays while others do, with their key
}

func (w *World) submit(ev Submit) Outcome {
	if ids := w.submitted(ev.Key); ids != nil {
		return Outcome{Ignored: "already submitted", JobIDs: ids}
	}
	if e := checkSubmit(&ev); e != nil {
		return refused(e)
	}
	if e := w.recall(ev.Spec.Dependency, ev.Recalled); e != nil {
		return refused(e)
	}
	if e := w.site.partitions.known(ev.Partition); e != nil {
		return refused(e)
	}
	if ev.Groups != nil {
		w.setGroups(Groups{Of: map[uint32][]string{ev.UID: ev.Groups}})
	}
	ids := make([]int64, 1)
	if ev.Array != nil {
		ids = make([]int64, len(ev.Array.Indices))
	}
	if e := w.site.holdings.mayHold(&ev, len(ids)); e != nil {
		return refused(e)
	}
	info := arrayInfo(ev.Array)
	spec := ev.Spec.WithoutTexts()
	if w.specs.whole == nil {
		w.specs.whole = map[string]*api.Spec{}
	}
	w.specs.whole[ev.SpecHash] = ev.Spec
	for i := range ids {
		ids[i] = w.jobs.nextID
		w.jobs.nextID++
		j := w.newJob(&ev, spec, ids[i])
		if info != nil {
			j.ArrayID, j.ArrayIndex, j.Array = ids[0], ev.Array.Indices[i], info
		}
		if i == 0 && ev.Key != "" {
			j.Key = ev.Key
			w.keys[ev.Key] = j.ID
		}
		w.specs.keep(j)
		warned := ""
		if i == 0 {
			warned = strings.Join(ev.Warned, "; ")
		}
		w.queueNew(&entry{job: j, asked: w.specs.ask(j), epoch: w.jobs.noEpoch, owned: true}, warned)
	}
	return Outcome{Applied: true, JobIDs: ids}
}

func (ps *partitions) known(names string) *api.Error {
	for name := range strings.SplitSeq(names, ",") {
		if ps.file != nil && ps.find(name) == nil {
			return ps.unknown(name)
		}
	}
	return nil
}

// submitted gives the ids that a key was answered with before.
func (w *World) submitted(key string) []int64 {
	if key == "" {
		return nil
	}
	w.forgetKeys()
	first, ok := w.keys[key]
	if !ok {
		return nil
	}
	ids := []int64{first}
	if e := w.jobs.byID[first]; e != nil && e.job.Array != nil {
		for id := first + 1; id < first+int64(e.job.Array.Count); id++ {
			ids = append(ids, id)
		}
	}
	return ids
}

func checkSubmit(ev *Submit) *api.Error {
	switch {
	case ev.Spec == nil:
		return api.Errorf(api.CodeInvalid, "the submission has no spec")
	case ev.Spec.Size < 1 || ev.Spec.Size > api.MaxGangSize:
		return api.Errorf(api.CodeInvalid, "invalid size %d: want 1 to %d ranks", ev.Spec.Size, api.MaxGangSize)
	case ev.Spec.Roles != nil && roleRanks(ev.Spec) != ev.Spec.Size:
		return api.Errorf(api.CodeInvalid, "invalid size %d: the roles come to %d ranks", ev.Spec.Size, roleRanks(ev.Spec))
	case ev.Array != nil && (len(ev.Array.Indices) == 0 || len(ev.Array.Indices) > api.MaxArraySize):
		return api.Errorf(api.CodeInvalid, "invalid array of %d elements: want 1 to %d", len(ev.Array.Indices), api.MaxArraySize)
	}
	return nil
}

func roleRanks(s *api.Spec) (n int) {
	for i := range s.Roles {
		n += s.Roles[i].Count
	}
	return n
}

func (w *World) newJob(ev *Submit, s *api.Spec, id int64) *Job {
	j := &Job{
		ID: id, ArrayIndex: -1, User: ev.User, UID: ev.UID, GID: ev.GID, Spec: s, SpecHash: ev.SpecHash, TextBytes: ev.Spec.TextBytes(),
		Name: s.Name, Partition: ev.Partition, Priority: ev.Priority, TimeLimit: ev.TimeLimit,
		Submit: w.clock.now.Wall, Eligible: w.clock.now.Wall, Ranks: BlankRanks(s.Size), Past: new(Past), Wishes: &Wishes{Deadline: s.Deadline},
	}
	if s.Hold {
		j.Held = HeldUser
	}
	if s.Begin.After(w.clock.now.Wall) {
		j.Eligible = s.Begin
	}
	if s.Cron != nil {
		j.Eligible = w.site.crontabs.due(s.Cron, w.clock.now.Wall)
	}
	if d := s.Dependency; d != nil {
		j.Dependency = d
		j.Waits = d.String() // until it is weighed, in queueNew
	}
	return j
}

func (w *World) queueNew(e *entry, warned string) {
	j := e.job
	w.jobs.byID[j.ID] = e
	w.jobs.dirty = append(w.jobs.dirty, e)
	w.queue.enlist(e)
	w.site.holdings.count(j)
	w.record.emitJob(j, api.Event{Type: api.EventSubmitted, Size: len(j.Ranks), Text: warned})
	if j.Held != "" {
		w.record.emitJob(j, api.Event{Type: api.EventHeld, Text: j.Held})
	}
	if d := j.Eligible.Sub(w.clock.now.Wall); d > 0 {
		w.clock.in(d, timer{kind: timerEligible, job: j.ID})
	}
	w.armDeadline(e)
	w.watch(e)
	w.queue.touch(e)
}

// enlist counts an element into its array.
func (q *queue) enlist(e *entry) {
	j := e.job
	if j.ArrayID == 0 {
		return
	}
	a := q.arrays[j.ArrayID]
	if a == nil {
		a = &array{}
		q.arrays[j.ArrayID] = a
	}
	a.live++
	a.tally(j, 1)
	if j.Verdict != nil {
		return
	}
	if j.Array != nil { // an ended element has the limit of its time
		a.limit = j.Array.Limit
	}
	at, _ := slices.BinarySearch(a.waiting, j.ID)
	a.waiting = slices.Insert(a.waiting, at, j.ID)
	if admitted(j) {
		if a.active++; a.active > a.limit {
			a.above = a.active
		}
	}
}

func arrayInfo(a *api.Array) *ArrayInfo {
	if a == nil {
		return nil
	}
	info := &ArrayInfo{Count: len(a.Indices), Min: slices.Min(a.Indices), Max: slices.Max(a.Indices), Step: 1, Limit: a.Limit}
	if len(a.Indices) > 1 {
		step := a.Indices[1] - a.Indices[0]
		for i := 2; i < len(a.Indices); i++ {
			if a.Indices[i]-a.Indices[i-1] != step {
				step = 1
			}
		}
		info.Step = max(step, 1)
	}
	return info
}

// ask is shared by all jobs of one spec and partition that were changed alike.
func (sp *specs) ask(j *Job) *sharedAsk {
	k := sp.keyOfAsk(j)
	a := sp.asks[k]
	if a == nil {
		a = &sharedAsk{ask: cluster.AskIn(askSpec(j), sp.askedIn(j)), key: k}
		if j.Elsewhere {
			a.ask.Leave(RefusedBy(j))
		}
		sp.asks[k] = a
	}
	a.jobs++
	return a
}

// askedIn are the partitions of a job's ask: those it may be started in, and all of them where it
// may be in none, which keeps it from being a candidate.
func (sp *specs) askedIn(j *Job) []cluster.In {
	if open := sp.partitions.startsIn(j); len(open) > 0 {
		return open
	}
	return unboundedIn(j.Partition)
}

// askSpec is what a job asks for now, without the nodes that it is kept off.
func askSpec(j *Job) *api.Spec {
	s := SpecOf(j)
	if !j.Elsewhere {
		return s
	}
	c := *s
	c.Exclude = append(slices.Clip(c.Exclude), RefusedBy(j)...)
	return &c
}

// dropAsk is the other end of ask.
func (sp *specs) dropAsk(a *sharedAsk) {
	if a.jobs--; a.jobs == 0 {
		delete(sp.asks, a.key)
	}
}

// askAgain is to follow whatever may change what a job asks for.
func (sp *specs) askAgain(e *entry) {
	sp.dropAsk(e.asked)
	e.asked = sp.ask(e.job)
}
