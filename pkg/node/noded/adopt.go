package noded

import (
	"cmp"
	"context"
	"os"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/shim"
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
func (d *daemon) adopt(ctx context.Context) error {
	keys, err := d.state.members()
	if err != nil {
		return err
	}
	held := d.inventory()
	var found []*foundMember
	for _, k := range keys {
		f := d.findMember(k, held[k])
		if f == nil {
			if err := os.RemoveAll(d.state.memberDir(k)); err != nil {
				return err
			}
			continue
		}
		d.cards.found(k, f.spec.Cards, f.over())
		found = append(found, f)
	}
	for _, f := range found {
		d.opts.Signs.Progress()
		d.adoptMember(ctx, f)
	}
	d.takeFound()
	return nil
}

// foundMember is what a daemon before has left of a member.
type foundMember struct {
	spec   *shim.Spec
	actual api.MemberActual
	bare   bool // spec is made up: only who it is, and where its processes are, is known
}

func (f *foundMember) over() bool { return Ended(f.actual.Phase) }

// findMember judges what is left of a member that has a directory; nil: nothing that counts, and it
// has to be gone for the controller, in whose hello it is not.
func (d *daemon) findMember(k api.MemberKey, c *containment) *foundMember {
	r := readMember(d.state.memberDir(k), k)
	if c != nil && r.state != nil && Ended(r.state.Phase) {
		// It was about to end as we looked, or the record is not true.
		if c = d.inventory()[k]; c != nil {
			r.contradicted()
		}
	}
	alive := c != nil
	if !alive && r.uncertain(d.state.lastBoot != d.state.boot) {
		alive = answers(r.dir)
	}
	f := &foundMember{spec: r.spec}
	if f.spec == nil {
		f.spec, f.bare = d.bareSpec(k, c), true
	}
	switch judge(r, alive, shim.Begun(r.dir), d.state.lastBoot, d.state.boot) {
	case remainsNothing:
		if r.damaged() != "" {
			d.log.Warn("record of a member that never began is not whole", "job", k.Job, "epoch", k.Epoch, "why", r.damaged())
		}
		return nil
	case remainsMember:
		f.actual.Phase = api.PhasePreparing
		if f.bare {
			f.actual.Phase = api.PhaseRunning
		}
		if r.state != nil {
			f.actual = r.state.MemberActual
		}
	case remainsName:
		f.actual.Phase = api.PhaseLost
	}
	f.actual.MemberKey, f.actual.Port, f.actual.Found = k, f.spec.Port, r.damaged()
	if f.bare && r.damaged() == "" {
		f.actual.Found = recordMissing
	}
	if f.actual.Found != "" {
		d.log.Error("record of a member is not whole", "job", k.Job, "epoch", k.Epoch, "why", f.actual.Found, "phase", f.actual.Phase)
	}
	return f
}

// recordMissing is said of a member of which only processes, or a shim, are there.
const recordMissing = "its record is missing"

// adoptMember makes a member known. One that ended while no daemon was here has its cards
// proven empty now, once: what is not empty by now heals later. One whose epilog is not over is in it again, and keeps
// until then what is free at the end of others.
func (d *daemon) adoptMember(ctx context.Context, f *foundMember) {
	k := f.actual.MemberKey
	cleaning := f.over() && d.epilogDue(k) != nil
	d.mu.Lock()
	m := d.newMember(k)
	d.mu.Unlock()
	switch {
	case f.spec.Port == 0 || f.over() && !cleaning:
	case gateShut(f.actual.Phase):
		f.spec.Port = d.ports.takeAgain(f.spec.Port, k)
		f.actual.Port = f.spec.Port
	default:
		d.ports.keep(f.spec.Port, k)
	}
	m.spec, m.bare, m.found, m.answers = f.spec, f.bare, f.actual.Found, closedAnswers
	m.known.Store(f.spec)
	a := f.actual
	if !f.over() || cleaning {
		m.keepCPUs()
	}
	if f.over() {
		m.lookInto(ctx, &a)
		m.seen = d.cards.takeBack(ctx, k, f.spec.Cards, 0)
		a.Cards = m.seen
		a.Measure = d.endMeasure(m, &a)
	}
	if cleaning {
		m.cleaning.Store(true)
		a = BeforeEpilog(a)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m.begin(a)
}

// answers reports whether a shim serves the directory. It is asked for nothing.
func answers(dir string) bool {
	c, err := shim.Attach(dir)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// hungUp: the shim is gone, or the connection to it. A shim that can be reached again goes
// on; of another the state file has the last word.
func (m *member) hungUp(ctx context.Context) {
	released := false
	if m.conn != nil {
		released = m.conn.Released()
		_ = m.conn.Close()
		m.conn = nil
	}
	m.answers = nil
	m.abandon()
	if m.over.Load() && (released || m.actual.Phase != api.PhaseStopped) {
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
	r := readMember(m.dir, m.key)
	if LastWord(r.state) {
		if m.d.inventory()[m.key] == nil {
			m.lookInto(ctx, &r.state.MemberActual)
			m.become(ctx, r.state.MemberActual)
			return
		}
		r.contradicted()
	}
	m.found = cmp.Or(m.found, r.damaged())
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
		if _, unread := shim.ReadState(m.dir); unread == nil || time.Now().After(until) || ctx.Err() != nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// lost ends what a dead shim left and says so when it is proven gone.
func (m *member) lost(ctx context.Context) {
	m.d.log.Warn("shim died without a result", "job", m.key.Job, "epoch", m.key.Epoch, "phase", m.actual.Phase, "record", m.found)
	for ctx.Err() == nil {
		err := m.killContainment()
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
