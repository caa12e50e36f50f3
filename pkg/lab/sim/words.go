package sim

import (
	"slices"
	"time"

	"gangd/pkg/api"
)

// A node and its controllers, where there are several: a session with one, words of the others.

// target is the host that is tried next.
func (d *daemon) target() *host {
	if d.next != nil {
		return d.next
	}
	hosts := d.m.r.hosts
	return hosts[d.turn%len(hosts)]
}

// dialTime is how long one host is tried.
func (d *daemon) dialTime() time.Duration {
	if d.m.r.db != nil {
		return time.Second
	}
	return helloTimeout
}

// refused: a host answered that no controller runs there.
func (d *daemon) refused(h *host, asked time.Duration) {
	name := ""
	if d.m.r.db != nil {
		name = h.name
	}
	d.half.Refused(name, asked)
	d.renewed(nil)
}

// renewed looks whether the leases run from a later time than before, and who gave that.
func (d *daemon) renewed(by *gangd) {
	if at := d.half.LastContact(); at > d.contact {
		d.contact = at
		d.m.r.truth.renewed(d.m, at-bootOffset, by, d.knows)
	}
}

// elsewhere is an answer to who wants a session: this controller does not lead.
func (d *daemon) elsewhere(n uint64, p *gangd, asked time.Duration) {
	d.after(d.dialTime(), func() {
		if n == d.tries {
			d.failed()
		}
	})
	p.do(func() {
		w := p.word()
		d.after(d.m.delay(), func() {
			if n != d.tries || d.m.isCut(false) || d.m.cutOff(p.host) || w == nil {
				return
			}
			d.spoke(p, w, asked)
			if n == d.tries {
				d.failed()
				d.follow(w)
			}
		})
	})
}

// spoke is a word that came.
func (d *daemon) spoke(p *gangd, w *api.Word, asked time.Duration) {
	d.met[p.host] = p
	elsewhere := d.half.Word(w, asked)
	d.renewed(nil)
	if elsewhere && d.line != nil {
		d.hangUp(false)
	}
	if elsewhere {
		d.follow(w)
	}
}

// follow goes where a word says that the leader is.
func (d *daemon) follow(w *api.Word) {
	if w.Leader == nil {
		return
	}
	for _, h := range d.m.r.hosts {
		if h.name == w.Leader.Name {
			d.next = h
		}
	}
}

// askLater asks each controller but the one in session for its word, with each heartbeat.
func (d *daemon) askLater() {
	d.after(d.settings.Heartbeat, func() {
		for _, h := range d.m.r.hosts {
			if d.knows(h) && (d.line == nil || d.line.hub.g.host != h) {
				d.ask(h)
			}
		}
		d.askLater()
	})
}

// knows: the controller of a host is in the list that the node keeps.
func (d *daemon) knows(h *host) bool {
	return slices.ContainsFunc(d.half.Controllers().List, func(c api.Controller) bool { return c.Name == h.name })
}

// ask is one question. A word may be late, as long as the line it comes on holds.
func (d *daemon) ask(h *host) {
	m, asked := d.m, d.m.bootTime()
	d.m.r.after(m.delay(), func() {
		p := h.proc
		switch {
		case m.isCut(true) || m.cutOff(h):
		case p == nil:
			d.after(m.delay(), func() {
				if !m.isCut(false) && !m.cutOff(h) {
					d.refused(h, asked)
				}
			})
		default:
			p.do(func() {
				w := p.word()
				d.after(m.delay(), func() {
					if w != nil && !m.isCut(false) && !m.cutOff(h) {
						d.spoke(p, w, asked)
					}
				})
			})
		}
	})
}

// tellEnd tells the nodes that have a line with a process that it has ended, as far as they can be
// reached: its kernel does.
func (r *run) tellEnd(g *gangd) {
	if r.db == nil {
		return
	}
	for _, m := range r.machines {
		d := m.daemon
		if d == nil || d.met[g.host] != g {
			continue
		}
		d.after(m.delay(), func() {
			if !m.isCut(false) && !m.cutOff(g.host) && d.met[g.host] == g {
				delete(d.met, g.host)
				d.half.Ended(g.host.name, true)
			}
		})
	}
}
