package sim

import (
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/shim"
)

const shimPoll = 10 * time.Second // the longest sleep of a shim

// memberSpec is what a shim is started with.
type memberSpec struct {
	job           *Job
	ranks         []int // of this node; none: hold the containment
	batch         bool
	startedBefore int // epochs of the gang
	nodes         []string
	gpus          []string
	body          *api.AssignmentBody
	limit         time.Duration
	notice        *api.Notice
	stopSignal    string
	grace         time.Duration
	graceMax      time.Duration
	lease         time.Duration
	port          int
	from          int // epoch of the checkpoint that it starts from, 0: none
}

// shimProc is a shim: package supervise's stop sequence in a shell modelled after package
// shim's, with the same loop.
type shimProc struct {
	owner
	m     *machine
	key   api.MemberKey
	spec  *memberSpec
	mach  *supervise.Machine
	state shim.State
	conn  *shimConn // to the daemon, nil: nobody is connected
	inbox []shim.Command
	exits []exited // not reaped

	ranks     []int // reaped, and not fed to the stop sequence
	holding   []*proc
	holdStep  time.Duration
	steps     []*launcher
	lastStep  int // -1: none was started
	stepsOver bool
	heard     bool // somebody here could hear the notice
	voices    []*voice
	grace     time.Duration // the shortest that was promised
	leaseAt   time.Duration // boot clock, 0: none

	dirty, durable bool
	over           bool
	timer          uint64 // the planned sleep that counts
}

type exited struct {
	p            *proc
	code, signal int
	at           time.Time // by the machine's clock
}

// shimConn is the connection of one daemon to one shim; it is over when either is gone, or a
// newer one took its place.
type shimConn struct {
	d        *daemon
	m        *member
	s        *shimProc
	up, down time.Duration // when the last word arrives, either way
}

// hop is when a word arrives that is sent now: after the one before.
func (c *shimConn) hop(last *time.Duration) time.Duration {
	now := c.s.m.r.now
	*last = max(*last, now+c.s.m.hop())
	return *last - now
}

// tell brings a state to the daemon.
func (c *shimConn) tell(word *shim.State) {
	c.d.after(c.hop(&c.up), func() { c.d.heard(c, word) })
}

// startShim starts a process for a member and connects it.
func (m *machine) startShim(k api.MemberKey, spec *memberSpec) *shimProc {
	s := &shimProc{owner: owner{l: &m.r.loop, parent: &m.owner}, m: m, key: k, spec: spec, lastStep: -1, grace: spec.grace}
	if spec.lease > 0 {
		s.leaseAt = m.bootTime() + spec.lease
	}
	s.state = shim.State{MemberActual: api.MemberActual{MemberKey: k, Phase: api.PhasePreparing}, BootID: m.bootID()}
	m.shims = append(m.shims, s)
	took := time.Millisecond + upTo(m.dice, 20*time.Millisecond)
	if m.r.now < m.slowLaunchUntil {
		took += upTo(m.dice, 2*m.r.set.StartTimeout)
	}
	s.mach = supervise.New(supervise.Config{Ranks: spec.ranks, TimeLimit: spec.limit, Notice: spec.notice, StopSignal: spec.stopSignal,
		Grace: spec.grace, GraceMax: spec.graceMax, Lease: spec.lease}, m.clocks())
	s.after(took, s.prepared)
	return s
}

// prepared is the end of the preparation: ready or refused.
func (s *shimProc) prepared() {
	m := s.m
	if m.r.now < m.refuseUntil {
		s.state.Phase, s.state.Refusal = api.PhaseRefused, &api.Refusal{Blame: m.refuseBlame, Text: "simulated refusal"}
		s.over, s.dirty, s.durable = true, true, true
		s.flush()
		s.leave()
		return
	}
	s.state.Phase = api.PhaseReady
	m.r.truth.prepared(s)
	s.dirty = true
	s.flush()
	s.loop()
}

// crash is kill -9: the processes stay.
func (s *shimProc) crash(time.Duration) {
	if s.dead {
		return
	}
	s.m.r.troubled(0)
	s.m.r.log("%s: shim of %d.%d dies", s.m.name, s.key.Job, s.key.Epoch)
	s.leave()
}

func (s *shimProc) isGone() bool { return s.dead }

// leave ends the process; the daemon sees the connection close.
func (s *shimProc) leave() {
	s.dead = true
	s.m.shims = slices.DeleteFunc(s.m.shims, func(o *shimProc) bool { return o == s })
	for _, l := range s.steps { // whoever answers for them is gone
		l.p.after(s.m.hop(), func() { l.stop(0) })
	}
	if c := s.conn; c != nil {
		s.conn = nil
		c.d.after(s.m.hop(), func() { c.d.hungUp(c) })
	}
}

// hop is the way between two processes of a machine.
func (m *machine) hop() time.Duration {
	return 20*time.Microsecond + upTo(m.dice, 500*time.Microsecond)
}

// command is an order that the daemon sent.
func (s *shimProc) command(c shim.Command) {
	s.after(s.conn.hop(&s.conn.down), func() {
		s.inbox = append(s.inbox, c)
		s.loop()
	})
}

// childEnded is SIGCHLD.
func (s *shimProc) childEnded(p *proc, code, signal int) {
	if s.dead {
		return
	}
	s.exits = append(s.exits, exited{p, code, signal, s.m.wall()})
	s.after(upTo(s.m.dice, 200*time.Microsecond), s.loop)
}

// loop is one round of the shim: what it polled, then what is due.
func (s *shimProc) loop() {
	if s.dead || s.frozen() || s.state.Phase == api.PhasePreparing {
		return
	}
	s.takeExits()
	commands := s.inbox
	s.inbox = nil
	for _, c := range commands {
		s.obey(c)
	}
	if s.dead {
		return
	}
	s.step(supervise.Tick{})
	s.checkHeld()
	s.takeExits()
	s.flush()
	if s.dead {
		return
	}
	if s.over { // and on disk, which is never full here
		s.leave()
		return
	}
	s.sleep()
}

// sleep plans the next round that nothing else brings about.
func (s *shimProc) sleep() {
	now := s.m.clocks()
	d := shimPoll
	if w, ok := s.mach.Wait(now); ok {
		d = min(d, w)
	}
	if len(s.holding) > 0 {
		d = min(d, s.holdStep)
	}
	d = min(d, s.listen())
	s.timer++
	n := s.timer
	s.after(d, func() {
		if n == s.timer {
			s.loop()
		}
	})
}

func (s *shimProc) obey(c shim.Command) {
	if s.over {
		return
	}
	if c.Limit != 0 {
		s.step(supervise.Limit{TimeLimit: max(c.Limit, 0)})
	}
	if c.Go != nil && s.mach.State() == supervise.Holding {
		s.step(supervise.Go{})
		s.flush()
	}
	if c.Stop != nil {
		s.grace = min(s.grace, c.Stop.Grace)
		s.step(supervise.Order{Stop: *c.Stop})
	}
	if c.Passed {
		s.step(supervise.Passed{})
	}
	if c.Steps != nil {
		s.takeSteps(*c.Steps)
	}
	if c.LeaseUntil > 0 {
		s.leaseAt = c.LeaseUntil
		s.step(supervise.Renewed{Left: c.LeaseUntil - s.m.bootTime()})
	}
	if c.Bye && (s.mach.State() == supervise.Holding || len(s.spec.ranks) == 0) {
		s.step(supervise.Order{})
	}
}

func (s *shimProc) step(in supervise.Input) {
	for _, a := range s.mach.Step(s.m.clocks(), in) {
		s.do(a)
	}
}

func (s *shimProc) do(a supervise.Act) {
	switch a.Kind {
	case supervise.Start:
		s.start()
	case supervise.Notify:
		s.notify(a.Scope)
	case supervise.Dump:
		s.step(supervise.Dumped{}) // processes here have no stacks
	case supervise.Stop:
		s.stop()
	case supervise.Kill:
		s.holding = nil
		for _, p := range s.m.containment(s.key) {
			p.kill(byShim)
		}
	case supervise.Prove:
		s.reap() // what has ended is of no use to what it proves, and its result is not lost
		if len(s.m.containment(s.key)) == 0 {
			s.step(supervise.Empty{})
		} else {
			s.step(supervise.Occupied{Steps: s.stepsLive()})
		}
	case supervise.Recant:
		s.heard, s.state.Deaf = false, false
		s.m.r.truth.recanted(s)
	case supervise.Stuck:
		s.state.Phase, s.state.Survivors = api.PhaseStuck, nil
		for _, p := range s.m.containment(s.key) {
			s.state.Survivors = append(s.state.Survivors, api.Survivor{PID: p.pid, Command: "rank", State: "D"})
		}
	case supervise.Finish:
		s.state.Phase, s.state.Survivors = api.PhaseStopped, nil
		s.over, s.dirty, s.durable = true, true, true
	case supervise.Tell:
		s.dirty = true
	}
}

func (s *shimProc) start() {
	s.state.Phase = api.PhaseRunning
	s.m.r.truth.opened(s)
	for _, rank := range s.spec.ranks {
		p := s.spawn(rank)
		s.state.Ranks = append(s.state.Ranks, api.RankActual{Rank: rank, PID: p.pid, Started: s.m.wall()})
	}
}

// reap takes what has ended: ranks, and what starts the tasks of a step.
func (s *shimProc) reap() {
	for len(s.exits) > 0 {
		x := s.exits[0]
		s.exits = s.exits[1:]
		if x.p.launch != nil {
			s.stepEnded(x.p.launch, x.code, x.signal)
			continue
		}
		if !x.p.main {
			continue
		}
		for i := range s.state.Ranks {
			if rec := &s.state.Ranks[i]; rec.Rank == x.p.rank {
				rec.Exited, rec.ExitCode, rec.Signal, rec.Ended = true, x.code, x.signal, x.at
				rec.Own = s.mach.Cause() == ""
			}
		}
		s.durable = true
		s.ranks = append(s.ranks, x.p.rank)
		for _, v := range s.voices {
			v.ended = v.ended || v.step < 0 && v.note.Rank == x.p.rank
		}
	}
}

// takeExits reaps what has ended, and feeds it to the stop sequence.
func (s *shimProc) takeExits() {
	s.reap()
	if s.stepsOver {
		s.stepsOver = false
		s.step(supervise.StepsOver{})
	}
	for len(s.ranks) > 0 {
		rank := s.ranks[0]
		s.ranks = s.ranks[1:]
		s.step(supervise.Exited{Rank: rank})
	}
}

// flush writes the state, then tells it.
func (s *shimProc) flush() {
	if !s.dirty {
		return
	}
	s.state.Stopping, s.state.Text = s.mach.Cause(), s.mach.Text()
	s.state.Noticed, s.state.Forced = s.mach.Noticed(), s.mach.Forced()
	s.state.Port = s.spec.port
	word := copyState(&s.state)
	s.m.r.res.Words++
	if s.durable {
		s.m.r.res.Synced++
	}
	if dir := s.m.disk.members[s.key]; dir != nil {
		dir.synced = dir.synced || s.durable
		dir.state = word
	}
	s.dirty, s.durable = false, false
	if c := s.conn; c != nil {
		s.m.r.send(s, func() { c.tell(word) })
	}
}

func copyState(s *shim.State) *shim.State {
	c := *s
	c.Ranks = slices.Clone(c.Ranks)
	c.Survivors = slices.Clone(c.Survivors)
	c.Steps = slices.Clone(c.Steps)
	return &c
}
