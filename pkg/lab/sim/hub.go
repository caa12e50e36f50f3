package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/wire/session"
)

// helloTimeout is how long a greeting may take, as in package session.
const helloTimeout = 15 * time.Second

// hubSession is the controller's end of one line. What it says and takes in is package
// session's; who replaces whom, and what silence means, are modelled after its Hub.
type hubSession struct {
	g        *gangd
	line     *line
	node     string
	stateID  string
	greeting *api.Hello
	seen     uint64 // the highest commit that the node has been told of
	toldBy   string // by which run of the controller
	half     *session.DrivenHub
	greeted  bool
	over     bool
	replaced bool
	owed     bool
	soon     bool
	heard    time.Duration // the last frame
}

// accept is a line that a node opened.
func (g *gangd) accept(l *line) *hubSession {
	s := &hubSession{g: g, line: l, heard: g.r.now}
	s.watch(helloTimeout)
	return s
}

// watch ends the session when nothing is heard for so long.
func (s *hubSession) watch(patience time.Duration) {
	s.g.after(s.heard+patience-s.g.r.now, func() {
		switch {
		case s.over || s.greeted && patience == helloTimeout:
		case s.g.r.now-s.heard >= patience:
			s.end()
		default:
			s.watch(patience)
		}
	})
}

// take is a frame that arrived.
func (s *hubSession) take(f *api.Frame) {
	if s.over {
		return
	}
	s.heard = s.g.r.now
	if f.Hello != nil {
		s.hello(f.Hello)
		return
	}
	if !s.greeted {
		return
	}
	s.half.Take(f)
	s.g.r.mix(f.Beat)
	if f.Beat != 0 {
		s.flushSoon()
	}
	s.g.turnIfNew()
}

// turnIfNew plans a turn when something was handed in.
func (g *gangd) turnIfNew() {
	if g.drv.Waiting() {
		g.turnSoon()
	}
}

func (s *hubSession) hello(h *api.Hello) {
	if !s.g.greeted.Newest(h) {
		s.end()
		return
	}
	s.node, s.greeting, s.stateID, s.seen = h.Node, h, h.StateID, h.LineageSeen
	s.toldBy = h.RunSeen
	if old := s.g.sessions[h.Node]; old != nil {
		// What the old one was owed this one takes over, whether or not that was said.
		old.replaced = true
		old.end()
	}
	s.g.sessions[h.Node] = s
	s.owed = true
	s.g.ask(s.g.drv.Hello(h), s.welcome)
}

func (s *hubSession) welcome(out gang.Outcome) {
	if s.over {
		return
	}
	w, err := s.g.drv.Welcome(out)
	if err != nil {
		s.end()
		return
	}
	s.greeted = true
	s.half = session.NewDrivenHub(s.g.eng, s.g.office(), s.greeting, func() time.Time { return s.g.r.instant().Wall })
	s.heard = s.g.r.now
	s.watch(session.SilentBeats * s.g.r.set.Heartbeat)
	s.send(s.half.Welcome(w))
	s.beatLater()
}

func (s *hubSession) beatLater() {
	s.g.after(s.g.r.set.Heartbeat, func() {
		if !s.over {
			s.send(s.half.Beat())
			s.beatLater()
		}
	})
}

// flushSoon sends what is due, a moment later: the writer is a goroutine of its own.
func (s *hubSession) flushSoon() {
	if s.soon {
		return
	}
	s.soon = true
	s.g.after(upTo(s.g.dice, time.Millisecond), func() {
		s.soon = false
		if !s.over {
			s.send(s.half.Due())
		}
	})
}

func (s *hubSession) send(frames []*api.Frame) {
	for _, f := range frames {
		if s.over || s.g.dead {
			return
		}
		if f.Desired != nil {
			s.g.r.truth.told(s.node, f.Desired)
		}
		s.line.send(false, f, s.g)
	}
}

// end is the end of the session at the controller, for whatever reason.
func (s *hubSession) end() {
	if s.over {
		return
	}
	s.over = true
	s.line.fin(false)
	if s.node == "" {
		return
	}
	if s.g.sessions[s.node] == s {
		delete(s.g.sessions, s.node)
	}
	if s.owed && !s.replaced {
		s.g.eng.NodeGone(s.node)
		s.g.turnSoon()
	}
}
