package sim

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/leader"
)

// What a process does that is one of several controllers, beside leading: it looks at the seat,
// takes it, renews it, gives its word to nodes, and sees to the list.

// several says whether this controller is one of several.
func (g *gangd) several() bool { return g.r.db != nil }

func (g *gangd) bootTime() time.Duration { return g.r.instant().Mono }

// Leads implements [session.Office].
func (g *gangd) Leads() bool {
	_, ok := g.seat.Leads(g.bootTime())
	return ok
}

// Seat implements [session.Office].
func (g *gangd) Seat() (string, uint64) { return g.host.name, g.term }

// Controllers implements [session.Office].
func (g *gangd) Controllers() *api.Controllers { return g.list }

// Listed implements [session.Office].
func (g *gangd) Listed(node string, version uint64) { g.roster.Listed(node, version) }

// campaign looks at the seat again and again, until this process leads.
func (g *gangd) campaign() {
	var row leader.Seen
	g.query(func() { row = g.r.db.row(); g.leader = g.r.db.holder }, func(lost bool) {
		if lost || !g.seat.MayTake(g.bootTime(), row) {
			g.after(leader.Look, g.campaign)
			return
		}
		g.takeOver(row)
	})
}

func (g *gangd) takeOver(seen leader.Seen) {
	sent := g.bootTime()
	var term uint64
	var ok bool
	g.seat.Try()
	g.query(func() {
		if !g.dead {
			term, ok = g.r.db.takeOver(g, seen)
		}
	}, func(lost bool) {
		switch {
		case lost:
			g.crash(time.Second)
		case !ok:
			g.seat.Failed()
			g.after(leader.Look, g.campaign)
		default:
			g.seat.Took(term, sent)
			g.term, g.list = term, g.r.db.controllers()
			g.roster.Tell(g.list.Version, g.bootTime())
			g.renewLater()
			g.watchSeat()
			g.lead()
		}
	})
}

// renewLater renews the seat, and looks at the list with it.
func (g *gangd) renewLater() {
	g.after(leader.Renew, func() {
		sent, kept := g.bootTime(), false
		var list *api.Controllers
		version := uint64(0)
		if g.drv != nil {
			if settled, _ := g.roster.Settled(sent, g.r.set.Lease, g.nodes()); settled {
				version = g.list.Version
			}
		}
		d := g.r.db
		g.query(func() {
			if kept = d.term == g.term && d.holder == g; kept {
				d.renewals++
				d.admit(version)
				list = d.controllers()
			}
		}, func(lost bool) {
			switch {
			case lost:
			case !kept:
				g.seat.Leave()
				g.crash(time.Second)
				return
			default:
				g.seat.Renewed(sent)
				if list.Version > g.list.Version {
					g.list = list
					g.roster.Tell(list.Version, g.bootTime())
				}
			}
			g.renewLater()
		})
	})
}

// nodes are the names of those that this controller knows.
func (g *gangd) nodes() (out []string) {
	for _, n := range g.drv.World().Nodes() {
		out = append(out, n.Name)
	}
	return out
}

// watchSeat ends the process when it does not lead any more.
func (g *gangd) watchSeat() {
	g.after(max(0, g.seat.Until()-g.bootTime()), func() {
		// It is one goroutine among those of sessions: after a freeze what waits in their sockets may be read before.
		g.after(upTo(g.dice, 2*time.Millisecond), func() {
			if g.bootTime() >= g.seat.Until() {
				g.r.log("%s does not lead any more", g.host.name)
				g.crash(time.Second)
				g.giveUp(g.r.now + leader.GiveUp)
				return
			}
			g.watchSeat()
		})
	})
}

// giveUp gives the seat up as soon as the database is there: what is left of the process does nothing else.
func (g *gangd) giveUp(until time.Duration) {
	d := g.r.db
	g.r.after(leader.Look+d.delay(), func() {
		switch {
		case d.holder != g || g.r.now >= until:
		case d.away(g.host):
			g.giveUp(until)
		default:
			g.r.log("%s has given up its seat", g.host.name)
			d.holder = nil
		}
	})
}

// word is what this process says of itself; nil: it may lead, or has led, and says nothing.
func (g *gangd) word() *api.Word {
	leads := g.Leads()
	if !leads && !g.seat.Waits() {
		return nil
	}
	w := &api.Word{Name: g.host.name, Leads: leads, Term: g.seat.Known()}
	switch {
	case leads:
		w.Leader = &api.Controller{Name: g.host.name}
	case g.leader != nil:
		w.Leader = &api.Controller{Name: g.leader.host.name}
	}
	return w
}

// resign is TERM: the seat is given up at once, and the process ends.
func (g *gangd) resign(away time.Duration) {
	d := g.r.db
	if d != nil && !d.away(g.host) && d.holder == g {
		d.holder = nil
	}
	g.seat.Leave()
	g.crash(away)
}
