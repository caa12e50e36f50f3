package noded

import (
	"os"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
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

// inventory is the containments of this daemon's members that hold processes, one of each member.
func (d *daemon) inventory() map[api.MemberKey]*containment {
	held := map[api.MemberKey]*containment{}
	for _, c := range d.containments() {
		if d.cgroups.Kind == proc.Group || proc.Holds(c.place.Kind, c.place.Dir) {
			held[c.key] = &c
		}
	}
	return held
}

// containments lists those of this daemon's members, with processes in them or without.
func (d *daemon) containments() []containment {
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
		if k, ok := memberKey(name); ours && ok && e.IsDir() {
			found = append(found, containment{k, d.cgroups.Place(e.Name(), d.marker(name))})
		}
	}
	return found
}

func (d *daemon) marker(name string) string {
	return rankenv.MarkerName + "=" + d.state.id + "." + name
}

// marked is containments by the marks in the environment of processes.
func (d *daemon) marked() []containment {
	pids, err := proc.All()
	if err != nil {
		return nil
	}
	var found []containment
	seen := map[string]bool{}
	for _, pid := range pids {
		value := proc.Variable(pid, rankenv.MarkerName)
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

// bareSpec is what is known of a member without its record: who it is, and where its processes
// are; c is nil where it holds none.
func (d *daemon) bareSpec(k api.MemberKey, c *containment) *shim.Spec {
	s := &shim.Spec{MemberKey: k, Node: d.opts.Name, Dir: d.state.memberDir(k), SwitchUser: !d.opts.SingleUser, Grace: d.settings.Grace}
	if c != nil {
		s.SetPlace(c.place)
	}
	return s
}

// killContainment ends what the processes of a member are held by: what its record names, and
// what bears its name.
func (m *member) killContainment() error {
	if !m.bare {
		if err := proc.KillContainment(m.spec.Place(), killFor); err != nil {
			return err
		}
	}
	for _, c := range m.d.containments() {
		if c.key != m.key {
			continue
		}
		if err := proc.KillContainment(c.place, killFor); err != nil {
			return err
		}
	}
	return nil
}

// takeFound makes members of what has no directory either.
func (d *daemon) takeFound() {
	for k, c := range d.inventory() {
		d.mu.Lock()
		if d.lookup(k) == nil {
			d.log.Error("processes of a member without a record were found", "job", k.Job, "epoch", k.Epoch, "cgroup", c.place.Dir)
			m := d.newMember(k)
			m.spec, m.bare, m.found, m.answers = d.bareSpec(k, c), true, recordMissing, closedAnswers
			m.known.Store(m.spec)
			m.keepCPUs()
			m.begin(api.MemberActual{MemberKey: k, Phase: api.PhaseRunning, Found: m.found})
		}
		d.mu.Unlock()
	}
}
