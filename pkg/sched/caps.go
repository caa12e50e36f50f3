package sched

import (
	"fmt"
	"slices"
	"time"
)

// The words for gangs that a bound of their user or account keeps, as Slurm spells them.
const (
	WordUserCap    = "QOSMaxGRESPerUser"
	WordAccountCap = "AssocGrpGRES"
)

func (p *Policy) hasQuotas() bool {
	return slices.ContainsFunc(p.Accounts, func(a Account) bool { return a.Quota > 0 })
}

func (p *Policy) account(name string) *Account {
	for i := range p.Accounts {
		if p.Accounts[i].Name == name {
			return &p.Accounts[i]
		}
	}
	return nil
}

// held counts the cards in the hands of each user and account, with those of the starts
// planned so far.
type held struct{ user, account map[string]int }

func (pl *planner) held() *held {
	if pl.use == nil {
		pl.use = &held{map[string]int{}, map[string]int{}}
		for _, r := range pl.view.Running {
			pl.use.add(r.User, r.Account, r.Cards)
		}
	}
	return pl.use
}

func (h *held) add(user, account string, cards int) {
	h.user[user] += cards
	h.account[account] += cards
}

// capped says which bound a gang would exceed, nil when none.
func (pl *planner) capped(c *Candidate) *verdict {
	p := pl.policy
	if p.UserCards == 0 && len(p.Accounts) == 0 {
		return nil
	}
	cards := CardsOf(c.Ask)
	if cards == 0 {
		return nil
	}
	if has := pl.held().user[c.User]; p.UserCards > 0 && has+cards > p.UserCards {
		return &verdict{word: WordUserCap, says: fmt.Sprintf("%s has %s and asks for %d more, at most %d are allowed to a user at a time",
			c.User, plural(has, "card"), cards, p.UserCards)}
	}
	if a := p.account(c.Account); a != nil && a.Cards > 0 {
		if has := pl.held().account[c.Account]; has+cards > a.Cards {
			return &verdict{word: WordAccountCap, says: fmt.Sprintf("account %s has %s and %d more are asked for, at most %d are allowed to it at a time",
				c.Account, plural(has, "card"), cards, a.Cards)}
		}
	}
	return nil
}

// capLines names who holds the cards that a bound counts, when the first of them ends, and the
// most that may be asked for meanwhile.
func (pl *planner) capLines(c *Candidate, word string) []string {
	var ids []int64
	var first time.Time
	for _, r := range pl.view.Running {
		if r.Cards == 0 || word == WordUserCap && r.User != c.User || word == WordAccountCap && r.Account != c.Account {
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
		line := "held by " + jobList(ids)
		if !first.IsZero() {
			line += ", the first of which ends at the latest at " + clock(pl.now, first)
		}
		lines = append(lines, line)
	}
	left := 0
	if word == WordUserCap {
		left = pl.policy.UserCards - pl.held().user[c.User]
	} else if a := pl.policy.account(c.Account); a != nil {
		left = a.Cards - pl.held().account[c.Account]
	}
	if left > 0 {
		lines = append(lines, fmt.Sprintf("at most %s more may be asked for until then", plural(left, "card")))
	}
	return lines
}

// reclaims reports whether a gang asks for no more than its account's own cards.
func (pl *planner) reclaims(c *Candidate) bool {
	a := pl.policy.account(c.Account)
	return a != nil && a.Quota > 0 && pl.held().account[c.Account]+CardsOf(c.Ask) <= a.Quota
}

// borrows reports whether a gang's account has more than its own.
func (pl *planner) borrows(r *prey) bool {
	quota := 0
	if a := pl.policy.account(r.Account); a != nil {
		quota = a.Quota
	}
	return pl.policy.hasQuotas() && pl.held().account[r.Account] > quota
}
