package sim

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/noded"
	"gangd/pkg/wire/session"
)

// daemon is one process of gnoded. What it decides is package noded's, what it says over
// the line package session's; that each member looks at its mailbox in a goroutine of its
// own is an event of its own here.
type daemon struct {
	owner
	m        *machine
	board    *noded.Board
	half     *session.DrivenNode
	renewal  noded.Renewal
	settings api.Settings
	run      string                           // of the controller in session
	noted    map[api.MemberKey]api.MemberNote // as it was said in this session
	members  map[api.MemberKey]*member

	line    *line // nil: none
	greeted bool
	opened  time.Duration    // when the session was greeted
	heardAt time.Duration    // the last frame
	tries   uint64           // the try to connect that counts
	turn    int              // of the host that is tried
	next    *host            // that is said to lead; nil: nobody said
	met     map[*host]*gangd // processes with which a line is open
	contact time.Duration    // as it was last seen
	soon    bool             // a frame is planned
	debts   int              // epilogs that run of members that are gone
}

func newDaemon(m *machine) *daemon {
	d := &daemon{owner: owner{l: &m.r.loop, parent: &m.owner}, m: m, settings: api.DefaultSettings(), members: map[api.MemberKey]*member{},
		met: map[*host]*gangd{}}
	d.board = noded.NewBoard(d.wakeSession)
	d.half = session.NewDrivenNode(d, m.bootTime, m.wall, m.disk.kept)
	if m.disk.lease >= 0 {
		d.settings.Lease = m.disk.lease
	}
	return d
}

// begin finds the members that the daemon before left, and opens a session.
func (d *daemon) begin() {
	d.m.r.log("%s: gnoded starts", d.m.name)
	boot := d.m.bootID()
	for _, k := range slices.SortedFunc(maps.Keys(d.m.disk.members), api.MemberKey.Compare) {
		dir := d.m.disk.members[k]
		if dir.body == nil || noded.EndedWithBoot(dir.state, d.m.disk.lastBoot, boot) {
			delete(d.m.disk.members, k)
			continue
		}
		d.adopt(k, dir)
	}
	for _, k := range slices.SortedFunc(maps.Keys(d.m.disk.epilogs), api.MemberKey.Compare) {
		if d.members[k] == nil {
			d.debts++
			d.after(d.m.spec.Epilog, func() {
				delete(d.m.disk.epilogs, k)
				d.debts--
			})
		}
	}
	d.m.disk.lastBoot = boot
	d.connect()
	d.tickLater()
	if m := d.m; m.r.db != nil {
		d.askLater()
	}
}

func (d *daemon) adopt(k api.MemberKey, dir *memberDir) {
	x := d.newMember(k)
	x.spec = dir.body
	a := api.MemberActual{MemberKey: k, Phase: api.PhasePreparing}
	if dir.state != nil {
		a = dir.state.MemberActual
	}
	a.MemberKey, a.Port = k, x.port()
	if noded.Ended(a.Phase) && d.m.disk.epilogs[k] != nil {
		a = noded.BeforeEpilog(a)
	}
	x.begin(a)
	d.after(d.m.hop(), x.hungUp)
}

// crash is kill -9; the init system starts another one.
func (d *daemon) crash(away time.Duration) {
	if d.dead {
		return
	}
	m := d.m
	m.r.log("%s: gnoded dies", m.name)
	m.r.troubled(away)
	d.dead = true
	m.daemon = nil
	if d.line != nil {
		d.line.fin(true)
		d.line = nil
	}
	for _, s := range m.shims {
		s.conn = nil
	}
	m.owner.after(away, m.startDaemon)
}

func (d *daemon) isGone() bool { return d.gone() }

// tickLater renews leases at each heartbeat.
func (d *daemon) tickLater() {
	d.after(d.settings.Heartbeat, func() {
		if until, due := d.renewal.Due(d.settings.Lease, d.half.LastContact()); due {
			for _, k := range slices.SortedFunc(maps.Keys(d.members), api.MemberKey.Compare) {
				d.members[k].want.Lease = until
				d.members[k].poke()
			}
		}
		d.tickLater()
	})
}

// Hello implements [session.Agent].
func (d *daemon) Hello() *api.Hello {
	m := d.m
	d.noted = map[api.MemberKey]api.MemberNote{}
	return &api.Hello{Node: m.name, StateID: m.disk.stateID, Version: "sim", BootID: m.bootID(), Address: m.name, Containment: "simulated",
		CPUs: m.spec.CPUs, MemoryBytes: 64 << 30, Cards: m.cards(), LineageSeen: m.disk.lineage, RunSeen: m.disk.run, LineageProof: m.disk.proof,
		Opens: !m.spec.Waits, Reboots: true, Reboot: d.board.RebootNow(), Features: []string{api.FeatureContainer}, Members: d.board.All()}
}

// Welcome implements [session.Agent].
func (d *daemon) Welcome(w *api.Welcome) {
	d.run = w.Run
	d.Lineage(w.Lineage, w.LineageProof)
	d.m.disk.lease = w.Settings.Lease
	d.settings = w.Settings
}

// Settings implements [session.Agent].
func (d *daemon) Settings(s *api.Settings) { d.settings = *s }

// Lineage implements [session.Agent].
func (d *daemon) Lineage(n uint64, proof string) {
	if n > 0 && n >= d.m.disk.lineage {
		d.m.disk.lineage, d.m.disk.run, d.m.disk.proof = n, d.run, proof
	}
}

// Desired implements [session.Agent].
func (d *daemon) Desired(x *api.Desired) {
	noded.TakeDesired(x, func(a *api.Assignment) { d.desire(a, x.Specs) }, d.forget, d.keys)
	d.board.Applied(x.Revision)
}

func (d *daemon) keys() []api.MemberKey {
	return slices.SortedFunc(maps.Keys(d.members), api.MemberKey.Compare)
}

func (d *daemon) desire(a *api.Assignment, specs map[string]*api.Spec) {
	x := d.members[a.MemberKey]
	if x != nil {
		x.want.Gate, x.want.Stop, x.want.Steps, x.want.Passed = a.Gate, a.Stop, a.Steps, a.Passed
		x.check(a.Check)
		x.poke()
		return
	}
	x = d.newMember(a.MemberKey)
	x.want = noded.Orders{Gate: a.Gate, Stop: a.Stop, Steps: a.Steps, Passed: a.Passed}
	phase := noded.FirstPhase(a)
	if phase == api.PhasePreparing {
		x.body, x.bodySpec = a.Body, specs[a.Body.SpecHash]
	}
	x.begin(api.MemberActual{MemberKey: a.MemberKey, Phase: phase})
}

func (d *daemon) forget(k api.MemberKey) {
	if x := d.members[k]; x != nil {
		x.want.Forget = true
		x.poke()
		return
	}
	d.board.Drop(k) // said before, perhaps in a session that broke
}

// Reboot implements [session.Agent]: the machine goes away and comes back, or can't.
func (d *daemon) Reboot(o *api.RebootOrder) {
	m := d.m
	if o.Boot != m.bootID() || m.disk.rebooted.Same(o) {
		return
	}
	m.disk.rebooted = *o
	if len(m.procs) > 0 {
		m.r.fail("I9", "%s is told to reboot while %d processes of jobs run there", m.name, len(m.procs))
	}
	if m.dice.IntN(8) == 0 {
		d.after(upTo(m.dice, time.Second), func() {
			d.board.RebootFailed(api.RebootActual{RebootOrder: *o, Failed: "simulated"})
		})
		return
	}
	m.r.log("%s reboots as told", m.name)
	m.owner.after(upTo(m.dice, time.Second), func() {
		m.powerOff()
		m.r.after(upTo(m.dice, 20*time.Second), m.powerOn)
	})
}

// Report implements [session.Agent].
func (d *daemon) Report() *api.Actual { return d.board.Report() }

// Samples implements [session.Agent].
func (d *daemon) Samples() []api.CardSample { return nil }

// Load implements [session.Agent].
func (d *daemon) Load() *api.NodeLoad { return nil }

// Notes implements [session.Agent].
func (d *daemon) Notes() (out []api.MemberNote) {
	for _, k := range d.keys() {
		if n, news := d.note(d.members[k]); news {
			d.noted[k] = n
			out = append(out, n)
		}
	}
	return out
}

// Signal implements [session.Agent].
func (d *daemon) Signal(context.Context, api.SignalOrder) (int, error) { return 0, nil }

// ReadLog implements [session.Agent].
func (d *daemon) ReadLog(context.Context, api.LogRead, io.Writer) error { return nil }

// Stacks implements [session.Agent]: processes here have none.
func (d *daemon) Stacks(context.Context, api.MemberKey) (*api.MemberStacks, error) {
	return &api.MemberStacks{}, nil
}

// AppendLog implements [session.Agent].
func (d *daemon) AppendLog(context.Context, api.LogAppend) error { return nil }

// ResumeCard implements [session.Agent].
func (d *daemon) ResumeCard(context.Context, string) error { return nil }

// Keep implements [session.Agent].
func (d *daemon) Keep(k session.Kept) error {
	d.m.disk.kept = k
	return nil
}

// Down implements [session.Agent].
func (d *daemon) Down(error) {
	for _, x := range d.members {
		x.want.Gate = nil
	}
}

// jobOf is the index of a job in the scenario, by its name.
func (r *run) jobOf(name string) *Job {
	var i int
	if _, err := fmt.Sscanf(name, "job-%d", &i); err != nil || i >= len(r.sc.Jobs) {
		return &Job{}
	}
	return &r.sc.Jobs[i]
}
