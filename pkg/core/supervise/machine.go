package supervise

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// never is a deadline that is not armed.
const never = time.Duration(1<<63 - 1)

// Machine is the stop sequence of one member. The zero value is not usable: see [New].
type Machine struct {
	cfg    Config
	state  State
	alive  map[int]bool // ranks that have not exited
	opened bool         // Go came, at wentAt

	cause   api.Cause
	text    string
	signal  string
	grace   time.Duration // of the stop to come
	within  time.Duration // the least that an order left until the kill since the stop began
	noticed bool
	passed  bool // see [Passed]
	forced  bool
	stuck   bool

	dumping   bool // the lead under way is for the stacks alone
	leaseOver bool // the stop under way is the lease's

	// Deadlines on the monotonic clock, never when not armed.
	noticeAt, timeLimitAt, stopAt, killAt, probeAt, stuckAt time.Duration
	lookAt                                                  time.Duration
	probeStep                                               time.Duration
	leaseAt, fenceAt                                        time.Duration // on the boot clock, see [Config.Lease]
	wentAt, stoppedAt                                       time.Duration // when the gate was opened, when the grace began
}

// New is a member that holds: prepared, its gate closed. The lease runs from now.
func New(cfg Config, now Instant) *Machine {
	m := &Machine{cfg: cfg, state: Holding, alive: make(map[int]bool, len(cfg.Ranks)), leaseAt: never, fenceAt: never, lookAt: never,
		noticeAt: never, timeLimitAt: never, stopAt: never, killAt: never, probeAt: never, stuckAt: never}
	for _, r := range cfg.Ranks {
		m.alive[r] = true
	}
	if cfg.Lease > 0 {
		m.leaseAt = now.Boot + cfg.Lease
		m.fenceAt = m.leaseAt + cfg.Grace
	}
	return m
}

// State is how far the member is.
func (m *Machine) State() State { return m.state }

// Cause is the cause of the stop under way, empty when the ranks ended by themselves.
func (m *Machine) Cause() api.Cause { return m.cause }

// Text says in words why the member is stopped.
func (m *Machine) Text() string { return m.text }

// Noticed reports whether the early signal was sent.
func (m *Machine) Noticed() bool { return m.noticed }

// Forced reports whether a grace ran out and KILL was needed.
func (m *Machine) Forced() bool { return m.forced }

// Step takes one input and answers what to do.
func (m *Machine) Step(now Instant, in Input) []Act {
	if m.state == Stopped {
		return nil
	}
	switch in := in.(type) {
	case Go:
		return m.open(now)
	case Exited:
		return m.exited(now, in.Rank)
	case Order:
		return m.order(now, in.Stop)
	case Renewed:
		m.renewed(now, in.Left)
	case Extend:
		m.extend(now, in.By)
	case Dumped:
		return m.dumped(now)
	case Limit:
		return m.relimit(now, in.TimeLimit)
	case Empty:
		return m.empty()
	case Occupied:
		return m.occupied(now, in.Steps)
	case StepsOver:
		return m.stepsOver()
	case Passed:
		return m.pass()
	case Tick:
		return m.tick(now)
	}
	return nil
}

func (m *Machine) open(now Instant) []Act {
	if m.state != Holding {
		return nil
	}
	if now.Boot >= min(m.leaseAt, m.fenceAt) {
		// The order slept with the machine: the gang may run elsewhere by now.
		return m.tick(now)
	}
	m.state, m.opened, m.wentAt = Running, true, now.Mono
	m.armLimit(now)
	return []Act{{Kind: Start}, {Kind: Tell}}
}

// armLimit arms the time limit, and the notice before it unless that was given.
func (m *Machine) armLimit(now Instant) {
	m.timeLimitAt, m.noticeAt, m.lookAt = never, never, never
	if m.cfg.TimeLimit <= 0 {
		return
	}
	m.timeLimitAt = max(m.wentAt+m.cfg.TimeLimit, now.Mono)
	defer m.armLook(now)
	n := m.cfg.Notice
	if n == nil || m.noticed {
		return
	}
	m.noticeAt = max(now.Mono, m.timeLimitAt-n.Lead)
	// A limit cut so short that the notice would come late: the lead was promised, unless the
	// whole limit is shorter: then the notice comes at the start.
	if m.cfg.TimeLimit > n.Lead {
		m.timeLimitAt = max(m.timeLimitAt, m.noticeAt+n.Lead)
	}
}

// armLook arms the look before the time limit, which is over when that comes. A limit that is here already is not waited for.
func (m *Machine) armLook(now Instant) {
	if m.cfg.Look && m.timeLimitAt > now.Mono {
		m.lookAt = max(m.timeLimitAt-lookBefore, now.Mono)
	}
}

// relimit moves the time limit of a member that nobody stops yet. Ranks that had their
// notice already are told again when it was moved out of sight.
func (m *Machine) relimit(now Instant, limit time.Duration) []Act {
	if m.state != Holding && m.state != Running || limit == m.cfg.TimeLimit {
		return nil
	}
	m.cfg.TimeLimit = limit
	if m.state == Holding {
		return nil
	}
	var acts []Act
	if n := m.cfg.Notice; m.noticed && n != nil && (limit == 0 || m.wentAt+limit > now.Mono+n.Lead) {
		m.noticed = false
		acts = []Act{{Kind: Recant}}
	}
	m.armLimit(now)
	return append(acts, append(m.tick(now), Act{Kind: Tell})...)
}

// exited handles the end of one rank. The end of the last one is not told by itself: the
// proof follows at once and one state tells both.
func (m *Machine) exited(now Instant, rank int) []Act {
	if !m.opened || !m.alive[rank] {
		return nil
	}
	delete(m.alive, rank)
	if len(m.alive) > 0 {
		return []Act{{Kind: Tell}}
	}
	m.probe(now)
	return []Act{{Kind: Prove}}
}

// renewed believes the newest word, also a shorter one: the controller reckons with the
// lease that it gave last. What it gives up on after the lease's grace it must not find
// alive either, so that a stop under way has its last moment renewed too.
func (m *Machine) renewed(now Instant, left time.Duration) {
	if m.leaseAt != never {
		m.leaseAt = now.Boot + left
	}
	if m.fenceAt != never && !m.leaseOver {
		m.fenceAt = now.Boot + left + m.cfg.Grace
	}
}

// order takes a stop from outside: the first one decides cause and signal, every one may
// bring the end nearer.
func (m *Machine) order(now Instant, s api.Stop) []Act {
	switch m.state {
	case Holding:
		m.decide(s.Cause, s.Text, s.Signal, s.Grace)
		m.killing(now)
		return []Act{{Kind: Prove}}
	case Running:
		m.decide(s.Cause, s.Text, s.Signal, s.Grace)
		if s.Lead > 0 {
			m.state = Leading
			m.stopAt = now.Mono + s.Lead
			return append(append(m.notify(), Act{Kind: Tell}), m.stepsOver()...)
		}
		if s.Dump > 0 {
			m.state, m.dumping = Leading, true
			m.stopAt = now.Mono + s.Dump
			return append([]Act{{Kind: Dump}, {Kind: Tell}}, m.stepsOver()...)
		}
		return m.stop(now)
	case Leading:
		m.grace = min(m.grace, s.Grace)
		lead := s.Lead
		if m.dumping {
			lead = s.Dump // a repeat must not cut the stacks short
		}
		m.stopAt = min(m.stopAt, now.Mono+lead)
		return m.tick(now)
	case Stopping:
		if s.Grace >= m.grace && s.Lead+s.Grace >= m.within {
			return nil // a repeat: it must not take back what a rank was given on top
		}
		m.grace, m.within = min(m.grace, s.Grace), min(m.within, s.Lead+s.Grace)
		m.killAt = min(m.killAt, now.Mono+s.Lead+s.Grace)
		return m.tick(now)
	}
	return nil
}

// dumped ends the wait for the stacks.
func (m *Machine) dumped(now Instant) []Act {
	if m.state != Leading || !m.dumping {
		return nil
	}
	return m.stop(now)
}

// extend moves the kill, never to before what the grace gives, never beyond GraceMax.
func (m *Machine) extend(now Instant, by time.Duration) {
	if m.state == Stopping && m.grace > 0 {
		m.killAt = max(m.killAt, min(now.Mono+by, m.stoppedAt+m.cfg.GraceMax))
	}
}

// decide keeps the first reason. What an order leaves open is taken from the spec.
func (m *Machine) decide(cause api.Cause, text, signal string, grace time.Duration) {
	m.cause, m.text, m.signal, m.grace = cause, text, signal, grace
	if m.signal == "" {
		m.signal = m.cfg.StopSignal
	}
	if m.signal == "" {
		m.signal = "TERM"
	}
}

func (m *Machine) notify() []Act {
	m.noticeAt = never
	if m.cfg.Notice == nil || m.noticed {
		return nil
	}
	m.noticed = true
	scope := m.cfg.Notice.Scope
	if m.passed {
		scope = api.ScopeRanks
	}
	return []Act{{Kind: Notify, Signal: m.cfg.Notice.Signal, Scope: scope}}
}

// pass gives the notice to what steps run. Where it is still to come here, it goes to them
// when it comes: the limits of two nodes differ by how fast the start reached them.
func (m *Machine) pass() []Act {
	if n := m.cfg.Notice; n == nil || n.Scope != api.ScopeBatch || !m.holder() || m.passed || m.state != Running && m.state != Leading {
		return nil
	}
	m.passed = true
	if !m.noticed {
		return nil
	}
	return []Act{{Kind: Notify, Signal: m.cfg.Notice.Signal, Scope: api.ScopeRanks}}
}

// holder: no rank of the script is here, only what steps run.
func (m *Machine) holder() bool { return len(m.cfg.Ranks) == 0 }

// stepsOver: in a lead a holder without steps has nobody left who could use it, because none
// is started any more.
func (m *Machine) stepsOver() []Act {
	if m.state != Leading || !m.holder() {
		return nil
	}
	return []Act{{Kind: Prove}}
}

// scriptOver: the script has ended and its steps run on. That is a stop like any other, but
// for its result, which is the script's: it has no cause of its own.
func (m *Machine) scriptOver(now Instant) []Act {
	if m.state == Running {
		m.decide("", "the batch script has ended", "", m.cfg.Grace)
	}
	return m.stop(now)
}

// stop begins the grace.
func (m *Machine) stop(now Instant) []Act {
	if m.grace <= 0 {
		return m.kill(now)
	}
	fence := m.fenceAt
	m.dumping = false
	m.disarm()
	m.fenceAt = fence
	m.state = Stopping
	m.stoppedAt = now.Mono
	m.killAt, m.within = now.Mono+m.grace, m.grace
	if len(m.alive) == 0 { // a holder: only the proof tells when its processes are gone
		m.probe(now)
	}
	return []Act{{Kind: Stop, Signal: m.signal}, {Kind: Tell}}
}

// kill ends the grace. An order without any grace forces only what is known to live.
func (m *Machine) kill(now Instant) []Act {
	m.forced = m.state == Stopping || m.ranksLive()
	m.killing(now)
	return []Act{{Kind: Kill}, {Kind: Tell}}
}

func (m *Machine) killing(now Instant) {
	m.disarm()
	m.state = Killing
	m.stuckAt = now.Mono + StuckAfter
	m.probe(now)
}

func (m *Machine) disarm() {
	m.noticeAt, m.timeLimitAt, m.stopAt, m.killAt, m.probeAt, m.stuckAt = never, never, never, never, never, never
	m.lookAt = never
	m.leaseAt, m.fenceAt = never, never
}

// probe arms the next look at the containment, the first of a series.
func (m *Machine) probe(now Instant) {
	m.probeStep = probeFirst
	m.probeAt = now.Mono + probeFirst
}

// ranksLive: a rank was started and has not been reaped. A containment that looks empty
// before the last exit was taken in is not the end: the exit code would be lost.
func (m *Machine) ranksLive() bool { return m.opened && len(m.alive) > 0 }

func (m *Machine) empty() []Act {
	if m.holder() && m.state == Running || m.ranksLive() || m.state == Holding {
		return nil // nothing runs in it just now: that is not its end
	}
	m.disarm()
	m.state = Stopped
	return []Act{{Kind: Finish}}
}

// occupied: while a stop is under way what is left may use the grace; after the ranks' own
// end, or that of a script and of its steps, it is a leftover and gets KILL at once.
func (m *Machine) occupied(now Instant, steps bool) []Act {
	switch m.state {
	case Running, Leading:
		switch {
		case m.ranksLive() || m.holder() && m.state == Running:
			return nil
		case steps && m.holder():
			// Their end is told. This look is for who only waits for others.
			m.probeStep, m.probeAt = probeStuck, now.Mono+probeStuck
			return nil
		case steps:
			return m.scriptOver(now)
		}
		m.killing(now)
		return []Act{{Kind: Kill}, {Kind: Tell}}
	case Stopping:
		if m.probeAt == never {
			return nil // ranks live, and nobody asked
		}
		if m.cause == "" && !steps {
			m.killing(now)
			return []Act{{Kind: Kill}, {Kind: Tell}}
		}
		m.again(now)
	case Killing:
		m.again(now)
		return []Act{{Kind: Kill}} // again: a fork may have raced with the first one
	}
	return nil
}

func (m *Machine) again(now Instant) {
	m.probeStep = min(max(2*m.probeStep, probeFirst), probeSlow)
	if m.stuck {
		m.probeStep = probeStuck
	}
	m.probeAt = now.Mono + m.probeStep
}

// tick does the one most urgent thing that is due; what it leads to is due later.
func (m *Machine) tick(now Instant) []Act {
	switch {
	case now.Mono >= m.killAt:
		return m.kill(now)
	case now.Boot >= m.fenceAt:
		return m.fence(now)
	case now.Mono >= m.stopAt:
		return m.stop(now)
	case now.Mono >= m.timeLimitAt:
		return m.own(now, api.CauseTimeout, "time limit of "+when.Words(m.cfg.TimeLimit)+" reached")
	case now.Boot >= m.leaseAt:
		m.leaseOver = true
		return m.own(now, api.CauseNodeLost, leaseText)
	case now.Mono >= m.lookAt:
		m.lookAt = never
		return []Act{{Kind: Look}}
	case now.Mono >= m.noticeAt:
		return append(m.notify(), Act{Kind: Tell})
	case now.Mono >= m.stuckAt:
		m.stuckAt, m.stuck = never, true
		return []Act{{Kind: Stuck}, {Kind: Tell}}
	case now.Mono >= m.probeAt:
		m.probeAt = now.Mono + m.probeStep
		return []Act{{Kind: Prove}}
	}
	return nil
}

// own is a stop that nobody ordered. During the lead of an order it only ends the lead:
// the first cause stays.
func (m *Machine) own(now Instant, cause api.Cause, text string) []Act {
	switch m.state {
	case Holding:
		m.decide(cause, text, "", m.cfg.Grace)
		m.killing(now)
		return []Act{{Kind: Prove}}
	case Running:
		m.decide(cause, text, "", m.cfg.Grace)
	}
	return m.stop(now)
}

// leaseText does not say for how long: what the member was started with is what was left of
// the lease then.
const leaseText = "no controller was reached until the lease ran out"

// fence is the end of the lease's grace. Who comes to here without a stop slept through all
// of it, with the machine or frozen alone: the controller may have started the gang
// elsewhere in this moment, so there is no grace left to give.
func (m *Machine) fence(now Instant) []Act {
	if m.state == Holding {
		return m.own(now, api.CauseNodeLost, leaseText)
	}
	if m.state == Running {
		m.decide(api.CauseNodeLost, leaseText, "", 0)
	}
	return m.kill(now)
}

// Wait is how long until a tick has something to do; ok is false when no timer is armed.
func (m *Machine) Wait(now Instant) (d time.Duration, ok bool) {
	at := min(m.noticeAt, m.timeLimitAt, m.stopAt, m.killAt, m.probeAt, m.stuckAt, m.lookAt)
	d = never
	if at != never {
		d = at - now.Mono
	}
	if at := min(m.leaseAt, m.fenceAt); at != never {
		d = min(d, at-now.Boot)
	}
	if d == never {
		return 0, false
	}
	return max(d, 0), true
}
