package sinfo

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
	"gangd/pkg/slurm"
)

type field = column.Field[*record]

func text(letter byte, name, head string, get func(*record) string, also ...string) field {
	return field{Letter: letter, Names: append([]string{name}, also...), Head: head, Text: get}
}

// wide is a list of nodes, which is not cut on the right, nor its heading.
func wide(letter byte, name, head string, get func(*record) string) field {
	return field{Letter: letter, Names: []string{name}, Head: head, Text: get, Wide: true, WideHead: true}
}

func constant(letter byte, name, head, s string, also ...string) field {
	return text(letter, name, head, func(*record) string { return s }, also...)
}

// figure is a size of nodes, ordered as a number.
func figure(letter byte, name, head string, get func(*api.Node) int64) field {
	return field{Letter: letter, Names: []string{name}, Head: head, Text: func(r *record) string { return r.least(get) },
		Compare: func(a, b *record) int { return cmp.Compare(firstOf(a, get), firstOf(b, get)) }}
}

func firstOf(r *record, get func(*api.Node) int64) int64 {
	if n := r.first(); n != nil {
		return get(n)
	}
	return 0
}

func stateNumber(n *api.Node) int64 { return stateOf(n).number() }

// state is a field of the nodes' state, ordered by Slurm's numbers.
func state(letter byte, name, head string, get func(nodeState) string) field {
	return field{Letter: letter, Names: []string{name}, Head: head, Text: ofNode("n/a", func(n *api.Node) string { return get(stateOf(n)) }),
		Compare: func(a, b *record) int { return cmp.Compare(firstOf(a, stateNumber), firstOf(b, stateNumber)) }}
}

func one(*api.Node) int64            { return 1 }
func cpusOf(n *api.Node) int64       { return int64(n.CPUs) }
func memoryOf(n *api.Node) int64     { return n.MemoryBytes >> 20 }
func tmpOf(n *api.Node) int64        { return n.TmpBytes >> 20 }
func memoryUsedOf(n *api.Node) int64 { return n.MemoryUsed >> 20 }

// availability is a partition's state in sinfo's words.
func availability(p *api.Partition) string {
	switch {
	case p == nil || p.State == api.PartitionUp:
		return "up"
	case p.State == api.PartitionInactive:
		return "inact"
	}
	return string(p.State)
}

// jobSize is how many nodes a job may have, as one number where that is one.
func jobSize(p *api.Partition) string {
	least := strconv.Itoa(max(1, p.MinNodes))
	switch {
	case p.MaxNodes == 0:
		return least + "-infinite"
	case p.MaxNodes == max(1, p.MinNodes):
		return least
	}
	return least + "-" + strconv.Itoa(p.MaxNodes)
}

func socketsOf(n *api.Node) int64 { return int64(n.Shape.Sockets) }
func coresOf(n *api.Node) int64   { return int64(n.Shape.Cores) }
func threadsOf(n *api.Node) int64 { return int64(n.Shape.Threads) }

// sct is sockets, cores of a socket, threads of a core.
func sct(n *api.Node) string {
	return fmt.Sprintf("%d:%d:%d", n.Shape.Sockets, n.Shape.Cores, n.Shape.Threads)
}

// fields is sinfo's letters and names.
var fields = column.Set[*record]{Fields: []field{
	text('a', "available", "AVAIL", func(r *record) string { return availability(r.part) }),
	text('b', "features_act", "ACTIVE_FEATURES", ofNode("(null)", Features)),
	figure('c', "cpus", "CPUS", cpusOf),
	figure('d', "disk", "TMP_DISK", tmpOf),
	text('e', "freemem", "FREE_MEM", ofNode("N/A", slurm.FreeMemory)),
	text('f', "features", "AVAIL_FEATURES", ofNode("(null)", Features)),
	text('g', "groups", "GROUPS", func(r *record) string { return cmp.Or(strings.Join(r.part.AllowGroups, ","), "all") }),
	constant('h', "oversubscribe", "OVERSUBSCRIBE", "NO", "share"),
	text('l', "time", "TIMELIMIT", func(r *record) string { return limit(r.part.MaxTime, "infinite") }),
	figure('m', "memory", "MEMORY", memoryOf),
	wide('n', "nodehost", "HOSTNAMES", listed(hostname)),
	wide('o', "nodeaddr", "NODE_ADDR", listed(func(n *api.Node) string { return n.Address })),
	text('p', "prioritytier", "PRIO_TIER", func(r *record) string { return strconv.Itoa(max(r.part.Tier, 1)) }),
	constant('r', "root", "ROOT", "no"),
	text('s', "size", "JOB_SIZE", func(r *record) string { return jobSize(r.part) }),
	state('t', "statecompact", "STATE", nodeState.compact),
	text('u', "user", "USER", ofNode("Unknown", reasonUser)),
	text('v', "version", "VERSION", ofNode("(null)", func(n *api.Node) string { return cmp.Or(n.Version, "(null)") })),
	figure('w', "weight", "WEIGHT", one),
	text('z', "socketcorethread", "S:C:T", ofNode("0:0:0", sct)),
	text('A', "nodeai", "NODES(A/I)", func(r *record) string { a, i, _ := r.uses(false); return counts(a, i) }),
	constant('B', "maxcpuspernode", "MAX_CPUS_PER_NODE", "UNLIMITED"),
	text('C', "cpusstate", "CPUS(A/I/O/T)", func(r *record) string { a, i, o := r.uses(true); return counts(a, i, o, a+i+o) }),
	{Letter: 'D', Names: []string{"nodes"}, Head: "NODES", Text: func(r *record) string { return strconv.Itoa(len(r.nodes)) },
		Compare: func(a, b *record) int { return cmp.Compare(len(a.nodes), len(b.nodes)) }},
	text('E', "reason", "REASON", ofNode("none", reasonOf)),
	text('F', "nodeaiot", "NODES(A/I/O/T)", func(r *record) string { a, i, o := r.uses(false); return counts(a, i, o, a+i+o) }),
	text('G', "gres", "GRES", ofNode("(null)", Cards)),
	text('H', "timestamp", "TIMESTAMP", reasonTime),
	constant('I', "priorityjobfactor", "PRIO_JOB_FACTOR", "1"),
	text('L', "defaulttime", "DEFAULTTIME", func(r *record) string { return limit(r.part.DefaultTime, "n/a") }),
	text('M', "preemptmode", "PREEMPT_MODE", func(r *record) string { return slurm.PreemptMode(r.preempt) }),
	{Letter: 'N', Names: []string{"nodelist"}, Head: "NODELIST", Wide: true, WideHead: true,
		Text:    func(r *record) string { return hostlist.Compress(r.names()) },
		Compare: func(a, b *record) int { return hostlist.Compare(firstName(a), firstName(b)) }},
	text('O', "cpusload", "CPU_LOAD", ofNode("N/A", slurm.Load)),
	text('P', "partition", "PARTITION", (*record).starred),
	text('R', "partitionname", "PARTITION", (*record).partition),
	constant('S', "allocnodes", "ALLOCNODES", "all"),
	state('T', "statelong", "STATE", nodeState.long),
	text('U', "userlong", "USER", ofNode("Unknown", reasonUserLong)),
	constant('V', "cluster", "CLUSTER", "N/A"),
	figure('X', "sockets", "SOCKETS", socketsOf),
	figure('Y', "cores", "CORES", coresOf),
	figure('Z', "threads", "THREADS", threadsOf),

	figure(0, "allocmem", "ALLOCMEM", memoryUsedOf),
	constant(0, "comment", "COMMENT", "(null)"),
	constant(0, "extra", "EXTRA", "(null)"),
	text(0, "gresused", "GRES_USED", ofNode("gpu:0", usedCards)),
	constant(0, "port", "PORT", "0"),
	state(0, "statecomplete", "STATECOMPLETE", nodeState.long),
}}

func firstName(r *record) string {
	if n := r.first(); n != nil {
		return n.Name
	}
	return ""
}
