package gang

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
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

// Reconfigure has the world go by another configuration, all of it from this step on. Text says what is otherwise.
type Reconfigure struct {
	Settings   api.Settings
	Partitions []api.Partition
	Paths      map[string]string // see [World.SetPaths]
	Text       string
}

func (Reconfigure) event()     {}
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

// changed are what was made of them at run time, by name.
func (ps *partitions) changed() []api.PartitionChange {
	var out []api.PartitionChange
	for _, name := range slices.Sorted(maps.Keys(ps.changes)) {
		out = append(out, *ps.changes[name])
	}
	return out
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
		return bad("the default time %s of partition %s is above its longest, %s", when.Words(p.DefaultTime), p.Name, when.Words(p.MaxTime))
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
		return when.Words(d)
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
