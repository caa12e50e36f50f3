package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/supervise"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/session"
)

// machine is one node: its power, its clocks, its disk, its way to the controller, and
// what runs on it.
type machine struct {
	owner // of this boot; a reboot makes another
	r     *run
	name  string
	spec  Node
	dice  *rand.Rand

	boot        int
	up          bool
	suspensions int
	skew        time.Duration // what its wall clock shows more than others
	asleep      time.Duration // total of suspends of this boot
	since       time.Duration // of the suspend under way
	disk        nodeDisk
	daemon      *daemon // nil: none runs
	shims       []*shimProc
	procs       []*proc
	nextPID     int
	lines       []*line

	cutsUp, cutsDown int
	cutsTo           map[*host]int
	slowUntil        time.Duration
	twiceUntil       time.Duration
	refuseUntil      time.Duration
	refuseBlame      api.Blame
	slowLaunchUntil  time.Duration
	unkillableUntil  time.Duration
}

// nodeDisk is what outlives daemons, and but for unsynced words the machine.
type nodeDisk struct {
	stateID  string
	lastBoot string
	lineage  uint64
	rebooted api.RebootOrder // as told last
	run      string          // of the controller that told lineage
	proof    string          // that it did
	lease    time.Duration   // -1: never told
	kept     session.Kept
	members  map[api.MemberKey]*memberDir
	images   map[*Job]bool                 // imported for a job
	epilogs  map[api.MemberKey]*memberSpec // that have to run, written down before anything of the member does
}

// memberDir is a member's directory.
type memberDir struct {
	body   *memberSpec
	state  *shim.State // nil: nothing was written
	synced bool        // state survives the machine
}

func newMachine(r *run, i int) *machine {
	spec := r.sc.Nodes[i]
	if spec.CPUs == 0 {
		spec.CPUs = 8
	}
	m := &machine{r: r, cutsTo: map[*host]int{}, name: spec.Name, spec: spec, dice: rand.New(rand.NewPCG(r.sc.Seed, 100+uint64(i)))}
	m.owner = owner{l: &r.loop, dead: true}
	m.skew = upTo(m.dice, 2*mostSkew) - mostSkew
	m.disk = nodeDisk{stateID: "state-" + m.name, lease: -1, members: map[api.MemberKey]*memberDir{}, images: map[*Job]bool{},
		epilogs: map[api.MemberKey]*memberSpec{}}
	return m
}

func (m *machine) bootID() string { return fmt.Sprintf("boot-%s-%d", m.name, m.boot) }

// bootOffset is what machines' boot clocks are ahead of the run.
const bootOffset = 1000 * time.Second

// now is the two clocks of the machine: only the boot clock goes on in a suspend.
func (m *machine) clocks() supervise.Instant {
	boot := bootOffset + m.r.now
	mono := boot - m.asleep
	if m.stops > 0 {
		mono -= m.r.now - m.since
	}
	return supervise.Instant{Mono: mono, Boot: boot}
}

// mostSkew is far above what a peer takes to leave.
const mostSkew = 500 * time.Millisecond

// wall is the wall clock of the machine: no two show the same.
func (m *machine) wall() time.Time { return m.r.instant().Wall.Add(m.skew) }

func (m *machine) bootTime() time.Duration { return m.clocks().Boot }

// powerOn boots the machine; its daemon is started by the init system.
func (m *machine) powerOn() {
	if m.up {
		return
	}
	m.boot++
	m.up = true
	m.owner = owner{l: &m.r.loop}
	m.asleep = 0
	m.r.log("%s boots, %s", m.name, m.bootID())
	m.owner.after(upTo(m.dice, 300*time.Millisecond), m.startDaemon)
}

// powerOff ends everything at once: nobody is told.
func (m *machine) powerOff() {
	if !m.up {
		return
	}
	m.r.log("%s loses power", m.name)
	m.up = false
	m.owner.dead = true // of this boot: the value stays with the events that hold it
	if m.daemon != nil {
		m.daemon.dead = true
		m.daemon.line = nil
		m.daemon = nil
	}
	for _, p := range slices.Clone(m.procs) {
		p.vanish()
	}
	for _, s := range m.shims {
		s.dead = true
	}
	m.shims = nil
	for _, l := range m.lines {
		l.dead = true
	}
	m.lines = nil
	for _, d := range m.disk.members {
		if !d.synced && d.state != nil && m.dice.IntN(2) == 0 {
			d.state = nil
		}
	}
}

// shutDown ends the machine as an init system does: all that runs there gets TERM within a moment, in no order, and what
// is left loses its power. It is on again after away.
func (m *machine) shutDown(away time.Duration) {
	m.r.log("%s is shut down", m.name)
	for _, p := range slices.Clone(m.procs) {
		if p.main && !p.catches(false) {
			p.owner.after(upTo(m.dice, 20*time.Millisecond), func() {
				p.struck = true
				p.exit(128+15, 15)
			})
		}
	}
	if d := m.daemon; d != nil {
		m.owner.after(upTo(m.dice, 100*time.Millisecond), func() { d.crash(away + time.Minute) })
	}
	m.owner.after(time.Second, func() {
		m.powerOff()
		m.r.after(away, m.powerOn)
	})
}

// suspend stops the machine, and all on it, for d.
func (m *machine) suspend(d time.Duration) {
	if !m.up || m.stops > 0 {
		return
	}
	m.suspensions++
	m.r.log("%s stands still for %s", m.name, d)
	m.since = m.r.now
	m.stops = 1
	boot := m.boot
	m.r.after(d, func() {
		if m.boot == boot && m.up {
			m.resume()
		}
	})
}

func (m *machine) resume() {
	if m.stops == 0 {
		return
	}
	m.r.log("%s goes on", m.name)
	m.asleep += m.r.now - m.since
	m.stops = 0
	// Whoever polls wakes with the machine.
	for _, s := range slices.Clone(m.shims) {
		s.wake()
		s.loop()
	}
	m.r.truth.thawed(m)
	m.wake()
	if m.daemon != nil {
		m.daemon.wake()
	}
	for _, p := range slices.Clone(m.procs) {
		p.wake()
	}
}

// delay is how long a parcel is under way.
func (m *machine) delay() time.Duration {
	d := 100*time.Microsecond + upTo(m.dice, 2*time.Millisecond)
	if m.dice.IntN(50) == 0 {
		d += upTo(m.dice, 300*time.Millisecond)
	}
	if m.r.now < m.slowUntil {
		d += time.Second + upTo(m.dice, 1500*time.Millisecond)
	}
	return d
}

func (m *machine) isCut(up bool) bool {
	if up {
		return m.cutsUp > 0
	}
	return m.cutsDown > 0
}

// cutOff says whether the way to a host is cut, at whichever end.
func (m *machine) cutOff(h *host) bool { return h.cuts > 0 || m.cutsTo[h] > 0 }

// cut takes directions away for d.
func (m *machine) cut(up, down bool, d time.Duration) {
	if up {
		m.cutsUp++
	}
	if down {
		m.cutsDown++
	}
	m.r.after(d, func() { m.mend(up, down) })
}

func (m *machine) mend(up, down bool) {
	if up && m.cutsUp > 0 {
		m.cutsUp--
	}
	if down && m.cutsDown > 0 {
		m.cutsDown--
	}
	m.free()
}

// free lets go on what was stuck where nothing is cut any more.
func (m *machine) free() {
	for _, l := range m.lines {
		if !l.isCut(true) {
			l.freed(true)
		}
		if !l.isCut(false) {
			l.freed(false)
		}
	}
}

// prune forgets the lines of which nothing can come any more.
func (m *machine) prune() {
	m.lines = slices.DeleteFunc(m.lines, func(l *line) bool {
		used := l.node == m.daemon && l.node.line == l || len(l.up.stuck)+len(l.down.stuck) > 0 || l.hub != nil && !l.hub.over && !l.hub.g.dead
		return l.dead || !used
	})
}

func (m *machine) startDaemon() {
	if m.daemon == nil && m.up {
		m.daemon = newDaemon(m)
		m.daemon.begin()
	}
}

// cards are the UUIDs of the machine.
func (m *machine) cards() []api.CardInfo {
	out := make([]api.CardInfo, m.spec.Cards)
	for i := range out {
		out[i] = api.CardInfo{Index: i, UUID: fmt.Sprintf("GPU-%s-%d", m.name, i), Model: "Sim-80G", VRAMBytes: 80 << 30, NUMA: -1}
	}
	return out
}

// shimOf is the running shim of a member, nil when there is none.
func (m *machine) shimOf(k api.MemberKey) *shimProc {
	for _, s := range m.shims {
		if s.key == k && !s.dead {
			return s
		}
	}
	return nil
}

// containment is every process of a member.
func (m *machine) containment(k api.MemberKey) []*proc {
	var out []*proc
	for _, p := range m.procs {
		if p.key == k {
			out = append(out, p)
		}
	}
	return out
}
