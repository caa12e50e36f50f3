package sched

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/cluster"
)

// Explain says at length why a job waits: its place in the queue and who is ahead, the
// arithmetic node by node, who holds what, and the nearest asks that would start now. It
// plans again up to that job, so it is for a person who asks, not for each job of a table.
func Explain(v *View, p *Policy, job int64) Reason {
	at := slices.IndexFunc(v.Queue, func(c *Candidate) bool { return c.Job == job })
	if at < 0 {
		return Reason{Job: job, Word: WordNone, Text: fmt.Sprintf("job %d is not waiting for nodes", job)}
	}
	pl := newPlanner(time.Time{}, v, p)
	for _, c := range v.Queue[:at] {
		pl.visit(c)
	}
	c := v.Queue[at]
	sh := pl.shape(c.Ask)
	if sh.bad != nil {
		return Reason{Job: job, Word: WordBad, Text: sh.bad.Error()}
	}
	position := ordinal(at+1) + " of " + strconv.Itoa(len(v.Queue)) + " in the queue"
	if slots := pl.slots(c, sh.need); slots != nil {
		var names []string
		for _, s := range slots {
			if !slices.Contains(names, s.Node) {
				names = append(names, s.Node)
			}
		}
		return Reason{Job: job, Word: WordNone, Text: position + "; starts with the next plan on " + hosts(names)}
	}
	r := pl.reasonFor(sh)
	if sh.blocked {
		r.Word = sh.rest.Word
	}
	lines := []string{position + "; " + r.Text}
	lines = append(lines, pl.ahead(sh.need, at)...)
	if sh.need.Parts != nil {
		lines = append(lines, pl.mixedLines(sh.need)...)
		return Reason{Job: job, Word: r.Word, Text: strings.Join(lines, "\n")}
	}
	lines = append(lines, pl.nodeLines(sh.need)...)
	lines = append(lines, startNow(v, p, c, sh.need, pl.current())...)
	return Reason{Job: job, Word: r.Word, Text: strings.Join(lines, "\n")}
}

// ahead names those before it that wait or start where it could run.
func (pl *planner) ahead(d *cluster.Need, at int) []string {
	started := make(map[int64]bool)
	for _, s := range pl.starts {
		started[s.Job] = true
	}
	var waiting, starting []int64
	for _, c := range pl.view.Queue[:at] {
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
		lines = append(lines, fmt.Sprintf("ahead, and starting now: %s", jobList(starting)))
	}
	if len(waiting) == 1 {
		lines = append(lines, fmt.Sprintf("%s is ahead and waits for the same %s", jobList(waiting), what))
	} else if len(waiting) > 1 {
		lines = append(lines, fmt.Sprintf("%s are ahead and wait for the same %s", jobList(waiting), what))
	}
	return lines
}

// startNow is the line about the nearest asks that would start now. Each is planned with
// the whole queue before it is named: as a new submission, behind all of its priority.
func startNow(v *View, p *Policy, c *Candidate, d *cluster.Need, nodes []*cluster.Node) []string {
	const most = 3
	found := nearestAsks(d, nodes, most, func(ask *cluster.Ask) bool {
		// A look at what is free is a thousand times cheaper and says no to most.
		return roomFor(ask, nodes) && wouldStart(v, p, c, ask)
	})
	if len(found) == 0 {
		return nil
	}
	texts := make([]string, len(found))
	for i, ch := range found {
		texts[i] = ch.text
	}
	text := strings.Join(texts, ", ")
	if i := strings.LastIndex(text, ", "); i >= 0 {
		text = text[:i] + " or " + text[i+2:]
	}
	return []string{text + " would start now"}
}

func roomFor(ask *cluster.Ask, nodes []*cluster.Node) bool {
	d, err := cluster.NewNeed(ask)
	if err != nil {
		return false
	}
	var t tally
	for _, n := range nodes {
		if n.Ready {
			if k := d.Ranks(n); k > 0 && d.Admits(n) {
				t.add(k)
			}
		}
	}
	return layoutOf(d).members(&t) > 0
}

// wouldStart plans the queue with another ask in place of c.
func wouldStart(v *View, p *Policy, c *Candidate, ask *cluster.Ask) bool {
	other, queue := resubmitted(v.Queue, c, ask)
	pl := newPlanner(time.Time{}, &View{Nodes: v.Nodes, Queue: queue, Claims: v.Claims}, p)
	for _, o := range queue {
		if o == other {
			return pl.start(o, pl.shape(ask))
		}
		pl.visit(o)
	}
	return false
}

// resubmitted is the queue as it is when c's owner cancels it and submits ask instead.
func resubmitted(queue []*Candidate, c *Candidate, ask *cluster.Ask) (*Candidate, []*Candidate) {
	other := *c
	other.Ask, other.Size = ask, ask.Spec.Size
	for _, o := range queue {
		if !o.Submit.Before(other.Submit) {
			other.Submit = o.Submit.Add(1)
		}
	}
	out := slices.DeleteFunc(slices.Clone(queue), func(o *Candidate) bool { return o == c })
	at, _ := slices.BinarySearchFunc(out, &other, compare)
	return &other, slices.Insert(out, at, &other)
}

func ordinal(n int) string {
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
