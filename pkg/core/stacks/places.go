package stacks

import (
	"cmp"
	"fmt"
	"slices"

	"gangd/pkg/api"
)

// fewestTags is how many have to be compared before a tag tells one apart: of three, two may have the same one by chance.
const fewestTags = 4

// judgePlaces compares a side in which nobody is in other functions by the lines that they are at in them, the outermost first:
// there a program has gone two ways. Where the lines are the same it compares the tags that calls were given.
func judgePlaces(side []unit, whole *judgement) judgement {
	if len(side) < fewest {
		return judgement{}
	}
	frames := whole.clusters[0].thread.Frames
	known := func(u *unit) bool { return len(u.thread.Lines) > 0 && slices.Equal(u.thread.Frames, frames) }
	for i := len(frames) - 1; i >= 0; i-- {
		j := whole.split(side, func(u *unit) (int64, bool) {
			if !known(u) {
				return 0, false
			}
			return int64(u.thread.Lines[i]), u.thread.Lines[i] > 0
		}, func(line int64) string {
			if i == place(frames) {
				return fmt.Sprintf(" at line %d", line)
			}
			return fmt.Sprintf(" from line %d of %s", line, frames[i])
		})
		if len(j.odd) > 0 {
			return j
		}
	}
	if len(side) < fewestTags {
		return judgement{}
	}
	for _, v := range variables(side, known) {
		j := whole.split(side, func(u *unit) (int64, bool) {
			if !known(u) {
				return 0, false
			}
			return valueOf(u.thread, v)
		}, func(value int64) string {
			if v.Frame == place(frames) {
				return fmt.Sprintf(" with %s %d", v.Name, value)
			}
			return fmt.Sprintf(" with %s %d in %s", v.Name, value, frames[v.Frame])
		})
		if len(j.odd) > 0 && j.common == 1 { // two large groups have tags by their ranks
			return j
		}
	}
	return judgement{}
}

// split judges a side that is in one cluster by a number of each. Who has none is where the most are, if most have one.
func (j *judgement) split(side []unit, of func(*unit) (int64, bool), mark func(int64) string) judgement {
	at := map[int64]int{}
	var all []cluster
	var unknown []unit
	for _, u := range side {
		n, ok := of(&u)
		if !ok {
			unknown = append(unknown, u)
			continue
		}
		k, ok := at[n]
		if !ok {
			k = len(all)
			at[n] = k
			all = append(all, cluster{kind: j.kind, thread: *u.thread, mark: mark(n)})
		}
		all[k].units = append(all[k].units, u)
	}
	if len(all) < 2 || 3*(len(side)-len(unknown)) < 2*len(side) {
		return judgement{}
	}
	sortClusters(all)
	if 2*len(all[0].units) < len(side) {
		return judgement{}
	}
	all[0].units = append(all[0].units, unknown...)
	slices.SortFunc(all[0].units, func(a, b unit) int { return compareProcess(a.StackProcess, b.StackProcess) })
	return judgeClusters(len(side), all)
}

// variables are those that the threads of a side have values of, the innermost calls first.
func variables(side []unit, known func(*unit) bool) (out []api.StackValue) {
	for i := range side {
		if !known(&side[i]) {
			continue
		}
		for _, v := range side[i].thread.Values {
			if v.Value = 0; v.Frame < len(side[i].thread.Frames) && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	slices.SortFunc(out, func(a, b api.StackValue) int {
		return cmp.Or(cmp.Compare(a.Frame, b.Frame), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// valueOf is the value of a variable of a thread.
func valueOf(t *api.ThreadStack, v api.StackValue) (int64, bool) {
	for _, w := range t.Values {
		if w.Frame == v.Frame && w.Name == v.Name {
			return w.Value, true
		}
	}
	return 0, false
}

// common is the thread of a cluster as it is shown: with the lines and values that all of it have.
func (c *cluster) common() api.ThreadStack {
	t := c.thread
	t.Lines, t.Values = nil, nil
	for _, u := range c.units {
		switch o := u.thread; {
		case len(o.Lines) == 0 || !slices.Equal(o.Frames, t.Frames):
		case t.Lines == nil:
			t.Lines, t.Values = o.Lines, o.Values
		default:
			t.Lines, t.Values = sameLines(t.Lines, o.Lines), sameValues(t.Values, o.Values)
		}
	}
	return t
}
