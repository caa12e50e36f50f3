package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/used"
)

// measured is one attempt with its job.
type measured struct {
	job     *api.Job
	attempt *api.Attempt
}

// efficiency shows what attempts used of what they had asked for: of one in full, of many a line each, of
// the elements of an array one for all.
func (g *gacct) efficiency(s *screen, details []*api.JobDetail) error {
	var all []measured
	for _, d := range details {
		for i := range d.Attempts {
			all = append(all, measured{&d.Job, &d.Attempts[i]})
		}
	}
	if len(details) == 1 && !g.parsable {
		if len(all) == 0 {
			fmt.Fprintf(s.w, "Job %s is %s and has not run: nothing was used\n", jobfield.IDText(&details[0].Job), details[0].Job.State)
		}
		for i, m := range all {
			if i > 0 {
				fmt.Fprintln(s.w)
			}
			used.Write(s.w, m.job, m.attempt, now(), g.plot)
		}
		return nil
	}
	t := &table{noHeader: g.noHeader, cols: []tableColumn{{head: "JOBID", right: true, keep: true}, {head: "NAME", width: 8, spare: 1},
		{head: "CAUSE", width: 9, spare: 2}, {head: "ELAPSED", right: true, spare: 4},
		{head: "TIME%", right: true, keep: true}, {head: "CPU%", right: true, keep: true}, {head: "MEM%", right: true, keep: true},
		{head: "GPU%", right: true, keep: true}, {head: "VRAM%", right: true, keep: true},
		{head: "ENERGY", right: true, spare: 3}, {head: "ADVICE", wrap: true}}}
	var arrays []int64
	elements := map[int64][]measured{}
	for _, m := range all {
		if id := m.job.ArrayJobID; id != 0 && !g.parsable {
			if elements[id] == nil {
				arrays = append(arrays, id)
			}
			elements[id] = append(elements[id], m)
			continue
		}
		t.rows = append(t.rows, m.line())
	}
	for _, id := range arrays {
		t.rows = append(t.rows, arrayLine(id, elements[id]))
	}
	if g.parsable {
		return t.bars(s.w)
	}
	if err := t.write(s); err != nil {
		return err
	}
	for _, id := range arrays {
		for _, line := range outliers(elements[id]) {
			fmt.Fprintln(s.w, line)
		}
	}
	return nil
}

// shares are the percentages of an attempt in the order of the columns, nil: not known.
func shares(e *api.Efficiency) []*float64 {
	if e == nil {
		return make([]*float64, len(shareNames))
	}
	return []*float64{e.TimePercent, e.CPUPercent, e.MemoryPercent, e.GPUPercent, e.VRAMPercent}
}

var shareNames = []string{"time", "CPU", "memory", "GPU", "VRAM"}

func (m measured) line() []string {
	e := m.attempt.Efficiency
	id := jobfield.IDText(m.job)
	if m.attempt.Attempt > 1 {
		id = fmt.Sprintf("%s#%d", id, m.attempt.Attempt)
	}
	line := []string{id, m.job.Name, used.Cause(m.attempt), used.Elapsed(m.attempt, now())}
	for _, p := range shares(e) {
		line = append(line, used.Percent(p))
	}
	var rules []string
	if e != nil {
		for _, a := range e.Advice {
			rules = append(rules, a.Rule)
		}
		return append(line, used.Energy(e.Joules), strings.Join(rules, ","))
	}
	return append(line, used.Unknown, "")
}

// arrayLine is one for all elements: the median of each figure, and from where to where it is.
func arrayLine(id int64, all []measured) []string {
	var longest time.Duration
	joules, known := 0.0, true
	for _, m := range all {
		longest = max(longest, m.attempt.EndTime.Sub(m.attempt.StartTime))
		if e := m.attempt.Efficiency; e != nil && e.Joules != nil {
			joules += *e.Joules
		} else {
			known = false
		}
	}
	var indices []int
	for _, m := range all {
		if m.job.ArrayIndex != nil {
			indices = append(indices, *m.job.ArrayIndex)
		}
	}
	line := []string{elements(id, slices.Compact(slices.Sorted(slices.Values(indices)))), all[0].job.Name, causes(all), "<=" +
		jobfield.Elapsed(longest)}
	for i := range shareNames {
		v := values(all, i)
		switch {
		case len(v) == 0:
			line = append(line, used.Unknown)
		case math.Round(v[0]) == math.Round(v[len(v)-1]):
			line = append(line, fmt.Sprintf("%.0f", v[0]))
		default:
			line = append(line, fmt.Sprintf("%.0f (%.0f-%.0f)", quantile(v, 0.5), v[0], v[len(v)-1]))
		}
	}
	if !known {
		return append(line, used.Unknown, "")
	}
	return append(line, used.Energy(&joules), "")
}

func causes(all []measured) string {
	for _, m := range all {
		if m.attempt.Cause != all[0].attempt.Cause {
			return "various"
		}
	}
	return used.Cause(all[0].attempt)
}

// values are those of one figure that are known, in order.
func values(all []measured, i int) (v []float64) {
	for _, m := range all {
		if p := shares(m.attempt.Efficiency)[i]; p != nil {
			v = append(v, *p)
		}
	}
	slices.Sort(v)
	return v
}

func quantile(sorted []float64, part float64) float64 {
	at := part * float64(len(sorted)-1)
	low := int(at)
	return sorted[low] + (at-float64(low))*(sorted[min(low+1, len(sorted)-1)]-sorted[low])
}

const (
	fewElements = 8  // of fewer nobody stands out
	farPoints   = 10 // who is nearer to the others than so many percent does not either
)

// outliers names elements that are far from the middle half of all: by more than one and a half times its width.
func outliers(all []measured) (out []string) {
	for i, name := range shareNames {
		v := values(all, i)
		if len(v) < fewElements {
			continue
		}
		q1, q3 := quantile(v, 0.25), quantile(v, 0.75)
		far := max(1.5*(q3-q1), farPoints)
		var who []string
		for _, m := range all {
			if p := shares(m.attempt.Efficiency)[i]; p != nil && (*p < q1-far || *p > q3+far) {
				who = append(who, fmt.Sprintf("%s (%.0f%%)", jobfield.IDText(m.job), *p))
			}
		}
		if len(who) > 0 {
			const most = 10
			more := ""
			if len(who) > most {
				more = fmt.Sprintf(" and %d more", len(who)-most)
				who = who[:most]
			}
			out = append(out, fmt.Sprintf("%s of most is %.0f%% to %.0f%%, but of %s%s", name, q1, q3, strings.Join(who, ", "), more))
		}
	}
	return out
}
