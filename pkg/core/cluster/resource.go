package cluster

import (
	"cmp"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// Resource is one of the things that a node has an amount of and that members take amounts of, whichever of it they
// get. Cards are no such thing: each has a name, and VRAM of its own.
type Resource int

// The resources, in the order in which people think of them.
const (
	CPUs Resource = iota
	Memory
	Tmp // temporary space
	resources
)

// Amounts is so much of each resource, by [Resource]: a number of CPUs, or bytes.
type Amounts [resources]int64

// String is what there is of each, where there is any: "8 CPUs, 64G memory".
func (a Amounts) String() string {
	var parts []string
	for r, v := range a {
		if v != 0 {
			parts = append(parts, Resources[r].Text(v))
		}
	}
	return strings.Join(parts, ", ")
}

// Resources says of each resource what is its own. Whatever counts, compares or tells amounts goes over this table, so
// that a further resource is a row here, beside where its figures come from.
var Resources = [resources]ResourceRow{
	CPUs: {
		Noun: "CPUs", One: "CPU",
		Rank: Figure{"cpus-per-task", func(s *api.Spec) int64 { return int64(max(1, s.CPUsPerRank)) },
			func(s *api.Spec, v int64) { s.CPUsPerRank = int(v) }},
		Total: func(h *api.Hello) int64 { return int64(h.CPUs) },
		Show:  func(n *api.Node, total, used int64) { n.CPUs, n.CPUsUsed = int(total), int(used) },
	},
	Memory: {
		Noun:    "memory",
		Rank:    Figure{"mem-per-rank", func(s *api.Spec) int64 { return s.MemoryPerRank }, func(s *api.Spec, v int64) { s.MemoryPerRank = v }},
		Member:  Figure{"mem", func(s *api.Spec) int64 { return s.MemoryPerNode }, func(s *api.Spec, v int64) { s.MemoryPerNode = v }},
		Total:   func(h *api.Hello) int64 { return h.MemoryBytes },
		Show:    func(n *api.Node, total, used int64) { n.MemoryBytes, n.MemoryUsed = total, used },
		TooMuch: api.ReasonMemory,
	},
	Tmp: {
		Noun: "temporary space", Common: true,
		Member: Figure{"tmp", func(s *api.Spec) int64 { return s.TmpPerNode }, func(s *api.Spec, v int64) { s.TmpPerNode = v }},
		Total:  func(h *api.Hello) int64 { return h.TmpBytes },
		Each:   func(h *api.Hello) int64 { return h.TmpEach },
		Show:   func(n *api.Node, total, used int64) { n.TmpBytes, n.TmpUsed = total, used },
	},
}

// ResourceRow is a row of [Resources].
type ResourceRow struct {
	Noun string // what there is so much of
	One  string // what one of it is called, where it is counted; empty: it is measured in bytes
	// Rank and Member are the figures that are asked for by rank, and by member; without an option there are none.
	Rank, Member Figure
	// Common: the parts of a member have it together. What they ask for is not added up.
	Common bool
	// Total is what a node has, and Each what every member takes there that asks for none of it; nil: nothing.
	Total, Each func(*api.Hello) int64
	// Show writes down how much a node has, and how much of it is granted.
	Show func(n *api.Node, total, used int64)
	// TooMuch is the reason of a refusal where no node has enough.
	TooMuch api.Reason
}

// Figure is one figure of an ask.
type Figure struct {
	Option string // the long option that says it, without dashes
	Of     func(*api.Spec) int64
	Set    func(*api.Spec, int64)
}

// In is the figure in a spec; 0: none.
func (f *Figure) In(s *api.Spec) int64 {
	if f.Of == nil {
		return 0
	}
	return f.Of(s)
}

// Figure writes an amount alone: 8, 40G.
func (r *ResourceRow) Figure(v int64) string {
	if r.One != "" {
		return strconv.FormatInt(v, 10)
	}
	return Size(v)
}

// Text writes an amount with what it is of: 1 CPU, 40G memory.
func (r *ResourceRow) Text(v int64) string {
	if r.One != "" {
		return api.Count(int(v), r.One)
	}
	return Size(v) + " " + r.Noun
}

// HasOf is what a node has by what it says of itself, and EachOf what each of its members takes at least.
func HasOf(h *api.Hello) (has, each Amounts) {
	for r := range Resources {
		has[r] = Resources[r].Total(h)
		if f := Resources[r].Each; f != nil {
			each[r] = f(h)
		}
	}
	return has, each
}

// AmountsOf is what each rank and each member of a spec asks for.
func AmountsOf(s *api.Spec) (rank, member Amounts) {
	for r := range Resources {
		rank[r], member[r] = Resources[r].Rank.In(s), Resources[r].Member.In(s)
	}
	return rank, member
}

// One is what a member of one rank asks for.
func (d *Need) One() (out Amounts) {
	for r := range out {
		out[r] = d.PerRank[r] + d.PerMember[r]
	}
	return out
}

// ranksIn is how many ranks, at most so many, one member can have of an amount that is free.
func (d *Need) ranksIn(free, each *Amounts, most int) int {
	k := int64(most)
	for r := range free {
		rank, member := d.PerRank[r], d.PerMember[r]
		if rank == 0 {
			// A figure of zero takes nothing, so it fits even where more is granted than there is.
			if member = cmp.Or(member, each[r]); member > free[r] && member > 0 {
				return 0
			}
			continue
		}
		left := free[r] - member
		if left < rank {
			return 0
		}
		k = min(k, left/rank)
	}
	return int(k)
}

// Free is what is not granted of a resource; negative when the node shrank under its grants.
func (n *Node) Free(r Resource) int64 { return n.Has[r] - n.use().taken[r] }

// Used is what is granted of it.
func (n *Node) Used(r Resource) int64 { return n.use().taken[r] }

// CPUs is how many there are.
func (n *Node) CPUs() int { return int(n.Has[CPUs]) }

// FreeCPUs is how many are not granted.
func (n *Node) FreeCPUs() int { return int(n.Free(CPUs)) }

// free is what sums leave of a node.
func (n *Node) free(u *usage) (out Amounts) {
	for r := range out {
		out[r] = n.Has[r] - u.taken[r]
	}
	return out
}
