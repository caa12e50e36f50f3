package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"gangd/pkg/sched"
)

// Claims are in the store, in the commit of the batch whose plan made them: made anew after
// a restart, they would stand elsewhere, and the shorter gangs that they kept off would be
// ahead of the gangs that waited for them. The time of a claim is worked out in each plan,
// so that only another place, victim or taker is a change: a few a minute on a busy site.

// restoreClaims gives the first plan the claims of the last one that was committed.
func (e *Engine) restoreClaims(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, &e.plan.last.Claims); err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	e.plan.kept = byJob(e.plan.last.Claims)
	return nil
}

// byJob orders claims so that another time, by which a plan orders them, is no change.
func byJob(claims []sched.Claim) []sched.Claim {
	return slices.SortedFunc(slices.Values(claims), func(a, b sched.Claim) int { return cmp.Compare(a.Job, b.Job) })
}

// claimsToKeep is what the store is to have of the claims; nil: it has them.
func (e *Engine) claimsToKeep() []byte {
	claims := byJob(e.plan.last.Claims)
	if slices.EqualFunc(claims, e.plan.kept, sameClaim) {
		return nil
	}
	data, err := json.Marshal(slices.Concat([]sched.Claim{}, claims)) // none is [], not null
	if err != nil {
		panic(err) // names, numbers and times
	}
	e.plan.kept = claims
	return data
}

func sameClaim(a, b sched.Claim) bool {
	return a.Job == b.Job && len(a.Slots) == len(b.Slots) && (len(a.Slots) == 0 || &a.Slots[0] == &b.Slots[0]) &&
		a.Until.Equal(b.Until) && slices.EqualFunc(a.Victims, b.Victims, func(x, y sched.Victim) bool {
		return x.Job == y.Job && x.Epoch == y.Epoch && x.Told == y.Told && x.At.Equal(y.At)
	})
}
