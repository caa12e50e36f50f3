package sim

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// As in package step/client.
const (
	launchFor = 60 * time.Second
	settleFor = 3 * time.Second
	keepAlive = 135 * time.Second // of a connection whose other end lost its power
)

// pipeTo is one direction of a connection between two nodes: in order, and held up by cuts.
type pipeTo struct {
	queue []func()
	last  time.Duration
}

// send puts a word on its way to a process.
func (w *pipeTo) send(from *machine, to *proc, fn func()) {
	r := from.r
	w.last = max(w.last, r.now+from.delay())
	w.queue = append(w.queue, fn)
	var arrive func()
	arrive = func() {
		if from.isolated() || to.m.isolated() {
			r.after(500*time.Millisecond, arrive)
			return
		}
		fn := w.queue[0]
		w.queue = w.queue[1:]
		to.do(fn)
	}
	r.after(w.last-r.now, arrive)
}

// isolated: the network does not reach the machine.
func (m *machine) isolated() bool { return m.isCut(true) || m.isCut(false) }

// srun is the client of a step, a process of the script, modelled after package step/client.
type srun struct {
	p       *proc
	script  *proc
	index   int // of Job.Steps
	step    *Step
	reply   *gang.Step // nil: it has not begun
	begun   time.Duration
	parts   []part
	waiting []*launcher
	worst   int
	killed  bool
	closed  bool
	tries   uint64
}

// part is the step on one node.
type part struct {
	l    *launcher // nil: it has not come
	done bool
}

// startSteps is a script that starts its steps.
func (p *proc) startSteps() {
	for i := range p.job.Steps {
		p.after(p.job.Steps[i].After, func() {
			if !p.held && !p.killed {
				p.startStep(i)
			}
		})
	}
}

func (p *proc) startStep(i int) {
	c := &srun{script: p, index: i, step: &p.job.Steps[i]}
	c.p = p.s.process(0, &Behaviour{})
	c.p.client = c
	r := p.m.r
	r.sruns[c.key()] = c
	c.p.start()
	began := r.now
	c.p.after(upTo(p.m.dice, 5*time.Millisecond), func() { c.ask(began) })
}

func (c *srun) key() string {
	return fmt.Sprintf("%d.%d.%d", c.script.key.Job, c.script.key.Epoch, c.index)
}

// ask asks for the step until it is answered.
func (c *srun) ask(began time.Duration) {
	m := c.p.m
	r := m.r
	c.tries++
	n := c.tries
	again := func(d time.Duration) {
		c.p.after(d, func() {
			if n == c.tries {
				c.ask(began)
			}
		})
	}
	if g := r.gangd; g != nil && !m.isolated() {
		r.after(m.delay(), func() {
			g.do(func() {
				g.ask(g.drv.Hand(c.request()), func(out gang.Outcome) {
					r.send(g, func() {
						r.after(m.delay(), func() { c.p.do(func() { c.hear(n, out, began) }) })
					})
				})
			})
		})
		again(2 * time.Second)
		return
	}
	if r.now-began > reachFor {
		c.p.exit(1, 0)
		return
	}
	again(200 * time.Millisecond)
}

func (c *srun) request() gang.StepBegin {
	s := c.step
	return gang.StepBegin{Job: c.p.key.Job, Epoch: c.p.key.Epoch, Key: c.key(),
		Ask: api.StepAsk{StepComponent: api.StepComponent{Tasks: max(s.Tasks, 1), MinNodes: s.Nodes, MaxNodes: s.Nodes,
			Exact: true}, Overlap: s.Overlap, Fingerprint: c.key()}}
}

// hear is an answer that arrives.
func (c *srun) hear(n uint64, out gang.Outcome, began time.Duration) {
	if n != c.tries || c.reply != nil {
		return
	}
	if out.Refused != nil {
		switch code := out.Refused.Code; {
		case code == api.CodeBusy:
			began = c.p.m.r.now
		case code != api.CodeUnavailable || c.p.m.r.now-began > reachFor:
			c.p.exit(1, 0)
			return
		}
		c.p.after(300*time.Millisecond, func() {
			if n == c.tries {
				c.ask(began)
			}
		})
		return
	}
	s := *out.Step
	c.tries++
	c.reply, c.parts, c.begun = &s, make([]part, len(s.Parts)), c.p.m.r.now
	c.p.m.r.truth.begun(c)
	for _, l := range c.waiting {
		c.welcome(l)
	}
	c.p.after(2*time.Second, c.checkLaunch)
}

// welcome hands a launcher its body.
func (c *srun) welcome(l *launcher) {
	if c.reply == nil {
		c.waiting = append(c.waiting, l)
		return
	}
	if c.closed || c.parts[l.order.Part].l != nil {
		return
	}
	c.parts[l.order.Part].l = l
	c.send(l, l.launch)
	if c.killed {
		c.send(l, func() { l.stop(l.s.spec.grace) })
	}
}

func (c *srun) send(l *launcher, fn func()) { l.down.send(c.p.m, l.p, fn) }

// exited is the end of a task.
func (c *srun) exited(code int) {
	c.worst = max(c.worst, code)
	if code != 0 && !c.step.KeepGoing {
		c.kill(false)
	}
}

// kill ends the step.
func (c *srun) kill(now bool) {
	if c.killed && !now {
		return
	}
	c.killed = true
	for i := range c.parts {
		if l := c.parts[i].l; l != nil && !c.parts[i].done {
			c.send(l, func() {
				if now {
					l.stop(0)
				} else {
					l.stop(l.s.spec.grace)
				}
			})
		}
	}
}

// done: a launcher has no task left.
func (c *srun) done(l *launcher) {
	if c.reply == nil {
		return
	}
	c.parts[l.order.Part].done = true
	c.over()
}

// lost: a launcher is gone.
func (c *srun) lost(l *launcher) {
	if c.reply == nil || c.closed || c.parts[l.order.Part].done || c.parts[l.order.Part].l != l {
		return
	}
	c.parts[l.order.Part].done = true
	c.worst = max(c.worst, 1)
	c.kill(false)
	c.over()
}

// over: when every part is done it waits for the controller's word, and ends.
func (c *srun) over() {
	if c.closed || slices.ContainsFunc(c.parts, func(p part) bool { return !p.done }) {
		return
	}
	c.close()
	c.settled(c.p.m.r.now)
}

func (c *srun) settled(since time.Duration) {
	if known, runs := c.runs(); known && !runs || c.p.m.r.now-since > settleFor {
		c.p.exit(c.worst, 0)
		return
	}
	c.p.after(50*time.Millisecond, func() { c.settled(since) })
}

// runs asks the controller whether the step does; known: there was an answer.
func (c *srun) runs() (known, runs bool) {
	w := c.p.m.r.world()
	if w == nil || c.p.m.isolated() {
		return false, false
	}
	j := w.Job(c.p.key.Job)
	return true, j != nil && j.Epoch == c.p.key.Epoch && gang.StepOf(j, c.reply.ID) != nil
}

// checkLaunch asks the controller what has become of a step whose nodes do not come.
func (c *srun) checkLaunch() {
	if c.closed || !slices.ContainsFunc(c.parts, func(p part) bool { return p.l == nil && !p.done }) {
		return
	}
	known, runs := c.runs()
	late := c.p.m.r.now-c.begun > launchFor
	if late {
		c.p.m.r.order(gang.StepStop{Job: c.p.key.Job, Epoch: c.p.key.Epoch, Step: c.reply.ID}, nil)
	}
	if late || known && !runs {
		c.kill(true)
		c.p.exit(1, 0)
		return
	}
	c.p.after(time.Second, c.checkLaunch)
}

// close ends the connections, which launchers wait for.
func (c *srun) close() {
	if c.closed {
		return
	}
	c.closed = true
	for i := range c.parts {
		if l := c.parts[i].l; l != nil {
			c.send(l, l.hungUp)
		}
	}
}

// gone: the client has ended; power: with its machine, which tells nobody.
func (c *srun) gone(code int, power bool) {
	r := c.p.m.r
	if power {
		for i := range c.parts {
			if l := c.parts[i].l; l != nil && !c.closed {
				r.after(keepAlive, func() { l.p.do(l.hungUp) })
			}
		}
		c.closed = true
		return
	}
	c.close()
	c.script.stepDone(code)
}

// stepDone is a step of a script that has ended.
func (p *proc) stepDone(code int) {
	p.steps.done++
	p.steps.worst = max(p.steps.worst, code)
	if p.runs.Awaits && p.steps.done == len(p.job.Steps) && !p.ended {
		code := p.steps.worst
		p.after(upTo(p.m.dice, time.Millisecond), func() { p.exit(code, 0) })
	}
}
