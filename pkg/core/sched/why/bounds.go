package why

import (
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/bounds"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
)

// CapLines names who holds what a bound counts, when the first of them ends, and the
// most that may be asked for meanwhile.
func (wy *Why) CapLines(c *order.Candidate, x *bounds.Excess) []string {
	word, ofPool := x.Word, x.Pool != (api.PoolKey{})
	if word == given.WordNoAccount {
		return nil
	}
	var ids []int64
	var first time.Time
	for _, r := range wy.View.Running {
		if ofPool && bounds.CountOf(r.Pools, x.Pool) == 0 || !ofPool && r.Cards == 0 || word == given.WordUserCap && r.User != c.User ||
			word == given.WordAccountCap && r.Account != c.Account {
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
		line := "held by " + wy.View.Names.List(ids)
		if !first.IsZero() {
			line += ", the first of which ends at the latest at " + when.Clock(wy.Now, first)
		}
		lines = append(lines, line)
	}
	if ofPool {
		return lines
	}
	left := wy.bounds.Left(c, x)
	if left > 0 {
		lines = append(lines, fmt.Sprintf("at most %s more may be asked for until then", api.Count(left, "card")))
	}
	return lines
}
