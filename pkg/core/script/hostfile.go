package script

import (
	"strconv"
	"strings"

	"gangd/pkg/core/hostlist"
)

// hostfile is the list of nodes that the text of a --nodefile names: on lines of their own or with commas between, a # begins a
// comment. NAME*N, by which srun counts tasks there, is that node.
func hostfile(text string) (string, error) {
	var names []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if c := line[0] | 0x20; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return "", bad("line "+strconv.Itoa(n)+" is no list of nodes", "write a node a line, or n1,n2 or n[1-4,7]")
		}
		name, times, counted := strings.Cut(line, "*")
		if counted && !strings.Contains(times, ",") {
			line = strings.TrimSpace(name)
		}
		names = append(names, line)
	}
	if len(names) == 0 {
		return "", bad("no node is named in it", "write a node a line")
	}
	return strings.Join(names, ","), nil
}

// NodesOf is the list of nodes of a file of them, which read gives the text of.
func NodesOf(file string, read func(file string) (string, error)) (hosts string, err error) {
	text, err := read(file)
	if err != nil {
		return "", err
	}
	return hostfile(text)
}

// Nodefiles makes of each --nodefile among the settings the --nodelist that its file holds, which read gives the text of.
func Nodefiles(settings []Setting, read func(file string) (string, error)) error {
	for i := range settings {
		s := &settings[i]
		if s.Option.Long != nodefile {
			continue
		}
		hosts, err := NodesOf(s.Value, read)
		if err != nil {
			e := s.refuse(s.String()+": "+err.Error(), "")
			e.Bad = s
			return e
		}
		s.Option, s.Name, s.Value = named("nodelist"), "nodelist", hosts
	}
	return nil
}

const nodefile = "nodefile"

// Listed adds what sbatch and srun mean by a list of nodes: that many, where no number of nodes is asked for. In gsubmit's own words a list is of nodes that may be used.
func Listed(settings []Setting) []Setting {
	for c := range components(settings) {
		won := decide(ofComponent(settings, c))
		list := won[named("nodelist")]
		if list == nil || won[named("nodes")] != nil || won[named("size")] != nil || won[named("role")] != nil {
			continue
		}
		names, err := hostlist.Expand(list.Value)
		if err != nil || len(names) < 2 {
			continue
		}
		s := *list
		s.Option, s.Name, s.Value, s.Component = named("nodes"), "nodes", strconv.Itoa(len(names)), c
		settings = append(settings, s)
	}
	return settings
}
