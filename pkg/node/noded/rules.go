package noded

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/session"
)

// What a daemon decides about its members, without files, processes or a session: the
// daemon and the simulator both do what is decided here.

// Ended: nothing of the member runs, and nothing ever will.
func Ended(p api.MemberPhase) bool {
	return p == api.PhaseStopped || p == api.PhaseRefused || p == api.PhaseLost
}

// BeforeEpilog is the end of a member as it is told while the site's epilog runs: to a controller that knows nothing of
// that, how its ranks ended, and not that what it has is free.
func BeforeEpilog(a api.MemberActual) api.MemberActual {
	a.Epilog, a.Phase = a.Phase, api.PhasePreparing
	if len(a.Ranks) > 0 {
		a.Phase = api.PhaseRunning
	}
	return a
}

// gateShut: nothing of the member has been let go yet.
func gateShut(p api.MemberPhase) bool { return p == api.PhasePreparing || p == api.PhaseReady }

// FirstPhase is what a member that is not known here is when it is desired.
func FirstPhase(a *api.Assignment) api.MemberPhase {
	switch {
	case a.Body == nil || a.Gate != nil && !a.Gate.Alone:
		return api.PhaseLost // it ran here, or was about to, and is not here any more
	case a.Stop != nil:
		return api.PhaseStopped // before it was prepared
	}
	return api.PhasePreparing
}

// OwnGate is the gate that a member opens by itself, with the port that it has picked; another one is as it was sent.
func OwnGate(g *api.Gate, port int) *api.Gate {
	if g == nil || !g.Alone {
		return g
	}
	own := *g
	own.MasterPort = port
	return &own
}

// TakeDesired goes through a desired set: what it lists is desired, what it forgets and, when
// it is full, what it does not list of all is forgotten.
func TakeDesired(x *api.Desired, desire func(*api.Assignment), forget func(api.MemberKey), all func() []api.MemberKey) {
	listed := make(map[api.MemberKey]bool, len(x.Assignments))
	for i := range x.Assignments {
		a := &x.Assignments[i]
		listed[a.MemberKey] = true
		desire(a)
	}
	for _, k := range x.Forget {
		forget(k)
	}
	if !x.Full {
		return
	}
	for _, k := range all() {
		if !listed[k] {
			forget(k)
		}
	}
}

// Orders are the newest that the controller wants of a member.
type Orders struct {
	Gate   *api.Gate
	Stop   *api.Stop
	Lease  time.Duration // not 0: renew until then, boot clock
	Forget bool
	Steps  []api.StepOrder // counts while the gate is open
	Passed bool            // the script does not take its notice: its steps' tasks here get it
}

// LastSent is what the shim of a member was told over the connection that is open.
type LastSent struct {
	stop   *api.Stop
	opened bool
	limit  time.Duration
	killed bool // the stop of a forget was sent
	steps  []api.StepOrder
	asked  bool // steps was sent
	passed bool
}

// Todo is what a member's orders lead to.
type Todo struct {
	Send  []shim.Command // to its shim, in this order
	Drop  bool           // let go of the shim and remove the files
	Again bool           // look again after a while, also if nothing happens
}

// Next decides what is to be done: attached says whether there is a shim to talk to, over
// whether the member has ended.
func (t *LastSent) Next(o Orders, phase api.MemberPhase, attached, over bool, mayOpen func() bool) (do Todo) {
	if o.Forget {
		switch {
		case over:
			do.Drop = true
		case attached && !t.killed:
			t.killed = true // its end, or the end of its shim, comes as an answer
			do.Send = append(do.Send, shim.Command{Stop: &api.Stop{Cause: api.CauseCancelled, Text: "forgotten by the controller", Signal: "KILL"}})
		}
		return do
	}
	if !attached {
		return do
	}
	if o.Lease > 0 {
		do.Send = append(do.Send, shim.Command{LeaseUntil: o.Lease})
	}
	if o.Stop != nil {
		if t.stop == nil || *t.stop != *o.Stop {
			t.stop = o.Stop
			do.Send = append(do.Send, shim.Command{Stop: o.Stop})
		}
	}
	if o.Passed && !t.passed { // after the stop that the notice belongs to
		t.passed = true
		do.Send = append(do.Send, shim.Command{Passed: true})
	}
	if o.Stop != nil || o.Gate == nil {
		return do
	}
	if l := o.Gate.TimeLimit; l != 0 && l != t.limit && phase != api.PhasePreparing {
		t.limit = l
		do.Send = append(do.Send, shim.Command{Limit: l})
	}
	if phase == api.PhaseRunning && (!t.asked && len(o.Steps) > 0 || t.asked && !session.SameSteps(t.steps, o.Steps)) {
		if !mayOpen() {
			do.Again = true
			return do
		}
		t.steps, t.asked = o.Steps, true
		do.Send = append(do.Send, shim.Command{Steps: &o.Steps})
	}
	if t.opened || phase != api.PhaseReady {
		return do
	}
	if !mayOpen() {
		do.Again = true
		return do
	}
	t.opened = true
	do.Send = append(do.Send, shim.Command{Go: &shim.Go{MasterPort: o.Gate.MasterPort}})
	return do
}

// Sibling is an epoch of a job that is known here.
type Sibling struct {
	Epoch int
	Over  bool
}

// MayOpen says whether the gate of an epoch may be opened now, so long after the last
// contact. others may name the epoch itself.
func MayOpen(epoch int, others []Sibling, silence, heartbeat time.Duration) bool {
	// A daemon that was frozen (or cut off) finds old frames before it finds out. What the
	// controller wanted before it gave this node up must not start now.
	if silence > session.SilentBeats*heartbeat {
		return false
	}
	for _, o := range others {
		if o.Epoch > epoch || o.Epoch < epoch && !o.Over {
			return false
		}
	}
	return true
}

// EndedWithBoot: the member is of another run of the machine and left no result. A result
// counts whatever came after it. s is its state file, nil: none; lastBoot is the boot of the
// daemon before.
func EndedWithBoot(s *shim.State, lastBoot, boot string) bool {
	if s == nil {
		return lastBoot != boot
	}
	return s.BootID != boot && s.Phase != api.PhaseStopped
}

// LastWord: the state file of a shim that can't be reached says how its member ended.
func LastWord(s *shim.State) bool {
	return s != nil && (s.Phase == api.PhaseStopped || s.Phase == api.PhaseRefused)
}

// leaseShare: a lease is renewed when a twentieth of it has passed, not at each beat, so
// that a node with a hundred idle members stays idle (10 m: each 30 s).
const leaseShare = 20

// Renewal is the contact that the members' leases were last counted from.
type Renewal struct{ from time.Duration }

// Due says until when the lease runs, counted from the last contact (all on the boot clock),
// when the members have to be told.
func (r *Renewal) Due(lease, contact time.Duration) (until time.Duration, due bool) {
	if lease <= 0 || contact < r.from+lease/leaseShare {
		return 0, false
	}
	r.from = contact
	return contact + lease, true
}

// LeaseLeft is the lease of a member that starts now, 0: leases are off.
func LeaseLeft(lease, contact, now time.Duration) time.Duration {
	if lease <= 0 {
		return 0
	}
	return max(lease-(now-contact), 1)
}

// maxFenceMargin is how long a shim gets, beyond the end of the lease's grace, to have done by
// itself what it is there for.
const maxFenceMargin = 5 * time.Second

// fenceDue says whether a member with this grace must be gone by now (all on the boot clock),
// whatever its shim does: its lease, counted from the last contact, and the grace after it
// are over. The controller gives the cards on a slack after that; half of it is kept.
func fenceDue(s *api.Settings, contact, now, grace time.Duration) bool {
	return s.Lease > 0 && now-contact >= s.Lease+grace+min(maxFenceMargin, s.DrainSlack/2)
}
