package script

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/nearest"
)

const dependencyForms = "write afterok:12, afterok:12:13,afterany:14 (all), afterok:12?afterany:13 (any), after:12+10 (minutes), " +
	"aftercorr:12 or singleton"

// ParseDependency reads sbatch's --dependency.
func ParseDependency(v string) (*api.Dependency, error) {
	sep := ","
	if strings.Contains(v, "?") {
		if sep = "?"; strings.Contains(v, ",") {
			return nil, bad("has both , (all) and ? (any)", "use one of them")
		}
	}
	d := &api.Dependency{Any: sep == "?"}
	for part := range strings.SplitSeq(v, sep) {
		on, err := parseConditions(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		for _, c := range on {
			if !slices.ContainsFunc(d.On, func(o api.Condition) bool { return o.String() == c.String() && o.Delay == c.Delay }) {
				d.On = append(d.On, c)
			}
		}
	}
	return d, nil
}

// parseConditions reads what stands between two separators: a kind and its jobs.
func parseConditions(s string) ([]api.Condition, error) {
	word, jobs, given := strings.Cut(s, ":")
	kind := api.DependencyKind(strings.ToLower(word))
	if !given && word != "" && strings.Trim(word, "0123456789_") == "" {
		kind, jobs, given = api.AfterAny, word, true // sbatch's oldest form: just an id
	}
	switch {
	case kind == "expand" || kind == "afterburstbuffer":
		return nil, bad("kind "+strconv.Quote(word)+" is not there", dependencyForms)
	case !slices.Contains(api.DependencyKinds, kind):
		return nil, bad("no kind "+strconv.Quote(word), nearestKind(word))
	case kind == api.AfterSingle && given:
		return nil, bad("singleton takes no job", "write singleton")
	case kind == api.AfterSingle:
		return []api.Condition{{Kind: kind}}, nil
	case !given || jobs == "":
		return nil, bad(word+" names no job", dependencyForms)
	}
	var on []api.Condition
	for ref := range strings.SplitSeq(jobs, ":") {
		c, err := parseCondition(kind, ref)
		if err != nil {
			return nil, err
		}
		on = append(on, c)
	}
	return on, nil
}

func nearestKind(word string) string {
	names := make([]string, len(api.DependencyKinds))
	for i, k := range api.DependencyKinds {
		names[i] = string(k)
	}
	return nearest.Hint(word, names, dependencyForms)
}

func parseCondition(kind api.DependencyKind, ref string) (api.Condition, error) {
	id, minutes, delayed := strings.Cut(ref, "+")
	c := api.Condition{Kind: kind}
	if delayed {
		if kind != api.After {
			return c, bad("a delay ("+ref+") goes with after only", dependencyForms)
		}
		n, err := number(minutes, 0, 1<<20)
		if err != nil {
			return c, bad("the delay in "+ref+" is no number of minutes", dependencyForms)
		}
		c.Delay = time.Duration(n) * time.Minute
	}
	r, err := api.ParseJobRef(strings.TrimSuffix(id, "_*"))
	if err != nil || r.Last > 0 {
		return c, bad(strconv.Quote(id)+" is no job id", "write 12, or 12_3 for one element of an array")
	}
	c.Job = r.ID
	if r.Index >= 0 {
		c.Index = &r.Index
	}
	return c, nil
}
