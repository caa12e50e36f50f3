package why

import (
	"fmt"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
)

// checkFeatures refuses features that no node has, in the constraint and in what is
// preferred: nearly always they are misspelt.
func checkFeatures(nodes []*cluster.Node, d *cluster.Need) *api.Error {
	if d.Ask.Spec.Constraint == "" && d.Ask.Spec.Prefer == "" && d.Parts == nil {
		return nil
	}
	known := func() (out []string) {
		for _, n := range nodes {
			for _, f := range n.Features {
				if !slices.Contains(out, f) {
					out = append(out, f)
				}
			}
		}
		return out
	}
	required, preferred := d.Names()
	if err := checkKnown("feature", api.ReasonFeature, required, known, commas); err != nil {
		return err
	}
	if err := checkKnown("preferred feature", api.ReasonPreferredFeature, preferred, known, commas); err != nil {
		return err
	}
	for i, part := range d.Parts {
		if required, _ := part.Names(); required != nil {
			if err := checkKnown("feature", api.ReasonFeature, required, known, commas); err != nil {
				err.Message = roleTitle(d.Ask.Spec, i) + err.Message
				return err
			}
		}
	}
	return nil
}

// checkCounts refuses counts of more nodes than the gang can be on, whatever the cluster.
func checkCounts(d *cluster.Need) *api.Error {
	if d.Parts != nil {
		return checkRoleCounts(d)
	}
	if d.Alternatives == nil {
		return nil
	}
	s, sum := d.Ask.Spec, 0
	for _, c := range d.Alternatives[0].Counts {
		sum += c.Nodes
	}
	what := fmt.Sprintf("the constraint %q counts %s", s.Constraint, api.Count(sum, "node"))
	switch {
	case s.MaxNodes > 0 && sum > s.MaxNodes:
		return &api.Error{Code: api.CodeUnsatisfiable, Message: what + ", but " + nodesAsked(s) + " asked for",
			Hint: fmt.Sprintf("ask for --nodes=%d", sum)}
	case sum > d.Size:
		return &api.Error{Code: api.CodeUnsatisfiable, Message: what + fmt.Sprintf(", more than the gang has ranks (%d): each node has at "+
			"least one", d.Size),
			Hint: fmt.Sprintf("ask for %d ranks or more", sum)}
	}
	if r := min(s.RanksPerNode, d.Size); r > 0 && sum > (d.Size+r-1)/r {
		return &api.Error{Code: api.CodeUnsatisfiable, Message: what + fmt.Sprintf(", but %s with %d on each node take %d",
			api.Count(d.Size, "rank"), r, (d.Size+r-1)/r), Hint: fmt.Sprintf("ask for %d ranks", sum*r)}
	}
	return nil
}

// checkRoleCounts refuses a count that the roles have from the whole gang: whose nodes it
// counts would be anybody's guess.
func checkRoleCounts(d *cluster.Need) *api.Error {
	s := d.Ask.Spec
	for i, part := range d.Parts {
		if part.Alternatives != nil && part.Alternatives[0].Counts != nil && s.Roles[i].Constraint == s.Constraint {
			return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("the constraint %q counts nodes, and the gang has roles: each of them "+
				"has nodes of its own", s.Constraint),
				Hint: fmt.Sprintf("write constraint=%s in the role whose nodes it counts", s.Constraint)}
		}
		if err := checkCounts(part); err != nil {
			err.Message = roleTitle(d.Ask.Spec, i) + err.Message
			return err
		}
	}
	return nil
}

// alternativesTogether is together for a constraint that speaks of all nodes at once.
func alternativesTogether(d *cluster.Need, pool []*cluster.Node) *api.Error {
	e := &api.Error{Code: api.CodeUnsatisfiable}
	for _, way := range d.Alternatives {
		for _, c := range way.Counts {
			var with []string
			for _, n := range pool {
				if c.Features.Met(n.Features) && way.Admits(n) && way.RanksEmpty(n) > 0 {
					with = append(with, n.Name)
				}
			}
			if len(with) < c.Nodes {
				e.Message = fmt.Sprintf("the constraint %q counts %s with %s, and only %d can hold a rank", d.Ask.Spec.Constraint,
					api.Count(c.Nodes, "node"), c.Features, len(with))
				if e.Hint = "none does"; len(with) > 0 {
					e.Hint = fmt.Sprintf("ask for %s*%d or less: %s", named(c.Features), len(with), Hosts(with))
				}
				return e
			}
		}
	}
	var parts []string
	for _, way := range d.Alternatives {
		t, marks := &fit.Tally{}, []uint(nil)
		for _, n := range pool {
			if k := way.RanksEmpty(n); k > 0 && way.Admits(n) {
				t.Add(k)
				marks = append(marks, way.Marks(n))
			}
		}
		parts = append(parts, alternativeTitle(way)+roomOfAlternative(way, t, marks))
	}
	e.Message = "the whole cluster, empty, does not hold it so: " + shortened(parts) + "; each rank needs " + rankText(d)
	return e
}
