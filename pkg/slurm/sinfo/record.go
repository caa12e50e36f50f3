package sinfo

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
	"gangd/pkg/wire/people"
)

// record is one line: nodes that are alike, in a partition.
type record struct {
	part  *api.Partition
	order int // of the partition in the configuration
	nodes []*api.Node
	view  *jobfield.View
	// preempt is who gives way, of the site.
	preempt string
}

// first is a node that stands for all.
func (r *record) first() *api.Node {
	if len(r.nodes) == 0 {
		return nil
	}
	return r.nodes[0]
}

func (r *record) has(n *api.Node) bool {
	return slices.ContainsFunc(r.nodes, func(m *api.Node) bool { return m.Name == n.Name })
}

func (r *record) names() []string {
	out := make([]string, len(r.nodes))
	for i, n := range r.nodes {
		out[i] = n.Name
	}
	return out
}

// uses counts nodes (or CPUs) that are allocated, idle, other.
func (r *record) uses(cpus bool) (a, i, o int) {
	for _, n := range r.nodes {
		used, total := 0, 1
		if n.CPUsUsed > 0 || len(n.Jobs) > 0 {
			used = 1
		}
		if cpus {
			used, total = UsedCPUs(n), n.CPUs
		}
		x, y, z := stateOf(n).use(used, total)
		a, i, o = a+x, i+y, o+z
	}
	return a, i, o
}

func counts(n ...int) string {
	out := strconv.Itoa(n[0])
	for _, v := range n[1:] {
		out += "/" + strconv.Itoa(v)
	}
	return out
}

// least writes the smallest figure of the nodes, with a plus where some have more.
func (r *record) least(get func(*api.Node) int64) string {
	low, high := r.span(get)
	if high > low {
		return strconv.FormatInt(low, 10) + "+"
	}
	return strconv.FormatInt(low, 10)
}

// span is the smallest and the largest figure of the nodes.
func (r *record) span(get func(*api.Node) int64) (low, high int64) {
	for i, n := range r.nodes {
		v := get(n)
		if i == 0 {
			low = v
		}
		low, high = min(low, v), max(high, v)
	}
	return low, high
}

// ofNode is a field of what the nodes of a line have in common.
func ofNode(none string, get func(*api.Node) string) func(*record) string {
	return func(r *record) string {
		if n := r.first(); n != nil {
			return get(n)
		}
		return none
	}
}

func (r *record) partition() string { return r.part.Name }

func (r *record) starred() string {
	if r.part.Default {
		return r.part.Name + "*"
	}
	return r.part.Name
}

// limit writes a partition's time limit.
func limit(d time.Duration, none string) string {
	if d == 0 {
		return none
	}
	return jobfield.Elapsed(d)
}

// Cards is GRES: how many cards a node has, and usedCards how many are taken.
func Cards(n *api.Node) string {
	if len(n.Cards) == 0 {
		return "(null)"
	}
	return "gpu:" + strconv.Itoa(len(n.Cards))
}

func usedCards(n *api.Node) string { return "gpu:" + strconv.Itoa(UsedCards(n)) }

// UsedCards is how many of a node's cards jobs have.
func UsedCards(n *api.Node) (used int) {
	for i := range n.Cards {
		if len(n.Cards[i].Jobs) > 0 {
			used++
		}
	}
	return used
}

// reasonOf is why a node is out of service; since when, where that is known.
func reasonOf(n *api.Node) string {
	if s := stateOf(n); !s.drain && s.base != "down" && !s.mute {
		return "none"
	}
	return cmp.Or(slurm.NodeReason(n), map[bool]string{true: "Not responding", false: "none"}[stateOf(n).mute])
}

func reasonTime(r *record) string {
	n := r.first()
	if n == nil || reasonSince(n).IsZero() {
		return "Unknown"
	}
	if r.view.Stamp != nil {
		return r.view.Stamp(reasonSince(n))
	}
	return jobfield.Stamp(reasonSince(n))
}

// reasonSince is when a node went out of service; zero: not known, or it is in it.
func reasonSince(n *api.Node) time.Time {
	if _, at := n.Drained(); !at.IsZero() {
		return at
	}
	if reasonOf(n) == "none" {
		return time.Time{}
	}
	return n.LostSince
}

// reasonUser is who took a node out of service, reasonUserLong with the number.
func reasonUser(n *api.Node) string {
	who, _ := n.Drained()
	return cmp.Or(who, "Unknown")
}

func reasonUserLong(n *api.Node) string {
	who := reasonUser(n)
	if u, err := people.Here.ByName(context.Background(), who); err == nil {
		return fmt.Sprintf("%s(%d)", who, u.UID)
	}
	return who
}

// Features is the names that a constraint may use.
func Features(n *api.Node) string { return jobfield.OrNull(strings.Join(n.Features, ",")) }

// group puts nodes into lines: those of one line are alike in every field of it that tells
// nodes or partitions apart.
func group(parts []api.Partition, in func(*api.Partition) []*api.Node, line *column.Line[*record], view *jobfield.View,
	how grouping) []*record {
	var out []*record
	at := map[string]*record{}
	named := slices.ContainsFunc(line.Columns, func(c column.Column[*record]) bool { return c.Letter == 'P' || c.Letter == 'R' })
	for i := range parts {
		p := &parts[i]
		nodes := in(p)
		for _, n := range nodes {
			r := &record{part: p, order: i, nodes: []*api.Node{n}, view: view}
			key := how.key(r, line)
			if have := at[key]; have != nil {
				if !have.has(n) {
					have.nodes = append(have.nodes, n)
				}
				continue
			}
			at[key] = r
			out = append(out, r)
		}
		if len(nodes) == 0 && !how.each && named {
			out = append(out, &record{part: p, order: i, view: view})
		}
	}
	for _, r := range out {
		slices.SortFunc(r.nodes, func(a, b *api.Node) int { return hostlist.Compare(a.Name, b.Name) })
	}
	return out
}

// grouping is how nodes are put together.
type grouping struct {
	each  bool // not at all: a line for each node
	exact bool // only nodes of the same sizes
}

// key is what must be the same of two nodes for one line.
func (g grouping) key(r *record, line *column.Line[*record]) string {
	key := ""
	if g.each {
		key = r.first().Name + "\n"
	}
	for i := range line.Columns {
		if f := line.Columns[i].Field; tellsApart[f.Names[0]] || g.exact && sizes[f.Names[0]] {
			key += f.Text(r) + "\n"
		}
	}
	return key
}

// sizes is the fields that split lines with --exact alone.
var sizes = map[string]bool{"cpus": true, "disk": true, "memory": true, "weight": true, "sockets": true, "socketcorethread": true,
	"allocmem": true}

// tellsApart is the fields that split lines; sizes do not: their least is shown.
var tellsApart = map[string]bool{"available": true, "features_act": true, "features": true, "groups": true, "oversubscribe": true,
	"time": true, "nodehost": true, "nodeaddr": true, "prioritytier": true, "root": true, "size": true, "statecompact": true,
	"user": true, "version": true, "maxcpuspernode": true, "reason": true, "gres": true, "gresused": true, "timestamp": true,
	"defaulttime": true, "preemptmode": true, "partition": true, "partitionname": true, "allocnodes": true, "statelong": true,
	"userlong": true, "statecomplete": true, "port": true}

// hostname is the name that a node's machine has, as far as it is known: its own.
func hostname(n *api.Node) string { return n.Name }

// text of one of a list of nodes, each once.
func listed(get func(*api.Node) string) func(*record) string {
	return func(r *record) string {
		var out []string
		for _, n := range r.nodes {
			if s := get(n); s != "" && !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return hostlist.Compress(out)
	}
}
