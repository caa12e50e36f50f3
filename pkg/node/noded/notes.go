package noded

import (
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/session"
)

// notes is the newest that the ranks of this node have said, and what of it the controller
// has not been told. It is kept here as well as in the shims, so that a new session does
// not have to ask them.
type notes struct {
	mu      sync.Mutex
	members map[api.MemberKey]*latestNote
	wake    func()
}

type latestNote struct {
	api.MemberNote
	at  time.Duration // CLOCK_BOOTTIME
	new bool
	// measured: what was measured is news, too. It is far longer than the rest, which may change
	// each second.
	measured bool
}

func newNotes(wake func()) *notes {
	return &notes{members: map[api.MemberKey]*latestNote{}, wake: wake}
}

func (n *notes) put(m api.MemberNote, k api.MemberKey) {
	m.MemberKey = k
	n.mu.Lock()
	h := &latestNote{MemberNote: m, at: session.BootTime(), new: true}
	if old := n.members[k]; old != nil { // the shim knows nothing of cards
		h.Watch, h.Measure, h.measured = old.Watch, old.Measure, old.measured
	}
	n.members[k] = h
	n.mu.Unlock()
	n.wake()
}

func (n *notes) putWatch(k api.MemberKey, w *api.WatchNote) {
	n.change(k, func(h *latestNote) { h.Watch = w })
}

func (n *notes) putMeasure(k api.MemberKey, m *api.Measure) {
	n.change(k, func(h *latestNote) { h.Measure, h.measured = m, true })
}

func (n *notes) change(k api.MemberKey, f func(*latestNote)) {
	n.mu.Lock()
	h := n.members[k]
	if h == nil {
		h = &latestNote{MemberNote: api.MemberNote{MemberKey: k}, at: session.BootTime()}
		n.members[k] = h
	}
	f(h)
	h.new = true
	n.mu.Unlock()
	n.wake()
}

func (n *notes) drop(k api.MemberKey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.members, k)
}

// again makes everything news, for a new session.
func (n *notes) again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.members {
		h.new, h.measured = true, h.Measure != nil
	}
}

// news is what was put since it was last called, beats as old as they are now.
func (n *notes) news() []api.MemberNote {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []api.MemberNote
	for _, h := range n.members {
		if !h.new {
			continue
		}
		m := h.MemberNote
		if !h.measured {
			m.Measure = nil
		}
		h.new, h.measured = false, false
		age := func(r *api.RankNote) {
			if r.Beats > 0 {
				r.BeatAge += session.BootTime() - h.at
			}
		}
		m.Ranks, m.Tasks = slices.Clone(m.Ranks), slices.Clone(m.Tasks)
		for i := range m.Ranks {
			age(&m.Ranks[i])
		}
		for i := range m.Tasks {
			age(&m.Tasks[i].RankNote)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b api.MemberNote) int { return a.Compare(b.MemberKey) })
	return out
}
