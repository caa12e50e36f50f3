package scontrol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/tres"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sinfo"
)

func (c *call) showNode(entity, id string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_nodes error", err)
	}
	c.records(len(reply.Nodes))
	slices.SortFunc(reply.Nodes, func(a, b api.Node) int { return hostlist.Compare(a.Name, b.Name) })
	want := []string{}
	if id != "" {
		if want, err = hostlist.Expand(id); err != nil {
			fmt.Fprintf(c.Out, "Node %s not found\n", id)
			return 1
		}
	}
	status := 0
	for i := range reply.Nodes {
		n := &reply.Nodes[i]
		if id == "" || slices.Contains(want, n.Name) {
			c.record(nodeLines(n), false)
			want = slices.DeleteFunc(want, func(w string) bool { return w == n.Name })
		}
	}
	for _, w := range want {
		fmt.Fprintf(c.Out, "Node %s not found\n", w)
		status = 1
	}
	if id == "" && len(reply.Nodes) == 0 {
		fmt.Fprintln(c.Out, "No nodes in the system")
	}
	return status
}

func nodeLines(n *api.Node) []string {
	cpus := sinfo.UsedCPUs(n)
	used := tres.Amount{CPUs: int64(cpus), Memory: n.MemoryUsed, GPUs: int64(sinfo.UsedCards(n))}
	has := tres.Amount{CPUs: int64(n.CPUs), Memory: n.MemoryBytes, GPUs: int64(len(n.Cards)), Billing: true}
	usedText := ""
	if cpus > 0 {
		usedText = used.InOrder()
	}
	lines := []string{
		fmt.Sprintf("NodeName=%s CoresPerSocket=%d ", n.Name, n.Shape.Cores),
		fmt.Sprintf("CPUAlloc=%d CPUEfctv=%d CPUTot=%d CPULoad=%s", cpus, n.CPUs, n.CPUs, slurm.Load(n)),
		"AvailableFeatures=" + sinfo.Features(n),
		"ActiveFeatures=" + sinfo.Features(n),
		"Gres=" + sinfo.Cards(n),
		fmt.Sprintf("NodeAddr=%s NodeHostName=%s Version=%s", cmp.Or(n.Address, n.Name), n.Name, cmp.Or(n.Version, "(null)")),
		fmt.Sprintf("RealMemory=%d AllocMem=%d FreeMem=%s Sockets=%d Boards=1", n.MemoryBytes>>20, n.MemoryUsed>>20, slurm.FreeMemory(n),
			n.Shape.Sockets),
		fmt.Sprintf("State=%s ThreadsPerCore=%d TmpDisk=%d Weight=1 Owner=N/A MCS_label=N/A", strings.Join(sinfo.StateFlags(n), "+"),
			n.Shape.Threads, n.TmpBytes>>20),
		"Partitions=" + strings.Join(n.Partitions, ",") + " ",
		"BootTime=None SlurmdStartTime=None",
		"LastBusyTime=Unknown",
		"CfgTRES=" + has.InOrder(),
		"AllocTRES=" + usedText,
		"CapWatts=n/a",
		"CurrentWatts=0 AveWatts=0",
		"ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s",
	}
	if reason := slurm.NodeReason(n); reason != "" {
		line := "Reason=" + reason
		if user, at := n.Drained(); user != "" {
			line += fmt.Sprintf(" [%s@%s]", user, slurm.Stamp(at, "Unknown"))
		}
		lines = append(lines, line)
	}
	return lines
}

func (c *call) showPartition(entity, id string) int {
	reply, err := c.client.Nodes(c.ctx)
	if err != nil {
		return c.failed("slurm_load_partitions error", err)
	}
	c.records(len(reply.Partitions))
	found := false
	for i := range reply.Partitions {
		p := &reply.Partitions[i]
		if id == "" || p.Name == id {
			found = true
			c.record(partitionLines(p, reply), false)
		}
	}
	switch {
	case found:
		return 0
	case id == "":
		fmt.Fprintln(c.Out, "No partitions in the system")
		return 0
	}
	fmt.Fprintf(c.Out, "Partition %s not found\n", id)
	return 1
}

func partitionLines(p *api.Partition, reply *api.NodesReply) []string {
	var names []string
	has := tres.Amount{Billing: true}
	for i := range reply.Nodes {
		n := &reply.Nodes[i]
		if !slices.Contains(n.Partitions, p.Name) {
			continue
		}
		names = append(names, n.Name)
		has.CPUs += int64(n.CPUs)
		has.Memory += n.MemoryBytes
		has.GPUs += int64(len(n.Cards))
		has.Nodes++
	}
	isDefault := "NO"
	if p.Default {
		isDefault = "YES"
	}
	defaultTime := "NONE"
	if p.DefaultTime > 0 {
		defaultTime = when.Span(p.DefaultTime)
	}
	lines := []string{
		"PartitionName=" + p.Name,
		fmt.Sprintf("AllowGroups=%s %s AllowQos=ALL", orAll(p.AllowGroups), accountsOf(p)),
		fmt.Sprintf("AllocNodes=ALL Default=%s QoS=N/A", isDefault),
		fmt.Sprintf("DefaultTime=%s DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO", defaultTime),
		fmt.Sprintf("MaxNodes=%s MaxTime=%s MinNodes=%d LLN=NO MaxCPUsPerNode=UNLIMITED", orUnlimited(p.MaxNodes),
			when.Limit(int64(p.MaxTime/time.Second)), p.MinNodes),
		"Nodes=" + jobfield.OrNull(hostlist.Compress(names)),
		fmt.Sprintf("PriorityJobFactor=1 PriorityTier=%d RootOnly=NO ReqResv=NO OverSubscribe=NO", max(1, p.Tier)),
		"OverTimeLimit=NONE PreemptMode=" + slurm.PreemptMode(reply.Preempt),
		fmt.Sprintf("State=%s TotalCPUs=%d TotalNodes=%d SelectTypeParameters=NONE", strings.ToUpper(cmp.Or(string(p.State), "up")), has.CPUs,
			has.Nodes),
		"JobDefaults=(null)",
		"DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
		"TRES=" + has.InOrder(),
	}
	if len(p.AllowUsers) > 0 { // Slurm has no such
		lines = append(lines, "AllowUsers="+strings.Join(p.AllowUsers, ","))
	}
	return lines
}

func orAll(names []string) string { return cmp.Or(strings.Join(names, ","), "ALL") }

func orUnlimited(n int) string {
	if n == 0 {
		return "UNLIMITED"
	}
	return strconv.Itoa(n)
}

// accountsOf are those that are allowed, or those that are not.
func accountsOf(p *api.Partition) string {
	if len(p.AllowAccounts) == 0 && len(p.DenyAccounts) > 0 {
		return "DenyAccounts=" + strings.Join(p.DenyAccounts, ",")
	}
	return "AllowAccounts=" + orAll(p.AllowAccounts)
}
