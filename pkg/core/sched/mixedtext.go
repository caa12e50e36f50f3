package sched

import (
	"fmt"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
)

// mixedReason words why a gang with roles stays: of the first role that does not fit beside
// nothing but what runs, else of all together.
func (wy *why) mixedReason(d *cluster.Need) *verdict {
	if real := wy.kept.views[0]; len(wy.kept.list) > 0 && fit.Mixed(d, real.All(), real.Open(), nil) != nil {
		return &verdict{need: d, word: WordPriority, takers: wy.kept.takerJobs()}
	}
	empty, list := wy.kept.emptyNodes()
	if fit.Mixed(d, empty, list, nil) == nil {
		if out := wy.mixedOut(d); out != "" {
			return &verdict{need: d, word: WordNodes, out: out}
		}
	}
	for i, part := range d.Parts {
		sh := wy.fit.ClassOf(part.Ask)
		if sh.Alternatives != nil {
			if !wy.fit.Fits(sh, wy.kept.topView()) {
				return &verdict{need: d, word: WordResources, sentence: roleTitle(d.Ask.Spec, i) + wy.alternativesText(sh)}
			}
			continue
		}
		choices := wy.fit.Look(sh, wy.kept.topView(), nil)
		if t := wy.fit.TallyOf(choices); fit.LayoutOf(part).Members(t) == 0 {
			return &verdict{need: d, word: WordResources, sentence: roleTitle(d.Ask.Spec, i) + roomText(part, min(t.Ranks, part.Size))}
		}
	}
	return &verdict{need: d, word: WordResources, sentence: "room for each " + partWord(d.Ask.Spec) +
		" by itself now, but not for all at once: " + rolesText(d)}
}

// mixedOut is outOfService for the first role that names anything.
func (wy *why) mixedOut(d *cluster.Need) string {
	for _, part := range d.Parts {
		if out := wy.outOfService(part); out != "" {
			return out
		}
	}
	return ""
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

// mixedLines is nodeLines for the roles that do not fit, or for all where only together
// they do not; at most maxRoleLines of them.
func (wy *why) mixedLines(d *cluster.Need) []string {
	var short, all []int
	for i, part := range d.Parts {
		all = append(all, i)
		if !wy.fit.Fits(wy.fit.ClassOf(part.Ask), wy.explainedView) {
			short = append(short, i)
		}
	}
	if len(short) > 0 {
		all = short
	}
	var lines []string
	for _, i := range all[:min(maxRoleLines, len(all))] {
		part := d.Parts[i]
		lines = append(lines, fmt.Sprintf("%s%s, each needs %s", roleTitle(d.Ask.Spec, i), api.Count(part.Size, "rank"), rankText(part)))
		of := wy.nodeLines
		if part.Alternatives != nil {
			of = wy.alternativeLines
		}
		for _, l := range of(part) {
			lines = append(lines, "  "+l)
		}
	}
	if more := len(all) - maxRoleLines; more > 0 {
		lines = append(lines, fmt.Sprintf("and %s likewise", api.Count(more, "more role")))
	}
	return lines
}

// maxRoleLines bounds the roles that are explained node by node.
const maxRoleLines = 2

// diagnoseMixed says which role could never be held, or that only all together can't.
func diagnoseMixed(d *cluster.Need, whole []*cluster.Node) *api.Error {
	for i, part := range d.Parts {
		if fit.HoldsEver(part, whole) {
			continue
		}
		e := diagnose(part, whole)
		e.Message = roleTitle(d.Ask.Spec, i) + e.Message
		if e.Hint == "" {
			e.Hint = inRole(nearestHint(part, whole), d.Ask.Spec, i)
		}
		return e
	}
	if d.Ask.Spec.Components() > 0 {
		return &api.Error{Code: api.CodeUnsatisfiable, Message: "the whole cluster, empty, has room for each component but not for all at " +
			"once, on nodes of their own: " + rolesText(d),
			Hint: "ask for fewer nodes, or start the parts as steps of one allocation"}
	}
	return &api.Error{Code: api.CodeUnsatisfiable, Message: "the whole cluster, empty, has room for each role but not for all at once: " +
		rolesText(d),
		Hint: "ask for fewer ranks in a role, or for less in each"}
}

// inRole words the nearest ask as the role's option: --size is the number behind its name.
func inRole(hint string, s *api.Spec, i int) string {
	role := s.Roles[i].Name
	switch {
	case hint == "":
		return ""
	case s.Components() > 0:
		return fmt.Sprintf("in component %d %s", i, strings.ReplaceAll(hint, "--size=", "--ntasks="))
	}
	return "in --role " + role + " " + strings.NewReplacer("--size=", role+":", "--mem-per-rank=", "mem=", "--cpus-per-task=", "cpus=",
		"--vram=", "vram=", "--gpus-per-rank=", "gpus-per-rank=").Replace(hint)
}
