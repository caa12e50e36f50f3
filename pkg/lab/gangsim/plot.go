package gangsim

import (
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"gangd/pkg/lab/replay"
)

// figure is one plot of a report.
type figure struct {
	name, title string
	draw        func(runs []*played) (*plot.Plot, error)
}

var figures = []figure{
	{"delay", "How long jobs waited", drawDelays},
	{"queue", "Jobs that wait", func(runs []*played) (*plot.Plot, error) {
		return drawSeries(runs, "jobs waiting", func(s replay.Sample, _ int) float64 { return float64(s.Waiting) })
	}},
	{"cards", "Cards in use", func(runs []*played) (*plot.Plot, error) {
		return drawSeries(runs, "cards in use, %", func(s replay.Sample, cards int) float64 {
			return 100 * float64(s.Busy) / math.Max(1, float64(cards))
		})
	}},
}

// colours that people with any kind of colour vision can tell apart (Okabe and Ito).
var colours = []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {230, 159, 0, 255}, {86, 180, 233, 255}}

// drawFigures writes each plot as PNG and SVG.
func drawFigures(dir string, runs []*played) error {
	for _, f := range figures {
		p, err := f.draw(runs)
		if err != nil {
			return err
		}
		p.Title.Text = f.title
		p.Legend.Top = true
		p.Add(plotter.NewGrid())
		for _, ext := range []string{".png", ".svg"} {
			if err := p.Save(20*vg.Centimeter, 11*vg.Centimeter, filepath.Join(dir, f.name+ext)); err != nil {
				return err
			}
		}
	}
	return nil
}

func addLine(p *plot.Plot, i int, name string, points plotter.XYs) error {
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color = colours[i%len(colours)]
	line.Width = vg.Points(1.2)
	if i >= len(colours) {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
	}
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

// drawDelays shows which part of the jobs waited no longer than so long.
func drawDelays(runs []*played) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "queue delay, hours (logarithmic)", "jobs, %"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = 0, 100
	p.Legend.Left = true
	for i, r := range runs {
		v := make([]float64, len(r.Outcomes))
		for k := range r.Outcomes {
			// A minute stands for all that is shorter: a logarithm has no zero.
			v[k] = max(r.Outcomes[k].Delay.Hours(), 1.0/60)
		}
		slices.Sort(v)
		var points plotter.XYs
		step := max(1, len(v)/1000)
		for k := 0; k < len(v); k += step {
			points = append(points, plotter.XY{X: v[k], Y: 100 * float64(k+1) / float64(len(v))})
		}
		points = append(points, plotter.XY{X: v[len(v)-1], Y: 100})
		if err := addLine(p, i, r.policy.name, points); err != nil {
			return nil, err
		}
	}
	if p.X.Max <= p.X.Min {
		p.X.Max = 10 * p.X.Min
	}
	return p, nil
}

func drawSeries(runs []*played, label string, of func(s replay.Sample, cards int) float64) (*plot.Plot, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "days", label
	p.Y.Min = 0
	for i, r := range runs {
		points := make(plotter.XYs, len(r.Series))
		for k, s := range r.Series {
			points[k] = plotter.XY{X: s.At.Hours() / 24, Y: of(s, r.Cards)}
		}
		if len(points) == 0 {
			continue
		}
		if err := addLine(p, i, r.policy.name, points); err != nil {
			return nil, err
		}
	}
	return p, nil
}
