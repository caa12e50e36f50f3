package script

import (
	"slices"
	"strings"

	"gangd/pkg/api"
)

// notifyTypes reads kinds as --mail-type takes them; NONE among them leaves none.
func notifyTypes(v string) (types []api.NotifyType, err error) {
	none := false
	for t := range strings.SplitSeq(v, ",") {
		kind := api.NotifyType(strings.ToUpper(strings.TrimSpace(t)))
		switch {
		case kind == "NONE":
			none = true
		case kind == "ALL":
			types = append(types, api.NotifyAll...)
		case slices.Contains(api.NotifyTypes, kind):
			types = append(types, kind)
		default:
			return nil, bad("not a kind of mail", "kinds are NONE, ALL, "+strings.Join(names(api.NotifyTypes), ", "))
		}
	}
	if none {
		return nil, nil
	}
	slices.SortFunc(types, func(a, b api.NotifyType) int {
		return slices.Index(api.NotifyTypes, a) - slices.Index(api.NotifyTypes, b)
	})
	return slices.Compact(types), nil
}

func names(types []api.NotifyType) (out []string) {
	for _, t := range types {
		out = append(out, string(t))
	}
	return out
}

func setNotify(a *Ask, v string) error {
	name, kinds, some := strings.Cut(v, ":")
	n := api.Notify{Target: name, Types: api.NotifyDefault}
	if name == "" {
		return bad("no name of a target", "write --notify=NAME, or --notify=NAME:END,FAIL")
	}
	if some {
		var err error
		if n.Types, err = notifyTypes(kinds); err != nil {
			return err
		}
	}
	a.Spec.Notify = append(a.Spec.Notify, n)
	return nil
}

// mail is what --mail-type and --mail-user come to.
func mail(types []api.NotifyType, user string) (out []api.Notify) {
	if len(types) == 0 {
		return nil
	}
	for to := range strings.SplitSeq(user, ",") {
		out = append(out, api.Notify{To: strings.TrimSpace(to), Types: types})
	}
	return out
}
