package engine

import (
	"context"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/order"
)

// Limits is what a user may use, and does.
func (e *Engine) Limits(ctx context.Context, uid uint32, user string) (*api.LimitsReply, error) {
	p := e.policy()
	out := &api.LimitsReply{SchemaVersion: api.SchemaVersion, UserCards: p.UserCards, Accounts: []api.AccountLimits{}}
	at, shares := map[string]int{}, 0.0
	for i := range p.Accounts {
		a := &p.Accounts[i]
		shares += weightOf(a)
		if a.OpenTo(user) {
			at[a.Name] = len(out.Accounts)
			out.Accounts = append(out.Accounts, api.AccountLimits{Name: a.Name, Cards: a.Cards, Quota: a.Quota})
		}
	}
	for i := range p.Accounts {
		if k, mine := at[p.Accounts[i].Name]; mine && p.Order == order.OrderFair {
			out.Accounts[k].SharePercent = 100 * weightOf(&p.Accounts[i]) / shares
		}
	}
	e.view.mu.RLock()
	for j := range e.view.from(0) {
		if j.Verdict != nil || len(j.Members) == 0 {
			continue
		}
		n := cardsOf(j.Spec, len(j.Members))
		if j.UID == uid {
			out.CardsHeld += n
		}
		if k, mine := at[j.Spec.Account]; mine {
			out.Accounts[k].CardsHeld += n
		}
	}
	e.view.mu.RUnlock()
	if len(out.Accounts) == 0 {
		return out, nil
	}
	l, err := e.Ledger(ctx, &api.LedgerQuery{From: api.LedgerDay(e.opt.Clock.Now().Wall.Add(-6 * 24 * time.Hour)), By: []string{"account"}})
	if err != nil {
		return nil, err
	}
	var all int64
	for i := range l.Rows {
		all += l.Rows[i].CardMS
	}
	for i := range l.Rows {
		if k, mine := at[l.Rows[i].Account]; mine && all > 0 {
			out.Accounts[k].UsedPercent = 100 * float64(l.Rows[i].CardMS) / float64(all)
		}
	}
	slices.SortFunc(out.Accounts, func(a, b api.AccountLimits) int { return b.CardsHeld - a.CardsHeld })
	return out, nil
}

// weightOf is an account's weight in fair share.
func weightOf(a *order.Account) float64 {
	if a.Share > 0 {
		return a.Share
	}
	return 1
}
