package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/noded"
	"gangd/pkg/node/shim"
)

const (
	attachFor = 2 * time.Second        // as in package noded
	retryWait = 200 * time.Millisecond // as in package noded
	killFor   = time.Second            // as in package noded
)

// member is one member in the eyes of a daemon: package noded's member without goroutine
// and files.
type member struct {
	d        *daemon
	key      api.MemberKey
	spec     *memberSpec // once there is a directory
	body     *api.AssignmentBody
	bodySpec *api.Spec
	want     noded.Orders
	told     noded.LastSent
	actual   api.MemberActual
	conn     *shimConn
	over     bool
	cleaning bool // it is over, and the site's epilog runs: it does nothing else
	poked    bool
	fetching bool
	dropping bool
	gone     bool
	files    map[int]*stepFile // by step
	round    int64             // the newest check of its cards
	watch    *api.WatchNote
}

func (d *daemon) newMember(k api.MemberKey) *member {
	x := &member{d: d, key: k}
	d.members[k] = x
	return x
}

func (x *member) begin(a api.MemberActual) {
	x.actual, x.over = a, noded.Ended(a.Phase)
	if a.Phase == api.PhasePreparing {
		x.d.board.Note(a)
	} else {
		x.d.board.Put(a)
	}
	x.poke()
}

// poke sees to a look at the mailbox.
func (x *member) poke() {
	if x.poked || x.gone {
		return
	}
	x.poked = true
	x.d.after(upTo(x.d.m.dice, 200*time.Microsecond), func() {
		x.poked = false
		x.step()
	})
}

// step brings what is nearer to what is wanted.
func (x *member) step() {
	if x.gone || x.dropping || x.fetching || x.cleaning {
		return
	}
	if x.body != nil {
		body, spec := x.body, x.bodySpec
		x.body, x.bodySpec = nil, nil
		if x.want.Forget || x.want.Stop != nil {
			x.become(api.MemberActual{Phase: api.PhaseStopped})
		} else {
			x.prepare(body, spec)
		}
	}
	o := x.want
	x.want.Lease = 0
	o.Steps, o.Gate = x.startable(o.Steps), noded.OwnGate(o.Gate, x.port())
	todo := x.told.Next(o, x.actual.Phase, x.conn != nil, x.over, x.mayOpen)
	for _, c := range todo.Send {
		x.send(c)
	}
	switch {
	case todo.Drop:
		x.drop()
	case todo.Again:
		x.d.after(retryWait, x.poke)
	}
}

func (x *member) send(c shim.Command) {
	if s := x.shim(); s != nil {
		x.d.m.r.res.Orders++
		x.d.m.r.send(x.d, func() { s.command(c) })
	}
}

// shim is the process at the other end, nil when the connection is over.
func (x *member) shim() *shimProc {
	if x.conn == nil || x.conn.s.dead || x.conn.s.conn != x.conn {
		return nil
	}
	return x.conn.s
}

func (x *member) mayOpen() bool {
	var others []noded.Sibling
	for k, o := range x.d.members {
		if k.Job == x.key.Job {
			others = append(others, noded.Sibling{Epoch: k.Epoch, Over: o.over})
		}
	}
	return noded.MayOpen(x.key.Epoch, others, x.d.m.bootTime()-x.d.half.LastContact(), x.d.settings.Heartbeat)
}

// prepare makes the directory and starts the shim.
func (x *member) prepare(b *api.AssignmentBody, spec *api.Spec) {
	d := x.d
	s := &memberSpec{job: d.m.r.jobOf(b.Name), body: b, batch: spec.Launch == api.LaunchBatch, startedBefore: b.RestartCount,
		limit: b.TimeLimit, notice: spec.Notice,
		stopSignal: spec.StopSignal, grace: b.Grace, graceMax: spec.GraceMax, from: b.Checkpoint,
		lease: noded.LeaseLeft(d.settings.Lease, d.half.LastContact(), d.m.bootTime())}
	for _, p := range b.Nodes {
		s.nodes = append(s.nodes, p.Name)
	}
	for rank, p := range b.Ranks {
		if b.Nodes[p.Node].Name != d.m.name {
			continue
		}
		s.gpus = append(s.gpus, p.Cards...)
		if rank == 0 {
			s.port = 20000 + int(x.key.Job)
		}
		if spec.Launch != api.LaunchBatch || rank == 0 {
			s.ranks = append(s.ranks, rank)
		}
	}
	x.fetch(s, func() {
		x.importImage(s, d.m.r.now, func() {
			x.prolog(s, func() {
				x.spec = s
				d.m.disk.members[x.key] = &memberDir{body: s}
				x.talk(d.m.startShim(x.key, s))
				x.poke()
			})
		})
	})
}

// prolog writes down that the epilog has to run. It waits for epilogs that would undo what it makes.
func (x *member) prolog(s *memberSpec, then func()) {
	d := x.d
	if d.m.spec.Epilog == 0 {
		then()
		return
	}
	waits := d.debts > 0
	for k, o := range d.members {
		waits = waits || k.Job == x.key.Job && o.cleaning
	}
	if x.fetching = waits; waits {
		d.after(retryWait, func() { x.prolog(s, then) })
		return
	}
	d.m.disk.epilogs[x.key] = s
	then()
}

// importImage takes its time where the machine does not have the job's image yet, and tells each second how
// much there is. It ends with the job's.
func (x *member) importImage(s *memberSpec, began time.Duration, then func()) {
	d := x.d
	took := d.m.r.now - began
	stalls := s.job.Stalls && x.key.Epoch == 1
	switch {
	case x.want.Forget || x.want.Stop != nil:
		x.fetching = false
		x.become(api.MemberActual{Phase: api.PhaseStopped})
		return
	case took >= s.job.Import && !stalls || d.m.disk.images[s.job]:
		if s.job.Import > 0 {
			d.m.disk.images[s.job] = true
		}
		x.fetching = false
		then()
		return
	}
	x.fetching = true
	if !stalls || took < s.job.Import {
		x.become(api.MemberActual{Phase: api.PhasePreparing, Importing: api.Import{Bytes: max(1, int64(took))}})
	}
	d.after(time.Second, func() { x.importImage(s, began, then) })
}

func (x *member) talk(s *shimProc) {
	x.conn = &shimConn{d: x.d, m: x, s: s}
	s.conn = x.conn
}

func (x *member) port() int {
	if x.spec == nil {
		return 0
	}
	return x.spec.port
}

// heard takes in what a shim said.
func (d *daemon) heard(c *shimConn, word *shim.State) {
	if c.m.conn == c && !c.m.gone {
		c.m.become(copyState(word).MemberActual)
		c.m.poke()
	}
}

// become publishes a new state of the member; an end also before the site's epilog.
func (x *member) become(a api.MemberActual) {
	a.MemberKey, a.Port = x.key, x.port()
	m := x.d.m
	switch {
	case x.cleaning || x.gone:
		return
	case noded.Ended(a.Phase) && !x.over && m.disk.epilogs[x.key] != nil:
		x.cleaning = true
		x.actual = noded.BeforeEpilog(a)
		x.d.board.Put(x.actual)
		m.r.log("%s: epilog of %d.%d", m.name, x.key.Job, x.key.Epoch)
		x.d.after(m.spec.Epilog, func() {
			delete(m.disk.epilogs, x.key)
			x.cleaning = false
			x.become(a)
		})
		return
	}
	x.actual = a
	if a.Phase == api.PhaseRefused {
		delete(x.d.m.disk.members, x.key) // "nothing of it is left" is part of the word
	}
	first := noded.Ended(a.Phase) && !x.over
	x.over = x.over || first
	if a.Phase == api.PhaseReady && x.want.Gate != nil && x.want.Gate.Alone {
		x.d.board.Note(a)
	} else {
		x.d.board.Put(a)
	}
	if first {
		x.siblings()
	}
	x.poke()
}

// siblings wakes the other epochs of the job: one of them may wait for this one's end.
func (x *member) siblings() {
	for k := range x.key.Epoch + 3 {
		if o := x.d.members[api.MemberKey{Job: x.key.Job, Epoch: k}]; o != nil && o != x {
			o.poke()
		}
	}
}

// hungUp: the shim that a connection led to is gone, or let go of its member.
func (d *daemon) hungUp(c *shimConn) {
	if c.m.conn == c {
		c.m.conn = nil
		c.m.hungUp()
	}
}

// hungUp looks for the shim; of one that can't be reached the state file has the last word.
func (x *member) hungUp() { x.look(x.d.m.r.now) }

func (x *member) look(began time.Duration) {
	if x.gone || x.dropping || x.over && x.actual.Phase != api.PhaseStopped {
		return
	}
	m := x.d.m
	if x.cleaning {
		x.d.after(retryWait, func() { x.look(began) })
		return
	}
	dir := m.disk.members[x.key]
	if s := m.shimOf(x.key); s != nil && s.state.Phase != api.PhasePreparing {
		x.told = noded.LastSent{}
		x.talk(s)
		word := copyState(&s.state)
		m.r.send(s, func() { x.conn.tell(word) })
		x.poke()
		return
	}
	if x.over {
		x.poke()
		return
	}
	if (dir == nil || dir.state == nil) && m.r.now-began < attachFor {
		x.d.after(10*time.Millisecond, func() { x.look(began) })
		return
	}
	if dir != nil && noded.LastWord(dir.state) {
		x.become(copyState(dir.state).MemberActual)
		return
	}
	m.r.log("%s: shim of %d.%d died without a result", m.name, x.key.Job, x.key.Epoch)
	x.clean()
}

// clean kills what a dead shim left until nothing is left.
func (x *member) clean() {
	m := x.d.m
	if x.gone {
		return
	}
	left := m.containment(x.key)
	if len(left) == 0 {
		a := x.actual
		a.Phase, a.Survivors = api.PhaseLost, nil
		x.become(a)
		return
	}
	for _, p := range left {
		p.kill(byForce)
	}
	x.d.after(5*time.Millisecond, func() {
		if len(m.containment(x.key)) == 0 {
			x.clean()
			return
		}
		if x.actual.Phase != api.PhaseStuck {
			a := x.actual
			a.Phase, a.Survivors = api.PhaseStuck, []api.Survivor{{Command: "outlives KILL"}}
			x.become(a)
		}
		x.d.after(killFor, x.clean)
	})
}

// drop lets go of the shim, then of the files.
func (x *member) drop() {
	x.dropping = true
	wait := x.d.m.hop()
	if s := x.shim(); s != nil {
		x.send(shim.Command{Bye: true})
		wait += 2 * time.Millisecond
	}
	x.d.after(wait, func() {
		delete(x.d.m.disk.members, x.key)
		x.gone = true
		delete(x.d.members, x.key)
		x.d.board.Drop(x.key)
		x.siblings()
	})
}
