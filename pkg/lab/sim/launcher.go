package sim

import (
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
)

// As in package step/launcher.
const (
	reachFor = 30 * time.Second
	bodyFor  = 60 * time.Second
	doneFor  = 10 * time.Second
)

// launcher is the part of a step on one node, modelled after package step/launcher: it has what
// to run from the client of the step, and is the parent of the tasks.
type launcher struct {
	p     *proc
	s     *shimProc
	order api.StepOrder
	c     *srun
	up    pipeTo // to the client
	down  pipeTo // from it

	tasks    []*proc // that live
	body     bool
	worst    int
	stopping bool
	draining bool
	told     bool // its tasks were sent their stop signal; the shim's to know
	ending   bool // by the shim's order
	over     bool
	killer   bool
	word     *api.StepActual // the last
}

// takeSteps makes the steps of the member those that are ordered, as package shim does.
func (s *shimProc) takeSteps(orders []api.StepOrder) {
	s.step(supervise.Tick{})
	running := s.mach.State() == supervise.Running && s.mach.Cause() == ""
	for i := range orders {
		o := &orders[i]
		if at := slices.IndexFunc(s.steps, func(l *launcher) bool { return l.order.ID == o.ID }); at >= 0 {
			if o.Stop {
				s.stopStep(s.steps[at], o.Grace)
			}
		} else if running && o.ID > s.lastStep {
			s.lastStep = o.ID
			s.startStep(*o)
		}
	}
	ordered := func(id int) bool {
		return slices.ContainsFunc(orders, func(o api.StepOrder) bool { return o.ID == id })
	}
	for _, l := range s.steps {
		if !ordered(l.order.ID) {
			s.stopStep(l, s.spec.grace)
		}
	}
	s.state.Steps = slices.DeleteFunc(slices.Clone(s.state.Steps), func(a api.StepActual) bool { return a.Over && !ordered(a.ID) })
}

func (s *shimProc) stopStep(l *launcher, grace time.Duration) {
	if !l.ending {
		l.ending = true
		l.p.after(s.m.hop(), func() { l.stop(grace) })
	}
}

func (s *shimProc) startStep(o api.StepOrder) {
	s.state.Steps = append(s.state.Steps, api.StepActual{ID: o.ID, Started: s.m.r.instant().Wall})
	s.dirty = true
	switch {
	case o.Refused != "":
		s.stepOver(o.ID, api.StepActual{ExitCode: 1, Error: o.Refused})
		return
	case o.Stop:
		s.stepOver(o.ID, api.StepActual{ExitCode: 128 + 15, Signal: 15})
		return
	}
	l := &launcher{s: s, order: o, c: s.m.r.sruns[o.Fingerprint]}
	l.p = s.process(o.Part, &Behaviour{})
	l.p.launch = l
	l.p.start()
	s.steps = append(s.steps, l)
	s.state.Steps[len(s.state.Steps)-1].PID = l.p.pid
	began := s.m.r.now
	l.p.after(upTo(s.m.dice, 20*time.Millisecond), func() { l.reach(began) })
	l.p.after(bodyFor, func() {
		if !l.body {
			l.last(api.StepActual{ExitCode: 1, Error: "the client of the step said nothing"})
		}
	})
}

// stepsLive: a step runs here, or a program that waits for one elsewhere.
func (s *shimProc) stepsLive() bool {
	return len(s.steps) > 0 || s.spec.batch && slices.ContainsFunc(s.m.containment(s.key), (*proc).waits)
}

// stopTasks tells the tasks of a step to end, unless they were told already.
func (s *shimProc) stopTasks(l *launcher) {
	if l.told || s.dead {
		return
	}
	l.told = true
	for _, p := range slices.Clone(l.tasks) {
		p.term()
	}
}

// stopLate tells those that were started while the others were told: every task is there now.
func (s *shimProc) stopLate(l *launcher) {
	for _, p := range slices.Clone(l.tasks) {
		if l.told && !s.dead && p.told.terms == 0 {
			p.term()
		}
	}
}

// stepEnded takes the exit of a launcher.
func (s *shimProc) stepEnded(l *launcher, code, signal int) {
	s.steps = slices.DeleteFunc(s.steps, func(o *launcher) bool { return o == l })
	s.stepsOver = s.stepsOver || len(s.steps) == 0
	word := api.StepActual{ExitCode: max(code, 1), Signal: signal, Error: "the launcher of the step died"}
	if l.word != nil {
		word = *l.word
	} else if s.mach.Cause() == "" {
		for _, p := range slices.Clone(l.tasks) {
			p.kill(byForce)
		}
	}
	s.stepOver(l.order.ID, word)
}

func (s *shimProc) stepOver(id int, word api.StepActual) {
	for i := range s.state.Steps {
		if a := &s.state.Steps[i]; a.ID == id {
			word.ID, word.PID, word.Started, word.Ended, word.Over = id, a.PID, a.Started, s.m.r.instant().Wall, true
			*a = word
		}
	}
	s.dirty, s.durable = true, true
}

// reach connects to the client and asks for the body.
func (l *launcher) reach(began time.Duration) {
	m := l.s.m
	if l.c.p.m.up && !m.isolated() && !l.c.p.m.isolated() {
		if l.c.p.ended {
			l.last(api.StepActual{ExitCode: 1, Error: "the client of the step is gone"})
			return
		}
		l.send(func() { l.c.welcome(l) })
		return
	}
	if m.r.now-began > reachFor {
		l.last(api.StepActual{ExitCode: 1, Error: "the client of the step can't be reached"})
		return
	}
	l.p.after(time.Second, func() { l.reach(began) })
}

// send gives a word to the client.
func (l *launcher) send(fn func()) { l.up.send(l.s.m, l.c.p, fn) }

// launch starts every task.
func (l *launcher) launch() {
	if l.body {
		return
	}
	l.body = true
	for _, number := range l.order.Numbers {
		t := l.s.process(number, &l.c.step.Runs)
		t.launch = l
		if l.stopping || l.draining {
			l.report(t, 128+15)
			continue
		}
		l.tasks = append(l.tasks, t)
		t.start()
	}
	for _, t := range slices.Clone(l.tasks) {
		t.live()
	}
	l.p.after(l.s.m.hop(), func() { l.s.stopLate(l) })
	l.settle()
}

// report tells the client and the shim of the end of a task.
func (l *launcher) report(t *proc, code int) {
	l.worst = max(l.worst, code)
	if !l.s.dead {
		l.s.voice(t).ended = true
		l.s.tellNotes()
	}
	l.send(func() { l.c.exited(code) })
}

// ended is SIGCHLD.
func (l *launcher) ended(t *proc, code, _ int) {
	l.tasks = slices.DeleteFunc(l.tasks, func(o *proc) bool { return o == t })
	if l.p.ended {
		return
	}
	l.report(t, code)
	l.settle()
}

// settle waits for the client to close when no task is left.
func (l *launcher) settle() {
	if len(l.tasks) > 0 || l.over {
		return
	}
	l.over = true
	l.send(func() { l.c.done(l) })
	l.p.after(doneFor, l.close)
}

func (l *launcher) close() { l.last(api.StepActual{ExitCode: l.worst}) }

// last is the last word to the shim, and the end.
func (l *launcher) last(a api.StepActual) {
	l.word = &a
	l.p.exit(0, 0)
}

// stop ends the tasks.
func (l *launcher) stop(grace time.Duration) {
	first := !l.stopping
	l.stopping = true
	switch {
	case l.over || l.draining && grace > 0 && l.body:
		return
	case !l.body:
		l.last(api.StepActual{ExitCode: 128 + 15, Signal: 15})
		return
	case first && grace > 0:
		l.p.after(l.s.m.hop(), func() { l.s.stopTasks(l) })
	}
	switch {
	case grace == 0:
		l.kill(byForce)
	case !l.killer:
		l.killer = true
		l.killAt(l.s.m.clocks().Mono + grace)
	}
}

// killAt waits on the clock that stands still while the machine sleeps.
func (l *launcher) killAt(at time.Duration) {
	left := at - l.s.m.clocks().Mono
	if left <= 0 {
		l.kill(byLauncher)
		return
	}
	l.p.after(left, func() { l.killAt(at) })
}

func (l *launcher) kill(by killer) {
	for _, t := range slices.Clone(l.tasks) {
		t.kill(by)
	}
}

// hungUp: the client has closed, or is gone.
func (l *launcher) hungUp() {
	if l.over {
		l.close()
		return
	}
	l.stop(l.s.spec.grace)
}

// gone: the launcher has ended; power: with its machine, which tells nobody.
func (l *launcher) gone(power bool) {
	if power {
		l.s.m.r.after(keepAlive, func() { l.c.p.do(func() { l.c.lost(l) }) })
		return
	}
	l.send(func() { l.c.lost(l) })
}
