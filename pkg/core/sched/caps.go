package sched

import (
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/order"
)

// The words for gangs that a bound of their user or account keeps, as Slurm spells them.
const (
	WordUserCap    = "QOSMaxGRESPerUser"
	WordAccountCap = "AssocGrpGRES"
	WordNoAccount  = "InvalidAccount"
)

// bounds is what a gang may not exceed, whatever is free: the cards of a user and an account, and the site's pools.
type bounds struct {
	*given
	kept     *kept
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
		for _, r := range bs.view.Running {
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

// capped says which bound a gang would exceed, nil when none.
func (bs *bounds) capped(c *order.Candidate) *verdict {
	if v := bs.shortOfPool(c); v != nil {
		return v
	}
	p := bs.policy
	if text := p.Closed(c); text != "" {
		return &verdict{word: WordNoAccount, sentence: text}
	}
	if p.UserCards == 0 && len(p.Accounts) == 0 {
		return nil
	}
	cards := order.CardsOf(c.Ask)
	if cards == 0 {
		return nil
	}
	if has := bs.held().user[c.User]; p.UserCards > 0 && has+cards > p.UserCards {
		return &verdict{word: WordUserCap, sentence: fmt.Sprintf("%s has %s and asks for %d more, at most %d are allowed to a user at a time",
			c.User, api.Count(has, "card"), cards, p.UserCards)}
	}
	if a := p.Account(c.Account); a != nil && a.Cards > 0 {
		if has := bs.held().account[c.Account]; has+cards > a.Cards {
			return &verdict{word: WordAccountCap, sentence: fmt.Sprintf("account %s has %s and %d more are asked for, at most %d are allowed to "+
				"it at a time",
				c.Account, api.Count(has, "card"), cards, a.Cards)}
		}
	}
	return nil
}

// capLines names who holds what a bound counts, when the first of them ends, and the
// most that may be asked for meanwhile.
func (wy *why) capLines(c *order.Candidate, v *verdict) []string {
	word, ofPool := v.word, v.pool != (api.PoolKey{})
	if word == WordNoAccount {
		return nil
	}
	var ids []int64
	var first time.Time
	for _, r := range wy.view.Running {
		if ofPool && countOf(r.Pools, v.pool) == 0 || !ofPool && r.Cards == 0 || word == WordUserCap && r.User != c.User ||
			word == WordAccountCap && r.Account != c.Account {
			continue
		}
		ids = append(ids, r.Job)
		if r.TimeLimit > 0 && !r.Start.IsZero() {
			if t := r.Start.Add(r.TimeLimit + r.Stop); first.IsZero() || t.Before(first) {
				first = t
			}
		}
	}
	var lines []string
	if len(ids) > 0 {
		line := "held by " + wy.view.Names.list(ids)
		if !first.IsZero() {
			line += ", the first of which ends at the latest at " + when.Clock(wy.now, first)
		}
		lines = append(lines, line)
	}
	left := 0
	if ofPool {
		return lines
	} else if word == WordUserCap {
		left = wy.policy.UserCards - wy.bounds.held().user[c.User]
	} else if a := wy.policy.Account(c.Account); a != nil {
		left = a.Cards - wy.bounds.held().account[c.Account]
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("at most %s more may be asked for until then", api.Count(left, "card")))
	}
	return lines
}

// reclaims reports whether a gang asks for no more than its account's own cards.
func (bs *bounds) reclaims(c *order.Candidate) bool {
	a := bs.policy.Account(c.Account)
	return a != nil && a.Quota > 0 && bs.held().account[c.Account]+order.CardsOf(c.Ask) <= a.Quota
}

// borrows reports whether a gang's account has more than its own, where somebody reclaims.
func (bs *bounds) borrows(r *victimCandidate) bool {
	quota := 0
	if a := bs.policy.Account(r.Account); a != nil {
		quota = a.Quota
	}
	return bs.held().account[r.Account] > quota
}
