package conf

import (
	"errors"
	"fmt"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
)

// site is the configuration that is being made.
type site struct {
	result     Result
	errs       []error
	line       Line              // that is being read
	set        map[string]string // keys of gangd.toml, as TOML
	node       map[string]string // keys of every gnoded's
	nodes      []*node
	nodeBase   []Item // NodeName=DEFAULT
	sets       map[string]nodeSet
	partitions []*partition
	licences   []api.Pool
	partBase   []Item         // PartitionName=DEFAULT
	cards      map[string]int // by node, from gres.conf
	weights    map[string]int // PriorityWeight*, by what is weighed
	favorSmall bool
	preempt    string // PreemptType's word
	mode       string // PreemptMode
	pending    []func()
}

// nodeSet is a NodeSet line.
type nodeSet struct {
	nodes   []string
	feature string
}

// Files are the lines of Slurm's files; of all but slurm.conf there may be none.
type Files struct {
	Slurm, Gres, Topology []Line
	JobContainer          []Line // job_container.conf
	Plugins               []Line // plugstack.conf, of [ReadPlugins]
}

// Make makes gangd's configuration.
func Make(f *Files) (*Result, error) {
	s := &site{set: map[string]string{}, node: map[string]string{}, sets: map[string]nodeSet{},
		cards: map[string]int{}, weights: map[string]int{}, preempt: "none"}
	s.each(f.Slurm, s.slurmLine)
	s.each(f.Gres, s.gresLine)
	s.each(f.Topology, s.topologyLine)
	s.each(f.JobContainer, s.containerLine)
	s.each(f.Plugins, s.pluginLine)
	s.settle()
	if err := errors.Join(s.errs...); err != nil {
		return nil, err
	}
	s.write()
	return &s.result, nil
}

func (s *site) each(lines []Line, read func(Line)) {
	for _, l := range lines {
		s.line = l
		read(l)
	}
}

// slurmLine reads one line of slurm.conf: of a node, a partition and the like all of it, of
// the others each pair by itself.
func (s *site) slurmLine(l Line) {
	first := strings.ToLower(l.Items[0].Key)
	if read, ok := map[string]func(Line){"nodename": s.nodeLine, "partitionname": s.partitionLine, "nodeset": s.setLine,
		"downnodes": s.downLine, "frontendname": s.frontendLine}[first]; ok {
		read(l)
		return
	}
	for _, item := range l.Items {
		s.global(item)
	}
}

// global reads a setting of the cluster.
func (s *site) global(item Item) {
	r, ok := globals[strings.ToLower(item.Key)]
	switch {
	case !ok:
		s.unknown(item, globalNames())
	case r.take == nil:
		s.say(item, None, r.why)
	default:
		r.take(s, item)
	}
}

// unknown lists a key of a newer Slurm, or one that is written wrongly: the rest is worth having without it.
func (s *site) unknown(item Item, names []string) {
	msg := "not known here, left out"
	if n := nearest.Of(strings.ToLower(item.Key), lower(names)); n != "" {
		for _, name := range names {
			if strings.ToLower(name) == n {
				msg += "; did you mean " + name + "?"
			}
		}
	}
	s.say(item, None, msg)
}

func lower(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, strings.ToLower(n))
	}
	return out
}

func (s *site) say(item Item, o Outcome, text string) {
	s.result.Entries = append(s.result.Entries, Entry{File: s.line.File, Line: s.line.N, Item: item, Outcome: o, Text: text})
}

// wrong refuses a value.
func (s *site) wrong(item Item, want string) {
	s.errs = append(s.errs, s.line.at("%s: %s", item, want))
}

// rawHosts expands a list of nodes, as they are written.
func (s *site) rawHosts(item Item) []string {
	names, err := hostlist.Expand(item.Value)
	if err == nil && len(names) > maxNodes {
		err = fmt.Errorf("%d nodes, at most %d are accepted", len(names), maxNodes)
	}
	if err != nil {
		s.wrong(item, err.Error())
		return nil
	}
	return names
}

// hosts is rawHosts in lower case: hosts are the same in either, gangd's names of nodes are
// in lower case.
func (s *site) hosts(item Item) []string { return lower(s.rawHosts(item)) }

// maxNodes bounds a configuration, and what a short line of a bad one can ask for.
const maxNodes = 100000

// settle decides what one key alone could not.
func (s *site) settle() {
	for _, f := range s.pending {
		f()
	}
	s.settlePreempt()
	s.settleOrder()
	s.settlePartitions()
}
