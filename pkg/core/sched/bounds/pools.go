package bounds

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// A pool is what the site has so many of altogether, whichever nodes use it. A gang holds what it asks for from its
// reservation until it waits for none of its members any more. Who waits for some is not passed by those behind it that ask for the same
// and would still hold it when there is enough for it, by time limits; nor is who has a backfill.

// poolTaker is a gang that waits for pools.
type poolTaker struct {
	*order.Candidate
	from time.Time // when there is enough for it by time limits; zero: nobody knows
}

// poolWord is Slurm's for who waits for some of a kind.
func poolWord(kind string) string {
	if r := api.PoolRowOf(kind); r != nil {
		return r.Word
	}
	return given.WordResources
}

// shortOfPool says which pool has too little left for a gang that starts now, nil when none.
func (bs *Bounds) shortOfPool(c *order.Candidate) *Excess {
	for i := range c.Ask.Spec.Pools {
		want := &c.Ask.Spec.Pools[i]
		total, known := bs.Policy.Pool(want.Key())
		free := max(0, total-bs.held().pools[want.Key()])
		text := fmt.Sprintf("%d of %s asked for, %d of %d free", want.Count, want.Key(), free, total)
		switch {
		case !known:
			text = "there is no " + want.Key().String() + " any more"
		case want.Count > total:
			text = fmt.Sprintf("%d of %s asked for, and the site has only %d any more", want.Count, want.Key(), total)
		}
		kept, takers := bs.poolKept(c, want.Key())
		if kept > 0 && want.Count <= free {
			text += fmt.Sprintf(", %d of them kept for %s", min(kept, free), bs.View.Names.List(takers))
		}
		if want.Count+kept > free {
			return &Excess{Word: poolWord(want.Kind), Sentence: text, Pool: want.Key()}
		}
	}
	return nil
}

// poolKept is how many of a pool are kept for gangs before c, which would still hold some when they are to start.
func (bs *Bounds) poolKept(c *order.Candidate, k api.PoolKey) (kept int, takers []int64) {
	end := bs.End(c)
	add := func(t *order.Candidate, from time.Time) {
		if t.Job == c.Job || !from.Before(end) || slices.Contains(takers, t.Job) {
			return
		}
		for i := range t.Ask.Spec.Pools {
			if t.Ask.Spec.Pools[i].Key() == k {
				kept, takers = kept+t.Ask.Spec.Pools[i].Count, append(takers, t.Job)
			}
		}
	}
	for _, t := range bs.held().takers {
		add(t.Candidate, t.from)
	}
	for i := range bs.kept.List {
		if b := &bs.kept.List[i]; order.Compare(b.Taker, c) < 0 {
			add(b.Taker, b.From())
		}
	}
	return kept, takers
}

// KeepPools keeps what a gang asks for from those behind it, as far as it is one of the first that wait for any. For who asks for
// more than the site has since it was restarted with fewer nothing is kept: it would keep the others off for ever.
func (bs *Bounds) KeepPools(c *order.Candidate, x *Excess) {
	if x.Pool == (api.PoolKey{}) || bs.Policy.CheckPools(c.Ask.Spec.Pools) != nil {
		return
	}
	if h := bs.held(); len(h.takers) < bs.Depth && !slices.ContainsFunc(h.takers, func(t poolTaker) bool { return t.Job == c.Job }) {
		h.takers = append(h.takers, poolTaker{c, bs.poolsFreeAt(c)})
	}
}

// poolsFreeAt is when there is enough of all that a gang asks for at the latest, by the time limits of who holds it; zero: it is not known.
func (bs *Bounds) poolsFreeAt(c *order.Candidate) (at time.Time) {
	for i := range c.Ask.Spec.Pools {
		want := &c.Ask.Spec.Pools[i]
		total, _ := bs.Policy.Pool(want.Key())
		missing := want.Count - (total - bs.held().pools[want.Key()])
		var ends []poolEnd
		for _, r := range bs.View.Running {
			if n := CountOf(r.Pools, want.Key()); n > 0 {
				if t := r.EndBy(); !t.IsZero() {
					ends = append(ends, poolEnd{t, n})
				}
			}
		}
		slices.SortFunc(ends, func(a, b poolEnd) int { return a.at.Compare(b.at) })
		for _, e := range ends {
			if missing <= 0 {
				break
			}
			if missing -= e.n; e.at.After(at) {
				at = e.at
			}
		}
		if missing > 0 {
			return time.Time{}
		}
	}
	return at
}

type poolEnd struct {
	at time.Time
	n  int
}

// CountOf is how many of one are among some.
func CountOf(pools []api.Pool, k api.PoolKey) int {
	n := 0
	for i := range pools {
		if pools[i].Key() == k {
			n += pools[i].Count
		}
	}
	return n
}
