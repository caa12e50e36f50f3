package gangsim

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"math"
	"slices"

	"gangd/pkg/lab/replay"
)

// uPlot draws in the reader's browser: a report is one file, and nothing is fetched to read it.
// `make uplot` brings the files, held against a checksum.
var (
	//go:embed uplot/uPlot.iife.min.js
	uplotScript string
	//go:embed uplot/uPlot.min.css
	uplotStyle string
)

// figure is one plot of a report: a line for each run.
type figure struct {
	Title string `json:"title"`
	X     string `json:"x"`
	Y     string `json:"y"`
	Log   bool   `json:"log"` // of x
	Lines []line `json:"lines"`
}

// line has its points by rising x.
type line struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"`
	Y    []float64 `json:"y"`
}

func figures(runs []*played) []figure {
	return []figure{
		delays(runs),
		series(runs, "Jobs that wait", "jobs waiting", func(s replay.Sample, _ int) float64 { return float64(s.Waiting) }),
		series(runs, "Cards in use", "cards in use, %", func(s replay.Sample, cards int) float64 {
			return 100 * float64(s.Busy) / math.Max(1, float64(cards))
		}),
	}
}

// delays shows which part of the jobs waited no longer than so long.
func delays(runs []*played) figure {
	f := figure{Title: "How long jobs waited", X: "queue delay, hours (logarithmic)", Y: "jobs, %", Log: true}
	for _, r := range runs {
		v := make([]float64, len(r.Outcomes))
		for k := range r.Outcomes {
			// A minute stands for all that is shorter: a logarithm has no zero.
			v[k] = max(r.Outcomes[k].Delay.Hours(), 1.0/60)
		}
		slices.Sort(v)
		l := line{Name: r.policy.name}
		step, done := max(1, len(v)/1000), 0
		for k := range v {
			// The last of equal delays says how many waited no longer.
			if last := k == len(v)-1; last || k+1-done >= step && v[k+1] > v[k] {
				done = k + 1
				l.X = append(l.X, rounded(v[k]))
				l.Y = append(l.Y, rounded(100*float64(k+1)/float64(len(v))))
			}
		}
		f.Lines = append(f.Lines, l)
	}
	return f
}

func series(runs []*played, title, label string, of func(s replay.Sample, cards int) float64) figure {
	f := figure{Title: title, X: "days", Y: label}
	for _, r := range runs {
		l := line{Name: r.policy.name}
		for _, s := range r.Series {
			l.X = append(l.X, rounded(s.At.Hours()/24))
			l.Y = append(l.Y, rounded(of(s, r.Cards)))
		}
		f.Lines = append(f.Lines, l)
	}
	return f
}

// rounded keeps what a plot can show: the rest would be most of the file.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// draw is the script of a page: each figure into the element plotN.
func draw(fs []figure) (template.JS, error) {
	data, err := json.Marshal(fs) // with < as \u003c: a name can't end the script
	if err != nil {
		return "", err
	}
	return template.JS(uplotScript + "\nconst figures = " + string(data) + ";\n" + drawing), nil
}

// drawing has colours that people with any kind of colour vision can tell apart (Okabe and Ito);
// the seventh line and those after it are dashed.
const drawing = `const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
figures.forEach((f, n) => {
  const lines = f.lines.filter(l => l.x);
  if (!lines.length) return;
  new uPlot({
    width: 900, height: 420,
    scales: {x: {time: false, distr: f.log ? 3 : 1}, y: {range: (u, min, max) => [0, Math.max(max, 1) * 1.05]}},
    axes: [{label: f.x}, {label: f.y}],
    series: [{label: f.x}].concat(lines.map((l, i) => ({label: l.name, stroke: colours[i % 6], width: 1.5, spanGaps: true,
      dash: i < 6 ? [] : [8, 4], points: {show: l.x.length < 3}}))),
  }, uPlot.join(lines.map(l => [l.x, l.y])), document.getElementById("plot" + n));
});`
