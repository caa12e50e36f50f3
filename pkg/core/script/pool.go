package script

import (
	"slices"
	"strings"

	"gangd/pkg/api"
)

// poolsInto is the setter of an option that asks for what the site has altogether: NAME[:N],...
func poolsInto(kind string) func(a *Ask, v string) error {
	return func(a *Ask, v string) error {
		var asked []api.Pool
		a.Spec.Pools = slices.DeleteFunc(slices.Clone(a.Spec.Pools), func(p api.Pool) bool { return p.Kind == kind })
		if v == "" {
			return nil
		}
		for one := range strings.SplitSeq(v, ",") {
			name, count, given := strings.Cut(one, ":")
			p := api.Pool{Kind: kind, Name: name, Count: 1}
			switch {
			case strings.ContainsAny(one, "|;"):
				return bad("one or another can't be asked for", "write each with a comma between: all are needed")
			case !api.PoolNameOK(name):
				return bad("want names of letters, digits and . _ - @ /", "write NAME:N,NAME:N")
			case slices.ContainsFunc(asked, func(o api.Pool) bool { return o.Name == name }):
				return bad(name+" is named twice", "write it once, with how many in all")
			case given:
				if err := numberInto(&p.Count, count, 0, 1<<20); err != nil {
					return err
				}
			}
			if p.Count > 0 {
				asked = append(asked, p)
			}
		}
		slices.SortFunc(asked, func(a, b api.Pool) int { return strings.Compare(a.Name, b.Name) })
		a.Spec.Pools = append(a.Spec.Pools, asked...)
		return nil
	}
}
