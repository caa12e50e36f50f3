package script

import (
	"slices"
	"strings"

	"gangd/pkg/api"
)

// poolsInto is the setter of an option that asks for what the site has altogether.
func poolsInto(kind string) func(a *Ask, v string) error {
	return func(a *Ask, v string) error {
		asked, err := Pools(kind, v)
		if err != nil {
			return err
		}
		asked = slices.DeleteFunc(asked, func(p api.Pool) bool { return p.Count == 0 })
		a.Spec.Pools = append(slices.DeleteFunc(slices.Clone(a.Spec.Pools), func(p api.Pool) bool { return p.Kind == kind }), asked...)
		return nil
	}
}

// Pools reads NAME[:N],... as Slurm does: a name alone is one of it, one that is there twice has the sum, = is as :, and ; as a comma.
func Pools(kind, v string) (out []api.Pool, err error) {
	if v == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(strings.ReplaceAll(v, ";", ","), ",") {
		p := api.Pool{Kind: kind, Name: one, Count: 1}
		if at := strings.IndexAny(one, ":="); at >= 0 {
			p.Name = one[:at]
			if err := numberInto(&p.Count, one[at+1:], 0, api.MaxPool); err != nil {
				return nil, err
			}
		}
		switch {
		case strings.Contains(p.Name, "|"):
			return nil, bad("one or another can't be asked for", "write each with a comma between: all are needed")
		case !api.PoolNameOK(p.Name):
			return nil, bad("want names of letters, digits and . _ - @ /", "write NAME:N,NAME:N")
		}
		if out = api.AddPools(out, []api.Pool{p}); slices.ContainsFunc(out, func(p api.Pool) bool { return p.Count > api.MaxPool }) {
			return nil, bad("too many of "+p.Name, "write 1048576 or fewer in all")
		}
	}
	return out, nil
}
