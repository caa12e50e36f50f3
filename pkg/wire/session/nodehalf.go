package session

import (
	"errors"
	"time"

	"gangd/pkg/api"
)

// nodeHalf is the node's half of one session without its line; [hubHalf] is its peer.
type nodeHalf struct {
	agent   Agent
	out     *outbox
	contact *contact
	specs   specCache
	asked   time.Duration // when the hello was made
	term    uint64        // of the controller in session
}

// errOldTerm ends a session with a controller that led before another that this node has met.
var errOldTerm = errors.New("the controller's term is over: another one leads")

func newNodeHalf(a Agent, out *outbox, c *contact) nodeHalf {
	out.put(func() { out.echo, out.replies, out.calls = 0, nil, nil }) // the last session's
	return nodeHalf{agent: a, out: out, contact: c, specs: newSpecCache()}
}

// hello is the first frame. What happens from here on is reported in this session: a
// wake-up that comes between hello and the first report is kept in the outbox.
func (h *nodeHalf) hello() *api.Frame {
	hello := h.agent.Hello()
	h.asked = h.contact.now()
	hello.Protocol, hello.Made, hello.Layouts = api.SessionProtocol, h.asked, true
	return &api.Frame{Hello: hello}
}

// welcomed: the controller has heard the hello, at the earliest when it was made.
func (h *nodeHalf) welcomed(w *api.Welcome, l *api.Controllers) error {
	h.term = w.Term
	if err := h.keep(l); err != nil {
		return err
	}
	h.contact.ended(w.Name, false)
	h.contact.at(h.asked)
	h.agent.Welcome(w)
	return nil
}

// keep takes in which controllers there are, and that the one in session leads. Nothing else of a
// frame counts before that is kept; what is not kept ends the session, and the lease with it.
func (h *nodeHalf) keep(l *api.Controllers) error {
	news, ok := h.contact.leads(h.term)
	if !ok {
		return errOldTerm
	}
	if h.contact.listed(l) || news {
		return h.contact.keep(h.agent)
	}
	return nil
}

// desired takes in the orders of a frame, heard the rest; signals, streams and calls are
// the caller's, between the two.
func (h *nodeHalf) desired(f *api.Frame) error {
	if err := h.keep(f.Controllers); err != nil {
		return err
	}
	if f.Lineage != 0 { // kept before what it brings about
		h.agent.Lineage(f.Lineage, f.LineageProof)
	}
	if f.Settings != nil { // by which it carries the orders out
		h.agent.Settings(f.Settings)
	}
	if f.Desired != nil {
		if err := h.specs.apply(f.Desired); err != nil {
			return err
		}
		h.agent.Desired(f.Desired)
	}
	if f.Reboot != nil {
		h.agent.Reboot(f.Reboot)
	}
	return nil
}

func (h *nodeHalf) heard(f *api.Frame) {
	if f.Beat != 0 {
		// Its echo goes with the next beat: the controller goes by that.
		h.out.mu.Lock()
		h.out.echo, h.out.got = f.Beat, h.contact.wallClock()
		h.out.mu.Unlock()
	}
	if f.Echo != 0 {
		h.contact.echo(f.Echo, h.term)
	}
}

// fill puts into f what is due; false: nothing is.
func (h *nodeHalf) fill(f *api.Frame) bool {
	o := h.out
	o.mu.Lock()
	dirty := o.dirty
	if f.Beat != 0 {
		if f.Echo, o.echo = o.echo, 0; f.Echo != 0 {
			f.EchoTimes = &api.EchoTimes{Got: o.got.UnixMicro(), Sent: h.contact.wallClock().UnixMicro()}
		}
	}
	f.Replies, o.replies = takePieces(o.replies, bytesOfReply)
	f.Calls, o.calls = takePieces(o.calls, bytesOfCall)
	more := len(o.replies) > 0 || len(o.calls) > 0
	o.dirty = false
	o.mu.Unlock()
	if more {
		o.poke()
	}
	if f.Beat != 0 {
		f.Listed = h.contact.kept().Version
	}
	if dirty || f.Beat != 0 {
		f.Actual = h.agent.Report()
		f.Samples = h.agent.Samples()
		f.Notes = h.agent.Notes()
		f.Load = h.agent.Load()
	}
	return f.Beat != 0 || f.Actual != nil || len(f.Samples) > 0 || len(f.Replies) > 0 || len(f.Notes) > 0 || f.Load != nil || len(f.Calls) > 0
}
