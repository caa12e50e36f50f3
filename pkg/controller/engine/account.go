package engine

import (
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/nearest"
	"gangd/pkg/core/sched/order"
)

// account is the one that a user's job belongs to, when it asks for one or, "", for none. Where
// the site names accounts there are no others: a slip of the fingers would be a way around caps.
func (e *Engine) account(asked, user string) (string, error) {
	all := e.policy().Accounts
	if len(all) == 0 {
		return asked, nil
	}
	if asked == "" {
		for i := range all {
			if slices.Contains(all[i].Users, user) {
				return all[i].Name, nil
			}
		}
		i := slices.IndexFunc(all, func(a order.Account) bool { return a.Default })
		if i < 0 {
			return "", nil
		}
		if !all[i].OpenTo(user) {
			return "", e.noAccount(user, "no account is open to %s, not even the default one, %s", user, all[i].Name)
		}
		return all[i].Name, nil
	}
	for i := range all {
		if all[i].Name == asked {
			if all[i].OpenTo(user) {
				return asked, nil
			}
			return "", e.noAccount(user, "account %s is not open to %s", asked, user)
		}
	}
	return "", e.unknownAccount(asked)
}

// unknownAccount is the refusal of one that the site does not have.
func (e *Engine) unknownAccount(asked string) error {
	var names []string
	for _, a := range e.policy().Accounts {
		names = append(names, a.Name)
	}
	err := api.Errorf(api.CodeInvalid, "no account %q", asked)
	err.Hint = nearest.Hint(asked, names, "accounts here: "+strings.Join(names, ", "))
	return err
}

// noAccount is a refusal with the accounts that are open to a user.
func (e *Engine) noAccount(user, format string, args ...any) error {
	err := api.Errorf(api.CodePermission, format, args...)
	var mine []string
	for _, a := range e.policy().Accounts {
		if a.OpenTo(user) {
			mine = append(mine, a.Name)
		}
	}
	if len(mine) > 0 {
		err.Hint = fmt.Sprintf("open to %s: %s", user, strings.Join(mine, ", "))
	} else {
		err.Hint = "an admin lists users in the [[account]] tables of gangd.toml"
	}
	return err
}
