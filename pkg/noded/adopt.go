package noded

import (
	"context"
	"os"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/proc"
	"gangd/pkg/shim"
)

const (
	// attachFor is how long a shim without a word on disk may take to be reachable: the
	// daemon before may have died between starting it and hearing of it.
	attachFor = 2 * time.Second
	// killFor is one try at emptying the containment of a dead shim. Between tries the
	// member is reported stuck and may be spoken to.
	killFor = time.Second
)

// closedAnswers is the answers of a shim that nobody has reached yet: its end sends the
// member on to look for it.
var closedAnswers = func() <-chan shim.Answer { c := make(chan shim.Answer); close(c); return c }()

// adopt finds the members that the daemon before left. It only reads files: a shim writes
// its state before it tells anyone, so they are as new as any answer, and a shim that hangs
// holds up nobody. Each member then looks for its shim by itself.
func (d *Daemon) adopt(ctx context.Context) error {
	keys, err := d.state.members()
	if err != nil {
		return err
	}
	holds := map[api.MemberKey]bool{}
	for _, c := range d.inventory() {
		holds[c.key] = true
	}
	var found []foundMember
	for _, k := range keys {
		dir := d.state.memberDir(k)
		spec, state := readMember(dir)
		ended := EndedWithBoot(state, d.state.lastBoot, d.state.boot)
		if !ended && spec == nil && holds[k] {
			continue // its record is lost, and its processes are not: see [Daemon.takeFound]
		}
		if ended || spec == nil {
			// No process of it can exist: the machine was started again, or its shim was
			// never started, because the spec is written first. The controller learns it
			// from the Hello, in which the member is not.
			if spec == nil {
				d.log.Warn("record of a member can't be read, nothing of it runs", "job", k.Job, "epoch", k.Epoch)
			}
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
			continue
		}
		f := foundMember{k, spec, state}
		d.cards.found(k, spec.Cards, f.over())
		found = append(found, f)
	}
	for i := range found {
		d.opts.Signs.Progress()
		d.adoptMember(ctx, &found[i])
	}
	d.takeFound()
	return nil
}

// foundMember is what a daemon before has left of a member.
type foundMember struct {
	key   api.MemberKey
	spec  *shim.Spec
	state *shim.State
}

func (f *foundMember) over() bool { return f.state != nil && Ended(f.state.Phase) }

// adoptMember makes a member known. One that ended while no daemon was here has its cards
// proven empty now, once: what is not empty by now heals later.
func (d *Daemon) adoptMember(ctx context.Context, f *foundMember) {
	d.mu.Lock()
	m := d.newMember(f.key)
	d.mu.Unlock()
	m.spec, m.answers = f.spec, closedAnswers
	m.introduce(f.spec)
	a := api.MemberActual{Phase: api.PhasePreparing}
	if f.state != nil {
		a = f.state.MemberActual
	}
	a.MemberKey, a.Port = f.key, f.spec.Port
	if f.spec.Port != 0 && !Ended(a.Phase) {
		d.ports.keep(f.spec.Port, f.key)
	}
	if f.over() {
		m.lookInto(ctx, &a)
		m.seen = d.cards.takeBack(ctx, f.key, f.spec.Cards, 0)
		a.Cards = m.seen
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m.begin(a)
}

// readMember reads what is there; nil for what is not, or is torn.
func readMember(dir string) (*shim.Spec, *shim.State) {
	spec, err := shim.ReadSpec(dir)
	if err != nil {
		spec = nil
	}
	state, err := shim.ReadState(dir)
	if err != nil {
		state = nil
	}
	return spec, state
}

// hungUp: the shim is gone, or the connection to it. A shim that can be reached again goes
// on; of another the state file has the last word.
func (m *member) hungUp(ctx context.Context) {
	if m.conn != nil {
		_ = m.conn.Close()
		m.conn = nil
	}
	m.answers = nil
	m.abandon()
	if m.over.Load() && m.actual.Phase != api.PhaseStopped {
		return // refused: it exits by itself
	}
	if c := m.attach(ctx); c != nil {
		m.lastSent, m.sentOwn = LastSent{}, false // idempotent: say it again
		m.talk(c)
		return
	}
	if m.over.Load() || ctx.Err() != nil {
		return
	}
	if _, s := readMember(m.dir); LastWord(s) {
		m.become(ctx, s.MemberActual)
		return
	}
	m.lost(ctx)
}

// attach reaches the member's shim, nil when there is none. A shim that has said nothing
// yet may be just starting.
func (m *member) attach(ctx context.Context) *shim.Conn {
	for until := time.Now().Add(attachFor); ; {
		c, err := shim.Attach(m.dir)
		if err == nil {
			return c
		}
		if _, s := readMember(m.dir); s != nil || time.Now().After(until) || ctx.Err() != nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lost ends what a dead shim left and says so when it is proven gone.
func (m *member) lost(ctx context.Context) {
	m.d.log.Warn("shim died without a result", "job", m.key.Job, "epoch", m.key.Epoch, "phase", m.actual.Phase)
	for ctx.Err() == nil {
		err := proc.KillContainment(m.spec.Place(), killFor)
		if err == nil {
			a := m.actual
			a.Phase, a.Survivors = api.PhaseLost, nil
			m.become(ctx, a)
			return
		}
		m.d.log.Error("processes of a member outlive KILL", "job", m.key.Job, "epoch", m.key.Epoch, "err", err)
		if a := m.actual; a.Phase != api.PhaseStuck {
			a.Phase, a.Survivors = api.PhaseStuck, []api.Survivor{{Command: err.Error()}}
			m.become(ctx, a)
		}
	}
}
