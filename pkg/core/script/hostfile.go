package script

import (
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// hostfile are the lists of nodes that the text of a file of them names: on lines of their own or with commas between, a # begins a
// comment. NAME*N is that node, for N tasks.
func hostfile(text string) (lists []string, times []int, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if c := line[0] | 0x20; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return nil, nil, bad("line "+strconv.Itoa(n)+" is no list of nodes", "write a node a line, or n1,n2 or n[1-4,7]")
		}
		count := 1
		if name, word, counted := strings.Cut(line, "*"); counted && !strings.Contains(word, ",") {
			line = strings.TrimSpace(name)
			if count, err = strconv.Atoi(strings.TrimSpace(word)); err != nil || count < 1 || count > hostlist.MaxHosts {
				return nil, nil, bad("line "+strconv.Itoa(n)+" counts no tasks", "write NODE*N")
			}
		}
		lists, times = append(lists, line), append(times, count)
	}
	if len(lists) == 0 {
		return nil, nil, bad("no node is named in it", "write a node a line")
	}
	return lists, times, nil
}

// NodesOf is the list of nodes of a file of them, which read gives the text of.
func NodesOf(file string, read func(file string) (string, error)) (hosts string, err error) {
	text, err := read(file)
	if err != nil {
		return "", err
	}
	lists, _, err := hostfile(text)
	return strings.Join(lists, ","), err
}

// TaskNodes are the nodes of a file that has one for each task, which read gives the text of.
func TaskNodes(file string, read func(file string) (string, error)) (nodes []string, err error) {
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	lists, times, err := hostfile(text)
	if err != nil {
		return nil, err
	}
	for i := range lists {
		names, err := hostlist.Repeated(lists[i])
		if err != nil {
			return nil, err
		}
		if len(nodes)+len(names)*times[i] > hostlist.MaxHosts {
			return nil, bad("it names more than "+strconv.Itoa(hostlist.MaxHosts)+" nodes", "")
		}
		nodes = append(nodes, slices.Repeat(names, times[i])...)
	}
	return nodes, nil
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

// Hostfile adds what sbatch means by a file that has a node for each task: those nodes, and as many tasks, which srun in the script
// puts there. Who lists nodes himself is not asked for more.
func Hostfile(settings []Setting, path string, read func(file string) (string, error)) ([]Setting, error) {
	won := decide(ofComponent(settings, 0))
	if won[named("nodelist")] != nil {
		return settings, nil
	}
	names, err := TaskNodes(path, read)
	if err != nil {
		return nil, err
	}
	add := func(long, value string) {
		s := Setting{Source: FromFlag}
		s.Option, s.Name, s.Value, s.Given = named(long), long, value, true
		settings = append(settings, s)
	}
	tasks := won[named("ntasks")]
	if tasks == nil {
		add("ntasks", strconv.Itoa(len(names)))
	} else if n, err := strconv.Atoi(tasks.Value); err == nil {
		if n > len(names) {
			return nil, ErrFewHosts
		}
		names = names[:max(n, 0)]
	}
	slices.Sort(names)
	add("nodelist", strings.Join(slices.Compact(names), ","))
	add("distribution", api.Arbitrary)
	return settings, nil
}

// ErrFewHosts is that a file has fewer nodes than there are tasks.
var ErrFewHosts = bad("it has fewer nodes than tasks are asked for", "")

const nodefile = "nodefile"

// Listed adds what sbatch and srun mean by a list of nodes: that many, where no number of nodes is asked for. In gsubmit's own words a list
// is of nodes that may be used.
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
