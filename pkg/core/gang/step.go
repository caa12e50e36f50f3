package gang

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// steps are begun and ended within allocations.
type steps struct {
	clock *clock
	jobs  *jobs
	nodes *nodes
	stops *stops

	ended []api.Step // since the last Take
}

// Step is a step of the current epoch that has not ended. When it has, it becomes an
// [api.Step] in [Changes.Steps] and is forgotten here: a script may start thousands.
type Step struct {
	ID     int         `json:"id"`
	Key    string      `json:"key,omitempty"` // of the request, so that a repeat gives the same step
	Ask    api.StepAsk `json:"ask"`
	Secret string      `json:"secret,omitempty"`
	Parts  []StepPart  `json:"parts,omitempty"`
	Ports  []int       `json:"ports,omitempty"` // the same on all its nodes
	From   StepSet     `json:"from,omitzero"`   // checkpoints that its tasks start from
	Start  time.Time   `json:"start,omitzero"`
	Stop   bool        `json:"stop,omitempty"` // it is being ended; By: who wanted it
	By     string      `json:"by,omitempty"`
	Late   bool        `json:"late,omitempty"` // it is ended for its own time limit
}

// StepPart is the part of a step on one member. What it took is free when it is over.
type StepPart struct {
	Member   int      `json:"member"`          // index in [Job.Members]
	Group    int      `json:"group,omitempty"` // which component of the step it is of
	Tasks    []int    `json:"tasks,omitempty"`
	CPUs     int      `json:"cpus,omitempty"`
	Memory   int64    `json:"memory,omitempty"`
	Cards    []string `json:"cards,omitempty"`
	Over     bool     `json:"over,omitempty"`
	Known    bool     `json:"known,omitempty"` // the node said how it ended
	ExitCode int      `json:"exit_code,omitempty"`
	Signal   int      `json:"signal,omitempty"`
	OOM      bool     `json:"oom,omitempty"`
	Text     string   `json:"text,omitempty"`
	MaxRSS   int64    `json:"max_rss,omitempty"`
	CPUTime  float64  `json:"cpu_time,omitempty"`
	// Ends: of its tasks that ended by themselves and not well
	Ends []api.TaskEnd `json:"ends,omitempty"`
	// Importing is how far the import of its image is; zero: none is under way.
	Importing api.Import `json:"import,omitzero"`
}

// StepFault is how a step failed of which a task has by itself.
type StepFault struct {
	Epoch    int    `json:"epoch"`
	Step     int    `json:"step"`
	ExitCode int    `json:"exit_code"`
	Text     string `json:"text"`
	Members  []int  `json:"members,omitempty"` // on which tasks ended by themselves
	// Cause is what its job is ended for: with [api.FailAny] the first that failed by itself; empty: it goes on.
	Cause  api.Cause `json:"cause,omitempty"`
	Signal int       `json:"signal,omitempty"` // that ended the step, with a Cause
}

// StepImage is what the name of an image stood for when a step first ran it.
type StepImage struct {
	Name   string `json:"name"` // as [api.Container.Image]
	Digest string `json:"digest"`
}

// maxStepImages bounds those of one job.
const maxStepImages = 64

// StepSet names the checkpoints that the tasks of one step have put; the zero value is none.
type StepSet struct {
	Epoch int `json:"epoch"`
	Step  int `json:"step"`
	Tasks int `json:"tasks"`
}

// StepOf finds a step that runs; nil: none of that number does.
func StepOf(j *Job, id int) *Step {
	for i := range j.Steps {
		if j.Steps[i].ID == id {
			return &j.Steps[i]
		}
	}
	return nil
}

// Size is how many tasks a step has.
func (s *Step) Size() (n int) {
	for i := range s.Parts {
		n += len(s.Parts[i].Tasks)
	}
	return n
}

// TaskNode is the node on which a task of a running step is; empty: on none, or not any more.
func TaskNode(j *Job, k api.TaskKey) string {
	s := StepOf(j, k.Step)
	if s == nil {
		return ""
	}
	for i := range s.Parts {
		if p := &s.Parts[i]; !p.Over && p.Member < len(j.Members) && slices.Contains(p.Tasks, k.Task) {
			return j.Members[p.Member].Node
		}
	}
	return ""
}

// TaskText and RankText name one of a step and of a gang in messages.
func TaskText(job int64, step, task int) string {
	return fmt.Sprintf("task %d of step %s", task, api.StepText(job, step))
}

// RankText is described at TaskText.
func RankText(job int64, rank int) string { return fmt.Sprintf("rank %d of job %d", rank, job) }

// widen makes a step that begins the one whose checkpoints are kept and that answers for the
// ready gate: it has more tasks than any before it in this epoch, or as many as one that is over.
func widen(j *Job, s *Step) {
	n, was := s.Size(), Widest(j)
	if n > was.Tasks || n == was.Tasks && StepOf(j, was.Step) == nil {
		j.Widest = StepSet{Epoch: j.Epoch, Step: s.ID, Tasks: n}
	}
}

// Widest is the step with the most tasks of the current epoch, the first of several that run.
func Widest(j *Job) StepSet {
	if j.Widest.Epoch != j.Epoch {
		return StepSet{}
	}
	return j.Widest
}

// StepBegin starts a step in the allocation of a job. It is refused with [api.CodeBusy]
// while other steps have what it asks for.
type StepBegin struct {
	Job    int64
	Epoch  int // 0: the current one
	Key    string
	Secret string
	Ask    api.StepAsk
	Within *int // the step that asks, nil: none
}

// StepStop ends a step: TERM, the grace, KILL.
type StepStop struct {
	Job   int64
	Epoch int // 0: the current one
	Step  int
	By    string
	Late  bool // its own time limit is over
}

func (StepBegin) event() {}
func (StepStop) event()  {}

func (ss *steps) begin(ev StepBegin) Outcome {
	e, err := ss.stepJob(ev.Job, ev.Epoch)
	if err != nil {
		return refused(err)
	}
	for i := range e.job.Steps {
		if s := &e.job.Steps[i]; ev.Key != "" && s.Key == ev.Key {
			return Outcome{Ignored: "already begun", Step: s}
		}
	}
	if len(e.job.Steps) >= api.MaxSteps {
		return refused(api.Errorf(api.CodeBusy, "job %s runs %d steps, the most at a time", e.job.Ref(), api.MaxSteps))
	}
	parts, err := ss.place(e, &ev)
	if err != nil {
		return refused(err)
	}
	ports, err := ss.ports(e.job, &ev.Ask, parts)
	if err != nil {
		return refused(err)
	}
	j := ss.jobs.edit(e)
	s := Step{ID: j.NextStep, Key: ev.Key, Ask: ev.Ask, Secret: ev.Secret, Parts: parts, Ports: ports, Start: ss.clock.now.Wall}
	j.NextStep++
	s.From = stepFrom(j, s.Size())
	widen(j, &s)
	j.Steps = append(j.Steps, s)
	ss.wake(e, &s)
	return Outcome{Applied: true, Step: &s}
}

// stepJob finds a job in which steps may be started or ended now.
func (ss *steps) stepJob(id int64, epoch int) (*entry, *api.Error) {
	e, err := ss.jobs.living(id)
	if err != nil {
		return nil, err
	}
	j := e.job
	switch {
	case epoch != 0 && epoch != j.Epoch:
		return nil, api.Errorf(api.CodeStaleEpoch, "epoch %d of job %s is over", epoch, j.Ref())
	case j.Drain != nil || !admitted(j) || reserved(j):
		return nil, api.Errorf(api.CodeConflict, "job %s is %s: steps run in a running job only", j.Ref(), phrase(j))
	}
	return e, nil
}

// wake has the nodes of a step look at what is desired of them.
func (ss *steps) wake(e *entry, s *Step) {
	for i := range s.Parts {
		if !s.Parts[i].Over {
			ss.nodes.wake(e.job.Members[s.Parts[i].Member].Node)
		}
	}
}

func (ss *steps) stop(ev StepStop) Outcome {
	e, err := ss.stepJob(ev.Job, ev.Epoch)
	if err != nil {
		return refused(err)
	}
	at := slices.IndexFunc(e.job.Steps, func(s Step) bool { return s.ID == ev.Step })
	switch {
	case at < 0 && ev.Step >= 0 && ev.Step < e.job.NextStep:
		return refused(api.Errorf(api.CodeAlreadyEnded, "step %s has already ended", api.StepText(ev.Job, ev.Step)))
	case at < 0:
		return refused(api.Errorf(api.CodeNotFound, "no step %s", api.StepText(ev.Job, ev.Step)))
	case e.job.Steps[at].Stop:
		return ignored("already being ended")
	}
	s := &ss.jobs.edit(e).Steps[at]
	s.Stop, s.By, s.Late = true, ev.By, ev.Late
	ss.wake(e, s)
	return applied()
}

// stepOrders are the steps that a member shall have.
func stepOrders(set *api.Settings, j *Job, member int) []api.StepOrder {
	var out []api.StepOrder
	for i := range j.Steps {
		s := &j.Steps[i]
		for p := range s.Parts {
			if s.Parts[p].Member == member && !s.Parts[p].Over {
				o := api.StepOrder{ID: s.ID, Hosts: s.Ask.Hosts, Fingerprint: s.Ask.Fingerprint, Secret: s.Secret,
					Part: p, Tasks: len(s.Parts[p].Tasks), Numbers: s.Parts[p].Tasks, Size: s.Size(), Stop: s.Stop, Grace: graceOf(set, j)}
				if !s.Ask.Overlap {
					o.CPUs = s.Parts[p].CPUs
				}
				if c := s.Ask.Container; c != nil {
					o.Container, o.Dir, o.Image = c, s.Ask.Dir, imageOf(j, c.Image)
				}
				if f := s.From; f.Tasks > 0 {
					o.From = &api.TaskSet{Epoch: f.Epoch, Step: f.Step}
				}
				out = append(out, o)
			}
		}
	}
	return out
}

// said takes what a node has of the steps of a member. Each end is recorded once.
func (ss *steps) said(e *entry, member int, said []api.StepActual) (changed bool) {
	for k := range said {
		a := &said[k]
		at := slices.IndexFunc(e.job.Steps, func(s Step) bool { return s.ID == a.ID })
		if at < 0 {
			continue // recorded before
		}
		part := slices.IndexFunc(e.job.Steps[at].Parts, func(p StepPart) bool { return p.Member == member && !p.Over })
		if part < 0 {
			continue
		}
		changed = ss.stepImage(e, at, part, a) || changed
		if !a.Over {
			continue
		}
		p := &ss.jobs.edit(e).Steps[at].Parts[part]
		p.Over, p.Known, p.ExitCode, p.Signal, p.OOM, p.Text = true, true, a.ExitCode, a.Signal, a.OOM, a.Error
		p.MaxRSS, p.CPUTime = a.MaxRSS, a.CPUTime
		p.Ends = slices.DeleteFunc(slices.Clone(a.Ends), func(e api.TaskEnd) bool { return !slices.Contains(p.Tasks, e.Task) })
		ss.nodes.wake(e.job.Members[member].Node)
		changed = true
	}
	if changed {
		ss.end(e)
	}
	return changed
}

// stepImage takes how far the import of a step's image is, and what was found.
func (ss *steps) stepImage(e *entry, at, part int, a *api.StepActual) (changed bool) {
	if e.job.Steps[at].Parts[part].Importing != a.Importing {
		ss.jobs.edit(e).Steps[at].Parts[part].Importing = a.Importing
		changed = true
	}
	c := e.job.Steps[at].Ask.Container
	if c == nil || c.Image == "" || a.Image == "" || imageOf(e.job, c.Image) != "" || len(e.job.StepImages) >= maxStepImages {
		return changed
	}
	j := ss.jobs.edit(e)
	j.StepImages = append(slices.Clip(j.StepImages), StepImage{c.Image, a.Image})
	return true
}

// imageOf is the digest of an image that steps of the job have run; empty: not known.
func imageOf(j *Job, name string) string {
	if i := slices.IndexFunc(j.StepImages, func(s StepImage) bool { return s.Name == name }); i >= 0 {
		return j.StepImages[i].Digest
	}
	return ""
}

// left ends the parts of all steps on a member of which nothing lives any more, or that
// was given up.
func (ss *steps) left(e *entry, member int) {
	hit := false
	for i := range e.job.Steps {
		for p := range e.job.Steps[i].Parts {
			if q := &e.job.Steps[i].Parts[p]; q.Member == member && !q.Over {
				ss.jobs.edit(e).Steps[i].Parts[p].Over = true
				hit = true
			}
		}
	}
	if hit {
		ss.end(e)
	}
}

// end puts the steps on record of which every part is over.
func (ss *steps) end(e *entry) {
	j := ss.jobs.edit(e)
	kept := j.Steps[:0:0]
	for i := range j.Steps {
		if slices.ContainsFunc(j.Steps[i].Parts, func(p StepPart) bool { return !p.Over }) {
			kept = append(kept, j.Steps[i])
			continue
		}
		s := ShowStep(ss.judged(j), &j.Steps[i], ss.clock.now.Wall)
		s.Partition = RunsIn(j, ss.nodes.find)
		if ss.stops.blameTask(j, &j.Steps[i], &s) {
			f := &StepFault{Epoch: j.Epoch, Step: j.Steps[i].ID, ExitCode: *s.ExitCode, Text: s.Text}
			for _, p := range j.Steps[i].Parts {
				if len(p.Ends) > 0 {
					f.Members = append(f.Members, p.Member)
				}
			}
			ss.fault(j, f)
		}
		if failsJob(j, &j.Steps[i], &s) {
			ss.fault(j, ss.endingFault(j, &j.Steps[i], &s))
		}
		ss.ended = append(ss.ended, s)
	}
	j.Steps = kept
}

// fault keeps how a step failed. That which ends the job stays.
func (ss *steps) fault(j *Job, f *StepFault) {
	if endingStep(j) == nil {
		j.StepFault = f
	}
}

// failsJob: the step that is over has failed by itself, and its job is to end with it. Once the job is being stopped only what its
// tasks did before that counts, and only where it was the end of the script that began the stop.
func failsJob(j *Job, s *Step, out *api.Step) bool {
	if j.Spec.Fail != api.FailAny {
		return false
	}
	own := slices.ContainsFunc(s.Parts, func(p StepPart) bool { return len(p.Ends) > 0 })
	if d := j.Drain; d != nil {
		return own && j.Spec.Launch == api.LaunchBatch && (d.Cause == api.CauseCompleted || d.Cause == api.CauseCrash && scriptOver(j))
	}
	return own || out.State == api.JobFailed || out.State == api.JobOutOfMemory || out.State == api.JobTimeout
}

// endingFault is how a step failed that ends its job.
func (ss *steps) endingFault(j *Job, s *Step, out *api.Step) *StepFault {
	f := &StepFault{Epoch: j.Epoch, Step: s.ID, ExitCode: 1, Text: cmp.Or(out.Text, out.Error), Cause: api.CauseCrash}
	if kept := j.StepFault; kept != nil && kept.Epoch == j.Epoch && kept.Step == s.ID {
		f.Members = kept.Members
	}
	if out.ExitCode != nil && *out.ExitCode != 0 {
		f.ExitCode, f.Signal = *out.ExitCode, out.Signal
	}
	// It is judged by the task that was the first: what ends the others for that one is the stop signal.
	as := *out
	if s.Stop && !s.Late {
		as.State = api.JobFailed
	}
	if ss.stops.blameTask(j, s, &as) {
		end := endOfTask(s, *as.TriggerTask)
		f.Text, f.ExitCode, f.Signal = as.Text, end.ExitCode, end.Signal
	}
	switch {
	case out.State == api.JobOutOfMemory:
		f.Cause = api.CauseOOM
		f.Text = cmp.Or(f.Text, "it ran out of memory")
	case out.State == api.JobTimeout:
		f.Text = "it has reached its own time limit"
	}
	f.Text = cmp.Or(f.Text, fmt.Sprintf("it ended with code %d", f.ExitCode))
	return f
}

// endOfTask is how a task ended by itself that is said to have.
func endOfTask(s *Step, task int) (end api.TaskEnd) {
	for i := range s.Parts {
		for _, e := range s.Parts[i].Ends {
			if e.Task == task {
				end = e
			}
		}
	}
	return end
}

// endingStep is how a step of the current epoch failed that ends the job with it; nil: none has.
func endingStep(j *Job) *StepFault {
	if f := j.StepFault; f != nil && f.Epoch == j.Epoch && f.Cause != "" {
		return f
	}
	return nil
}

// endedByStep: that is what the drain of the job is for.
func endedByStep(j *Job) bool {
	f := endingStep(j)
	return f != nil && j.Drain != nil && j.Drain.Cause == f.Cause && j.Drain.Trigger < 0
}

// report is what such a step says of the end of its job.
func (f *StepFault) report() Report {
	return Report{Cause: f.Cause, Trigger: -1, Text: fmt.Sprintf("step %d failed: %s", f.Step, f.Text)}
}

// judged is a job whose drain says what by all that is known has ended the epoch.
func (ss *steps) judged(j *Job) *Job {
	if j.Drain == nil || len(j.Drain.Reports) == 0 {
		return j
	}
	as, d := j.Copy(), *j.Drain
	why, _ := ss.stops.culprit(j)
	d.Cause, d.Trigger, d.Text = why.Cause, why.Trigger, why.Text
	as.Drain = &d
	return as
}

// ShowStep is a step as people and tools read it; end is zero while it runs.
func ShowStep(j *Job, s *Step, end time.Time) api.Step {
	out := api.Step{JobID: j.ID, StepID: fmt.Sprint(s.ID), Epoch: j.Epoch, Name: s.Ask.Name, State: api.JobRunning, Overlap: s.Ask.Overlap,
		Command: s.Ask.Command, TimeLimit: int64(s.Ask.TimeLimit / time.Second), StartTime: s.Start, EndTime: end,
		User: j.User, Partition: j.Partition, Client: s.Ask.Client,
		Ports: hostlist.Ranges(s.Ports)}
	counts := make([]int, len(s.Parts))
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Member < len(j.Members) {
			out.Nodes = append(out.Nodes, j.Members[p.Member].Node)
		}
		counts[i] = len(p.Tasks)
		out.Tasks += len(p.Tasks)
		out.CPUs += p.CPUs
		out.GPUs += len(p.Cards)
		out.Memory = max(out.Memory, p.Memory)
		out.MaxRSS = max(out.MaxRSS, p.MaxRSS)
		out.CPUTime += p.CPUTime
	}
	out.Layout = api.PerNode(counts)
	if c := s.Ask.Container; c != nil {
		out.Image, out.ImageDigest = c.Image, imageOf(j, c.Image)
	}
	if !end.IsZero() {
		stepEnd(j, s, &out)
	}
	return out
}

// stepEnd says how a step ended. A part whose node never said is worth more than a code: the
// drain of its epoch took it.
func stepEnd(j *Job, s *Step, out *api.Step) {
	code, known, oom := 0, true, false
	for i := range s.Parts {
		p := &s.Parts[i]
		known = known && p.Known
		oom = oom || p.OOM
		if out.Error == "" && p.Text != "" && i < len(out.Nodes) {
			out.Error = out.Nodes[i] + ": " + p.Text
		}
		if p.ExitCode > code {
			code, out.Signal = p.ExitCode, p.Signal
		}
	}
	if known || code != 0 {
		out.ExitCode = &code
	}
	switch {
	case j.Drain != nil && j.Drain.Cause != api.CauseCompleted && (!known || code != 0):
		out.State, out.Cause = stateOf(j.Drain.Cause), j.Drain.Cause
	case s.Late:
		out.State, out.Cause = api.JobTimeout, api.CauseTimeout
	case s.Stop, !known:
		out.State, out.Cause = api.JobCancelled, api.CauseCancelled
	case oom:
		out.State = api.JobOutOfMemory
	case code != 0:
		out.State = api.JobFailed
	default:
		out.State = api.JobCompleted
	}
}
