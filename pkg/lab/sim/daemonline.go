package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/session"
)

// connect tries to open a line.
func (d *daemon) connect() {
	d.tries++
	n := d.tries
	asked := d.m.bootTime()
	began := d.m.r.now
	d.knock(n, asked, began)
}

// knock is one attempt of the kernel to reach the controller; it repeats them until the
// dialling gives up.
func (d *daemon) knock(n uint64, asked, began time.Duration) {
	m := d.m
	h := d.target()
	d.after(m.delay()+m.delay(), func() {
		switch {
		case n != d.tries:
		case m.isCut(true) || m.isCut(false) || m.cutOff(h):
			if m.r.now-began >= d.dialTime() {
				d.failed()
				return
			}
			d.after(min(time.Second, d.dialTime()), func() { d.knock(n, asked, began) })
		case h.proc == nil:
			// Refused by a host on which no controller runs: that is contact.
			d.refused(h, asked)
			d.failed()
		case h.proc.drv == nil:
			d.elsewhere(n, h.proc, asked)
		default:
			d.open(h.proc)
		}
	})
}

func (d *daemon) failed() {
	d.turn++
	d.next = nil
	d.retry(0)
}

// retry connects again after a session that lasted so long.
func (d *daemon) retry(lasted time.Duration) {
	d.tries++
	n := d.tries
	wait := d.half.NextTry(lasted, func(t time.Duration) time.Duration {
		return time.Duration(d.m.dice.Int64N(int64(t)))
	})
	d.after(wait, func() {
		if n == d.tries {
			d.connect()
		}
	})
}

// open is a line that was accepted; the first word is the hello.
func (d *daemon) open(g *gangd) {
	m := d.m
	l := &line{m: m, node: d}
	l.hub = g.accept(l)
	d.met[g.host] = g
	d.line, d.greeted, d.heardAt = l, false, m.r.now
	m.prune()
	m.lines = append(m.lines, l)
	d.watch(l, helloTimeout)
	l.send(true, d.half.Hello(), d)
}

// watch ends the session when nothing is heard for so long.
func (d *daemon) watch(l *line, patience time.Duration) {
	d.after(d.heardAt+patience-d.m.r.now, func() {
		switch {
		case d.line != l || d.greeted && patience == helloTimeout:
		case d.m.r.now-d.heardAt >= patience:
			d.m.r.log("%s: the controller is silent", d.m.name)
			d.hangUp(false)
		default:
			d.watch(l, patience)
		}
	})
}

// hangUp is the end of the session at the node; byPeer: the controller ended it.
func (d *daemon) hangUp(byPeer bool) {
	l := d.line
	if l == nil {
		return
	}
	d.line = nil
	l.fin(true)
	lasted := time.Duration(0)
	if d.greeted {
		d.greeted = false
		d.half.Down(byPeer)
		lasted = max(d.m.r.now-d.opened, 1)
	}
	d.retry(lasted)
}

// take is a frame of the controller.
func (d *daemon) take(f *api.Frame) {
	d.heardAt = d.m.r.now
	if f.Welcome != nil {
		d.greeted, d.opened = true, d.m.r.now
	}
	err := d.half.Take(f)
	d.renewed(d.line.hub.g)
	if err != nil && d.m.r.db != nil { // of an older term
		d.greeted = d.greeted && f.Welcome == nil
		d.hangUp(false)
		return
	}
	if err != nil {
		d.m.r.fail("I6", "%s can't take a frame: %v", d.m.name, err)
		return
	}
	if f.Welcome != nil {
		d.watch(d.line, session.SilentBeats*d.settings.Heartbeat)
		d.beatLater(d.line)
		d.wakeSession()
	}
	if f.Beat != 0 {
		d.flushSoon()
	}
}

func (d *daemon) beatLater(l *line) {
	d.after(d.settings.Heartbeat, func() {
		if d.line == l {
			l.send(true, d.half.Beat(), d)
			if !d.gone() {
				d.beatLater(l)
			}
		}
	})
}

// wakeSession says that the board has news.
func (d *daemon) wakeSession() {
	d.half.Wake()
	d.flushSoon()
}

// flushSoon sends what is due, a moment later.
func (d *daemon) flushSoon() {
	if d.soon || d.line == nil || !d.greeted {
		return
	}
	d.soon = true
	d.after(upTo(d.m.dice, time.Millisecond), func() {
		d.soon = false
		if d.line == nil || !d.greeted {
			return
		}
		if f := d.half.Due(); f != nil {
			d.line.send(true, f, d)
		}
	})
}
