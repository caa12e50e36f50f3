package gang

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
)

// Partitions are what the configuration says and what was made of them at run time. A change is
// kept with what the configuration said then: as long as it says so the change holds, and when
// it was edited since, the configuration does, for it is the newer word.

// PutPartition makes a partition, or (with Old) changes the one of that name.
type PutPartition struct {
	Ask api.PartitionRequest
	Old bool
	By  string
}

// DropPartition takes one away.
type DropPartition struct{ Name, By string }

// ResetPartitions makes what is configured hold again: partitions, and the features of nodes. A
// partition that was made at run time goes too, unless jobs are of it.
type ResetPartitions struct{ By string }

func (PutPartition) event()    {}
func (DropPartition) event()   {}
func (ResetPartitions) event() {}

// partitions are what the site knows of them, and by whom they may be used; where it was told
// of none jobs and nodes stay as they come.
type partitions struct {
	clock *clock
	nodes *nodes

	file    []api.Partition
	changes map[string]*api.PartitionChange
	all     []api.Partition     // that hold, immutable
	groups  map[uint32][]string // those named by partitions that users are of, as far as it was told

	dirty map[string]*api.PartitionChange // that changed, nil for one that is gone
	moved bool                            // groups did since the last Take
}

// list are those that hold.
func (ps *partitions) list() []api.Partition { return ps.all }

// changed are what was made of them at run time, by name.
func (ps *partitions) changed() []api.PartitionChange {
	var out []api.PartitionChange
	for _, name := range slices.Sorted(maps.Keys(ps.changes)) {
		out = append(out, *ps.changes[name])
	}
	return out
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

// configured is what the configuration says of a partition, nil: nothing.
func (ps *partitions) configured(name string) *api.Partition {
	if i := slices.IndexFunc(ps.file, func(p api.Partition) bool { return p.Name == name }); i >= 0 {
		p := ps.file[i]
		return &p
	}
	return nil
}

func (ps *partitions) find(name string) *api.Partition {
	if i := slices.IndexFunc(ps.all, func(p api.Partition) bool { return p.Name == name }); i >= 0 {
		return &ps.all[i]
	}
	return nil
}

func (ps *partitions) forget(name string) {
	delete(ps.changes, name)
	ps.dirty[name] = nil
}

func (ps *partitions) set(name string, p *api.Partition, by string) {
	file := ps.configured(name)
	if reflect.DeepEqual(p, file) { // as configured, or neither there nor here
		ps.forget(name)
		return
	}
	c := &api.PartitionChange{Name: name, Partition: p, File: file, By: by, Time: ps.clock.now.Wall}
	ps.changes[name], ps.dirty[name] = c, c
}

// movePartitions changes them, and with them what nodes are in and what jobs ask for.
func (si *site) movePartitions(change func()) {
	before := si.partitions.all
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
	moved := map[string]bool{} // those of another tier, by which their jobs are ordered
	for i := range si.partitions.all {
		p := &si.partitions.all[i]
		if k := slices.IndexFunc(before, func(o api.Partition) bool { return o.Name == p.Name }); k < 0 || before[k].Tier != p.Tier {
			moved[p.Name] = true
		}
	}
	si.judgeAgain(func(j *Job) bool {
		for name := range strings.SplitSeq(j.Partition, ",") {
			if moved[name] {
				return true
			}
		}
		return false
	})
	si.nodes.room = true
}

// of names the partitions of a node; one without nodes has them all. told is what to
// take where no partitions are known.
func (ps *partitions) of(node string, told []string) []string {
	if ps.file == nil {
		return told
	}
	var out []string
	for i := range ps.all {
		if p := &ps.all[i]; len(p.Nodes) == 0 || slices.Contains(p.Nodes, node) {
			out = append(out, p.Name)
		}
	}
	return out
}

func (si *site) putPartition(ev PutPartition) Outcome {
	name := ev.Ask.Name
	old := si.partitions.find(name)
	switch {
	case old == nil && ev.Old:
		return refused(si.partitions.unknown(name))
	case old != nil && !ev.Old:
		return refused(conflict("gctl partition update "+name+" changes it", "there is a partition %s already", name).About(api.ReasonPartition, name))
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

// fill takes what a request says, and refuses what can not be.
func (ps *partitions) fill(p *api.Partition, r *api.PartitionRequest) *api.Error {
	bad := func(format string, args ...any) *api.Error { return api.Errorf(api.CodeInvalid, format, args...) }
	if r.Nodes != nil {
		p.Nodes = namesOrAll(*r.Nodes)
		for _, n := range p.Nodes {
			if ps.nodes.byName[n] == nil {
				return ps.nodes.unknown(n)
			}
		}
	}
	if r.Default != nil {
		p.Default = *r.Default
	}
	if r.DefaultTime != nil {
		p.DefaultTime = *r.DefaultTime
	}
	if r.MaxTime != nil {
		p.MaxTime = *r.MaxTime
	}
	if r.Tier != nil {
		p.Tier = *r.Tier
	}
	if r.State != nil {
		p.State = *r.State
	}
	for _, list := range []struct {
		to   *[]string
		from *[]string
	}{{&p.AllowUsers, r.AllowUsers}, {&p.AllowGroups, r.AllowGroups}, {&p.AllowAccounts, r.AllowAccounts}, {&p.DenyAccounts, r.DenyAccounts}} {
		if list.from != nil {
			*list.to = namesOrAll(*list.from)
		}
	}
	if r.MinNodes != nil {
		p.MinNodes = *r.MinNodes
	}
	if r.MaxNodes != nil {
		p.MaxNodes = *r.MaxNodes
	}
	switch p.State {
	case api.PartitionUp, api.PartitionDown, api.PartitionDrain, api.PartitionInactive:
	default:
		return bad("state %q: want up, down, drain or inactive", p.State)
	}
	switch {
	case p.DefaultTime < 0 || p.MaxTime < 0:
		return bad("a time may not be negative")
	case p.MaxTime > 0 && p.DefaultTime > p.MaxTime:
		return bad("the default time %s of partition %s is above its longest, %s", p.DefaultTime, p.Name, p.MaxTime)
	case p.MinNodes < 0 || p.MaxNodes < 0:
		return bad("a number of nodes may not be negative")
	case p.MaxNodes > 0 && p.MinNodes > p.MaxNodes:
		return bad("the fewest nodes of a job in partition %s, %d, are above its most, %d", p.Name, p.MinNodes, p.MaxNodes)
	}
	return nil
}

// namesOrAll is a list of names, nil for all of them.
func namesOrAll(names []string) []string {
	if len(names) == 0 || len(names) == 1 && strings.EqualFold(names[0], "ALL") {
		return nil
	}
	return slices.Clone(names)
}

// partitionText says a partition in one line.
func partitionText(p *api.Partition) string {
	nodes, state := "every node", "up"
	if len(p.Nodes) > 0 {
		nodes = hostlist.Compress(p.Nodes)
	}
	if p.State != api.PartitionUp {
		state = string(p.State)
	}
	limit := func(d time.Duration) string {
		if d == 0 {
			return "unlimited"
		}
		return d.String()
	}
	text := fmt.Sprintf("%s: %s, %s, tier %d, time limit %s, at most %s", p.Name, nodes, state, p.Tier, limit(p.DefaultTime), limit(p.MaxTime))
	for _, l := range []struct {
		what string
		of   []string
	}{{"users", p.AllowUsers}, {"groups", p.AllowGroups}, {"accounts", p.AllowAccounts}, {"not for accounts", p.DenyAccounts}} {
		if len(l.of) > 0 {
			text += ", " + l.what + " " + strings.Join(l.of, ",")
		}
	}
	switch {
	case p.MaxNodes > 0:
		text += fmt.Sprintf(", %d to %d nodes", max(1, p.MinNodes), p.MaxNodes)
	case p.MinNodes > 0:
		text += fmt.Sprintf(", at least %s", api.Count(p.MinNodes, "node"))
	}
	if p.Default {
		text += ", default"
	}
	return text
}

func (ps *partitions) unknown(name string) *api.Error {
	var known []string
	for i := range ps.all {
		known = append(known, ps.all[i].Name)
	}
	e := api.Errorf(api.CodeNotFound, "no partition %q", name).About(api.ReasonPartition, name)
	e.Hint = nearest.Hint(name, known, "partitions here: "+strings.Join(known, ", "))
	return e
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

func (si *site) dropPartition(ev DropPartition) Outcome {
	p := si.partitions.find(ev.Name)
	if p == nil {
		return refused(si.partitions.unknown(ev.Name))
	}
	if id := si.jobIn(ev.Name); id != 0 {
		return refused(conflict("gqueue -p "+ev.Name+" lists them; gctl partition update "+ev.Name+" --state=inactive takes no more", "job %d is of partition %s",
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
