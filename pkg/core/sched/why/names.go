package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// checkNames refuses partitions and nodes that do not exist, with the nearest that do.
func checkNames(nodes []*cluster.Node, p *order.Policy, ask *cluster.Ask) *api.Error {
	if err := checkKnown("partition", api.ReasonPartition, ask.Partitions, func() []string { return partitionNames(nodes, p) },
		commas); err != nil {
		return err
	}
	names := func() []string { return nodeNames(nodes) }
	if err := checkKnown("node", api.ReasonNode, ask.Spec.NodeList, names, hostlist.Compress); err != nil {
		return err
	}
	if err := checkKnown("node", api.ReasonNode, ask.Spec.Exclude, names, hostlist.Compress); err != nil {
		return err
	}
	for i, part := range ask.Parts {
		if err := checkNames(nodes, p, part); err != nil {
			err.Message = roleTitle(ask.Spec, i) + err.Message
			return err
		}
	}
	return nil
}

// partitionNames lists those of the policy; nodes may name others, which exist as well.
func partitionNames(nodes []*cluster.Node, p *order.Policy) []string {
	var out []string
	for i := range p.Partitions {
		out = append(out, p.Partitions[i].Name)
	}
	for _, n := range nodes {
		for _, name := range n.Partitions {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func checkKnown(what string, reason api.Reason, asked []string, names func() []string, list func([]string) string) *api.Error {
	if len(asked) == 0 {
		return nil
	}
	known := names()
	there := make(map[string]bool, len(known))
	for _, name := range known {
		there[name] = true
	}
	for _, name := range asked {
		if there[name] {
			continue
		}
		all := slices.Clone(known)
		slices.SortFunc(all, hostlist.Compare)
		all = slices.Compact(all)
		e := api.Errorf(api.CodeInvalid, "unknown %s %q", what, name).About(reason, name)
		switch near := nearest.Of(name, all); {
		case len(all) == 0:
			e.Hint = fmt.Sprintf("there is no %s yet", what)
		case near != "":
			e.Hint = fmt.Sprintf("did you mean %q? %ss: %s", near, what, list(all))
		default:
			e.Hint = fmt.Sprintf("%ss: %s", what, list(all))
		}
		return e
	}
	return nil
}

// admitted is the nodes that the ask names, or which of its conditions leaves none.
func admitted(d *cluster.Need, nodes []*cluster.Node) ([]*cluster.Node, *api.Error) {
	s := d.Ask.Spec
	in := keep(nodes, d.InPartition)
	where := "partition " + strings.Join(d.Ask.Partitions, ",")
	if len(in) == 0 {
		return nil, api.Errorf(api.CodeUnsatisfiable, "%s has no nodes", where)
	}
	named := keep(in, func(n *cluster.Node) bool { return d.Named(n.Name) })
	if len(named) == 0 {
		e := api.Errorf(api.CodeUnsatisfiable, "no node of %s is left by %s", where, nodeOptions(s))
		e.Hint = fmt.Sprintf("%s has %s", where, Hosts(nodeNames(in)))
		return nil, e
	}
	if len(keep(named, d.HasContainers)) == 0 {
		e := &api.Error{Code: api.CodeUnsatisfiable, Message: fmt.Sprintf("no node of %s runs jobs in containers", where),
			Hint: "nodes that do have the feature " + api.FeatureContainer + "; an administrator lets a node run them"}
		if need := d.Images(); !slices.Contains(need, api.FeatureContainer) {
			e.Message = fmt.Sprintf("no node of %s can import the image %s", where, s.Container.Image)
			e.Hint = "nodes that do have the feature " + strings.Join(need, " or ") + "; unpacked images in a directory need none"
		}
		return nil, e
	}
	if len(keep(named, d.HasShape)) == 0 {
		e := api.Errorf(api.CodeUnsatisfiable, "no node of %s has %s", where, shapeText(s.Shape)).About(api.ReasonShape, "")
		e.Hint = "nodes there: " + shapes(named)
		return nil, e
	}
	met := keep(named, d.HasFeatures)
	if len(met) == 0 {
		var features []string
		for _, n := range named {
			features = append(features, n.Features...)
		}
		slices.Sort(features)
		e := api.Errorf(api.CodeUnsatisfiable, "no node of %s meets the constraint %q", where, s.Constraint)
		e.Hint = "features there: " + strings.Join(slices.Compact(features), ", ")
		if len(features) == 0 {
			e.Hint = "its nodes have no features"
		}
		return nil, e
	}
	return met, nil
}

// shapeText is "2 sockets of 16 cores with 2 threads".
func shapeText(s api.CPUShape) string {
	text := api.Count(max(s.Sockets, 1), "socket")
	switch {
	case s.Cores > 0:
		text += " of " + api.Count(s.Cores, "core")
	case s.Threads > 0:
		text += " of cores"
	}
	if s.Threads > 0 {
		text += " with " + api.Count(s.Threads, "thread")
	}
	return text
}

// shapes are those that the nodes have.
func shapes(nodes []*cluster.Node) string {
	on := map[string][]string{}
	for _, n := range nodes {
		text := fmt.Sprintf("%s x %s x %s", api.Count(n.Shape.Sockets, "socket"), api.Count(n.Shape.Cores, "core"),
			api.Count(n.Shape.Threads, "thread"))
		on[text] = append(on[text], n.Name)
	}
	var out []string
	for _, text := range slices.Sorted(maps.Keys(on)) {
		out = append(out, text+" on "+Hosts(on[text]))
	}
	return strings.Join(out, ", ")
}

func nodeOptions(s *api.Spec) string {
	var parts []string
	if len(s.NodeList) > 0 {
		parts = append(parts, "--nodelist="+Hosts(s.NodeList))
	}
	if len(s.Exclude) > 0 {
		parts = append(parts, "--exclude="+Hosts(s.Exclude))
	}
	return given.And(parts)
}

func nodeNames(nodes []*cluster.Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Name
	}
	return out
}

func keep(nodes []*cluster.Node, ok func(*cluster.Node) bool) []*cluster.Node {
	var out []*cluster.Node
	for _, n := range nodes {
		if ok(n) {
			out = append(out, n)
		}
	}
	return out
}
