package gang

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// site is what its admins and users have set up beside jobs, and what follows for jobs and nodes where that changes.
type site struct {
	clock  *clock
	record *record
	jobs   *jobs
	nodes  *nodes
	specs  *specs
	queue  *queue
	fleet  *fleet

	partitions   partitions
	reservations reservations
	crontabs     crontabs
	pools        pools
	holdings     holdings
}

// configure gives a restored world what the configuration says.
func (si *site) configure(file []api.Partition) {
	si.movePartitions(func() {
		si.partitions.file = file
		for _, name := range slices.Sorted(maps.Keys(si.partitions.changes)) {
			if c := si.partitions.changes[name]; !reflect.DeepEqual(c.File, si.partitions.configured(name)) {
				si.partitions.forget(name)
				si.record.emit(api.Event{Type: api.EventPartitionUpdated, Text: name + ": the configuration was edited and holds again"})
			}
		}
	})
}

// reconfigure takes what the configuration says otherwise: everything that waits is judged again.
func (si *site) reconfigure(ev Reconfigure) Outcome {
	si.nodes.paths = ev.Paths
	si.configure(ev.Partitions)
	for _, id := range slices.Sorted(maps.Keys(si.jobs.byID)) {
		if e := si.jobs.byID[id]; blocked(e.job) {
			si.queue.touch(e)
		}
	}
	si.record.emit(api.Event{Type: api.EventReconfigured, Text: ev.Text})
	return applied()
}

func (si *site) putPartition(ev PutPartition) Outcome {
	name := ev.Ask.Name
	old := si.partitions.find(name)
	switch {
	case old == nil && ev.Old:
		return refused(si.partitions.unknown(name))
	case old != nil && !ev.Old:
		return refused(conflict("gctl partition update "+name+" changes it", "there is a partition %s already", name).About(api.ReasonPartition,
			name))
	}
	p := api.Partition{Name: name}
	if old != nil {
		p = *old
	}
	if err := si.partitions.fill(&p, &ev.Ask); err != nil {
		return refused(err)
	}
	if old != nil && reflect.DeepEqual(*old, p) {
		return ignored("it is so already")
	}
	what := api.EventPartitionCreated
	if old != nil {
		what = api.EventPartitionUpdated
	}
	si.movePartitions(func() {
		for _, o := range si.partitions.all { // there is one default
			if p.Default && o.Default && o.Name != name {
				o.Default = false
				si.partitions.set(o.Name, &o, ev.By)
			}
		}
		si.partitions.set(name, &p, ev.By)
	})
	text := partitionText(&p)
	if ev.By != "" {
		text += " (" + ev.By + ")"
	}
	si.record.emit(api.Event{Type: what, Nodes: p.Nodes, Text: text})
	return applied()
}

func (si *site) dropPartition(ev DropPartition) Outcome {
	p := si.partitions.find(ev.Name)
	if p == nil {
		return refused(si.partitions.unknown(ev.Name))
	}
	if id := si.jobIn(ev.Name); id != 0 {
		return refused(conflict("gqueue -p "+ev.Name+" lists them; gctl partition update "+ev.Name+" --state=inactive takes no more",
			"job %d is of partition %s",
			id, ev.Name).About(api.ReasonPartitionUsed, ev.Name))
	}
	nodes := p.Nodes
	si.movePartitions(func() { si.partitions.set(ev.Name, nil, ev.By) })
	text := ev.Name
	if ev.By != "" {
		text += " (" + ev.By + ")"
	}
	si.record.emit(api.Event{Type: api.EventPartitionDeleted, Nodes: nodes, Text: text})
	return applied()
}

func (si *site) resetPartitions(ev ResetPartitions) Outcome {
	changed := len(si.partitions.changes) > 0
	for _, h := range si.nodes.sorted {
		if n := h.node; !slices.Equal(n.Res.Features, n.Hello.Features) {
			changed = si.fleet.setFeatures(NodeFeatures{Node: n.Name, By: ev.By, Features: n.Hello.Features}).Applied || changed
		}
	}
	if !changed {
		return ignored("all is as configured")
	}
	si.movePartitions(func() {
		for _, c := range si.partitions.changed() {
			if c.File == nil && si.jobIn(c.Name) != 0 {
				continue
			}
			si.partitions.forget(c.Name)
			si.record.emit(api.Event{Type: api.EventPartitionUpdated, Text: c.Name + ": as configured again (" + ev.By + ")"})
		}
	})
	return applied()
}

// jobIn is a job that has not ended and may run in a partition, 0: there is none.
func (si *site) jobIn(partition string) int64 {
	for j := range si.jobs.all() {
		if j.Verdict == nil && slices.Contains(strings.Split(j.Partition, ","), partition) {
			return j.ID
		}
	}
	return 0
}

// movePartitions changes them, and with them what nodes are in and what jobs ask for.
func (si *site) movePartitions(change func()) {
	change()
	si.partitions.all = nil
	for _, p := range si.partitions.file {
		if si.partitions.changes[p.Name] == nil {
			si.partitions.all = append(si.partitions.all, p)
		} else if c := si.partitions.changes[p.Name]; c.Partition != nil {
			si.partitions.all = append(si.partitions.all, *c.Partition)
		}
	}
	for _, c := range si.partitions.changed() {
		if c.File == nil && c.Partition != nil {
			si.partitions.all = append(si.partitions.all, *c.Partition)
		}
	}
	for _, h := range si.nodes.sorted {
		if in := si.partitions.of(h.node.Name, nil); h.node.Res != nil && !slices.Equal(in, h.node.Res.Partitions) {
			res := *h.node.Res
			res.Partitions = in
			si.nodes.edit(h).Res = &res
		}
	}
	si.judgeAgain()
	si.nodes.room = true
}

func (si *site) setGroups(ev Groups) Outcome {
	changed := false
	for uid, of := range ev.Of {
		if slices.Equal(si.partitions.groups[uid], of) {
			continue
		}
		if !changed {
			si.partitions.groups, changed = maps.Clone(si.partitions.groups), true // readers have it
		}
		si.partitions.groups[uid] = of
	}
	if !changed {
		return ignored("it is so already")
	}
	maps.DeleteFunc(si.partitions.groups, func(uid uint32, of []string) bool {
		return len(of) == 0 || si.holdings.byUser[uid] == nil && ev.Of[uid] == nil
	})
	si.partitions.moved = true
	si.judgeAgain()
	return applied()
}

func (si *site) putReservation(ev PutReservation) Outcome {
	r := ev.R
	r.Active = false
	old := si.reservations.byName[r.Name]
	if ev.Count > 0 {
		nodes, err := si.reservations.chooseNodes(&r, old, ev.Count)
		if err != nil {
			return refused(err)
		}
		r.Nodes = nodes
	}
	err := si.reservations.bookable(&r, old, &ev)
	if err != nil {
		return refused(err)
	}
	if old != nil && sameReservation(old.r, &r) {
		return ignored("it is so already")
	}
	what := api.EventReservationCreated
	if old != nil {
		what = api.EventReservationUpdated
	}
	si.reservations.put(&reservation{r: &r, active: !r.Start.After(si.clock.now.Wall)})
	text := reservationText(&r)
	if ev.By != "" {
		text += " (" + ev.By + ")"
	}
	si.record.emit(api.Event{Type: what, Reservation: r.Name, Nodes: r.Nodes, Text: text})
	nodes := r.Nodes
	if old != nil {
		nodes = append(slices.Clone(nodes), old.r.Nodes...)
	}
	si.reservationMoved(r.Name, nodes)
	return applied()
}

func (si *site) dropReservation(ev DropReservation) Outcome {
	b := si.reservations.byName[ev.Name]
	if b == nil {
		return refused(si.reservations.unknown(ev.Name))
	}
	si.reservations.remove(b)
	text := ""
	if ev.By != "" {
		text = "by " + ev.By
	}
	si.record.emit(api.Event{Type: api.EventReservationDeleted, Reservation: ev.Name, Nodes: b.r.Nodes, Text: text})
	si.reservationMoved(ev.Name, b.r.Nodes)
	return applied()
}

// reservationDue: one begins, or ends.
func (si *site) reservationDue(name string) {
	b := si.reservations.byName[name]
	switch now := si.clock.now.Wall; {
	case b == nil:
	case now.Before(b.r.Start):
		// The wall clock was set back meanwhile: wait on.
		si.reservations.put(&reservation{r: b.r})
	case now.Before(b.r.End):
		if !b.active {
			si.record.emit(api.Event{Type: api.EventReservationBegan, Reservation: name, Nodes: b.r.Nodes, Text: "until " + timeText(b.r.End)})
		}
		si.reservations.put(&reservation{r: b.r, active: true})
		si.reservationMoved(name, b.r.Nodes)
	default:
		si.record.emit(api.Event{Type: api.EventReservationEnded, Reservation: name, Nodes: b.r.Nodes})
		if next := nextOccurrence(b.r, now); next != nil {
			si.reservations.put(&reservation{r: next, active: !next.Start.After(now)})
		} else {
			si.reservations.remove(b)
		}
		si.reservationMoved(name, b.r.Nodes)
	}
}

// reservationMoved says to all whom it concerns that a reservation is another.
func (si *site) reservationMoved(name string, nodes []string) {
	si.nodes.room = true
	si.reservations.seen = nil
	for _, id := range slices.Sorted(maps.Keys(si.jobs.byID)) {
		if e := si.jobs.byID[id]; e.job.Spec.Reservation == name && blocked(e.job) {
			si.queue.touch(e)
		}
	}
	for _, n := range unique(slices.Clone(nodes)) {
		if h := si.nodes.byName[n]; h != nil {
			si.fleet.armClear(h)
		}
	}
}

// take gives what changed, by name.
func (si *site) take(ch *SiteChanges) {
	for _, name := range slices.Sorted(maps.Keys(si.reservations.dirty)) {
		ch.Reservations = append(ch.Reservations, ReservationRow{name, si.reservations.dirty[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(si.partitions.dirty)) {
		ch.Partitions = append(ch.Partitions, PartitionRow{name, si.partitions.dirty[name]})
	}
	for _, user := range slices.Sorted(maps.Keys(si.crontabs.dirty)) {
		ch.Crontabs = append(ch.Crontabs, CrontabRow{user, si.crontabs.dirty[user]})
	}
	ch.Groups, si.partitions.moved = si.partitions.moved, false
	clear(si.reservations.dirty)
	clear(si.partitions.dirty)
	clear(si.crontabs.dirty)
}

// judged is all by which partitions judge jobs alike, besides what they say themselves.
type judged struct {
	asked *sharedAsk // of one spec
	named string     // partitions, of which asked has those that it might be started in
	limit time.Duration
	uid   uint32
	user  string
}

// judgeAgain looks anew at where jobs may be started, of all that are in memory, and takes those up that may be started elsewhere
// than before. Of a hundred thousand that wait most are alike: each kind is judged once.
func (si *site) judgeAgain() {
	type outcome struct {
		asked *sharedAsk // instead; nil: they may be started where they might
	}
	type moving struct {
		id int64
		e  *entry
		*outcome
	}
	known := map[judged]*outcome{}
	var moved []moving
	var last judged // most come after one of their kind
	var o *outcome
	for _, e := range si.jobs.byID {
		j := e.job
		k := judged{e.asked, j.Partition, j.TimeLimit, j.UID, j.User}
		if o == nil || k != last {
			if o = known[k]; o == nil {
				o = &outcome{}
				if inText(si.partitions.startsIn(j)) != e.asked.key.partition {
					o.asked = si.specs.ask(j)
				}
				known[k] = o
			}
			last = k
		}
		if o.asked != nil {
			moved = append(moved, moving{j.ID, e, o})
		}
	}
	slices.SortFunc(moved, func(a, b moving) int { return cmp.Compare(a.id, b.id) })
	for _, m := range moved {
		m.asked.jobs++
		si.specs.dropAsk(m.e.asked)
		m.e.asked = m.asked
		if blocked(m.e.job) {
			si.queue.touch(m.e)
		}
	}
	for _, o := range known {
		if o.asked != nil {
			si.specs.dropAsk(o.asked)
		}
	}
}
