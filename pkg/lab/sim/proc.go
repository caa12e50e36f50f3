package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
)

// proc is a process: the main one of a rank, one that it left in the background, a task of a
// step, or one that waits for tasks.
type proc struct {
	owner
	m      *machine
	s      *shimProc // of its member
	key    api.MemberKey
	rank   int // or the number of the task
	pid    int
	main   bool // of a rank
	began  time.Duration
	job    *Job
	runs   *Behaviour
	killed bool // KILL was delivered: it never runs again
	ended  bool
	told   told

	steps  struct{ done, worst int } // of a script: that have ended
	launch *launcher                 // it is a launcher, or a task of one
	client *srun
	hung   bool
	byPeer bool // it leaves because another has
	struck bool // its machine is shut down
	held   bool // a shell that was stopped until the rest of its rank is gone
}

// told is what a process was sent.
type told struct {
	terms, notices int
	at             time.Duration // of the first stop signal, on the monotonic clock
	lease          time.Duration // of its member then, on the boot clock, 0: none
}

// task: it is one of a step.
func (p *proc) task() bool { return p.launch != nil && p.launch.p != p }

// waits: it only waits for others.
func (p *proc) waits() bool { return p.client != nil || p.launch != nil && p.launch.p == p }

// shell: it is the script of an allocation.
func (p *proc) shell() bool { return p.main && p.job.Batch }

// catches: it has a handler for the stop signal, or for the notice.
func (p *proc) catches(notice bool) bool {
	if notice {
		return p.runs.OnNotice != NoticeDeaf
	}
	return p.runs.OnTerm != TermDies
}

// name is what a process is called in the trace.
func (p *proc) name() string {
	switch {
	case p.task():
		return fmt.Sprintf("task %d.%d pid %d", p.launch.order.ID, p.rank, p.pid)
	case p.launch != nil:
		return fmt.Sprintf("launcher %d pid %d", p.launch.order.ID, p.pid)
	case p.client != nil:
		return fmt.Sprintf("srun %d pid %d", p.client.index, p.pid)
	}
	return fmt.Sprintf("rank %d pid %d", p.rank, p.pid)
}

// spawn starts the main process of a rank, and what that starts.
func (s *shimProc) spawn(rank int) *proc {
	p := newProc(s, rank, true)
	if p.runs.Daemon {
		newProc(s, rank, false)
	}
	if p.shell() && len(p.job.Steps) > 0 {
		p.startSteps()
	}
	p.live()
	return p
}

// live is what a process does by itself.
func (p *proc) live() {
	b := p.runs
	life := b.For
	if life == 0 {
		life = 5 * time.Second
	}
	life += time.Duration(p.rank) * b.Skew
	code := b.Exit
	if p.s.spec.startedBefore < b.FailEpochs && p.rank == b.FailRank {
		life, code = life/2, b.FailCode
	}
	if !b.Awaits {
		p.after(life, func() {
			if !p.hung {
				p.exit(code, 0)
			}
		})
	}
	if b.Checkpoints {
		p.saveEach(life / 3)
	}
	if b.Ready > 0 {
		p.after(b.Ready, func() { p.say(func(n *api.RankNote) { n.Ready = true }) })
	}
	if b.Beats && p.job.StallTimeout > 0 {
		p.beat()
	}
	if b.Hangs > 0 && p.s.spec.startedBefore == 0 && p.rank == b.FailRank {
		p.after(b.Hangs, p.hang)
	}
}

func newProc(s *shimProc, rank int, main bool) *proc {
	p := s.process(rank, &s.spec.job.Runs)
	p.main = main
	p.start()
	return p
}

// process is one that does not run yet.
func (s *shimProc) process(rank int, runs *Behaviour) *proc {
	m := s.m
	m.nextPID++
	return &proc{owner: owner{l: &m.r.loop, parent: &m.owner}, m: m, s: s, key: s.key, rank: rank, pid: 1000*m.boot + m.nextPID,
		job: s.spec.job, runs: runs, began: m.r.now}
}

func (p *proc) start() {
	p.m.procs = append(p.m.procs, p)
	p.m.r.truth.started(p)
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
	if p.killed || p.ended {
		return
	}
	p.m.r.truth.termed(p)
	if !p.main && !p.task() || p.told.terms > 1 {
		return
	}
	if p.runs.Checkpoints {
		p.save()
	}
	switch p.runs.OnTerm {
	case TermDies:
		p.after(upTo(p.m.dice, 2*time.Millisecond), func() {
			p.held = false // it dies before it can do anything else
			p.exit(128+15, 15)
		})
	case TermSaves:
		p.after(cmp.Or(p.runs.Saves, time.Second), func() { p.exit(0, 0) })
	case TermLate:
		p.after(p.s.spec.grace*9/10, func() { p.exit(128+15, 15) })
	}
}

// notice is the early signal.
func (p *proc) notice() {
	if p.killed || p.ended {
		return
	}
	p.m.r.truth.noticedProc(p)
	if p.runs.Checkpoints {
		p.save()
	}
	saving := cmp.Or(p.runs.Saves, time.Second)
	switch p.runs.OnNotice {
	case NoticeSaves:
		p.say(func(n *api.RankNote) { n.Stopping = true })
		p.after(saving, func() { p.say(func(n *api.RankNote) { n.Saved = true }) })
	case NoticeEnds:
		p.after(saving, func() { p.exit(0, 0) })
	}
}

// killer is who sends KILL, and why.
type killer int

const (
	byShim     killer = iota // the stop sequence
	byLauncher               // a step that is ended
	byForce                  // nobody promised a grace
)

// kill is KILL. It ends a process at once, unless that hangs in the kernel.
func (p *proc) kill(by killer) {
	if p.killed || p.ended {
		return
	}
	p.m.r.truth.killing(p, by)
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
	if p.killed || p.held {
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
	if code != 0 {
		p.seen()
	}
	p.m.r.mix(uint64(p.pid)<<16 | uint64(code))
	switch {
	case p.task():
		p.launch.ended(p, code, signal)
		return
	case p.launch != nil:
		p.launch.gone(false)
	case p.client != nil:
		p.client.gone(code, false)
	}
	if !p.s.dead {
		p.s.childEnded(p, code, signal)
	}
}

// vanish is the end with the machine.
func (p *proc) vanish() {
	p.leave()
	p.m.r.truth.ended(p, -1)
	if p.m.boot%2 == 0 { // its kernel has reset what was open; else nobody hears of it
		p.seen()
	}
	switch {
	case p.task():
	case p.launch != nil:
		p.launch.gone(true)
	case p.client != nil:
		p.client.gone(-1, true)
	}
}

// peerLeft is what a rank ends with that lost another.
const peerLeft = 9

// seen: the other ranks of the epoch see a socket closed. Those that have peers leave, as fast as programs do.
func (p *proc) seen() {
	if !p.main || !p.runs.Peers {
		return
	}
	for _, m := range p.m.r.machines {
		for _, o := range m.procs {
			if o.key == p.key && o.main && o.told.terms == 0 && !o.killed && !o.byPeer {
				o.byPeer = true
				o.after(upTo(m.dice, 2*time.Millisecond), func() { o.exit(peerLeft, 0) })
			}
		}
	}
}

func (p *proc) leave() {
	p.ended = true
	p.owner.dead = true
	p.m.procs = slices.DeleteFunc(p.m.procs, func(o *proc) bool { return o == p })
}
