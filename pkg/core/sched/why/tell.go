package why

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
)

func roomText(d *cluster.Need, room int) string {
	if room < d.Size {
		return fmt.Sprintf("room for %d of %s now, each needs %s", room, api.Count(d.Size, "rank"), rankText(d))
	}
	return fmt.Sprintf("room for %s now, but not on %s; each rank needs %s", api.Count(d.Size, "rank"), layoutText(d), rankText(d))
}

// layoutText is what the ask says about its nodes.
func layoutText(d *cluster.Need) string {
	s := d.Ask.Spec
	switch {
	case s.RanksPerNode > 0:
		return fmt.Sprintf("nodes with %s each", api.Count(s.RanksPerNode, "rank"))
	case s.MinNodes > 0 && s.MinNodes == s.MaxNodes:
		return "exactly " + api.Count(s.MinNodes, "node")
	case s.MinNodes > 0 && s.MaxNodes > 0:
		return fmt.Sprintf("%d to %s", s.MinNodes, api.Count(s.MaxNodes, "node"))
	case s.MaxNodes > 0:
		return "at most " + api.Count(s.MaxNodes, "node")
	}
	return "at least " + api.Count(s.MinNodes, "node")
}

// rankText is what one rank needs, cards first.
func rankText(d *cluster.Need) string {
	var parts []string
	if d.Cards > 0 {
		parts = append(parts, cardText(d, d.Cards))
	}
	if d.NodeCards > 0 {
		parts = append(parts, cardText(d, d.NodeCards)+" on its node")
	}
	for r := range cluster.Resources {
		row := &cluster.Resources[r]
		if v := d.PerRank[r]; v > 0 {
			parts = append(parts, row.Text(v))
		}
		if v := d.PerMember[r]; v > 0 {
			parts = append(parts, row.Text(v)+" on its node")
		}
	}
	if d.Exclusive {
		parts = append(parts, "a node without other gangs")
	}
	return given.And(parts)
}

func cardText(d *cluster.Need, n int) string {
	text := api.Count(n, kindOfCard(d))
	if d.VRAM > 0 {
		text += " with " + cluster.Size(d.VRAM)
	}
	return text
}

// kindOfCard is "card", "a100|h100 card" or "card of compute 8.0 or more".
func kindOfCard(d *cluster.Need) string {
	noun := "card"
	if t := d.Ask.Spec.GPUType; t != "" {
		noun = t + " card"
	}
	if c := d.Ask.Spec.MinCompute; c != "" {
		noun = "compute-" + c + " " + noun
	}
	return noun
}

// roleTitle begins a sentence about a role, or about a component of a heterogeneous job, which Slurm numbers.
func roleTitle(s *api.Spec, part int) string {
	if s.Components() > 0 {
		return fmt.Sprintf("component %d: ", part)
	}
	return "role " + s.Roles[part].Name + ": "
}

func partWord(s *api.Spec) string {
	if s.Components() > 0 {
		return "component"
	}
	return "role"
}

// rolesText is what each role needs, in one line.
func rolesText(d *cluster.Need) string {
	parts := make([]string, len(d.Parts))
	for i, p := range d.Parts {
		parts[i] = fmt.Sprintf("%s %s with %s", api.Count(p.Size, "rank"), d.Ask.Spec.Roles[i].Name, rankText(p))
		if d.Ask.Spec.Components() > 0 {
			parts[i] = fmt.Sprintf("component %d: %s with %s", i, api.Count(p.Size, "rank"), rankText(p))
		}
		if p.Size > 1 {
			parts[i] += " each"
		}
	}
	return strings.Join(parts, ", ")
}

func alternativeTitle(way *cluster.Need) string {
	if text := way.Alternative(); text != "" {
		return text + " has "
	}
	return ""
}

// shortened is the first few of many alternatives.
func shortened(parts []string) string {
	const most = 5
	if more := len(parts) - most; more > 0 {
		parts = append(slices.Clone(parts[:most]), api.Count(more, "more alternative"))
	}
	return strings.Join(parts, "; ")
}

// roomOfAlternative is "room for 2 of 4 ranks", and of what it counts "1 of 2 nodes with rack1".
func roomOfAlternative(d *cluster.Need, t *fit.Tally, marks []uint) string {
	text := fmt.Sprintf("room for %d of %s", min(t.Ranks, d.Size), api.Count(d.Size, "rank"))
	if t.Ranks >= d.Size && fit.LayoutOf(d).Members(t) == 0 {
		return "room for " + api.Count(d.Size, "rank") + ", but not on " + layoutText(d)
	}
	short := false
	var counts []string
	for i, c := range d.Counts {
		with := 0
		for _, m := range marks {
			with += int(m >> i & 1)
		}
		short = short || with < c.Nodes
		counts = append(counts, strconv.Itoa(min(with, c.Nodes))+" of "+api.Count(c.Nodes, "node")+" with "+c.Features.String())
	}
	if len(counts) > 0 {
		text += ", " + given.And(counts)
	}
	if len(counts) > 0 && !short && t.Ranks >= d.Size {
		text += ", but not for all of it on as many nodes as it may have"
	}
	return text
}

// Hosts writes node names as one list.
func Hosts(names []string) string { return hostlist.Compress(names) }

// named is a condition as it is written before a count.
func named(f *cluster.Features) string {
	if text := f.String(); strings.ContainsAny(text, "&|,") {
		return "(" + text + ")"
	}
	return f.String()
}

func switches(n int) string {
	if n == 1 {
		return "1 switch"
	}
	return fmt.Sprintf("%d switches", n)
}

func commas(names []string) string { return strings.Join(names, ", ") }
