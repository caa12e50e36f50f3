package cluster

import (
	"cmp"
	"slices"

	"gangd/pkg/api"
)

// In is a partition as an ask names it, with the fewest and the most nodes that a gang may have in
// it; 0: any.
type In struct {
	Name               string
	MinNodes, MaxNodes int
}

func (p In) sameBounds(o In) bool { return p.MinNodes == o.MinNodes && p.MaxNodes == o.MaxNodes }

func (p In) bounded() bool { return p.MinNodes > 0 || p.MaxNodes > 0 }

// AskIn is what a gang needs, with the partitions it may run in. It keeps to what each of them allows: where they allow
// different numbers of nodes it is several asks, any one of which is enough.
func AskIn(spec *api.Spec, in []In) *Ask {
	if !slices.ContainsFunc(in, In.bounded) {
		ask := AskOf(spec, namesOf(in))
		ask.In = in
		return ask
	}
	if len(spec.Roles) > 0 {
		return askOfRoles(spec, in)
	}
	alike := alikeIn(in)
	if len(alike) == 1 {
		ask := AskOf(boundedSpec(spec, in[0]), namesOf(in))
		ask.Own, ask.In = spec, in
		return ask
	}
	ask := &Ask{Spec: spec, Partitions: namesOf(in), In: in}
	for i, some := range alike {
		one := AskIn(spec, some)
		if ask.Any = append(ask.Any, one); i > 0 {
			ask.Key += " or "
		}
		ask.Key += one.Key
	}
	return ask
}

// askOfRoles bounds components each by itself, as the jobs that they are to Slurm, and other roles together: they share nodes.
func askOfRoles(spec *api.Spec, in []In) *Ask {
	ask := AskOf(spec, namesOf(in))
	ask.In = in
	if spec.Components() == 0 {
		ask.least, ask.most = strictest(in)
		ask.Key += boundsKey(ask.least, ask.most)
		return ask
	}
	for i, p := range ask.Parts {
		var own []In
		for _, one := range in {
			if slices.Contains(p.Partitions, one.Name) {
				own = append(own, one)
			}
		}
		least, most := strictest(own)
		part := AskOf(boundedSpec(spec.Part(i), In{MinNodes: least, MaxNodes: most}), p.Partitions)
		part.Own, part.Apart = p.Spec, true
		ask.Parts[i] = part
		ask.Key += boundsKey(least, most)
	}
	return ask
}

// strictest are the bounds that keep to those of all partitions.
func strictest(in []In) (least, most int) {
	for _, p := range in {
		if least = max(least, p.MinNodes); p.MaxNodes > 0 && (most == 0 || p.MaxNodes < most) {
			most = p.MaxNodes
		}
	}
	return least, most
}

// boundedSpec is a spec that asks for no other number of nodes than a partition allows.
func boundedSpec(s *api.Spec, p In) *api.Spec {
	c := *s
	c.MinNodes = max(s.MinNodes, p.MinNodes)
	if p.MaxNodes > 0 && (s.MaxNodes == 0 || s.MaxNodes > p.MaxNodes) {
		c.MaxNodes = p.MaxNodes
	}
	return &c
}

// alikeIn are the partitions, those with the same bounds together, in the order in which they are named.
func alikeIn(in []In) [][]In {
	var out [][]In
	for _, p := range in {
		if i := slices.IndexFunc(out, func(some []In) bool { return some[0].sameBounds(p) }); i >= 0 {
			out[i] = append(out[i], p)
		} else {
			out = append(out, []In{p})
		}
	}
	return out
}

func namesOf(in []In) []string {
	out := make([]string, len(in))
	for i := range in {
		out[i] = in[i].Name
	}
	return out
}

// Asked is what was asked for, without the bounds of partitions.
func (a *Ask) Asked() *api.Spec { return cmp.Or(a.Own, a.Spec) }

// With is the ask of another spec in the same partitions.
func (a *Ask) With(s *api.Spec) *Ask {
	if a.In == nil {
		return AskOf(s, a.Partitions)
	}
	return AskIn(s, a.In)
}

// MayHave reports whether a gang may be placed so, by how many nodes its partitions allow it: the ask's own look at what somebody
// has planned. Numbers that it asked for itself are not looked at.
func (a *Ask) MayHave(nodes []*Node, slots []Slot) bool {
	if !slices.ContainsFunc(a.In, In.bounded) {
		return true
	}
	count := func(slots []Slot) (n int, on []string) {
		for _, s := range slots {
			if !slices.Contains(on, s.Node) {
				on = append(on, s.Node)
			}
		}
		return len(on), on
	}
	if len(a.Parts) > 0 && a.Parts[0].Apart {
		for _, p := range a.Parts {
			n, _ := count(slots[:p.Spec.Size])
			if slots = slots[p.Spec.Size:]; n < p.Spec.MinNodes || p.Spec.MaxNodes > 0 && n > p.Spec.MaxNodes {
				return false
			}
		}
		return true
	}
	n, on := count(slots)
	return slices.ContainsFunc(alikeIn(a.In), func(some []In) bool {
		if p := some[0]; n < p.MinNodes || p.MaxNodes > 0 && n > p.MaxNodes {
			return false
		}
		names := namesOf(some)
		return !slices.ContainsFunc(nodes, func(node *Node) bool {
			return slices.Contains(on, node.Name) && !slices.ContainsFunc(names, func(p string) bool { return slices.Contains(node.Partitions, p) })
		})
	})
}

// HoldsNodes reports whether a gang with roles may have its ranks at these places, by the number of nodes.
func (a *Ask) HoldsNodes(slots []Slot) bool {
	if a.least == 0 && a.most == 0 {
		return true
	}
	on := map[string]bool{}
	for _, s := range slots {
		on[s.Node] = true
	}
	return len(on) >= a.least && (a.most == 0 || len(on) <= a.most)
}
