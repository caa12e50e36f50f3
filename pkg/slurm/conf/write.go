package conf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/core/hostlist"
)

// write makes the files of what was read.
func (s *site) write() {
	var b strings.Builder
	b.WriteString("# gangd's configuration, made by gangd import-slurm-conf.\n")
	for _, key := range slices.Sorted(maps.Keys(s.set)) {
		fmt.Fprintf(&b, "%s = %s\n", key, s.set[key])
	}
	if len(s.nodes) > 0 {
		var names []string
		for _, n := range s.nodes {
			names = append(names, n.name)
		}
		b.WriteString("nodes = " + list(names) + "\n")
	}
	if !slices.ContainsFunc(s.partitions, func(p *partition) bool { return p.preset }) && len(s.partitions) > 0 {
		b.WriteString("# No partition of slurm.conf is the default one; the first is here.\n")
	}
	for _, p := range s.partitions {
		p.toml(&b)
	}
	for _, p := range s.licences {
		fmt.Fprintf(&b, "\n[[licence]]\nname = %s\ncount = %d\n", quote(p.Name), p.Count)
	}
	s.result.Gangd = b.String()
	s.writeNodes()
}

// writeNodes makes one file for all nodes that are alike.
func (s *site) writeNodes() {
	at := map[string]int{}
	for _, n := range s.nodes {
		text := s.nodeText(n)
		i, there := at[text]
		if !there {
			i = len(s.result.Nodes)
			at[text] = i
			s.result.Nodes = append(s.result.Nodes, NodeFile{Name: n.name, Text: text})
		}
		s.result.Nodes[i].Nodes = append(s.result.Nodes[i].Nodes, n.name)
	}
	for i := range s.result.Nodes {
		f := &s.result.Nodes[i]
		f.Text = fmt.Sprintf("# gnoded's configuration on %s, made by gangd import-slurm-conf.\n%s", hostlist.Compress(f.Nodes), f.Text)
	}
}

func (s *site) nodeText(n *node) string {
	set := maps.Clone(s.node)
	if a := s.set["advertise"]; a != "" {
		set["controller"] = a
	}
	if n.addr != "" && n.addr != n.name {
		set["address"] = quote(n.addr)
	}
	if n.cpus > 0 {
		set["cpus"] = strconv.Itoa(n.cpus)
	}
	if n.memory > 0 {
		set["memory"] = quote(strconv.Itoa(n.memory) + "MiB")
	}
	if len(n.features) > 0 {
		set["features"] = list(n.features)
	}
	switch { // below 0: slurm.conf does not say
	case n.gpus == 0:
		set["cards"] = `"none"`
	case n.gpus > 0:
		set["expect_cards"] = strconv.Itoa(n.gpus)
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(set)) {
		fmt.Fprintf(&b, "%s = %s\n", key, set[key])
	}
	return b.String()
}

func list(names []string) string {
	var q []string
	for _, n := range names {
		q = append(q, quote(n))
	}
	return "[" + strings.Join(q, ", ") + "]"
}
