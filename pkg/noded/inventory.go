package noded

import (
	"context"
	"os"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/proc"
	"gangd/pkg/rankenv"
	"gangd/pkg/shim"
)

// What runs here is known from two sides: by the records of the members, and by the
// containments that hold their processes, which bear the name of this state directory. A
// record can be lost (a site's cleaner, a bad disk); what its containment still holds is a
// member all the same. It is reported as running, so that its gang is not started beside it and
// its cards are not given on, until its shim answers or it is proven empty.

// inventoryEvery is between two looks for containments that no member here has.
const inventoryEvery = 30 * time.Second

// containment is one that was found by its name.
type containment struct {
	key   api.MemberKey
	place proc.Place
}

// inventory lists the containments of this daemon's members that hold processes.
func (d *Daemon) inventory() []containment {
	if d.cgroups.Kind == proc.Group {
		return d.marked()
	}
	entries, err := os.ReadDir(d.cgroups.Dir)
	if err != nil {
		return nil
	}
	var found []containment
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), d.state.id+"-")
		k, ok := memberKey(name)
		if !ours || !ok || !e.IsDir() {
			continue
		}
		if p := d.cgroups.Place(e.Name(), d.marker(name)); proc.Holds(p.Kind, p.Dir) {
			found = append(found, containment{k, p})
		}
	}
	return found
}

// marker is the entry in the environment of all processes of a containment.
func (d *Daemon) marker(name string) string {
	return rankenv.MarkerName + "=" + d.state.id + "." + name
}

// marked is inventory by the marks in the environment of processes.
func (d *Daemon) marked() []containment {
	pids, err := proc.All()
	if err != nil {
		return nil
	}
	var found []containment
	seen := map[string]bool{}
	for _, pid := range pids {
		value := environment(pid, rankenv.MarkerName)
		name, ours := strings.CutPrefix(value, d.state.id+".")
		k, ok := memberKey(name)
		if st, alive := proc.ReadStat(pid); !ours || !ok || seen[name] || !alive || st.Dead() {
			continue
		}
		seen[name] = true
		found = append(found, containment{k, proc.Place{Kind: proc.Group, Marker: d.marker(name)}})
	}
	return found
}

// takeFound makes members of what has no record, and gives how many there were.
func (d *Daemon) takeFound() (n int) {
	for _, c := range d.inventory() {
		d.mu.Lock()
		if d.lookup(c.key) == nil {
			n++
			d.log.Error("processes of a member without a record were found", "job", c.key.Job, "epoch", c.key.Epoch, "cgroup", c.place.Dir)
			m := d.newMember(c.key)
			m.spec = &shim.Spec{MemberKey: c.key, Node: d.opts.Name, Dir: m.dir, SwitchUser: !d.opts.SingleUser,
				Grace: d.settings.Grace}
			m.spec.SetPlace(c.place)
			m.answers = closedAnswers
			m.introduce(m.spec)
			m.begin(api.MemberActual{MemberKey: c.key, Phase: api.PhaseRunning, Text: "found without its record"})
		}
		d.mu.Unlock()
	}
	return n
}

// watchFound looks for them until ctx ends.
func (d *Daemon) watchFound(ctx context.Context) {
	d.running.Go(func() {
		for ctx.Err() == nil {
			sleep(ctx, inventoryEvery)
			d.takeFound()
		}
	})
}
