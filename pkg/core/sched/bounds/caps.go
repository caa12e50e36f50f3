package bounds

import (
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
)

// Bounds is what a gang may not exceed, whatever is free: the cards of a user and an account, and the site's pools.
type Bounds struct {
	*given.Facts
	kept     *kept.Backfills
	holdings *holdings // nil: not counted yet
}

// holdings counts the cards in the hands of each user and account, and what of pools is held, with those of the starts
// planned so far.
type holdings struct {
	user, account map[string]int
	pools         map[api.PoolKey]int
	takers        []poolTaker // who waits for pools, the first of them
}

// New is what holds for a view, with the places that are kept.
func New(f *given.Facts, k *kept.Backfills) Bounds { return Bounds{Facts: f, kept: k} }

func (bs *Bounds) held() *holdings {
	if bs.holdings == nil {
		bs.holdings = &holdings{user: map[string]int{}, account: map[string]int{}, pools: map[api.PoolKey]int{}}
		for _, r := range bs.View.Running {
			bs.holdings.add(r.User, r.Account, r.Cards, r.Pools)
		}
	}
	return bs.holdings
}

func (h *holdings) add(user, account string, cards int, pools []api.Pool) {
	h.user[user] += cards
	h.account[account] += cards
	for i := range pools {
		h.pools[pools[i].Key()] += pools[i].Count
	}
}

// Book counts a start of the plan.
func (bs *Bounds) Book(c *order.Candidate) {
	if bs.holdings != nil {
		bs.holdings.add(c.User, c.Account, order.CardsOf(c.Ask), c.Ask.Spec.Pools)
	}
}

// Left is how many cards more the user of a gang, or its account where that is the bound, may have.
func (bs *Bounds) Left(c *order.Candidate, x *Excess) int {
	if x.Word == given.WordUserCap {
		return bs.Policy.UserCards - bs.held().user[c.User]
	}
	if a := bs.Policy.Account(c.Account); a != nil {
		return a.Cards - bs.held().account[c.Account]
	}
	return 0
}

// Excess is a bound that a gang would exceed.
type Excess struct {
	Word     string
	Sentence string
	Pool     api.PoolKey // of the site's pools, where it is one
}

// Capped says which bound a gang would exceed, nil when none.
func (bs *Bounds) Capped(c *order.Candidate) *Excess {
	if v := bs.shortOfPool(c); v != nil {
		return v
	}
	p := bs.Policy
	if text := p.Closed(c); text != "" {
		return &Excess{Word: given.WordNoAccount, Sentence: text}
	}
	if p.UserCards == 0 && len(p.Accounts) == 0 {
		return nil
	}
	cards := order.CardsOf(c.Ask)
	if cards == 0 {
		return nil
	}
	if has := bs.held().user[c.User]; p.UserCards > 0 && has+cards > p.UserCards {
		return &Excess{Word: given.WordUserCap, Sentence: fmt.Sprintf("%s has %s and asks for %d more, at most %d are allowed to a user "+
			"at a time", c.User, api.Count(has, "card"), cards, p.UserCards)}
	}
	if a := p.Account(c.Account); a != nil && a.Cards > 0 {
		if has := bs.held().account[c.Account]; has+cards > a.Cards {
			return &Excess{Word: given.WordAccountCap, Sentence: fmt.Sprintf("account %s has %s and %d more are asked for, at most %d are "+
				"allowed to it at a time", c.Account, api.Count(has, "card"), cards, a.Cards)}
		}
	}
	return nil
}

// Reclaims reports whether a gang asks for no more than its account's own cards.
func (bs *Bounds) Reclaims(c *order.Candidate) bool {
	a := bs.Policy.Account(c.Account)
	return a != nil && a.Quota > 0 && bs.held().account[c.Account]+order.CardsOf(c.Ask) <= a.Quota
}

// Borrows reports whether a gang's account has more than its own, where somebody reclaims.
func (bs *Bounds) Borrows(r *order.Running) bool {
	quota := 0
	if a := bs.Policy.Account(r.Account); a != nil {
		quota = a.Quota
	}
	return bs.held().account[r.Account] > quota
}
