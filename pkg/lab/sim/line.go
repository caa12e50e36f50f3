package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/session"
)

// line is one connection between a node and the controller: in order, without loss while
// it holds. What is sent into a cut waits, as TCP's repetitions do.
type line struct {
	m    *machine
	hub  *hubSession // nil until accepted
	node *daemon
	up   pipe
	down pipe
	dead bool // reset: nothing arrives any more
}

// pipe is one direction.
type pipe struct {
	last  time.Duration // arrival of what was sent last
	stuck []parcel
	over  bool // a fin was sent
}

// parcel is a frame, or the end of the line.
type parcel struct {
	frame *api.Frame
	fin   bool
	do    func() // of a call
}

func (l *line) pipe(up bool) *pipe {
	if up {
		return &l.up
	}
	return &l.down
}

// send puts a frame on its way.
func (l *line) send(up bool, f *api.Frame, by crasher) {
	if !plain(f) {
		l.m.r.res.Frames++
	}
	l.m.r.send(by, func() {
		if plain(f) {
			c := *f
			l.ship(up, parcel{frame: &c})
			return
		}
		c, err := session.Copy(f)
		if err != nil {
			l.m.r.fail("I6", "a frame that does not survive the wire: %v", err)
			return
		}
		l.ship(up, parcel{frame: c})
	})
}

// plain frames carry numbers alone.
func plain(f *api.Frame) bool {
	return f.Hello == nil && f.Actual == nil && f.Samples == nil && f.Notes == nil && f.Welcome == nil && f.Desired == nil
}

// fin ends a direction; what was sent before arrives before.
func (l *line) fin(up bool) {
	if p := l.pipe(up); !p.over {
		p.over = true
		l.ship(up, parcel{fin: true})
	}
}

func (l *line) ship(up bool, x parcel) {
	r := l.m.r
	p := l.pipe(up)
	at := max(p.last, r.now+l.m.delay())
	p.last = at
	r.after(at-r.now, func() { l.arrive(up, x) })
}

// arrive is a parcel at the other end, unless the way is cut.
func (l *line) arrive(up bool, x parcel) {
	p := l.pipe(up)
	if l.dead {
		return
	}
	if l.isCut(up) || len(p.stuck) > 0 {
		p.stuck = append(p.stuck, x)
		return
	}
	l.deliver(up, x)
}

// isCut says whether nothing comes that way: from or to the node, or the controller.
func (l *line) isCut(up bool) bool { return l.m.isCut(up) || l.hub != nil && l.m.cutOff(l.hub.g.host) }

// freed goes on with what was stuck in a cut.
func (l *line) freed(up bool) {
	p := l.pipe(up)
	stuck := p.stuck
	p.stuck = nil
	for _, x := range stuck {
		l.ship(up, x)
	}
}

func (l *line) deliver(up bool, x parcel) {
	if !up {
		l.node.do(func() { l.atNode(x) })
		return
	}
	s := l.hub
	if s == nil {
		return
	}
	s.g.do(func() {
		switch {
		case x.fin:
			s.end()
		case x.do != nil:
			x.do()
		default:
			s.take(x.frame)
			if l.m.r.now < l.m.twiceUntil && x.frame.Actual != nil && x.frame.Hello == nil {
				l.again(x)
			}
		}
	})
}

// again brings a frame a second time, a little later.
func (l *line) again(x parcel) {
	s := l.hub
	c := &api.Frame{Actual: x.frame.Actual}
	s.g.after(upTo(s.g.dice, 2*time.Second), func() {
		if !l.dead && !s.over && s.greeted {
			s.half.Take(c)
			s.g.turnIfNew()
		}
	})
}

func (l *line) atNode(x parcel) {
	switch {
	case l.node.line != l:
	case x.fin:
		l.node.hangUp(true)
	case x.do != nil:
		x.do()
	default:
		l.node.take(x.frame)
	}
}

// reset breaks the line: both sides are told, as far as they can be reached.
func (l *line) reset() {
	if l.dead {
		return
	}
	l.dead = true
	r := l.m.r
	if l.hub != nil && !l.isCut(true) {
		s := l.hub
		r.after(l.m.delay(), func() { s.g.do(s.end) })
	}
	if !l.isCut(false) {
		d := l.node
		d.after(l.m.delay(), func() {
			if d.line == l {
				d.hangUp(false)
			}
		})
	}
}
