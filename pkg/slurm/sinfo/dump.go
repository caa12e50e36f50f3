package sinfo

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/slurm/document"
)

// dump is --json and --yaml. Of 22.05 it is all nodes, whatever else is chosen; later ones write the
// lines of the table, in which nodes with other cards taken are told apart.
func (s *sinfo) dump(ctx context.Context, c *client.Client, reply *api.NodesReply) error {
	style, err := s.document.Style(ctx, c, s.Streams)
	if err != nil {
		return err
	}
	style.Command = append([]string{"sinfo"}, s.args...)
	var list []document.Object
	if style.Parser < document.V40 {
		slices.SortFunc(reply.Nodes, func(a, b api.Node) int { return hostlist.Compare(a.Name, b.Name) })
		for i := range reply.Nodes {
			list = append(list, NodeObject(&reply.Nodes[i], style.Parser))
		}
		return style.Write(s.Out, style.Envelope("nodes", list, time.Time{}))
	}
	line := s.line(reply)
	line.Columns = append(line.Columns, fields.Names("gresused", func(string) {}).Columns...)
	for _, r := range s.records(reply, &line) {
		list = append(list, r.object(reply, style.Parser))
	}
	return style.Write(s.Out, style.Envelope("sinfo", list, time.Time{}))
}

// object is one line with the members of a data parser from 40 on.
func (r *record) object(reply *api.NodesReply, p document.Parser) document.Object {
	var state document.Flags
	gres, used, feature, reason, by, since := "", "", "", "", "", int64(0)
	if n := r.first(); n != nil {
		state, gres, used = StateFlags(n), orEmpty(Cards(n)), usedCards(n)
		feature = strings.Join(n.Features, ",")
		if reason = reasonOf(n); reason == "none" {
			reason = ""
		}
		by, _ = n.Drained()
		since = document.Time(reasonSince(n))
	}
	nodes := func(n ...int) document.Object {
		return document.Of("allocated", n[0], "idle", n[1], "other", n[2], "total", n[0]+n[1]+n[2])
	}
	between := func(get func(*api.Node) int64) document.Object {
		low, high := r.span(get)
		return document.Of("minimum", low, "maximum", high)
	}
	same := func(v int64) document.Object { return between(func(*api.Node) int64 { return v }) }
	a, i, o := r.uses(false)
	names := document.Texts(r.names())
	ofNodes := append(nodes(a, i, o), document.Of("hostnames", names, "addresses",
		listOf(r.nodes, func(n *api.Node) string { return n.Address }), "nodes", slices.Clone(names))...)
	a, i, o = r.uses(true)
	cpus := append(nodes(a, i, o), between(func(n *api.Node) int64 { return int64(n.CPUs) })...)
	cpus = append(cpus, document.Of("load", between(func(n *api.Node) int64 { return int64(loadOf(n).Hundredths) }), "per_node",
		document.Of("max", document.Infinite{}))...)
	low, high := r.span(func(n *api.Node) int64 { return max(memoryOf(n)-memoryUsedOf(n), 0) })
	allocated := int64(0)
	for _, n := range r.nodes {
		allocated += memoryUsedOf(n)
	}
	memory := append(between(memoryOf), document.Of("free", document.Of("minimum", document.Number{Value: low}, "maximum",
		document.Number{Value: high}), "allocated", allocated)...)
	return p.Members("port", 0, "node", document.Of("state", state), "nodes", ofNodes, "cpus", cpus,
		"sockets", between(socketsOf), "cores", between(coresOf), "threads", between(threadsOf), "disk", between(tmpOf),
		"memory", memory, "weight", same(1), "features", document.Of("total", feature, "active", feature), "gres",
		document.Of("total", gres, "used", used),
		"cluster", cmdline.Cluster, "comment", "", "extra", "", "reason", document.Of("description", reason, "time", since, "user", by),
		"reservation", "",
		document.Since(document.V42, "resource_spec"), document.Of("cpus", "", "memory", 0),
		"partition", PartitionObject(r.part, reply, p))
}

func listOf(nodes []*api.Node, get func(*api.Node) string) []any {
	var out []string
	for _, n := range nodes {
		out = append(out, get(n))
	}
	return document.Texts(out)
}

func orEmpty(s string) string {
	if s == "(null)" {
		return ""
	}
	return s
}

// StateFlags is a node's state in full: its base, and what is said beside it.
func StateFlags(n *api.Node) document.Flags {
	st := stateOf(n)
	return append(document.Flags{strings.ToUpper(st.base)}, st.flags()...)
}

// flags is what is said beside the base, in Slurm's order.
func (s nodeState) flags() (flags []string) {
	for _, f := range []struct {
		is   bool
		name string
	}{{s.drain, "DRAIN"}, {s.maint, "MAINTENANCE"}, {s.told, "REBOOT_ISSUED"}, {s.asked, "REBOOT_REQUESTED"},
		{s.reserved, "RESERVED"}, {s.mute, "NOT_RESPONDING"}} {
		if f.is {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// PartitionObject is a partition with the members of a data parser from 40 on.
func PartitionObject(part *api.Partition, reply *api.NodesReply, p document.Parser) document.Object {
	none, endless := document.Number{}, document.Infinite{}
	minutes := func(d time.Duration) any {
		if d == 0 {
			return endless
		}
		return document.Number{Value: int64((d + time.Minute - 1) / time.Minute)}
	}
	var names []string
	cpus := 0
	for i := range reply.Nodes {
		if n := &reply.Nodes[i]; slices.Contains(n.Partitions, part.Name) {
			names, cpus = append(names, n.Name), cpus+n.CPUs
		}
	}
	byDefault := any(none)
	if part.DefaultTime > 0 {
		byDefault = minutes(part.DefaultTime)
	}
	mostNodes := any(endless)
	if part.MaxNodes > 0 {
		mostNodes = document.Number{Value: int64(part.MaxNodes)}
	}
	return p.Members(
		"nodes", document.Of("allowed_allocation", "", "configured", hostlist.Compress(names), "total", len(names)),
		"accounts", document.Of("allowed", strings.Join(part.AllowAccounts, ","), "deny", strings.Join(part.DenyAccounts, ",")), "groups",
		document.Of("allowed", strings.Join(part.AllowGroups, ",")), "qos", document.Of("allowed", "", "deny", "", "assigned", ""),
		"alternate", "", "tres", document.Of("billing_weights", "", "configured", ""), "cluster", "",
		document.Since(document.V42, "select_type"), document.Flags{"CPU", "MEMORY"}, "cpus", document.Of("task_binding", 0, "total", cpus),
		"defaults", document.Of("memory_per_cpu", 0, "partition_memory_per_cpu", none, "partition_memory_per_node", document.Number{Value: 0},
			"time", byDefault, "job", ""),
		"grace_time", 0,
		"maximums", document.Of("cpus_per_node", endless, "cpus_per_socket", endless, "memory_per_cpu", 0, "partition_memory_per_cpu", none,
			"partition_memory_per_node", document.Number{Value: 0}, "nodes", mostNodes, "shares", 1,
			"oversubscribe", document.Of("jobs", 1, "flags", []any{}), "time", minutes(part.MaxTime), "over_time_limit", none),
		"minimums", document.Of("nodes", part.MinNodes), "name", part.Name, "node_sets", "",
		"priority", document.Of("job_factor", 1, "tier", part.Tier), "timeouts", document.Of("resume", none, "suspend", none),
		"partition", document.Of("state", document.Flags{strings.ToUpper(cmp.Or(string(part.State), "up"))}), "suspend_time", none)
}

// NodeObject is a node with the members of a data parser.
func NodeObject(n *api.Node, p document.Parser) document.Object {
	st := stateOf(n)
	reason := reasonOf(n)
	if reason == "none" {
		reason = ""
	}
	var by any
	if who, _ := n.Drained(); who != "" {
		by = who
	}
	gres, resv := Cards(n), "cpu="+strconv.Itoa(n.CPUs)+",mem="+strconv.FormatInt(memoryOf(n), 10)+"M,billing="+strconv.Itoa(n.CPUs)
	if gres == "(null)" {
		gres = ""
	} else {
		resv += ",gres/gpu=" + strconv.Itoa(len(n.Cards))
	}
	load := loadOf(n)
	used := ""
	if UsedCPUs(n) > 0 {
		used = "cpu=" + strconv.Itoa(UsedCPUs(n))
	}
	if p >= document.V40 {
		return newNode(n, p, gres, resv, used, reason)
	}
	return document.Of("architecture", "", "burstbuffer_network_address", "", "boards", 1, "boot_time", 0, "comment", "", "cores",
		n.Shape.Cores,
		"cpu_binding", 0, "cpu_load", load.Hundredths, "extra", "", "free_memory", load.FreeBytes>>20, "cpus", n.CPUs, "last_busy",
		document.Time(n.LastSeen),
		"features", strings.Join(n.Features, ","), "active_features", strings.Join(n.Features, ","), "gres", gres, "gres_drained", "N/A",
		"gres_used", usedCards(n),
		"mcs_label", "", "name", n.Name, "next_state_after_reboot", "invalid", "address", n.Address, "hostname", n.Name,
		"state", st.base, "state_flags", document.Texts(st.flags()), "next_state_after_reboot_flags", []any{}, "operating_system", "", "owner",
		nil,
		"partitions", document.Texts(n.Partitions), "port", 0, "real_memory", memoryOf(n), "reason", reason, "reason_changed_at",
		document.Time(reasonSince(n)),
		"reason_set_by_user", by, "slurmd_start_time", 0, "sockets", n.Shape.Sockets, "threads", n.Shape.Threads, "temporary_disk", tmpOf(n),
		"weight", 1, "tres", resv,
		"slurmd_version", n.Version, "alloc_memory", memoryUsedOf(n), "alloc_cpus", UsedCPUs(n), "idle_cpus", max(n.CPUs-UsedCPUs(n), 0),
		"tres_used", used, "tres_weighted", float64(UsedCPUs(n)))
}

func loadOf(n *api.Node) api.NodeLoad {
	if n.Load == nil {
		return api.NodeLoad{}
	}
	return *n.Load
}

// newNode is a node for parsers from 40 on.
func newNode(n *api.Node, p document.Parser, gres, tres, used, reason string) document.Object {
	by, _ := n.Drained()
	load := loadOf(n)
	reservation := ""
	if n.Reservation != nil {
		reservation = n.Reservation.Name
	}
	unknown := document.Number{Value: 0}
	sensors := document.Key{Name: "external_sensors", Since: document.V40, Last: document.V41}
	power := document.Key{Name: "power", Since: document.V40, Last: document.V41}
	return p.Members("architecture", "", "burstbuffer_network_address", "", "boards", 1, "boot_time", unknown, "cluster_name", "", "cores",
		n.Shape.Cores,
		"specialized_cores", 0, "cpu_binding", 0, "cpu_load", load.Hundredths, "free_mem", document.Number{Value: load.FreeBytes >> 20},
		"cpus", n.CPUs, "effective_cpus", n.CPUs, "specialized_cpus", "", "energy", document.Of(), sensors, document.Of(), "extra", "", power,
		document.Of(),
		"features", document.List(n.Features), "active_features", document.List(n.Features), document.Since(document.V42, "gpu_spec"), "",
		"gres", gres, "gres_drained", "N/A", "gres_used", usedCards(n), "instance_id", "", "instance_type", "", "last_busy",
		document.At(n.LastSeen), "mcs_label", "",
		"specialized_memory", 0, "name", n.Name, "next_state_after_reboot", document.Flags{"INVALID"}, "address", n.Address, "hostname",
		hostname(n),
		"state", StateFlags(n), "operating_system", "", "owner", "", "partitions", document.List(n.Partitions), "port", 0, "real_memory",
		memoryOf(n),
		document.Since(document.V42, "res_cores_per_gpu"), 0, "comment", "", "reason", reason, "reason_changed_at", document.At(reasonSince(n)),
		"reason_set_by_user", by,
		"resume_after", document.Number{}, "reservation", reservation, "alloc_memory", memoryUsedOf(n), "alloc_cpus", UsedCPUs(n),
		"alloc_idle_cpus", max(n.CPUs-UsedCPUs(n), 0), "tres_used", used, "tres_weighted", float64(UsedCPUs(n)), "slurmd_start_time", unknown,
		"sockets", n.Shape.Sockets, "threads", n.Shape.Threads, "temporary_disk", tmpOf(n), "weight", 1, "tres", tres, "version", n.Version)
}
