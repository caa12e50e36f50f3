package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// inflict lets a fault happen. One that finds nothing to happen to is not counted.
func (r *run) inflict(f *Fault) {
	if r.calm || r.failed != nil {
		return
	}
	r.mixText(string(f.Do))
	r.troubled(lasting(f))
	if !r.toController(f) && !r.toControllers(f) && !r.toNode(f) && !r.byPeople(f) {
		return
	}
	r.log("fault: %s %s job %d for %s n %d", f.Do, f.Node, f.Job, f.For, f.N)
	r.count(f.Do)
}

func (r *run) toController(f *Fault) bool {
	g := r.gangd
	switch f.Do {
	case CrashGangd:
		if g == nil {
			return false
		}
		g.crash(f.For)
	case FreezeGangd:
		if g == nil {
			return false
		}
		g.freeze(f.For)
	case DiskFull:
		r.disk.full = true
		if f.N == 1 {
			r.disk.jammed = true
		}
		r.after(f.For, func() { r.disk.full, r.disk.jammed = false, false })
	case DiskBroken:
		r.disk.breaks, r.disk.breaking = true, f.N == 1
	case OldStore:
		return r.oldStore(f.For, f.N == 1)
	default:
		return false
	}
	return true
}

func (g *gangd) thaw() {
	if g.stops > 0 {
		g.stops--
		g.wake()
	}
}

// oldStore makes a copy, later puts it in the place of the newest, and later puts that back.
// It has to lack something that every node was told of, or (some) that one was: a controller
// on the copy believes itself until a node comes that knows better.
func (r *run) oldStore(d time.Duration, some bool) bool {
	if r.disk.old != nil {
		return false
	}
	if err := r.disk.copy(r.ctx); err != nil {
		r.fail("I3", "copy the store: %v", err)
		return true
	}
	r.disk.oldAt = r.disk.lineage
	swap := func(old bool) {
		if r.disk.onOld == old {
			return
		}
		r.truth.copied(old)
		r.crashAll(100 * time.Millisecond)
		r.disk.onOld = old
		r.truth.swapped(old)
	}
	r.after(d, func() {
		least, most := r.truth.known()
		if at := r.disk.lineage; !r.calm && (least > r.disk.oldAt || some && most > r.disk.oldAt) {
			r.log("the store at commit %d is replaced by a copy at commit %d", at, r.disk.oldAt)
			swap(true)
		}
	})
	r.after(2*d, func() { swap(false) })
	return true
}

func (r *run) toNode(f *Fault) bool {
	m := r.machine(f.Node)
	switch f.Do {
	case CrashNoded:
		if m.daemon == nil {
			return false
		}
		m.daemon.crash(f.For)
	case FreezeNoded:
		d := m.daemon
		if d == nil {
			return false
		}
		d.stops++
		r.after(f.For, d.thaw)
	case CrashShim:
		return r.crashShim(f)
	case CrashRank:
		return r.crashRank(f)
	case CrashStep:
		return r.crashStep(f)
	case Reboot:
		if !m.up {
			return false
		}
		m.powerOff()
		r.after(f.For, m.powerOn)
	case ShutDown:
		if !m.up || m.stops > 0 {
			return false
		}
		m.shutDown(f.For)
	case Suspend:
		if !m.up || m.stops > 0 {
			return false
		}
		m.suspend(f.For)
	case Unkillable:
		m.unkillableUntil = r.now + f.For
	case Refuse:
		m.refuseUntil, m.refuseBlame = r.now+f.For, blames[f.N%len(blames)]
	case SlowLaunch:
		m.slowLaunchUntil = r.now + f.For
	default:
		return r.toLine(m, f)
	}
	return true
}

// blames are what a machine refuses for, by the fault's number.
var blames = []api.Blame{api.BlameNode, api.BlameJob, api.BlameFiles, api.BlameSite, api.BlameUser, api.BlameUnknown}

func (d *daemon) thaw() {
	if d.stops > 0 {
		d.stops--
		d.wake()
	}
}

func (r *run) toLine(m *machine, f *Fault) bool {
	switch f.Do {
	case Cut:
		m.cut(true, true, f.For)
	case CutUp:
		m.cut(true, false, f.For)
	case CutDown:
		m.cut(false, true, f.For)
	case Flap:
		n := max(f.N, 2)
		for i := range n {
			r.after(f.For*time.Duration(i)/time.Duration(n), func() {
				if !r.calm {
					m.cut(m.dice.IntN(3) > 0, m.dice.IntN(3) > 0, time.Second+upTo(m.dice, 2*time.Second))
				}
			})
		}
	case Reset:
		if m.daemon == nil || m.daemon.line == nil {
			return false
		}
		m.daemon.line.reset()
	case Slow:
		m.slowUntil = r.now + f.For
	case Twice:
		m.twiceUntil = r.now + f.For
	default:
		return false
	}
	return true
}

// crashShim kills one shim of a job.
func (r *run) crashShim(f *Fault) bool {
	id := r.ids[f.Job]
	var some []*shimProc // of any job
	for _, m := range r.machines {
		if f.Node != "" && f.Node != m.name {
			continue
		}
		for _, s := range m.shims {
			if s.frozen() {
				continue // nothing is killed on a machine that stands still
			}
			if s.key.Job == id {
				s.crash(0)
				return true
			}
			some = append(some, s)
		}
	}
	if f.N == 0 || len(some) == 0 {
		return false
	}
	some[r.dice.IntN(len(some))].crash(0)
	return true
}

func (r *run) crashRank(f *Fault) bool {
	id := r.ids[f.Job]
	var some []*proc // of any job
	for _, m := range r.machines {
		for _, p := range m.procs {
			if !p.main && !p.task() || p.killed || p.frozen() {
				continue
			}
			if p.key.Job == id {
				p.exit(128+11, 11)
				return true
			}
			some = append(some, p)
		}
	}
	if f.N == 0 || len(some) == 0 {
		return false
	}
	some[r.dice.IntN(len(some))].exit(128+11, 11)
	return true
}

// crashStep kills a launcher of a job, or the client of one of its steps.
func (r *run) crashStep(f *Fault) bool {
	for _, m := range r.machines {
		for _, p := range m.procs {
			if p.key.Job == r.ids[f.Job] && p.waits() && (p.client != nil) == (f.N == 1) && !p.killed && !p.frozen() {
				p.kill(byForce)
				return true
			}
		}
	}
	return false
}

// stopStep is a person who ends the newest step of a job.
func (r *run) stopStep(id int64) bool {
	w := r.world()
	if w == nil {
		return false
	}
	j := w.Job(id)
	if j == nil || len(j.Steps) == 0 {
		return false
	}
	r.order(gang.StepStop{Job: id, Step: j.Steps[len(j.Steps)-1].ID, By: "ada"}, nil)
	return true
}

func (r *run) byPeople(f *Fault) bool {
	id, known := r.ids[f.Job]
	switch f.Do {
	case AskReboot:
		name := r.machine(f.Node).name
		if f.N == 2 {
			r.order(gang.NodeRebootCancel{Node: name}, nil)
		} else {
			r.order(gang.NodeReboot{Node: name, By: "ada", Asap: f.N == 1}, nil)
		}
	case DrainNode:
		r.order(gang.NodeDrain{Node: r.machine(f.Node).name, Reason: "simulated"}, nil)
	case ResumeNode:
		r.order(gang.NodeResume{Node: r.machine(f.Node).name}, nil)
	case ReserveNode:
		r.reserve(r.machine(f.Node).name, f.For, f.N)
	case FenceNode:
		return r.fence(r.machine(f.Node))
	case Resubmit:
		if f.Job >= len(r.clients) || r.clients[f.Job].try == 0 {
			return false
		}
		r.clients[f.Job].again()
	case LoseAnswer:
		if f.Job >= len(r.clients) {
			return false
		}
		r.clients[f.Job].deafTill = r.now + f.For
	default:
		return known && r.toJob(f, id)
	}
	return true
}

// fence is a person who looks first: the machine is off, or nothing of any job runs on it.
func (r *run) fence(m *machine) bool {
	if m.up && (len(m.procs) > 0 || len(m.shims) > 0) {
		return false
	}
	if m.up { // so that nothing can begin there: the person pulls the plug
		m.powerOff()
		r.after(5*time.Second, m.powerOn)
	}
	r.order(gang.NodeFence{Node: m.name, By: "hand"}, nil)
	return true
}

func (r *run) toJob(f *Fault, id int64) bool {
	switch f.Do {
	case Cancel:
		r.order(gang.Cancel{Job: id, By: "ada", Now: f.N == 1}, func(gang.Outcome) { r.truth.cancelled(id) })
	case Requeue:
		r.order(gang.Requeue{Job: id, By: "ada", Now: f.N == 1, Ended: f.N == 2}, nil)
	case StopStep:
		return r.stopStep(id)
	case Preempt:
		r.order(gang.Preempt{Job: id, For: "job 1"}, nil)
	case Update:
		r.order(r.update(f, id), nil)
	case HoldJob:
		r.order(gang.Hold{Job: id}, nil)
	case ReleaseJob:
		r.order(gang.Release{Job: id, Admin: true}, nil)
	default:
		return false
	}
	return true
}

// heal ends all faults: from here on everything has to come to its end.
func (r *run) heal() {
	if r.failed != nil {
		return
	}
	r.log("faults are over")
	r.calm, r.calmAt = true, r.now
	r.troubled(0)
	d := r.disk
	d.full, d.jammed, d.breaks = false, false, false
	if d.onOld {
		r.crashAll(0)
		d.onOld = false
		r.truth.swapped(false)
	}
	r.healControllers()
	for _, m := range r.machines {
		m.heal()
	}
	r.startGangd()
	r.relieve()
}

func (m *machine) heal() {
	clear(m.cutsTo)
	m.cutsUp, m.cutsDown, m.slowUntil, m.twiceUntil, m.refuseUntil, m.slowLaunchUntil = 0, 0, 0, 0, 0, 0
	m.unkillableUntil = min(m.unkillableUntil, m.r.now)
	m.free()
	m.powerOn()
	m.resume()
	if m.daemon != nil {
		m.daemon.stops = 0
		m.daemon.wake()
	}
	m.startDaemon()
}

// relieve puts nodes back into service and releases what is held, again and again: the
// controller may not be there yet.
func (r *run) relieve() {
	if r.failed != nil {
		return
	}
	if w := r.world(); w != nil {
		for _, n := range w.Nodes() {
			if n.Admin != "" {
				r.order(gang.NodeResume{Node: n.Name}, nil)
			}
		}
		for _, b := range w.Reservations() {
			r.order(gang.DropReservation{Name: b.Name}, nil)
		}
		for j := range w.Jobs() {
			if j.Held != "" {
				r.order(gang.Release{Job: j.ID, Admin: true}, nil)
			}
		}
	}
	r.after(5*time.Second, r.relieve)
	if bound := r.truth.bound(); r.now > bound {
		r.truth.late()
	}
}
