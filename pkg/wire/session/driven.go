package session

import (
	"encoding/json"
	"time"

	"gangd/pkg/api"
)

// What follows are the two halves of a session without a line, for a simulator: the same
// frames by the same rules, carried by whoever calls.

// DrivenHub is the controller's half of one session.
type DrivenHub struct{ half hubHalf }

// NewDrivenHub makes the half of a node whose hello was answered. o is nil where there is one
// controller.
func NewDrivenHub(h Handler, o Office, hello *api.Hello, wall func() time.Time) *DrivenHub {
	d := &DrivenHub{half: newHubHalf(h, o)}
	d.half.wall = wall
	d.half.greeted(hello)
	d.half.out.init()
	return d
}

// Welcome, Beat and Due are the frames to send after the hello, at each heartbeat and
// after a wake-up.
func (d *DrivenHub) Welcome(w *api.Welcome) []*api.Frame { return collect(d.half.welcome(w)) }

// Beat is described at Welcome.
func (d *DrivenHub) Beat() []*api.Frame { return collect(d.half.beat()) }

// Due is described at Welcome.
func (d *DrivenHub) Due() []*api.Frame { return collect(d.half.due()) }

// collect gives the frames up to an error: whose store is closed has ended, and sends no more.
func collect(due frames) (out []*api.Frame) {
	for f, err := range due {
		if err != nil {
			break
		}
		out = append(out, f)
	}
	return out
}

// Wake says that the desired set of the node changed.
func (d *DrivenHub) Wake() { d.half.out.changed() }

// Take takes in a frame of the node.
func (d *DrivenHub) Take(f *api.Frame) { d.half.take(f) }

// DrivenNode is the node's half: what a [Client] keeps from session to session, and the
// session that is open.
type DrivenNode struct {
	agent   Agent
	out     outbox
	contact contact
	wait    backoff
	lease   time.Duration
	half    nodeHalf
	name    string // of the controller in session
}

// NewDrivenNode makes the half of a node daemon that was just started. boot is
// CLOCK_BOOTTIME of its machine, wall its wall clock, kept what the daemon before has kept.
func NewDrivenNode(a Agent, boot func() time.Duration, wall func() time.Time, kept Kept) *DrivenNode {
	d := &DrivenNode{agent: a, contact: contact{clock: boot, wall: wall, site: kept}}
	d.out.init()
	return d
}

// Hello begins a session.
func (d *DrivenNode) Hello() *api.Frame {
	d.half = newNodeHalf(d.agent, &d.out, &d.contact)
	return d.half.hello()
}

// Take takes in a frame of the controller. Its error ends the session.
func (d *DrivenNode) Take(f *api.Frame) error {
	if f.Welcome != nil {
		if err := d.half.welcomed(f.Welcome, f.Controllers); err != nil {
			return err
		}
		d.name = f.Welcome.Name
		d.lease = f.Welcome.Settings.Lease
	}
	if err := d.half.desired(f); err != nil {
		return err
	}
	d.half.heard(f)
	return nil
}

// Beat is the frame of a heartbeat, Due the one after a wake-up, nil when nothing is due.
func (d *DrivenNode) Beat() *api.Frame {
	f := &api.Frame{Beat: d.contact.beat()}
	d.half.fill(f)
	return f
}

// Due is described at Beat.
func (d *DrivenNode) Due() *api.Frame {
	f := &api.Frame{}
	if !d.half.fill(f) {
		return nil
	}
	return f
}

// Wake says that the agent has something to report.
func (d *DrivenNode) Wake() { d.out.changed() }

// Down is the end of a session that was greeted, by the controller or by the line.
func (d *DrivenNode) Down(hungUp bool) {
	d.Ended(d.name, hungUp)
	var err error = errSilent
	if hungUp {
		err = errDied
	}
	d.agent.Down(err)
}

// Ended is the end of a line with a controller: because its process ended, or not known.
func (d *DrivenNode) Ended(controller string, died bool) {
	if d.contact.ended(controller, died) {
		_ = d.contact.keep(d.agent)
	}
}

// Refused: at the boot time asked a connection was tried, and refused over the network.
func (d *DrivenNode) Refused(controller string, asked time.Duration) {
	if d.contact.hasEnded(controller) {
		d.contact.word(controller, asked)
	}
}

// Word is what a controller said that was asked at the boot time asked. It reports whether the
// session has to be with another one.
func (d *DrivenNode) Word(w *api.Word, asked time.Duration) (elsewhere bool) {
	elsewhere, err := d.contact.said(d.agent, w, asked)
	return elsewhere && err == nil
}

// Controllers is the site's list as the node keeps it.
func (d *DrivenNode) Controllers() api.Controllers { return d.contact.kept().Controllers }

// LastContact is [Client.LastContact].
func (d *DrivenNode) LastContact() time.Duration { return time.Duration(d.contact.last.Load()) }

// NextTry is how long to wait after a session that lasted so long (0: there was none) for
// the next try; n gives a random duration below its argument.
func (d *DrivenNode) NextTry(lasted time.Duration, n func(time.Duration) time.Duration) time.Duration {
	return d.wait.next(lasted, d.lease, n)
}

// Copy is a frame after its way over the wire.
func Copy(f *api.Frame) (*api.Frame, error) {
	data, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return decodeFrame(data)
}
