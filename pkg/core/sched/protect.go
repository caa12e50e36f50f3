package sched

import (
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
)

// protectedLines names the gangs that would have to make room for a candidate if they were
// not protected, by what each is, and until when.
func (pl *planner) protectedLines(c *Candidate, d *cluster.Need) []string {
	if !pl.mayPreempt() {
		return nil
	}
	service := pl.policy.Service(pl.view.Queue.Ledger(), c).Seconds()
	const most = 4
	var texts []string
	for _, r := range pl.view.Running {
		by, until := pl.policy.Protects(r, pl.now)
		if by == "" || r.Stopping || !pl.mayTake(c, service, &victimCandidate{Running: r, left: pl.serviceLeft(r)}) || !pl.holdsWhere(r, d) {
			continue
		}
		texts = append(texts, "job "+pl.view.Names.of(r.Job)+" "+pl.protectedText(r, by, until))
	}
	if len(texts) == 0 {
		return nil
	}
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most], api.Count(more, "more gang"))
	}
	return []string{"could make room, but protected: " + strings.Join(texts, ", ")}
}

func (pl *planner) protectedText(r *Running, by Protection, until time.Time) string {
	switch by {
	case ProtectedByItself:
		return "until " + when.Clock(pl.now, until) + " (its --min-run)"
	case ProtectedBySite:
		return "until " + when.Clock(pl.now, until) + " (preempt_min_run)"
	}
	text := "until it ends"
	if r.TimeLimit > 0 && !r.Start.IsZero() {
		text = "until it ends, at the latest at " + when.Clock(pl.now, r.Start.Add(r.TimeLimit+r.Stop))
	}
	return text + " (a rank is done, protect_done)"
}

// holdsWhere reports whether a gang holds something of a node that an ask admits.
func (pl *planner) holdsWhere(r *Running, d *cluster.Need) bool {
	for _, n := range pl.views[0].every() {
		if _, here := n.Grant(api.MemberKey{Job: r.Job, Epoch: r.Epoch}); here && (d.Parts != nil || d.Admits(n)) {
			return true
		}
	}
	return false
}
