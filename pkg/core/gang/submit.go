package gang

import (
	"slices"
	"strings"

	"gangd/pkg/api"
)

// submissions bring jobs into the queue: of people, and again and again of cron tables.
type submissions struct {
	clock      *clock
	record     *record
	jobs       *jobs
	specs      *specs
	site       *site
	partitions *partitions
	crontabs   *crontabs
	holdings   *holdings
	queue      *queue
	deps       *dependencies
	memory     *memory
	launches   *launches
	stops      *stops
	control    *control
}

func (sb *submissions) submit(ev Submit) Outcome {
	if ids := sb.memory.submitted(ev.Key); ids != nil {
		return Outcome{Ignored: "already submitted", JobIDs: ids}
	}
	if e := checkSubmit(&ev); e != nil {
		return refused(e)
	}
	if e := sb.memory.recall(ev.Spec.Dependency, ev.Recalled); e != nil {
		return refused(e)
	}
	if e := sb.partitions.known(ev.Partition); e != nil {
		return refused(e)
	}
	if ev.Groups != nil {
		sb.site.setGroups(Groups{Of: map[uint32][]string{ev.UID: ev.Groups}})
	}
	ids := make([]int64, 1)
	if ev.Array != nil {
		ids = make([]int64, len(ev.Array.Indices))
	}
	if e := sb.holdings.mayHold(&ev, len(ids)); e != nil {
		return refused(e)
	}
	info := arrayInfo(ev.Array)
	spec := ev.Spec.WithoutTexts()
	if sb.specs.whole == nil {
		sb.specs.whole = map[string]*api.Spec{}
	}
	sb.specs.whole[ev.SpecHash] = ev.Spec
	for i := range ids {
		ids[i] = sb.jobs.nextID
		sb.jobs.nextID += spec.IDs()
		j := sb.newJob(&ev, spec, ids[i])
		if info != nil {
			j.ArrayID, j.ArrayIndex, j.Array = ids[0], ev.Array.Indices[i], info
		}
		if i == 0 && ev.Key != "" {
			j.Key = ev.Key
			sb.memory.keys[ev.Key] = j.ID
		}
		sb.specs.keep(j)
		warned := ""
		if i == 0 {
			warned = strings.Join(ev.Warned, "; ")
		}
		sb.queueNew(&entry{job: j, asked: sb.specs.ask(j), epoch: sb.jobs.noEpoch, owned: true}, warned)
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

func (sb *submissions) newJob(ev *Submit, s *api.Spec, id int64) *Job {
	j := &Job{
		ID: id, ArrayIndex: -1, User: ev.User, UID: ev.UID, GID: ev.GID, Spec: s, SpecHash: ev.SpecHash, TextBytes: ev.Spec.TextBytes(),
		Name: s.Name, Partition: ev.Partition, Priority: ev.Priority, TimeLimit: ev.TimeLimit,
		Submit: sb.clock.now.Wall, Eligible: sb.clock.now.Wall, Ranks: BlankRanks(s.Size), Past: new(Past), Wishes: &Wishes{Deadline: s.Deadline},
	}
	if s.Hold {
		j.Held = HeldUser
	}
	if s.Begin.After(sb.clock.now.Wall) {
		j.Eligible = s.Begin
	}
	if s.Cron != nil {
		j.Eligible = sb.crontabs.due(s.Cron, sb.clock.now.Wall)
	}
	if d := s.Dependency; d != nil {
		j.Dependency = d
		j.Waits = d.String() // until it is weighed, in queueNew
	}
	return j
}

func (sb *submissions) queueNew(e *entry, warned string) {
	j := e.job
	sb.jobs.byID[j.ID] = e
	sb.jobs.dirty = append(sb.jobs.dirty, e)
	sb.queue.enlist(e)
	sb.holdings.count(j)
	sb.record.emitJob(j, api.Event{Type: api.EventSubmitted, Size: len(j.Ranks), Text: warned})
	if j.Held != "" {
		sb.record.emitJob(j, api.Event{Type: api.EventHeld, Text: j.Held})
	}
	if d := j.Eligible.Sub(sb.clock.now.Wall); d > 0 {
		sb.clock.in(d, timer{kind: timerEligible, job: j.ID})
	}
	sb.launches.armDeadline(e)
	sb.deps.watch(e)
	sb.queue.touch(e)
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
