package why

import (
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
)

// mixedReason words why a gang with roles stays: of the first role that does not fit beside
// nothing but what runs, else of all together.
func (wy *Why) mixedReason(d *cluster.Need) *verdict {
	if real := wy.kept.Bare(); len(wy.kept.List) > 0 && fit.Mixed(d, real.All(), real.Open(), nil) != nil {
		return &verdict{need: d, word: given.WordPriority, takers: wy.kept.TakerJobs()}
	}
	empty, list := wy.kept.EmptyNodes()
	if fit.Mixed(d, empty, list, nil) == nil {
		if out := wy.mixedOut(d); out != "" {
			return &verdict{need: d, word: given.WordNodes, out: out}
		}
	}
	for i, part := range d.Parts {
		sh := wy.fit.ClassOf(part.Ask)
		if sh.Alternatives != nil {
			if !wy.fit.Fits(sh, wy.kept.TopView()) {
				return &verdict{need: d, word: given.WordResources, sentence: roleTitle(d.Ask.Spec, i) + wy.alternativesText(sh)}
			}
			continue
		}
		choices := wy.fit.Look(sh, wy.kept.TopView(), nil)
		if t := wy.fit.TallyOf(choices); fit.LayoutOf(part).Members(t) == 0 {
			return &verdict{need: d, word: given.WordResources, sentence: roleTitle(d.Ask.Spec, i) + roomText(part, min(t.Ranks, part.Size))}
		}
	}
	return &verdict{need: d, word: given.WordResources, sentence: "room for each " + partWord(d.Ask.Spec) +
		" by itself now, but not for all at once: " + rolesText(d)}
}

// mixedOut is outOfService for the first role that names anything.
func (wy *Why) mixedOut(d *cluster.Need) string {
	for _, part := range d.Parts {
		if out := wy.outOfService(part); out != "" {
			return out
		}
	}
	return ""
}

// MixedLines is nodeLines for the roles that do not fit, or for all where only together
// they do not; at most MaxRoleLines of them.
func (wy *Why) MixedLines(d *cluster.Need) []string {
	var short, all []int
	for i, part := range d.Parts {
		all = append(all, i)
		if !wy.fit.Fits(wy.fit.ClassOf(part.Ask), wy.ExplainedView) {
			short = append(short, i)
		}
	}
	if len(short) > 0 {
		all = short
	}
	var lines []string
	for _, i := range all[:min(MaxRoleLines, len(all))] {
		part := d.Parts[i]
		lines = append(lines, fmt.Sprintf("%s%s, each needs %s", roleTitle(d.Ask.Spec, i), api.Count(part.Size, "rank"), rankText(part)))
		of := wy.NodeLines
		if part.Alternatives != nil {
			of = wy.AlternativeLines
		}
		for _, l := range of(part) {
			lines = append(lines, "  "+l)
		}
	}
	if more := len(all) - MaxRoleLines; more > 0 {
		lines = append(lines, fmt.Sprintf("and %s likewise", api.Count(more, "more role")))
	}
	return lines
}

// MaxRoleLines bounds the roles that are explained node by node.
const MaxRoleLines = 2
