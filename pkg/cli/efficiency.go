package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
	"gangd/pkg/measure"
	"gangd/pkg/table/jobfield"
)

// unknown is what stands where a figure is not known; 0 is a figure.
const unknown = "?"

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
		for i, m := range all {
			if i > 0 {
				fmt.Fprintln(s.w)
			}
			m.write(s.w, g.plot)
		}
		return nil
	}
	t := &table{noHeader: g.noHeader, cols: []tableColumn{{head: "JOBID", right: true, keep: true}, {head: "NAME", width: 8}, {head: "CAUSE", width: 9}, {head: "ELAPSED", right: true},
		{head: "TIME%", right: true, keep: true}, {head: "CPU%", right: true, keep: true}, {head: "MEM%", right: true, keep: true}, {head: "GPU%", right: true, keep: true}, {head: "VRAM%", right: true, keep: true},
		{head: "ENERGY", right: true}, {head: "ADVICE"}}}
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

func percent(p *float64) string {
	if p == nil {
		return unknown
	}
	return fmt.Sprintf("%.0f", *p)
}

func (m measured) line() []string {
	e := m.attempt.Efficiency
	id := jobfield.IDText(m.job)
	if m.attempt.Attempt > 1 {
		id = fmt.Sprintf("%s#%d", id, m.attempt.Attempt)
	}
	line := []string{id, m.job.Name, cmp.Or(string(m.attempt.Cause), "running"), elapsedOf(m.attempt)}
	for _, p := range shares(e) {
		line = append(line, percent(p))
	}
	var rules []string
	if e != nil {
		for _, a := range e.Advice {
			rules = append(rules, a.Rule)
		}
		return append(line, energy(e.Joules), strings.Join(rules, ","))
	}
	return append(line, unknown, "")
}

func elapsedOf(a *api.Attempt) string {
	switch {
	case !a.EndTime.IsZero():
		return jobfield.Elapsed(a.EndTime.Sub(a.StartTime))
	case !a.StartTime.IsZero():
		return jobfield.Elapsed(now().Sub(a.StartTime))
	}
	return "-"
}

// energy is in what a bill has: a card of 700 W for an hour is 0.7 kWh.
func energy(joules *float64) string {
	switch {
	case joules == nil:
		return unknown
	case *joules < 3.6e6:
		return fmt.Sprintf("%.0fWh", *joules/3600)
	}
	return fmt.Sprintf("%.1fkWh", *joules/3.6e6)
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
	line := []string{fmt.Sprintf("%d_[%d]", id, len(all)), all[0].job.Name, causes(all), "<=" + jobfield.Elapsed(longest)}
	for i := range shareNames {
		v := values(all, i)
		switch {
		case len(v) == 0:
			line = append(line, unknown)
		case math.Round(v[0]) == math.Round(v[len(v)-1]):
			line = append(line, fmt.Sprintf("%.0f", v[0]))
		default:
			line = append(line, fmt.Sprintf("%.0f (%.0f-%.0f)", quantile(v, 0.5), v[0], v[len(v)-1]))
		}
	}
	if !known {
		return append(line, unknown, "")
	}
	return append(line, energy(&joules), "")
}

func causes(all []measured) string {
	for _, m := range all {
		if m.attempt.Cause != all[0].attempt.Cause {
			return "various"
		}
	}
	return cmp.Or(string(all[0].attempt.Cause), "running")
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

// write shows one attempt in full.
func (m measured) write(w io.Writer, plot bool) {
	j, a, e := m.job, m.attempt, m.attempt.Efficiency
	fmt.Fprintf(w, "Job %s %s, attempt %d: %s, %s on %s\n", jobfield.IDText(j), printable(j.Name), a.Attempt, cmp.Or(string(a.Cause), "running"), elapsedOf(a), strings.Join(a.Nodes, ","))
	if e == nil {
		fmt.Fprintln(w, "Nothing is known of what it used.")
		return
	}
	cpus, cards := 0, 0
	var asked int64
	for i := range a.Measures {
		cpus += a.Measures[i].CPUs
		cards += len(a.Measures[i].Cards)
		asked = max(asked, a.Measures[i].Memory)
	}
	bar := func(name string, p *float64, text string) {
		fmt.Fprintf(w, "  %-7s %s %4s  %s\n", name, barOf(p), percentText(p), text)
	}
	busy := unknown
	if e.CPUSeconds != nil {
		busy = jobfield.Elapsed(time.Duration(*e.CPUSeconds * float64(time.Second)))
	}
	bar("CPU", e.CPUPercent, fmt.Sprintf("of %d CPUs, %s of CPU time", cpus, busy))
	memory := sizeText(e.MemoryPeak) + " at most"
	if asked > 0 {
		memory = sizeText(e.MemoryPeak) + " of " + cluster.Size(asked)
	}
	if len(a.Nodes) > 1 {
		memory += " on the fullest node"
	}
	bar("Memory", e.MemoryPercent, memory)
	if cards > 0 {
		idle := ""
		if e.GPUIdle != nil && *e.GPUIdle >= 0.5 {
			idle = fmt.Sprintf(", idle %.0f%% of the time", *e.GPUIdle)
		}
		noun := "cards"
		if cards == 1 {
			noun = "card"
		}
		bar("GPU", e.GPUPercent, fmt.Sprintf("of %d %s%s", cards, noun, idle))
		bar("VRAM", e.VRAMPercent, sizeText(e.VRAMPeak)+" on one card")
		fmt.Fprintf(w, "  %-7s %s\n", "Energy", energy(e.Joules))
	}
	if e.TimePercent != nil {
		bar("Time", e.TimePercent, "of "+jobfield.Elapsed(time.Duration(j.TimeLimitSeconds)*time.Second))
	}
	if plot {
		m.plots(w)
	}
	for _, x := range e.Advice {
		fmt.Fprintf(w, "  * %s [%s]\n", x.Text, x.Rule)
	}
}

func percentText(p *float64) string {
	if p == nil {
		return unknown
	}
	return percent(p) + "%"
}

func sizeText(bytes *int64) string {
	if bytes == nil {
		return unknown
	}
	return cluster.Size(*bytes)
}

// barWidth is that of a bar of 100 percent.
const barWidth = 20

func barOf(p *float64) string {
	if p == nil {
		return "[" + strings.Repeat(" ", barWidth) + "]"
	}
	n := int(math.Round(min(max(*p, 0), 100) * barWidth / 100))
	return "[" + strings.Repeat("#", n) + strings.Repeat("-", barWidth-n) + "]"
}

// plots are the series of each node and card.
func (m measured) plots(w io.Writer) {
	for i := range m.attempt.Measures {
		x := &m.attempt.Measures[i]
		if x.Series != nil {
			fmt.Fprintf(w, "  %s, %s a point\n", x.Node, time.Duration(x.Series.Step*float64(time.Second)))
			fmt.Fprintf(w, "    %-10s %s\n    %-10s %s\n", "CPU", sparkline(x.Series.Use), "memory", sparkline(x.Series.Memory))
		}
		for k := range x.Cards {
			c := &x.Cards[k]
			if c.Series == nil {
				continue
			}
			high := ""
			if p, ok := measure.Percentile(c.Utilization, 0.95); ok {
				high = fmt.Sprintf("  95%% of the time below %.0f%%", p)
			}
			fmt.Fprintf(w, "    %-10s %s%s\n    %-10s %s\n", fmt.Sprintf("card %d", c.Index), sparkline(c.Series.Use), high, "  VRAM", sparkline(c.Series.Memory))
		}
	}
}

// sparkline draws percentages, an eighth a step; what is not known is a blank.
func sparkline(p api.Points) string {
	const steps = "▁▂▃▄▅▆▇█"
	levels := []rune(steps)
	var b strings.Builder
	for _, v := range p {
		if v == api.UnknownPoint {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(levels[min(int(v)*len(levels)/100, len(levels)-1)])
	}
	return b.String()
}
