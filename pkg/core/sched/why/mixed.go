package why

import (
	"fmt"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/fit"
)

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
