package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/leader"
)

// database is what several controllers share: beside the store (see disk) the row of who leads and
// the list of controllers. It is reached over a network of its own.
type database struct {
	r         *run
	dice      *rand.Rand
	term      uint64
	holder    *gangd // nil: nobody, or it has resigned
	renewals  uint64
	list      []listed
	version   uint64
	downs     int // faults that keep it away
	slowUntil time.Duration
}

// listed is a controller of the list.
type listed struct {
	name    string
	joining bool // it may not lead yet
}

// host is where one of several controllers runs.
type host struct {
	r      *run
	name   string
	proc   *gangd // nil: none runs
	cuts   int    // from all nodes
	fromDB int
}

const (
	// databasePatience is when a controller gives up waiting for the database.
	databasePatience = time.Second
	refusedRetry     = 200 * time.Millisecond
)

func (r *run) makeControllers() {
	for i := range max(r.sc.Controllers, 1) {
		r.hosts = append(r.hosts, &host{r: r, name: fmt.Sprintf("c%d", i+1)})
	}
	if r.sc.Controllers < 2 {
		return
	}
	r.db = &database{r: r, dice: rand.New(rand.NewPCG(r.sc.Seed, 5)), version: 1}
	for _, h := range r.hosts {
		r.db.list = append(r.db.list, listed{name: h.name})
	}
}

// host by number; the 0th is that of the leader.
func (r *run) host(n int) *host {
	if n == 0 && r.gangd != nil {
		return r.gangd.host
	}
	return r.hosts[(n+len(r.hosts)-1)%len(r.hosts)]
}

func (d *database) away(h *host) bool { return d.downs > 0 || h.fromDB > 0 }

func (d *database) delay() time.Duration {
	t := 50*time.Microsecond + upTo(d.dice, time.Millisecond)
	if d.r.now < d.slowUntil {
		t += upTo(d.dice, 1500*time.Millisecond)
	}
	return t
}

// query has the database do something for a process, which is told then. An answer that does not
// come is lost: it may have been done.
func (g *gangd) query(do func(), then func(lost bool)) {
	d, sent, over := g.r.db, g.r.now, false
	end := func(lost bool) {
		if !over {
			over = true
			then(lost)
		}
	}
	g.after(databasePatience+d.delay(), func() { end(true) })
	g.r.after(d.delay(), func() {
		if d.away(g.host) {
			return
		}
		do()
		g.after(d.delay(), func() {
			if !d.away(g.host) && g.r.now-sent < databasePatience {
				end(false)
			}
		})
	})
}

// row is the seat as it is read.
func (d *database) row() leader.Seen {
	return leader.Seen{Term: d.term, Mark: fmt.Sprint(d.renewals), Free: d.holder == nil}
}

// takeOver gives the seat to a process, unless it is not any more as that has seen it.
func (d *database) takeOver(g *gangd, seen leader.Seen) (term uint64, ok bool) {
	admitted := slices.ContainsFunc(d.list, func(l listed) bool { return l.name == g.host.name && !l.joining })
	if !admitted || d.row() != seen {
		return 0, false
	}
	d.term = max(d.term+1, uint64(d.r.now.Milliseconds())+1)
	d.holder = g
	d.renewals++
	d.r.log("%s takes over in term %d", g.host.name, d.term)
	d.r.res.TakeOvers++
	d.r.truth.seats = append(d.r.truth.seats, seated{d.r.now, g})
	d.r.gangd = nil
	return d.term, true
}

// controllers is the list as it is told.
func (d *database) controllers() *api.Controllers {
	out := &api.Controllers{Version: d.version}
	for _, l := range d.list {
		out.List = append(out.List, api.Controller{Name: l.name, Addresses: []string{l.name}})
	}
	return out
}

// change puts a controller on the list or takes it off.
func (d *database) change(name string, add bool) {
	d.version++
	d.list = slices.DeleteFunc(slices.Clone(d.list), func(l listed) bool { return l.name == name })
	if add {
		d.list = append(d.list, listed{name: name, joining: true})
	}
	d.r.log("the list of controllers is version %d: %v", d.version, d.list)
}

// admit lets all of a version of the list lead.
func (d *database) admit(version uint64) {
	if version != d.version {
		return
	}
	d.list = slices.Clone(d.list)
	for i := range d.list {
		d.list[i].joining = false
	}
}
