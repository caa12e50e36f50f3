package session

import (
	"iter"
	"reflect"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
)

// hubHalf is the controller's half of one session without its line: what came is handed
// on, what is due is put into frames. It is the same on a WebSocket and in a simulator.
type hubHalf struct {
	handler Handler
	node    string // from the hello
	out     outbox
	told    *sentState
	beats   uint64
	beaten  *atomic.Bool // a beat went out since the last heartbeat, with an echo
	office  Office       // nil: the only controller
	listed  uint64       // version of the list of controllers that was told
	said    *api.Settings
	reboots bool            // the node says that it can
	reboot  api.RebootOrder // as it was told
	clock   *meter
	wall    func() time.Time
}

func newHubHalf(h Handler, o Office) hubHalf {
	return hubHalf{handler: h, office: o, told: newSent(), beaten: new(atomic.Bool), clock: new(meter), wall: time.Now}
}

// greeted takes in who the node is, before anything is sent to it.
func (h *hubHalf) greeted(hello *api.Hello) {
	h.node = hello.Node
	if hello.Layouts {
		h.told.parts = hello.Node
	}
	h.reboots = hello.Reboots
}

// take hands on what a frame says of the node. Streams and calls are the caller's.
func (h *hubHalf) take(f *api.Frame) {
	if f.Beat != 0 {
		h.out.put(func() { h.out.echo = f.Beat })
	}
	if f.Listed != 0 && h.office != nil {
		h.office.Listed(h.node, f.Listed)
	}
	if f.Echo != 0 && f.EchoTimes != nil {
		h.clock.echo(f.Echo, f.EchoTimes, h.wall())
	}
	if f.Actual != nil {
		f.Actual.Clock = h.clock.best()
		h.handler.NodeReport(h.node, f.Actual)
	}
	if len(f.Samples) > 0 {
		h.handler.NodeSample(h.node, f.Samples)
	}
	if f.Load != nil {
		h.handler.NodeLoad(h.node, f.Load)
	}
	if len(f.Notes) > 0 {
		h.handler.NodeNotes(h.node, f.Notes)
	}
}

// frames are read one by one as they are written; an error is the last and ends the session.
type frames = iter.Seq2[*api.Frame, error]

// welcome is the first frames of a session: the answer to the hello and the full set.
func (h *hubHalf) welcome(w *api.Welcome) frames {
	if h.office != nil {
		w.Name, w.Term = h.office.Seat()
	}
	h.said = &w.Settings
	return h.frames(&api.Frame{Welcome: w}, true)
}

// beat is what goes out each heartbeat: nothing where the node's own beat was answered since the last, since a
// beat goes with each answer.
func (h *hubHalf) beat() frames {
	f := &api.Frame{}
	if !h.beaten.Swap(false) {
		h.addBeat(f)
	}
	return h.frames(f, false)
}

func (h *hubHalf) addBeat(f *api.Frame) {
	h.beats++
	f.Beat = h.beats
	h.clock.beat(f.Beat, h.wall())
	f.Lineage, f.LineageProof = h.handler.Lineage()
}

// due is what goes out after a wake-up; nothing when that was served already.
func (h *hubHalf) due() frames { return h.frames(&api.Frame{}, false) }

// frames fills f with what is due; large sets of specs become frames of their own.
func (h *hubHalf) frames(f *api.Frame, force bool) frames {
	return func(yield func(*api.Frame, error) bool) { h.each(f, force, yield) }
}

func (h *hubHalf) each(f *api.Frame, force bool, yield func(*api.Frame, error) bool) {
	if h.office != nil {
		if !h.office.Leads() {
			return
		}
		if l := h.office.Controllers(); l.Version > h.listed {
			f.Controllers, h.listed = l, l.Version
		}
	}
	if now := h.handler.Settings(); now != nil && now != h.said {
		if h.said == nil || !reflect.DeepEqual(*now, *h.said) {
			f.Settings = now
		}
		h.said = now
	}
	o := &h.out
	o.mu.Lock()
	dirty := o.dirty || force
	f.Echo, f.Streams = o.echo, o.requests
	f.Calls, o.calls = takePieces(o.calls, bytesOfCall)
	more := len(o.calls) > 0
	o.dirty, o.echo, o.requests = false, 0, nil
	o.mu.Unlock()
	if more {
		o.poke()
	}
	if f.Echo != 0 && f.Beat == 0 {
		h.addBeat(f)
		h.beaten.Store(true)
	}

	if dirty && h.reboots {
		if o := h.handler.Reboot(h.node); o != nil && !o.Same(&h.reboot) {
			f.Reboot, h.reboot = o, *o
		}
	}
	told := false
	if dirty {
		if want, ok := h.handler.Desired(h.node); ok {
			for d, err := range h.told.diff(want, h.handler.Spec) {
				if err != nil {
					yield(nil, err)
					return
				}
				if h.office != nil && !h.office.Leads() { // while specs were read and sent
					return
				}
				if told {
					f = &api.Frame{}
				}
				told, f.Desired = true, d
				if len(d.Assignments) > 0 {
					// With the orders and not with the next beat alone: a node whose members a store does
					// not know must be able to tell that store that it is an old copy.
					f.Lineage, f.LineageProof = h.handler.Lineage()
				}
				if !yield(f, nil) {
					return
				}
			}
		}
	}
	// Nothing is told when it was woken for a change that was sent already.
	if !told && (f.Controllers != nil || f.Settings != nil || f.Reboot != nil ||
		f.Echo != 0 || f.Beat != 0 || f.Welcome != nil || len(f.Streams) > 0 ||
		len(f.Calls) > 0) {
		yield(f, nil)
	}
}
