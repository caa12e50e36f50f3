package stacks

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"gangd/pkg/api"
)

// mostSaid is how many who are odd are told in a sentence.
const mostSaid = 3

// sentence says what a comparison came to.
func sentence(g *Gang, j *judgement, out *api.Stacks) string {
	var text string
	switch {
	case j.total == 0:
		text = "no process could be looked at"
	case len(j.odd) > 0:
		text = oddText(g, j) + ", " + commonText(j, "other")
	case j.total < fewest:
		text = fmt.Sprintf("%s: too few to compare; %s", whoText(j, j.total), commonText(j, ""))
	case len(j.clusters) == 1:
		text = fmt.Sprintf("all %s %s: nobody stands out", whoText(j, j.total), j.where(0, j.total))
	default:
		text = fmt.Sprintf("nobody stands out among %s: %s", whoText(j, j.total), commonText(j, ""))
	}
	if n := len(out.Missing); n > 0 && j.total > 0 {
		text += fmt.Sprintf("; nothing was seen of %s", ranksText(out.Missing))
	}
	if n := len(out.Unreached); n > 0 {
		text += fmt.Sprintf("; no answer from %s", namesText(out.Unreached))
	}
	return text
}

func ranksText(ranks []int) string {
	names := make([]string, len(ranks))
	for i, r := range ranks {
		names[i] = strconv.Itoa(r)
	}
	if len(ranks) == 1 {
		return "rank " + names[0]
	}
	return "ranks " + namesText(names)
}

func namesText(names []string) string {
	if len(names) > mostSaid {
		return strings.Join(names[:mostSaid], ", ") + fmt.Sprintf(" and %d more", len(names)-mostSaid)
	}
	return strings.Join(names, ", ")
}

// oddText says who is where that nobody else is.
func oddText(g *Gang, j *judgement) string {
	var parts []string
	said, left := 0, 0
	several := map[api.StackProcess]int{} // processes of one rank or task
	for _, c := range j.clusters {
		for _, u := range c.units {
			several[whose(u)]++
		}
	}
	for _, i := range j.odd {
		var who []string
		for _, u := range j.clusters[i].units {
			if said == mostSaid {
				left++
				continue
			}
			said++
			name := fmt.Sprintf("rank %d", u.Rank)
			if u.Rank < 0 {
				name = fmt.Sprintf("task %d of step %d.%d", u.Task, g.Job, u.Step)
			}
			if several[whose(u)] > 1 {
				name = fmt.Sprintf("process %d of %s", u.PID, name)
			}
			who = append(who, name+" on "+u.node)
		}
		if len(who) > 0 {
			parts = append(parts, strings.Join(who, " and ")+" "+j.where(i, len(who)))
		}
	}
	text := strings.Join(parts, ", ")
	if left > 0 {
		text += fmt.Sprintf(", %d more are elsewhere", left)
	}
	return text
}

func whose(u unit) api.StackProcess {
	p := u.StackProcess
	p.PID = 0
	return p
}

// commonText says where the large groups are; of those who are nowhere in them it counts.
func commonText(j *judgement, other string) string {
	var parts []string
	n := j.common
	if n == 0 {
		n = min(len(j.clusters), mostSaid)
	}
	rest := 0
	for i := range j.clusters {
		c := len(j.clusters[i].units)
		switch {
		case i < n && i < mostSaid && i == 0 && other != "":
			parts = append(parts, fmt.Sprintf("%d %s %s", c, plural(other, c), j.where(i, c)))
		case i < n && i < mostSaid:
			parts = append(parts, fmt.Sprintf("%d %s", c, j.where(i, c)))
		case other == "" || i < n:
			rest += c
		}
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("%d elsewhere", rest))
	}
	return strings.Join(parts, ", ")
}

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// whoText counts who was compared.
func whoText(j *judgement, n int) string {
	if len(j.clusters) > 0 && j.clusters[0].units[0].Rank < 0 {
		return fmt.Sprintf("%d %s", n, plural("task", n))
	}
	return fmt.Sprintf("%d %s", n, plural("rank", n))
}

// where says what a cluster does, as the rest of a sentence about n of them.
func (j *judgement) where(i, n int) string {
	c := &j.clusters[i]
	t := &c.thread
	is, s := "is", "s"
	if n != 1 {
		is, s = "are", ""
	}
	at := ""
	if i := place(t.Frames); i >= 0 {
		at = " in " + t.Frames[i] + c.mark
	}
	if j.helper {
		is, s = "has a thread that is", "s"
		if n != 1 {
			is = "have a thread that is"
		}
		if t.Does != api.DoesStop {
			return is + at
		}
	}
	var of string
	if c.kind != j.kind {
		of = " with " + path.Base(c.kind)
	}
	in := ""
	if t.In != "" {
		in = " (" + t.In + ")"
	}
	switch t.Does {
	case api.DoesRun:
		return "run" + s + at + of
	case api.DoesStop:
		return is + " stopped" + at + of
	case api.DoesDisk:
		return "wait" + s + " for a disk or a driver" + in + at + of
	case api.DoesSleep:
		return "sleep" + s + at + of
	}
	if at != "" {
		return is + at + of
	}
	what := map[string]string{api.DoesLock: "another thread", api.DoesPoll: "one of several descriptors", api.DoesRead: "something to read",
		api.DoesWrite: "room to write",
		api.DoesChild: "a child", api.DoesMove: "now this, now that"}[t.Does]
	if what == "" {
		what = "something"
	}
	return "wait" + s + " for " + what + in + of
}

// place is the call that says most of where a thread is: the innermost that is no plumbing. -1: there is none.
func place(frames []string) int {
	for i, f := range frames {
		if !plumbing[fileOf(f)] {
			return i
		}
	}
	return min(len(frames), 1) - 1
}
