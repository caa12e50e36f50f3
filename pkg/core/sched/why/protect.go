package why

import (
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/order"
)

// ProtectedLines names the gangs that would have to make room for a candidate if they were
// not protected, by what each is, and until when.
func (wy *Why) ProtectedLines(c *order.Candidate, d *cluster.Need) []string {
	if !wy.MayPreempt() {
		return nil
	}
	const most = 4
	var texts []string
	for _, r := range wy.View.Running {
		by, until := wy.Policy.Protects(r, wy.Now)
		if by == "" || r.Stopping || !wy.victims.WouldTake(c, r) || !wy.holdsWhere(r, d) {
			continue
		}
		texts = append(texts, "job "+wy.View.Names.Of(r.Job)+" "+wy.protectedText(r, by, until))
	}
	if len(texts) == 0 {
		return nil
	}
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most], api.Count(more, "more gang"))
	}
	return []string{"could make room, but protected: " + strings.Join(texts, ", ")}
}

func (wy *Why) protectedText(r *order.Running, by order.Protection, until time.Time) string {
	switch by {
	case order.ProtectedByItself:
		return "until " + when.Clock(wy.Now, until) + " (its --min-run)"
	case order.ProtectedBySite:
		return "until " + when.Clock(wy.Now, until) + " (the least run of the site)"
	}
	text := "until it ends"
	if r.TimeLimit > 0 && !r.Start.IsZero() {
		text = "until it ends, at the latest at " + when.Clock(wy.Now, r.Start.Add(r.TimeLimit+r.Stop))
	}
	return text + " (a rank is done)"
}

// holdsWhere reports whether a gang holds something of a node that an ask admits.
func (wy *Why) holdsWhere(r *order.Running, d *cluster.Need) bool {
	for _, n := range wy.kept.Bare().Every() {
		if _, here := n.Grant(api.MemberKey{Job: r.Job, Epoch: r.Epoch}); here && (d.Parts != nil || d.Admits(n)) {
			return true
		}
	}
	return false
}
