package sched

import (
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/kept"
	"gangd/pkg/core/sched/order"
)

// bounds is what a gang may not exceed, whatever is free: the cards of a user and an account, and the site's pools.
type bounds struct {
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

func (bs *bounds) held() *holdings {
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

// book counts a start of the plan.
func (bs *bounds) book(c *order.Candidate) {
	if bs.holdings != nil {
		bs.holdings.add(c.User, c.Account, order.CardsOf(c.Ask), c.Ask.Spec.Pools)
	}
}

// left is how many cards more the user of a gang, or its account where that is the bound, may have.
func (bs *bounds) left(c *order.Candidate, x *excess) int {
	if x.word == WordUserCap {
		return bs.Policy.UserCards - bs.held().user[c.User]
	}
	if a := bs.Policy.Account(c.Account); a != nil {
		return a.Cards - bs.held().account[c.Account]
	}
	return 0
}

// excess is a bound that a gang would exceed.
type excess struct {
	word     string
	sentence string
	pool     api.PoolKey // of the site's pools, where it is one
}

// capped says which bound a gang would exceed, nil when none.
func (bs *bounds) capped(c *order.Candidate) *excess {
	if v := bs.shortOfPool(c); v != nil {
		return v
	}
	p := bs.Policy
	if text := p.Closed(c); text != "" {
		return &excess{word: WordNoAccount, sentence: text}
	}
	if p.UserCards == 0 && len(p.Accounts) == 0 {
		return nil
	}
	cards := order.CardsOf(c.Ask)
	if cards == 0 {
		return nil
	}
	if has := bs.held().user[c.User]; p.UserCards > 0 && has+cards > p.UserCards {
		return &excess{word: WordUserCap, sentence: fmt.Sprintf("%s has %s and asks for %d more, at most %d are allowed to a user at a time",
			c.User, api.Count(has, "card"), cards, p.UserCards)}
	}
	if a := p.Account(c.Account); a != nil && a.Cards > 0 {
		if has := bs.held().account[c.Account]; has+cards > a.Cards {
			return &excess{word: WordAccountCap, sentence: fmt.Sprintf("account %s has %s and %d more are asked for, at most %d are allowed to "+
				"it at a time",
				c.Account, api.Count(has, "card"), cards, a.Cards)}
		}
	}
	return nil
}

// reclaims reports whether a gang asks for no more than its account's own cards.
func (bs *bounds) reclaims(c *order.Candidate) bool {
	a := bs.Policy.Account(c.Account)
	return a != nil && a.Quota > 0 && bs.held().account[c.Account]+order.CardsOf(c.Ask) <= a.Quota
}

// borrows reports whether a gang's account has more than its own, where somebody reclaims.
func (bs *bounds) borrows(r *victimCandidate) bool {
	quota := 0
	if a := bs.Policy.Account(r.Account); a != nil {
		quota = a.Quota
	}
	return bs.held().account[r.Account] > quota
}
