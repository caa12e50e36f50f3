package sched

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/sched/fit"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
)

// Explain says at length why a job waits: its place in the queue and who is ahead, the
// arithmetic node by node, who holds what, and the nearest asks that would start now. It
// plans again up to that job, so it is for a person who asks, not for each job of a table.
func Explain(now time.Time, v *given.View, p *order.Policy, job int64) why.Reason {
	at := v.Queue.Position(job)
	queue := v.Queue.Slice()
	if at < 0 {
		return why.Reason{Job: job, Word: given.WordNone, Text: "job " + v.Names.Of(job) + " is not waiting for nodes"}
	}
	c := queue[at]
	pl := new(Planner).planner(now, v, p)
	sh := pl.upTo(at)
	if sh.Bad != nil {
		return why.Reason{Job: job, Word: given.WordBad, Text: sh.Bad.Error()}
	}
	position := Ordinal(at+1) + " of " + strconv.Itoa(len(queue)) + " in the queue"
	slots := pl.startOf(job)
	if v := pl.bounds.Capped(c); v != nil && slots == nil {
		lines := append([]string{position + "; " + v.Sentence}, pl.why.CapLines(c, v)...)
		return why.Reason{Job: job, Word: v.Word, Text: strings.Join(lines, "\n")}
	}
	if slots == nil {
		slots = pl.slots(c, sh, pl.why.ExplainedView)
	}
	if slots != nil {
		return why.Reason{Job: job, Word: given.WordNone, Text: position + "; starts with the next plan on " + why.Hosts(cluster.NodesOf(slots))}
	}
	r := pl.why.Explained(c, sh)
	if pl.why.ExplainedBackfill == nil {
		pl.visit(c, v.Queue.JobClass(job))
		if at := pl.kept.Of(job); at >= 0 {
			own := pl.kept.List[at]
			pl.why.ExplainedBackfill = &own
			pl.kept.Remove(at)
		}
	}
	lines := []string{position + "; " + r.Text}
	if pl.why.ExplainedBackfill != nil {
		lines = append(lines, pl.why.PromiseText(pl.why.ExplainedBackfill))
	} else if e := Forecast(now, v, p)[job]; !e.At.IsZero() {
		lines = append(lines, "expected to start about "+when.Clock(now, e.At)+", if those ahead of it run as long as they may")
	}
	if pl.why.ExplainedBackfill == nil {
		lines = append(lines, pl.ahead(sh.Need, at)...)
	}
	if pl.why.ExplainedBackfill == nil || !pl.kept.Promises(pl.why.ExplainedBackfill) {
		if text := pl.why.TurnText(c); text != "" {
			lines = append(lines, text)
		}
	}
	if pl.why.ExplainedBackfill == nil || len(pl.why.ExplainedBackfill.Victims) == 0 {
		lines = append(lines, pl.why.ProtectedLines(c, sh.Need)...)
	}
	if sh.Need.Parts != nil {
		lines = append(lines, pl.why.MixedLines(sh.Need)...)
		return why.Reason{Job: job, Word: r.Word, Text: strings.Join(lines, "\n")}
	}
	if sh.Alternatives != nil {
		lines = append(lines, pl.why.AlternativeLines(sh.Need)...)
	} else {
		lines = append(lines, pl.why.NodeLines(sh.Need)...)
	}
	lines = append(lines, startNow(now, v, p, c, sh.Need, pl.why.ExplainedView.All())...)
	return why.Reason{Job: job, Word: r.Word, Text: strings.Join(lines, "\n")}
}

// ahead names those before it that wait or start where it could run.
func (pl *planner) ahead(d *cluster.Need, at int) []string {
	started := make(map[int64]bool)
	for _, s := range pl.starts {
		started[s.Job] = true
	}
	var waiting, starting []int64
	for _, c := range pl.View.Queue.Slice()[:at] {
		if !slices.ContainsFunc(c.Ask.Partitions, func(p string) bool { return slices.Contains(d.Ask.Partitions, p) }) {
			continue
		}
		if started[c.Job] {
			starting = append(starting, c.Job)
		} else {
			waiting = append(waiting, c.Job)
		}
	}
	what := "nodes"
	if d.WantsCards() {
		what = "cards"
	}
	var lines []string
	if len(starting) > 0 {
		lines = append(lines, fmt.Sprintf("ahead, and starting now: %s", pl.View.Names.List(starting)))
	}
	if len(waiting) == 1 {
		lines = append(lines, fmt.Sprintf("%s is ahead and waits for the same %s", pl.View.Names.List(waiting), what))
	} else if len(waiting) > 1 {
		lines = append(lines, fmt.Sprintf("%s are ahead and wait for the same %s", pl.View.Names.List(waiting), what))
	}
	return lines
}

// startNow is the line about the nearest asks that would start now. Each is planned with
// the whole queue before it is named: as a new submission, behind all of its priority.
func startNow(now time.Time, v *given.View, p *order.Policy, c *order.Candidate, d *cluster.Need, nodes []*cluster.Node) []string {
	const most = 3
	found := why.NearestAsks(d, nodes, most, func(ask *cluster.Ask) bool {
		// A look at what is free is a thousand times cheaper and says no to most.
		return roomFor(ask, nodes) && wouldStart(now, v, p, c, ask)
	})
	if len(found) == 0 {
		return nil
	}
	texts := make([]string, len(found))
	for i, ch := range found {
		texts[i] = ch.Option
	}
	text := strings.Join(texts, ", ")
	if i := strings.LastIndex(text, ", "); i >= 0 {
		text = text[:i] + " or " + text[i+2:]
	}
	return []string{text + " would start now"}
}

func roomFor(ask *cluster.Ask, nodes []*cluster.Node) bool {
	d, err := cluster.NewNeed(ask)
	return err == nil && fit.AnyAlternative(d, func(d *cluster.Need) bool { return fit.RoomIn(d, nodes) })
}

// upTo plans all that is ahead of the candidate at a place in the queue, and sets the nodes
// as that one sees them.
func (pl *planner) upTo(at int) *fit.AskClass {
	c := pl.View.Queue.Slice()[at]
	pl.run(at)
	pl.reach(c)
	if at := pl.kept.Of(c.Job); at >= 0 {
		own := pl.kept.List[at]
		pl.why.ExplainedBackfill = &own
		pl.kept.Remove(at) // nobody waits for his own backfill
	}
	pl.why.ExplainedView = pl.kept.ViewFor(c, pl.End(c))
	return pl.fit.ClassOf(c.Ask)
}

func (pl *planner) startOf(job int64) []cluster.Slot {
	for _, s := range pl.starts {
		if s.Job == job {
			return s.Slots
		}
	}
	return nil
}

// wouldStart plans the queue with another ask in place of c.
func wouldStart(now time.Time, v *given.View, p *order.Policy, c *order.Candidate, ask *cluster.Ask) bool {
	other, queue := resubmitted(v.Queue, c, ask)
	if other == nil {
		return false
	}
	// Its owner gives the backfill up with the job.
	backfills := slices.DeleteFunc(slices.Clone(v.Backfills), func(k given.Backfill) bool { return k.Job == c.Job })
	pl := new(Planner).planner(now, &given.View{Nodes: v.Nodes, Queue: queue, Running: v.Running, Backfills: backfills,
		Reservations: v.Reservations}, p)
	sh := pl.upTo(queue.Position(other.Job))
	return sh.Bad == nil && pl.slots(other, sh, pl.why.ExplainedView) != nil
}

// resubmitted is the queue as it is when c's owner cancels it and submits ask instead.
func resubmitted(queue *order.Queue, c *order.Candidate, ask *cluster.Ask) (*order.Candidate, *order.Queue) {
	other := c.Apart()
	other.Ask, other.Size = ask, ask.Spec.Size
	for _, o := range queue.Slice() {
		if !o.Submit.Before(other.Submit) {
			other.Submit = o.Submit.Add(1)
		}
	}
	out := queue.Clone()
	out.Insert(other)
	return out.Get(other.Job), out
}

// Ordinal is 1st, 2nd, 3rd, 11th: a place in the queue, or how often something has been.
func Ordinal(n int) string {
	suffix := "th"
	if tens := n % 100; tens < 11 || tens > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}
