// Package used writes what one attempt used of what it had asked for, with advice: for gacct -e, and for the report
// that gangd has written behind a job's output.
//
// A figure that is not known is [Unknown]; 0 is a figure. It asks no controller, and knows no terminal.
//
// Begin with [Write].
package used

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/measure"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// Unknown is what stands where a figure is not known.
const Unknown = "?"

// Percent is a share without a sign.
func Percent(p *float64) string {
	if p == nil {
		return Unknown
	}
	return fmt.Sprintf("%.0f", *p)
}

// Elapsed is how long an attempt took, or takes already.
func Elapsed(a *api.Attempt, now time.Time) string {
	switch {
	case !a.EndTime.IsZero():
		return jobfield.Elapsed(a.EndTime.Sub(a.StartTime))
	case !a.StartTime.IsZero():
		return jobfield.Elapsed(now.Sub(a.StartTime))
	}
	return "-"
}

// Energy is in what a bill has: a card of 700 W for an hour is 0.7 kWh.
func Energy(joules *float64) string {
	switch {
	case joules == nil:
		return Unknown
	case *joules > 0 && *joules < 36_000: // a short run: 0Wh would be none
		return fmt.Sprintf("%.1fWh", max(*joules/3600, 0.1))
	case *joules < 3.6e6:
		return fmt.Sprintf("%.0fWh", *joules/3600)
	}
	return fmt.Sprintf("%.1fkWh", *joules/3.6e6)
}

// Cause is why an attempt ended, or that it has not.
func Cause(a *api.Attempt) string { return cmp.Or(string(a.Cause), "running") }

// Write shows one attempt in full; with plots how it went with time.
func Write(w io.Writer, j *api.Job, a *api.Attempt, now time.Time, plots bool) {
	e := a.Efficiency
	fmt.Fprintf(w, "Job %s %s, attempt %d: %s, %s on %s\n", jobfield.IDText(j), column.Printable(j.Name), a.Attempt, Cause(a), Elapsed(a, now),
		column.Printable(strings.Join(a.Nodes, ",")))
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
	busy := Unknown
	if e.CPUSeconds != nil {
		busy = jobfield.Elapsed(time.Duration(*e.CPUSeconds * float64(time.Second)))
	}
	bar("CPU", e.CPUPercent, fmt.Sprintf("of %s, %s of CPU time", api.Count(cpus, "CPU"), busy))
	memory := sizeText(e.MemoryPeak) + " at most"
	if asked > 0 {
		memory = sizeText(e.MemoryPeak) + " of " + cluster.Size(asked)
	}
	if len(a.Nodes) > 1 {
		memory += " on the fullest node"
	}
	if asked == 0 {
		memory += ", none was asked for"
	}
	bar("Memory", e.MemoryPercent, memory)
	if cards > 0 {
		idle := ""
		if e.GPUIdle != nil && *e.GPUIdle >= 0.5 {
			idle = fmt.Sprintf(", idle %.0f%% of the time", *e.GPUIdle)
		}
		bar("GPU", e.GPUPercent, fmt.Sprintf("of %s%s", api.Count(cards, "card"), idle))
		bar("VRAM", e.VRAMPercent, sizeText(e.VRAMPeak)+" on one card")
		fmt.Fprintf(w, "  %-7s %s\n", "Energy", Energy(e.Joules))
	}
	if e.TimePercent != nil {
		bar("Time", e.TimePercent, "of "+jobfield.Elapsed(time.Duration(j.TimeLimitSeconds)*time.Second))
	}
	if text := Start(e.Start); text != "" {
		fmt.Fprintf(w, "  %-7s %s\n", "Start", text)
	}
	if plots {
		writePlots(w, a)
	}
	for _, x := range e.Advice {
		fmt.Fprintf(w, "  * %s [%s]\n", x.Text, x.Rule)
	}
}

// startParts are the parts of a start in their order: the letter of each in a bar, and its name.
var startParts = []struct{ letter, name string }{
	{"i", "image"}, {"p", "prolog"}, {"r", "prepare"}, {"w", "wait"}, {"c", "to the first use of a card"}, {"b", "to the first beat"},
}

// Start is a start in its parts as a bar and in words; empty: no first step was seen. What took no time to speak of is not named.
func Start(p *api.StartParts) string {
	if p == nil {
		return ""
	}
	total, known := p.Total()
	if !known {
		return ""
	}
	took := []*float64{p.Image, p.Prolog, p.Prepare, p.Wait, p.CardUse, p.Beat}
	if p.CardUse != nil && p.Beat != nil { // the rest of the way
		rest := max(*p.Beat-*p.CardUse, 0)
		took[5] = &rest
	}
	bar, done, drawn := "", 0.0, 0
	var words []string
	for i, s := range took {
		if s == nil {
			continue
		}
		done += *s
		if to := int(math.Round(min(done/max(total, 0.001), 1) * barWidth)); to > drawn {
			bar += strings.Repeat(startParts[i].letter, to-drawn)
			drawn = to
		}
		if *s >= 0.05 {
			words = append(words, fmt.Sprintf("%s %.1f s", startParts[i].name, *s))
		}
	}
	text := fmt.Sprintf("[%-*s] %.1f s to the first step", barWidth, bar, total)
	if len(words) > 0 {
		text += ": " + strings.Join(words, ", ")
	}
	return text
}

func percentText(p *float64) string {
	if p == nil {
		return Unknown
	}
	return Percent(p) + "%"
}

func sizeText(bytes *int64) string {
	if bytes == nil {
		return Unknown
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
func writePlots(w io.Writer, a *api.Attempt) {
	for i := range a.Measures {
		x := &a.Measures[i]
		if x.Series != nil {
			fmt.Fprintf(w, "  %s, %s a point\n", x.Node, when.Words(time.Duration(x.Series.Step*float64(time.Second))))
			fmt.Fprintf(w, "    %-10s %s\n    %-10s %s\n", "CPU", sparkline(x.Series.Use), "memory", sparkline(x.Series.Memory))
		}
		for k := range x.Cards {
			c := &x.Cards[k]
			if c.Series == nil {
				continue
			}
			high := ""
			if p, ok := measure.Percentile(c.Utilization, 0.95); ok && p > 0 {
				high = fmt.Sprintf("  95%% of the time below %.0f%%", p)
			}
			fmt.Fprintf(w, "    %-10s %s%s\n    %-10s %s\n", fmt.Sprintf("card %d", c.Index), sparkline(c.Series.Use), high, "  VRAM",
				sparkline(c.Series.Memory))
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
