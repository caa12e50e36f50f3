package session

import (
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
	office  Office // nil: the only controller
	listed  uint64 // version of the list of controllers that was told
}

func newHubHalf(h Handler, o Office) hubHalf {
	return hubHalf{handler: h, office: o, told: newSent()}
}

// take hands on what a frame says of the node. Streams and calls are the caller's.
func (h *hubHalf) take(f *api.Frame) {
	if f.Beat != 0 {
		h.out.put(func() { h.out.echo = f.Beat })
	}
	if f.Listed != 0 && h.office != nil {
		h.office.Listed(h.node, f.Listed)
	}
	if f.Actual != nil {
		h.handler.NodeReport(h.node, f.Actual)
	}
	if len(f.Samples) > 0 {
		h.handler.NodeSample(h.node, f.Samples)
	}
	if len(f.Notes) > 0 {
		h.handler.NodeNotes(h.node, f.Notes)
	}
}

// welcome is the first frames of a session: the answer to the hello and the full set.
func (h *hubHalf) welcome(w *api.Welcome) []*api.Frame {
	return h.frames(&api.Frame{Welcome: w}, true)
}

// beat is what goes out each heartbeat.
func (h *hubHalf) beat() []*api.Frame {
	h.beats++
	f := &api.Frame{Beat: h.beats}
	f.Lineage, f.LineageProof = h.handler.Lineage()
	return h.frames(f, false)
}

// due is what goes out after a wake-up; nothing when that was served already.
func (h *hubHalf) due() []*api.Frame { return h.frames(&api.Frame{}, false) }

// frames fills f with what is due; large sets of specs become frames before it.
func (h *hubHalf) frames(f *api.Frame, force bool) []*api.Frame {
	if h.office != nil {
		if !h.office.Leads() {
			return nil
		}
		if l := h.office.Controllers(); l.Version > h.listed {
			f.Controllers, h.listed = l, l.Version
		}
	}
	o := &h.out
	o.mu.Lock()
	dirty := o.dirty || force
	f.Echo, f.Streams = o.echo, o.requests
	f.Calls, o.calls = takeCalls(o.calls)
	more := len(o.calls) > 0
	o.dirty, o.echo, o.requests = false, 0, nil
	o.mu.Unlock()
	if more {
		o.poke()
	}

	var desired []*api.Desired
	if dirty {
		if want, specs, ok := h.handler.Desired(h.node); ok {
			desired = h.told.diff(want, specs)
		}
	}
	frames := []*api.Frame{f}
	for i, d := range desired {
		if i > 0 {
			f = &api.Frame{}
			frames = append(frames, f)
		}
		f.Desired = d
		if len(d.Assignments) > 0 {
			// With the orders and not with the next beat alone: a node whose members a store does
			// not know must be able to tell that store that it is an old copy.
			f.Lineage, f.LineageProof = h.handler.Lineage()
		}
	}
	if len(frames) == 1 && f.Controllers == nil && f.Echo == 0 && f.Beat == 0 && f.Welcome == nil && f.Desired == nil && len(f.Streams) == 0 && len(f.Calls) == 0 {
		return nil // woken for a change that was sent already
	}
	return frames
}
