package sim

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

// proc is a process of a rank: its main one, or one that it left in the background.
type proc struct {
	owner
	m      *machine
	s      *shimProc // whose child it is
	key    api.MemberKey
	rank   int
	pid    int
	main   bool
	began  time.Duration
	job    *Job
	killed bool // KILL was delivered: it never runs again
	termed bool
	ended  bool
	ready  bool // said READY=1
}

// spawn starts the main process of a rank, and what that starts.
func (s *shimProc) spawn(rank int) *proc {
	p := newProc(s, rank, true)
	b := &p.job.Runs
	life := b.For
	if life == 0 {
		life = 5 * time.Second
	}
	life += time.Duration(rank) * b.Skew
	code := b.Exit
	if p.s.spec.startedBefore < b.FailEpochs && rank == b.FailRank {
		life, code = life/2, b.FailCode
	}
	p.after(life, func() { p.exit(code, 0) })
	if b.Daemon {
		newProc(s, rank, false)
	}
	if b.Checkpoints {
		p.saveEach(life / 3)
	}
	if b.Ready > 0 {
		p.after(b.Ready, func() { p.ready = !p.ended })
	}
	return p
}

func newProc(s *shimProc, rank int, main bool) *proc {
	m := s.m
	m.nextPID++
	p := &proc{owner: owner{l: &m.r.loop, parent: &m.owner}, m: m, s: s, key: s.key, rank: rank, pid: 1000*m.boot + m.nextPID, main: main,
		job: s.spec.job, began: m.r.now}
	m.procs = append(m.procs, p)
	m.r.truth.started(p)
	return p
}

// saveEach puts a checkpoint now and then.
func (p *proc) saveEach(d time.Duration) {
	if d <= 0 {
		return
	}
	p.after(d, func() {
		if !p.ended && !p.killed {
			p.save()
			p.saveEach(d)
		}
	})
}

// term is the stop signal.
func (p *proc) term() {
	if p.termed || p.killed || p.ended {
		return
	}
	p.termed = true
	if !p.main {
		return
	}
	if p.job.Runs.Checkpoints {
		p.save()
	}
	switch p.job.Runs.OnTerm {
	case TermDies:
		p.after(upTo(p.m.dice, 2*time.Millisecond), func() { p.exit(128+15, 15) })
	case TermSaves:
		p.after(time.Second, func() { p.exit(0, 0) })
	case TermLate:
		p.after(p.s.spec.grace*9/10, func() { p.exit(128+15, 15) })
	}
}

// kill is KILL. It ends a process at once, unless that hangs in the kernel.
func (p *proc) kill() {
	if p.killed || p.ended {
		return
	}
	p.killed = true
	m := p.m
	d := upTo(m.dice, time.Millisecond)
	if m.r.now < m.unkillableUntil {
		d = m.unkillableUntil - m.r.now
	}
	p.after(d, p.die)
}

// die is the end by KILL.
func (p *proc) die() { p.finish(128+9, 9) }

// exit is an end by its own or by a signal that it did not catch.
func (p *proc) exit(code, signal int) {
	if p.killed {
		return
	}
	p.finish(code, signal)
}

func (p *proc) finish(code, signal int) {
	if p.ended {
		return
	}
	p.leave()
	p.m.r.truth.ended(p, code)
	p.m.r.mix(uint64(p.pid)<<16 | uint64(code))
	if !p.s.dead {
		p.s.childEnded(p, code, signal)
	}
}

// vanish is the end with the machine.
func (p *proc) vanish() {
	p.leave()
	p.m.r.truth.ended(p, -1)
}

func (p *proc) leave() {
	p.ended = true
	p.owner.dead = true
	p.m.procs = slices.DeleteFunc(p.m.procs, func(o *proc) bool { return o == p })
}
