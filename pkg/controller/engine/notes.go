package engine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// rankNotes is what ranks have said about themselves in their current epochs. It is shown, not
// stored: after a restart of the controller the nodes say it again.
type rankNotes struct {
	mu   sync.Mutex
	jobs map[int64]*jobNotes
}

type jobNotes struct {
	epoch     int
	ranks     map[int]rankNote
	tasks     map[api.TaskKey]taskNote // of steps that run
	seen      map[string]*gang.Watched // by node, as handed to the core
	measures  map[string]*api.Measure  // by node
	ready     int                      // ranks and tasks that said READY=1
	coreReady int                      // so many of them the core knows of
	more      chan struct{}            // closed when another rank is ready; nil: nobody waits
}

type rankNote struct {
	api.RankNote
	beat time.Time // of the last beat, zero: none
}

type taskNote struct {
	rankNote
	ended bool
	node  string
}

// NodeNotes takes in what ranks of a node said. A node is believed only about ranks that
// are placed on it now.
func (e *Engine) NodeNotes(node string, notes []api.MemberNote) {
	now := e.opt.Clock.Now().Wall
	for i := range notes {
		m := &notes[i]
		j := e.view.job(m.Job)
		if j == nil || j.Epoch != m.Epoch || j.Verdict != nil {
			continue
		}
		if e.notes.put(j, node, m, now) {
			e.barriers.check(j, e.notes.ended)
		}
		if seen := watchedOf(node, m); e.notes.news(seen) {
			e.post(*seen)
		}
		if ev, ok := e.notes.newlyReady(j); ok {
			e.post(ev)
		}
		if ev, ok := e.notes.acknowledgement(j); ok {
			e.post(ev)
		}
	}
}

// watchedOf is what of a note concerns the watchdogs.
func watchedOf(node string, m *api.MemberNote) *gang.Watched {
	w := &gang.Watched{Job: m.Job, Epoch: m.Epoch, Node: node}
	for i := range m.Ranks {
		if m.Ranks[i].Silent {
			w.Silent = append(w.Silent, m.Ranks[i].Rank)
		}
	}
	for i := range m.Tasks {
		if m.Tasks[i].Silent && !m.Tasks[i].Ended {
			w.Tasks = append(w.Tasks, api.TaskKey{Step: m.Tasks[i].Step, Task: m.Tasks[i].Rank})
		}
	}
	if m.Watch != nil {
		w.Watch = *m.Watch
	}
	return w
}

// news keeps what was seen and reports whether the core has not been told of it: a rank
// that beats each second is no event each second.
func (s *rankNotes) news(w *gang.Watched) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.jobs[w.Job]
	if x == nil || x.epoch != w.Epoch {
		return false
	}
	old := x.seen[w.Node]
	if old == nil {
		old = &gang.Watched{}
	}
	a, b := &old.Watch, &w.Watch
	if slices.Equal(old.Silent, w.Silent) && slices.Equal(old.Tasks, w.Tasks) && a.Round == b.Round && a.Hung == b.Hung && a.Idle == b.Idle &&
		a.Blind == b.Blind {
		return false
	}
	x.seen[w.Node] = w
	return true
}

// cut forgets what was seen by a node whose session broke: the core has forgotten it too.
func (s *rankNotes) cut(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.jobs {
		delete(x.seen, node)
	}
}

// acknowledgement is what the core is to know of a stop under way: a count that rose, or that
// nobody has anything left to save while the lead still runs.
func (s *rankNotes) acknowledgement(j *gang.Job) (ev gang.Acknowledged, ok bool) {
	if j.Drain == nil && !gang.Noticed(j) {
		return ev, false
	}
	stopping, saved := s.acknowledged(j)
	ev = gang.Acknowledged{Job: j.ID, Epoch: j.Epoch, Ranks: stopping, Saved: saved}
	if j.Drain == nil {
		return ev, stopping > j.Acked
	}
	return ev, stopping > j.Drain.Acked || saved && j.Drain.Lead > 0
}

// put keeps what a node said; ended: that a task has, which others may wait for.
func (s *rankNotes) put(j *gang.Job, node string, m *api.MemberNote, now time.Time) (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.at(j)
	if x.epoch != j.Epoch {
		return false // a newer one has begun meanwhile
	}
	if m.Measure != nil && slices.ContainsFunc(j.Members, func(x gang.Member) bool { return x.Node == node }) {
		m.Measure.Node = node
		x.measures[node] = m.Measure
	}
	for _, n := range m.Ranks {
		if n.Rank < 0 || n.Rank >= len(j.Ranks) || j.Ranks[n.Rank].Slot.Node != node {
			continue
		}
		x.hear(n.Ready && !x.ranks[n.Rank].Ready)
		x.ranks[n.Rank] = saidOf(n, now)
	}
	for _, n := range m.Tasks {
		k := api.TaskKey{Step: n.Step, Task: n.Rank}
		if gang.TaskNode(j, k) != node {
			continue
		}
		was := x.tasks[k]
		x.hear(n.Ready && !was.Ready)
		if n.Ended && !was.ended {
			ended = true
			x.wake()
		}
		x.tasks[k] = taskNote{rankNote: saidOf(n.RankNote, now), ended: n.Ended, node: node}
	}
	return ended
}

func saidOf(n api.RankNote, now time.Time) rankNote {
	if len(n.Status) > api.MaxStatusBytes {
		n.Status = n.Status[:api.MaxStatusBytes]
	}
	r := rankNote{RankNote: n}
	if n.Beats > 0 {
		r.beat = now.Add(-max(n.BeatAge, 0))
	}
	return r
}

// hear counts one more that is ready.
func (x *jobNotes) hear(ready bool) {
	if ready {
		x.ready++
		x.wake()
	}
}

// ended reports whether a task of the current epoch of a job has.
func (s *rankNotes) ended(j *gang.Job, k api.TaskKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.jobs[j.ID]
	return x != nil && x.epoch == j.Epoch && x.tasks[k].ended
}

// settle forgets what tasks of steps have said that are over.
func (s *rankNotes) settle(j *gang.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.jobs[j.ID]
	if x == nil {
		return
	}
	maps.DeleteFunc(x.tasks, func(k api.TaskKey, _ taskNote) bool { return x.epoch == j.Epoch && gang.StepOf(j, k.Step) == nil })
	x.wake()
}

// at is where what ranks say in the current epoch of a job is kept; s.mu is held.
func (s *rankNotes) at(j *gang.Job) *jobNotes {
	if s.jobs == nil {
		s.jobs = map[int64]*jobNotes{}
	}
	x := s.jobs[j.ID]
	if x == nil || x.epoch < j.Epoch {
		if x != nil {
			x.wake() // who waits for the epoch before learns that it is over
		}
		x = &jobNotes{epoch: j.Epoch, ranks: map[int]rankNote{}, tasks: map[api.TaskKey]taskNote{}, seen: map[string]*gang.Watched{},
			measures: map[string]*api.Measure{}}
		s.jobs[j.ID] = x
	}
	return x
}

// of gives what was said in the current epoch of a job; s.mu is held.
func (s *rankNotes) of(j *gang.Job) map[int]rankNote {
	if x := s.jobs[j.ID]; x != nil && x.epoch == j.Epoch {
		return x.ranks
	}
	return nil
}

// acknowledged counts the ranks, and tasks of steps, that said they are stopping, in either
// word (for each process of them); saved: every one whose process lives has nothing left to save, and one at least said so. A rank whose
// process has ended is past saving: what it left behind is killed with its member's end, or
// ends with the lead of the others. STOPPING=1 alone says the opposite, that it still saves.
func (s *rankNotes) acknowledged(j *gang.Job) (stopping int, saved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits := false
	take := func(n rankNote, over bool) {
		if n.Stopping || n.Saved {
			stopping++
		}
		saved = saved || n.Saved
		waits = waits || !n.Saved && !over
	}
	x := s.jobs[j.ID]
	if x == nil || x.epoch != j.Epoch {
		return 0, false
	}
	tasks := 0
	for i := range j.Steps {
		for p := range j.Steps[i].Parts {
			for _, t := range j.Steps[i].Parts[p].Tasks {
				n := x.tasks[api.TaskKey{Step: j.Steps[i].ID, Task: t}]
				take(n.rankNote, n.ended || j.Steps[i].Parts[p].Over)
				tasks++
			}
		}
	}
	if tasks == 0 || j.Spec.Launch != api.LaunchBatch {
		for r := range gang.Processes(j) {
			take(x.ranks[r], j.Ranks[r].Exited)
		}
	}
	return stopping, saved && !waits
}

// show adds what was said to what is shown of a job.
func (s *rankNotes) show(j *gang.Job, out *api.Job) {
	if j.Drain != nil || gang.Noticed(j) && j.Verdict == nil {
		out.Acknowledged, _ = s.acknowledged(j)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ranks := s.of(j)
	out.Status = ranks[0].Status
	for r := range j.Ranks {
		// Ranks that never beat are not judged, nor those that have ended.
		if b := ranks[r].beat; !b.IsZero() && !j.Ranks[r].Exited && (out.LastBeat.IsZero() || b.Before(out.LastBeat)) {
			out.LastBeat = b
		}
	}
	s.showTasks(j, out)
	out.Ready = s.readiness(j)
	for r := range out.Ranks {
		if n, ok := ranks[r]; ok {
			x := &out.Ranks[r]
			x.LastBeat, x.Status, x.Ready, x.Stopping = n.beat, n.Status, n.Ready, n.Stopping
		}
	}
}

// showTasks adds what the tasks of steps said. The status of an allocation is its script's, or
// that of the first task of its widest step; s.mu is held.
func (s *rankNotes) showTasks(j *gang.Job, out *api.Job) {
	x := s.jobs[j.ID]
	if x == nil || x.epoch != j.Epoch || len(x.tasks) == 0 {
		return
	}
	if w := gang.Widest(j); out.Status == "" && w.Tasks > 0 {
		out.Status = x.tasks[api.TaskKey{Step: w.Step}].Status
	}
	for k, n := range x.tasks {
		if !n.beat.IsZero() && !n.ended && (out.LastBeat.IsZero() || n.beat.Before(out.LastBeat)) {
			out.LastBeat = n.beat
		}
		at := slices.IndexFunc(out.Steps, func(o api.Step) bool { return o.StepID == strconv.Itoa(k.Step) })
		if at < 0 {
			continue
		}
		out.Steps[at].TaskList = append(out.Steps[at].TaskList, api.Task{Task: k.Task, Node: n.node, LastBeat: n.beat, Status: n.Status,
			Ready: n.Ready, Stopping: n.Stopping, Ended: n.ended})
	}
	for i := range out.Steps {
		slices.SortFunc(out.Steps[i].TaskList, func(a, b api.Task) int { return cmp.Compare(a.Task, b.Task) })
	}
}

func (s *rankNotes) drop(jobs []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range jobs {
		if x := s.jobs[id]; x != nil {
			x.wake()
		}
		delete(s.jobs, id)
	}
}

// measured is what members of the current epoch of a job have used up to now, in their order.
func (s *rankNotes) measured(j *gang.Job) (out []gang.MeasureRow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.jobs[j.ID]
	if x == nil || x.epoch != j.Epoch {
		return nil
	}
	for i := range j.Members {
		if m := x.measures[j.Members[i].Node]; m != nil {
			out = append(out, gang.MeasureRow{Job: j.ID, Epoch: j.Epoch, Member: i, Measure: m})
		}
	}
	return out
}

// EachMeasure gives what each member of jobs that run has used up to now.
func (e *Engine) EachMeasure(f func(job int64, m *api.Measure)) {
	for _, j := range e.view.snapshot(func(j *gang.Job) bool { return j.Verdict == nil && len(j.Members) > 0 }) {
		for _, m := range e.notes.measured(j) {
			f(j.ID, m.Measure)
		}
	}
}

// settle brings what hangs on a job up to date after a commit.
func (e *Engine) settle(ch *gang.Changes) {
	e.stepWaiters.wake(ch.Jobs)
	for _, j := range ch.Jobs {
		e.notes.settle(j)
		over := e.barriers.check(j, e.notes.ended)
		if ev, ok := e.notes.acknowledgement(j); ok {
			// A rank has ended that the others' lead was waiting for. This is the engine's own
			// goroutine, which must not wait for room in its inbox.
			e.kept = append(e.kept, request{ev: ev})
		}
		if over || j.Verdict != nil && (j.Checkpoint != nil || j.TaskCheckpoint != nil) {
			e.forget(j.ID)
		}
	}
	if len(ch.Purged) > 0 {
		e.notes.drop(ch.Purged)
	}
}
