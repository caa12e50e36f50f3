package config

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
	"gangd/pkg/wire/trusted"
)

// readTopology reads a file of switches as Slurm's topology.conf has them:
//
//	SwitchName=leaf1 Nodes=n[1-4]
//	SwitchName=leaf2 Nodes=n[5-8]
//	SwitchName=spine Switches=leaf[1-2]
//
// The lowest come first in what it gives. LinkSpeed is not looked at. An error names the line.
func readTopology(path string) ([]api.Switch, error) {
	if err := trusted.File(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &topology{path: path, at: map[string]int{}}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		if err := t.line(n, lines.Text()); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t.tree()
}

type topology struct {
	path  string
	list  []api.Switch
	lines []int
	at    map[string]int
}

var topologyWords = []string{"switchname", "nodes", "switches", "linkspeed"}

func (t *topology) line(n int, text string) error {
	text, _, _ = strings.Cut(text, "#")
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	var s api.Switch
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch strings.ToLower(key) {
		case "switchname":
			s.Name = value
		case "nodes":
			s.Nodes, err = hostlist.Expand(value)
		case "switches":
			s.Switches, err = hostlist.Expand(value)
		case "linkspeed":
		default:
			if near := nearest.Of(strings.ToLower(key), topologyWords); near != "" {
				return fmt.Errorf("unknown word %q: did you mean %s?", key, near)
			}
			return fmt.Errorf("unknown word %q: want SwitchName, and Nodes or Switches", key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	_, twice := t.at[s.Name]
	switch {
	case s.Name == "":
		return fmt.Errorf("want SwitchName=NAME with Nodes=LIST or Switches=LIST")
	case twice:
		return fmt.Errorf("there is a switch %s above", s.Name)
	case (len(s.Nodes) == 0) == (len(s.Switches) == 0):
		return fmt.Errorf("switch %s: want Nodes=LIST or Switches=LIST, one of them", s.Name)
	}
	slices.Sort(s.Nodes)
	t.at[s.Name] = len(t.list)
	t.list, t.lines = append(t.list, s), append(t.lines, n)
	return nil
}

// tree fills in who is below whom.
func (t *topology) tree() ([]api.Switch, error) {
	under := map[string]string{}
	for i := range t.list {
		s := &t.list[i]
		bad := func(format string, args ...any) error {
			return fmt.Errorf("%s:%d: switch %s: %s", t.path, t.lines[i], s.Name, fmt.Sprintf(format, args...))
		}
		for _, n := range s.Nodes {
			if o := under["node "+n]; o != "" {
				return nil, bad("node %s is below %s already", n, o)
			}
			under["node "+n] = s.Name
		}
		for _, name := range s.Switches {
			at, known := t.at[name]
			switch {
			case !known:
				return nil, bad("there is no switch %s", name)
			case t.list[at].Parent != "":
				return nil, bad("switch %s is below %s already", name, t.list[at].Parent)
			}
			t.list[at].Parent = s.Name
		}
	}
	for i := range t.list {
		if _, err := t.fill(i, 0); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(t.list, func(a, b api.Switch) int { return cmp.Compare(a.Level, b.Level) })
	return t.list, nil
}

// fill gives a switch its level and all nodes below it.
func (t *topology) fill(i, depth int) (*api.Switch, error) {
	s := &t.list[i]
	if len(s.Switches) == 0 {
		return s, nil
	}
	if depth > len(t.list) {
		return nil, fmt.Errorf("%s:%d: switch %s is below itself", t.path, t.lines[i], s.Name)
	}
	var nodes []string
	for _, name := range s.Switches {
		below, err := t.fill(t.at[name], depth+1)
		if err != nil {
			return nil, err
		}
		s.Level = max(s.Level, below.Level+1)
		nodes = append(nodes, below.Nodes...)
	}
	slices.Sort(nodes)
	s.Nodes = nodes
	return s, nil
}
