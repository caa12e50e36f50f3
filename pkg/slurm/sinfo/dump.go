package sinfo

import (
	"slices"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/hostlist"
	"gangd/pkg/slurm/document"
)

// dump is --json and --yaml: all nodes, whatever else is chosen, as sinfo does.
func (s *sinfo) dump(reply *api.NodesReply) error {
	slices.SortFunc(reply.Nodes, func(a, b api.Node) int { return hostlist.Compare(a.Name, b.Name) })
	var list []document.Object
	for i := range reply.Nodes {
		list = append(list, nodeObject(&reply.Nodes[i]))
	}
	o := document.Envelope("nodes", list)
	return document.Write(s.Out, o, s.yaml)
}

// nodeObject is a node with the members of v0.0.38, in its order.
func nodeObject(n *api.Node) document.Object {
	st := stateOf(n)
	flags := []any{}
	if st.drain {
		flags = append(flags, "DRAIN")
	}
	if st.mute {
		flags = append(flags, "NOT_RESPONDING")
	}
	base := st.base
	switch base {
	case "reserved":
		base, flags = "idle", append(flags, "RESERVED")
	case "maint":
		base, flags = "idle", append(flags, "MAINTENANCE")
	}
	reason := reasonOf(n)
	if reason == "none" {
		reason = ""
	}
	var by any
	if who, _ := n.Drained(); who != "" {
		by = who
	}
	gres, resv := cards(n), "cpu="+strconv.Itoa(n.CPUs)+",mem="+strconv.FormatInt(memoryOf(n), 10)+"M,billing="+strconv.Itoa(n.CPUs)
	if gres == "(null)" {
		gres = ""
	} else {
		resv += ",gres/gpu=" + strconv.Itoa(len(n.Cards))
	}
	used := ""
	if usedCPUs(n) > 0 {
		used = "cpu=" + strconv.Itoa(usedCPUs(n))
	}
	return document.Of("architecture", "", "burstbuffer_network_address", "", "boards", 1, "boot_time", 0, "comment", "", "cores", 1,
		"cpu_binding", 0, "cpu_load", 0, "extra", "", "free_memory", max(memoryOf(n)-memoryUsedOf(n), 0), "cpus", n.CPUs, "last_busy", document.Time(n.LastSeen),
		"features", joined(n.Features), "active_features", joined(n.Features), "gres", gres, "gres_drained", "N/A", "gres_used", usedCards(n),
		"mcs_label", "", "name", n.Name, "next_state_after_reboot", "invalid", "address", n.Address, "hostname", n.Name,
		"state", base, "state_flags", flags, "next_state_after_reboot_flags", []any{}, "operating_system", "", "owner", nil,
		"partitions", document.Texts(n.Partitions), "port", 0, "real_memory", memoryOf(n), "reason", reason, "reason_changed_at", document.Time(reasonSince(n)),
		"reason_set_by_user", by, "slurmd_start_time", 0, "sockets", n.CPUs, "threads", 1, "temporary_disk", 0, "weight", 1, "tres", resv,
		"slurmd_version", n.Version, "alloc_memory", memoryUsedOf(n), "alloc_cpus", usedCPUs(n), "idle_cpus", max(n.CPUs-usedCPUs(n), 0),
		"tres_used", used, "tres_weighted", float64(usedCPUs(n)))
}

func joined(words []string) string {
	out := ""
	for i, w := range words {
		if i > 0 {
			out += ","
		}
		out += w
	}
	return out
}
