// Package tres counts what Slurm tracks of a job (its "trackable resources": CPUs, memory,
// nodes, cards, and what it is billed for, which is its CPUs) and writes amounts and sizes as
// Slurm's commands do.
//
// The package is pure.
//
// Begin with Of. It must not know limits, accounts or the ledger.
package tres

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// Amount is how much of each.
type Amount struct {
	CPUs, Nodes, GPUs int64
	Memory            int64 // bytes, on all nodes; 0: no figure
	Billing           bool  // jobs are billed, steps are not
}

// Of is what a job has, or asks for, on so many nodes.
func Of(j *api.Job, nodes int64) Amount {
	a := Amount{Nodes: nodes, Billing: true}
	if len(j.Components) > 0 {
		for i := range j.Components {
			part := j.Part(i)
			of := Of(&part, Nodes(&part))
			a.CPUs, a.GPUs, a.Memory = a.CPUs+of.CPUs, a.GPUs+of.GPUs, a.Memory+of.Memory
		}
		return a
	}
	if len(j.Roles) == 0 {
		n := int64(j.Size)
		a.CPUs = n * int64(max(1, j.CPUsPerRank))
		a.GPUs = n*int64(j.GPUsPerRank) + nodes*int64(j.GPUsPerNode)
		a.Memory = n*j.MemoryBytes + nodes*j.MemoryPerNode
		a.CPUs = max(a.CPUs, whole(j))
		return a
	}
	for i := range j.Roles {
		r := &j.Roles[i]
		n := int64(r.Count)
		a.CPUs += n * int64(max(1, r.CPUsPerRank))
		a.GPUs += n * int64(r.GPUsPerRank)
		a.Memory += n * r.MemoryPerRank
	}
	a.CPUs = max(a.CPUs, whole(j))
	return a
}

// whole is how many CPUs the nodes have that a job has to itself.
func whole(j *api.Job) (sum int64) {
	for _, n := range j.NodeCPUs {
		sum += int64(n)
	}
	return sum
}

// Nodes is on how many nodes a job runs, ran, or wants to at least.
func Nodes(j *api.Job) int64 { return int64(cmp.Or(len(j.Nodes), max(1, j.MinNodes))) }

// ByName is the amount with its parts by name, as sacct shows it.
func (a Amount) ByName() string {
	return join(a.billing(), fmt.Sprintf("cpu=%d", a.CPUs), a.cards(), a.memory(), fmt.Sprintf("node=%d", a.Nodes))
}

// InOrder is the amount with its parts in Slurm's order, as scontrol shows it.
func (a Amount) InOrder() string {
	return join(fmt.Sprintf("cpu=%d", a.CPUs), a.memory(), a.nodeText(), a.billing(), a.cards())
}

func (a Amount) nodeText() string {
	if a.Nodes == 0 {
		return ""
	}
	return fmt.Sprintf("node=%d", a.Nodes)
}

func (a Amount) billing() string {
	if !a.Billing {
		return ""
	}
	return fmt.Sprintf("billing=%d", a.CPUs)
}

func (a Amount) cards() string {
	if a.GPUs == 0 {
		return ""
	}
	return fmt.Sprintf("gres/gpu=%d", a.GPUs)
}

func (a Amount) memory() string {
	if a.Memory == 0 {
		return ""
	}
	return "mem=" + Size(a.Memory, 'M')
}

func join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ",")
}

// Units are the letters of sizes.
const Units = "KMGTP"

// Size writes bytes in a unit, then in larger ones as long as that loses nothing, to a half of
// the unit: 2000M, 1.50G, 3G.
func Size(bytes int64, unit byte) string {
	at := strings.IndexByte(Units, unit)
	n := bytes >> (10 * (at + 1))
	switch {
	case bytes == 0:
		return "0"
	case n == 0:
		return InUnit(bytes, unit)
	}
	for n%1024 == 0 && at < len(Units)-1 {
		n, at = n/1024, at+1
	}
	if n > 1024 && n%512 == 0 && at < len(Units)-1 {
		return strconv.FormatInt(n/1024, 10) + ".50" + Units[at+1:at+2]
	}
	return strconv.FormatInt(n, 10) + Units[at:at+1]
}

// InUnit writes bytes in just that unit, with two decimals where there are any.
func InUnit(bytes int64, unit byte) string {
	if bytes == 0 {
		return "0"
	}
	f := float64(bytes)
	for range strings.IndexByte(Units, unit) + 1 {
		f /= 1024
	}
	if f == float64(int64(f)) {
		return strconv.FormatInt(int64(f), 10) + string(unit)
	}
	return strconv.FormatFloat(f, 'f', 2, 64) + string(unit)
}
