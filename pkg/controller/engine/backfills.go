package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"gangd/pkg/core/sched/given"
)

// Backfills are in the store, in the commit of the batch whose plan made them: made anew after
// a restart, they would stand elsewhere, and the shorter gangs that they kept off would be
// ahead of the gangs that waited for them. The time of a backfill is worked out in each plan,
// so that only another place, victim or taker is a change: a few a minute on a busy site.

// restoreBackfills gives the first plan the backfills of the last one that was committed.
func (e *Engine) restoreBackfills(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, &e.plan.last.Backfills); err != nil {
		return fmt.Errorf("backfills: %w", err)
	}
	e.plan.kept = byJob(e.plan.last.Backfills)
	return nil
}

// byJob orders backfills so that another time, by which a plan orders them, is no change.
func byJob(backfills []given.Backfill) []given.Backfill {
	return slices.SortedFunc(slices.Values(backfills), func(a, b given.Backfill) int { return cmp.Compare(a.Job, b.Job) })
}

// backfillsToKeep is what the store is to have of the backfills; nil: it has them.
func (e *Engine) backfillsToKeep() []byte {
	backfills := byJob(e.plan.last.Backfills)
	if slices.EqualFunc(backfills, e.plan.kept, sameBackfill) {
		return nil
	}
	data, err := json.Marshal(append([]given.Backfill{}, backfills...)) // none is [], not null
	if err != nil {
		panic(err) // names, numbers and times
	}
	e.plan.kept = backfills
	return data
}

func sameBackfill(a, b given.Backfill) bool {
	return a.Job == b.Job && len(a.Slots) == len(b.Slots) && (len(a.Slots) == 0 || &a.Slots[0] == &b.Slots[0]) &&
		a.Until.Equal(b.Until) && slices.EqualFunc(a.Victims, b.Victims, func(x, y given.Victim) bool {
		return x.Job == y.Job && x.Epoch == y.Epoch && x.Notified == y.Notified && x.At.Equal(y.At)
	})
}
