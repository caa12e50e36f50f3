package sim

import (
	"fmt"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/supervise"
)

// What holds of those who are told of an end, and of what they say and keep.

// endWithin is how long after its last process an allocation may hold its nodes, and silentFor
// how long after it fell silent one that hangs may live, where nothing is in trouble.
const (
	endWithin = 5 * time.Second
	silentFor = 40 * time.Second
	// recovery is how long after a fault its effects may show.
	recovery = 40 * time.Second
)

// termed: a process gets the stop signal.
func (t *truth) termed(p *proc) {
	p.told.terms++
	t.r.log("%s: %d.%d %s gets TERM", p.m.name, p.key.Job, p.key.Epoch, p.name())
	if p.told.terms > 1 {
		t.r.fail("I14", "%s of job %d epoch %d gets a second stop signal", p.name(), p.key.Job, p.key.Epoch)
	}
	if p.told.terms == 1 {
		p.told.lease = p.s.leaseAt
	}
	p.told.at = p.m.clocks().Mono
	if p.waits() {
		t.r.fail("I14", "%s of job %d epoch %d, which waits for others, gets the stop signal", p.name(), p.key.Job, p.key.Epoch)
	}
}

// killing: a process gets KILL. Where a grace was promised it has had it.
func (t *truth) killing(p *proc, by killer) {
	if by == byForce || !p.main && !p.task() || p.held {
		return
	}
	s, now := p.s, p.m.clocks()
	lease := s.leaseAt
	if p.told.lease > 0 { // renewed while its end stops the member, it is over all the same
		lease = min(lease, p.told.lease)
	}
	switch {
	case by == byShim && (s.grace <= 0 || lease > 0 && now.Boot >= lease+s.spec.grace-time.Millisecond):
	case p.task() && p.launch.p.ended: // it was ended with what started it
	case p.told.terms == 0:
		t.r.fail("I15", "%s of job %d epoch %d gets KILL, and was never told to end", p.name(), p.key.Job, p.key.Epoch)
	case now.Mono-p.told.at < s.grace-time.Millisecond:
		t.r.fail("I15", "%s of job %d epoch %d gets KILL %s after it was told to end, the grace is %s", p.name(), p.key.Job, p.key.Epoch,
			now.Mono-p.told.at, s.grace)
	}
}

// noticed: a member gives its notice.
func (t *truth) noticed(s *shimProc, scope api.SignalScope) {
	t.r.log("%s: %d.%d gets its notice (%s)", s.m.name, s.key.Job, s.key.Epoch, scope)
}

// noticedProc: a process gets the notice.
func (t *truth) noticedProc(p *proc) {
	p.told.notices++
	t.r.log("%s: %d.%d %s gets USR1", p.m.name, p.key.Job, p.key.Epoch, p.name())
	switch {
	case p.waits() || !p.catches(true):
		t.r.fail("I16", "%s of job %d epoch %d gets a notice, and has no handler for it", p.name(), p.key.Job, p.key.Epoch)
	case p.told.notices > 1:
		t.r.fail("I16", "%s of job %d epoch %d gets a second notice", p.name(), p.key.Job, p.key.Epoch)
	case p.s.mach.State() != supervise.Running && p.s.mach.State() != supervise.Leading:
		t.r.fail("I16", "%s of job %d epoch %d gets its notice after the stop of its member", p.name(), p.key.Job, p.key.Epoch)
	}
}

// recanted: the end that a notice told of was moved out of sight.
func (t *truth) recanted(s *shimProc) {
	for _, p := range s.m.containment(s.key) {
		p.told.notices = 0
	}
}

// troubled: something was done that shows for d, and for a while after it.
func (r *run) troubled(d time.Duration) { r.trouble = max(r.trouble, r.now+d+recovery) }

// calmly does a check after d in which nothing was in trouble.
func (t *truth) calmly(d time.Duration, check func()) {
	began := t.r.now
	t.r.after(d, func() {
		switch {
		case t.r.failed != nil:
		case t.r.trouble > began:
			t.calmly(max(d, t.r.trouble-t.r.now), check)
		default:
			check()
		}
	})
}

// lastEnded: no process of an allocation is left. Its nodes are free soon, whatever notice it
// asked for.
func (t *truth) lastEnded(p *proc) {
	if !p.job.Batch {
		return
	}
	for _, o := range t.r.machines {
		if len(o.containment(p.key)) > 0 {
			return
		}
	}
	within := endWithin
	for _, m := range t.r.machines {
		within = max(within, endWithin+m.spec.Epilog)
	}
	t.calmly(within, func() {
		if t.onOld {
			return
		}
		w := t.r.world()
		if j := w.Job(p.key.Job); j == nil || j.Verdict != nil || j.Epoch != p.key.Epoch || len(j.Members) == 0 {
			return
		}
		for _, m := range t.r.machines {
			if _, held := w.Node(m.name).Res.Grant(p.key); held {
				t.r.fail("I17", "job %d epoch %d holds %s for %s after its last process has ended", p.key.Job, p.key.Epoch, m.name, endWithin)
				return
			}
		}
	})
}

// hangs: a process that beat does nothing any more. It is found, whoever beats beside it.
func (t *truth) hangs(p *proc) {
	t.r.log("%s: %d.%d %s hangs", p.m.name, p.key.Job, p.key.Epoch, p.name())
	if p.job.StallTimeout == 0 || !p.runs.Beats || p.job.GPUs == 0 {
		return
	}
	began := p.m.suspensions
	t.calmly(p.job.StallTimeout+silentFor, func() {
		if p.ended || p.killed || p.frozen() || p.m.suspensions != began || t.onOld {
			return
		}
		if j := t.r.world().Job(p.key.Job); j != nil && j.Epoch == p.key.Epoch && j.Drain == nil && j.Verdict == nil {
			t.r.fail("I19", "%s of job %d epoch %d has been silent for more than %s, and nothing is done", p.name(), p.key.Job, p.key.Epoch,
				silentFor)
		}
	})
}

// hung: one of an attempt does nothing any more, and so its cards don't.
func (t *truth) hung(k api.MemberKey) bool {
	for _, p := range t.live[k.Job] {
		if p.key == k && p.hung {
			return true
		}
	}
	return false
}

// stepKey names a step of an epoch.
type stepKey struct {
	api.MemberKey
	step int
}

// begun: a client was told that its step runs.
func (t *truth) begun(c *srun) {
	k := stepKey{c.p.key, c.reply.ID}
	if n := t.sizes[k]; n != 0 && n != max(c.step.Tasks, 1) {
		t.r.fail("I18", "step %d of job %d epoch %d is of %d tasks and of %d", k.step, k.Job, k.Epoch, n, c.step.Tasks)
	}
	t.r.res.Steps++
	t.r.log("%s: %d.%d step %d begins", c.p.m.name, k.Job, k.Epoch, k.step)
}

// steps takes in the steps of a committed job: how large each is.
func (t *truth) steps(j *gang.Job) {
	for i := range j.Steps {
		s := &j.Steps[i]
		t.sizes[stepKey{api.MemberKey{Job: j.ID, Epoch: j.Epoch}, s.ID}] = max(s.Ask.Tasks, 1)
	}
}

// putting: a process has put a checkpoint, which may arrive or not.
func (t *truth) putting(s slot) { t.puts[s] = max(t.puts[s], 1) }

// saved: a put was answered.
func (t *truth) saved(s slot) { t.puts[s]++ }

// taskSaved: a checkpoint of a task was taken in. Those of the widest step alone are kept, and a set is
// complete when every task of it has put one.
func (t *truth) taskSaved(ev *api.Event) {
	j := t.jobs[ev.JobID]
	if j == nil || j.TaskCheckpoint == nil || t.onOld {
		return
	}
	c := j.TaskCheckpoint
	mine := stepKey{api.MemberKey{Job: ev.JobID, Epoch: ev.Epoch}, ev.Task.Step}
	for i := range j.Steps {
		if n := max(j.Steps[i].Ask.Tasks, 1); n > t.sizes[mine] {
			t.r.fail("I18", "the set of job %d epoch %d is that of step %d with %d tasks, and step %d has %d", ev.JobID, ev.Epoch, mine.step,
				t.sizes[mine], j.Steps[i].ID, n)
		}
	}
	if c.Complete {
		t.allPut(stepKey{api.MemberKey{Job: ev.JobID, Epoch: c.Epoch}, c.Step}, "is complete")
	}
}

// allPut: each task of a step has put a checkpoint.
func (t *truth) allPut(k stepKey, what string) {
	for task := range t.sizes[k] {
		if t.puts[slot{k.MemberKey, k.step, task}] == 0 {
			t.r.fail("I18", "the set of step %d of job %d epoch %d %s, and task %d of %d has put none", k.step, k.Job, k.Epoch, what, task,
				t.sizes[k])
			return
		}
	}
}

// whole: the tasks of a step are to start from a set. It is whole, and of as many tasks.
func (t *truth) whole(k api.MemberKey, o *api.StepOrder) {
	from := stepKey{api.MemberKey{Job: k.Job, Epoch: o.From.Epoch}, o.From.Step}
	if n := t.sizes[from]; n != o.Size && !t.onOld {
		t.r.fail("I18", "step %d of job %d epoch %d has %d tasks and starts from a set of %d", o.ID, k.Job, k.Epoch, o.Size, n)
	}
	t.allPut(from, "is started from")
}

// restored: a rank or a task is handed a checkpoint: its own, of the epoch that was named.
func (t *truth) restored(k api.MemberKey, from slot, text string) {
	t.r.log("%d.%d is handed the checkpoint %s", k.Job, k.Epoch, from)
	if !strings.HasPrefix(text, from.String()+" ") {
		t.r.fail("checkpoint", "rank or task %d of job %d epoch %d is handed %q for %s", from.rank, k.Job, k.Epoch, text, from)
	}
}

// byScript: an allocation has completed when its script has returned 0, and not otherwise.
func (t *truth) byScript(j *gang.Job) {
	if j.Spec.Launch != api.LaunchBatch || j.Verdict.State != api.JobCompleted {
		return
	}
	if code, known := t.codes[exitKey{j.ID, j.Epoch, 0}]; !known || code != 0 {
		t.r.fail("I20", "job %d completed, and its script returned %d (known %t)", j.ID, code, known)
	}
}

// taskAlone: no task lives twice.
func (t *truth) taskAlone(p, o *proc) {
	if p.task() && o.task() && o.rank == p.rank && o.launch.order.ID == p.launch.order.ID {
		t.r.fail("I1", "task %s of job %d epoch %d lives twice, on %s and %s", fmt.Sprint(p.launch.order.ID, ".", p.rank), p.key.Job, p.key.Epoch,
			o.m.name, p.m.name)
	}
}
