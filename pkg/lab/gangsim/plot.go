package gangsim

import (
	"math"
	"slices"

	"gangd/pkg/core/plot"
	"gangd/pkg/lab/replay"
)

func figures(runs []*played) []plot.Figure {
	return []plot.Figure{
		delays(runs),
		series(runs, "Jobs that wait", "jobs", false, func(s replay.Sample, _ int) float64 { return float64(s.Waiting) }),
		series(runs, "Cards in use", "%", true, func(s replay.Sample, cards int) float64 {
			return 100 * float64(s.Busy) / math.Max(1, float64(cards))
		}),
	}
}

// delays shows which part of the jobs waited no longer than so long.
func delays(runs []*played) plot.Figure {
	f := plot.Figure{Title: "How long jobs waited", X: "queue delay, logarithmic", Y: "jobs that waited no longer, %", Unit: plot.Length,
		Whole: true}
	for _, r := range runs {
		v := make([]float64, len(r.Outcomes))
		for k := range r.Outcomes {
			v[k] = max(r.Outcomes[k].Delay.Seconds(), 1) // a logarithm has no zero
		}
		slices.Sort(v)
		l := plot.Line{Name: r.policy.name}
		step, done := max(1, len(v)/1000), 0
		for k := range v {
			// The last of equal delays says how many waited no longer.
			if last := k == len(v)-1; last || k+1-done >= step && v[k+1] > v[k] {
				done = k + 1
				l.X = append(l.X, plot.Rounded(v[k]))
				l.Y = append(l.Y, plot.Rounded(100*float64(k+1)/float64(len(v))))
			}
		}
		f.Lines = append(f.Lines, l)
	}
	return f
}

func series(runs []*played, title, label string, whole bool, of func(s replay.Sample, cards int) float64) plot.Figure {
	f := plot.Figure{Title: title, X: "days since the first submission", Y: label, Whole: whole}
	for _, r := range runs {
		l := plot.Line{Name: r.policy.name}
		for _, s := range r.Series {
			l.X = append(l.X, plot.Rounded(s.At.Hours()/24))
			l.Y = append(l.Y, plot.Rounded(of(s, r.Cards)))
		}
		f.Lines = append(f.Lines, l)
	}
	return f
}
