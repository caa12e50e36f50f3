package sim

import "time"

// toControllers lets a fault happen to one of several controllers, or to what they share.
func (r *run) toControllers(f *Fault) bool {
	d := r.db
	if d == nil {
		return false
	}
	h := r.host(f.N)
	during := func(n *int) {
		*n++
		r.after(f.For, func() {
			*n = max(*n-1, 0)
			r.freeLines()
		})
	}
	switch f.Do {
	case CrashController, FreezeController, Term:
		return h.proc != nil && h.proc.suffer(f)
	case CrashAll:
		r.crashAll(f.For)
	case CutNodes:
		during(&h.cuts)
	case CutNode:
		m := r.machine(f.Node)
		m.cutsTo[h]++
		r.after(f.For, func() {
			m.cutsTo[h] = max(m.cutsTo[h]-1, 0)
			m.free()
		})
	case CutDatabase:
		during(&h.fromDB)
	case DatabaseDown:
		during(&d.downs)
	case DatabaseSlow:
		d.slowUntil = r.now + f.For
	case AddController:
		return r.addController()
	case DropController:
		return r.dropController()
	default:
		return false
	}
	return true
}

// suffer is what happens to one process.
func (g *gangd) suffer(f *Fault) bool {
	switch f.Do {
	case CrashController:
		g.crash(f.For)
	case FreezeController:
		g.freeze(f.For)
	case Term:
		if g.frozen() {
			return false
		}
		g.resign(f.For)
	}
	return true
}

func (g *gangd) freeze(d time.Duration) {
	g.stops++
	g.r.after(d, g.thaw)
}

func (r *run) crashAll(away time.Duration) {
	for _, h := range r.hosts {
		if h.proc != nil {
			h.proc.crash(away)
		}
	}
}

func (r *run) freeLines() {
	for _, m := range r.machines {
		m.free()
	}
}

// addController is a person who has a controller join; it is there before it is on the list.
func (r *run) addController() bool {
	if len(r.hosts) >= 4 || r.db.downs > 0 {
		return false
	}
	h := &host{r: r, name: "c" + string(rune('1'+len(r.hosts)))}
	r.hosts = append(r.hosts, h)
	h.start()
	r.db.change(h.name, true)
	return true
}

// dropController takes the last of the list off it, where two are left that may lead.
func (r *run) dropController() bool {
	d, lead := r.db, 0
	for _, l := range d.list {
		if !l.joining {
			lead++
		}
	}
	last := d.list[len(d.list)-1]
	if d.downs > 0 || lead < 3 || last.joining || d.holder != nil && d.holder.host.name == last.name {
		return false
	}
	d.change(last.name, false)
	return true
}

// healControllers ends the faults of all of them.
func (r *run) healControllers() {
	for _, h := range r.hosts {
		h.cuts, h.fromDB = 0, 0
		if g := h.proc; g != nil {
			g.stops = 0
			g.wake()
		}
	}
	if r.db != nil {
		r.db.downs, r.db.slowUntil = 0, 0
	}
	r.freeLines()
}
