package order

import (
	"fmt"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/nearest"
)

// AboveCap says why an ask could never start for a cap alone, nil when it could.
func (p *Policy) AboveCap(account string, ask *cluster.Ask) *api.Error {
	if err := p.CheckPools(ask.Spec.Pools); err != nil {
		return err
	}
	cards := CardsOf(ask)
	above := func(most int, whose string) *api.Error {
		return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("%s are asked for, and %s may hold at most %d at a time",
			api.Count(cards, "card"), whose, most),
			Hint: fmt.Sprintf("ask for %s or fewer", api.Count(most, "card"))}
	}
	if p.UserCards > 0 && cards > p.UserCards {
		return above(p.UserCards, "a user")
	}
	if a := p.Account(account); a != nil && a.Cards > 0 && cards > a.Cards {
		return above(a.Cards, "account "+account)
	}
	return nil
}

// Closed says why a gang that waits may not be started under its account any more, empty: it may.
func (p *Policy) Closed(c *Candidate) string {
	if len(p.Accounts) == 0 || c.Account == "" {
		return ""
	}
	switch a := p.Account(c.Account); {
	case a == nil:
		return fmt.Sprintf("account %s is not there any more; submit it again under another", c.Account)
	case !a.OpenTo(c.User):
		return fmt.Sprintf("account %s is not open to %s any more; submit it again under another", c.Account, c.User)
	}
	return ""
}

// Account is the one of a name; nil: there is none.
func (p *Policy) Account(name string) *Account {
	for i := range p.Accounts {
		if p.Accounts[i].Name == name {
			return &p.Accounts[i]
		}
	}
	return nil
}

func (p *Policy) hasQuotas() bool {
	return slices.ContainsFunc(p.Accounts, func(a Account) bool { return a.Quota > 0 })
}

// CheckPools says why pools could never be had, nil when they could.
func (p *Policy) CheckPools(pools []api.Pool) *api.Error {
	for i := range pools {
		if e := p.checkPool(&pools[i]); e != nil {
			return e.About(api.ReasonPool, pools[i].Name)
		}
	}
	return nil
}

func (p *Policy) checkPool(want *api.Pool) *api.Error {
	var names []string
	total, known := p.Pool(want.Key())
	for k := range p.Pools {
		if p.Pools[k].Kind == want.Kind {
			names = append(names, p.Pools[k].Name)
		}
	}
	switch {
	case !known && len(names) == 0:
		return &api.Error{Code: api.CodeInvalid, Message: fmt.Sprintf("there is no %s: the site has no %s", want.Key(), want.Kind),
			Hint: "ask an admin, who lists them in gangd's configuration"}
	case !known:
		hint := "there are " + strings.Join(names, ", ")
		if near := nearest.Of(want.Name, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		return &api.Error{Code: api.CodeInvalid, Message: "there is no " + want.Key().String(), Hint: hint}
	case want.Count > total:
		return &api.Error{Code: api.CodeUnsatisfiable, Message: fmt.Sprintf("%d of %s are asked for, and the site has %d", want.Count,
			want.Key(), total),
			Hint: fmt.Sprintf("ask for %s:%d or fewer", want.Name, total)}
	}
	return nil
}

// Pool is how many there are.
func (p *Policy) Pool(k api.PoolKey) (total int, known bool) {
	i := slices.IndexFunc(p.Pools, func(o api.Pool) bool { return o.Key() == k })
	if i < 0 {
		return 0, false
	}
	return p.Pools[i].Count, true
}
