package gangsim

import (
	"fmt"
	"path/filepath"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/lab/replay"
	"gangd/pkg/lab/replay/reference"
	"gangd/pkg/lab/trace"
)

// losses are how much work a preemption is taken to lose: none where the checkpoint is
// handed over, and ten minutes where it is not.
func losses(p *policy, level string) []time.Duration {
	if p.preempts && level == "file" {
		return []time.Duration{0, 10 * time.Minute}
	}
	return []time.Duration{0}
}

// fillMarks are the loads at which the allocation is read, as shares of all cards.
var fillMarks = []float64{0.90, 0.95, 1.00, 1.30}

// filling is one placement of the openb experiment with its published row, in percent.
type filling struct {
	name    string
	row     []float64
	believe bool
	planner func(t *trace.Trace, seed int) (replay.Planner, error)
}

var fillings = []filling{
	{"reference random", []float64{85.02, 85.72, 86.30, 87.47}, true, func(_ *trace.Trace, seed int) (replay.Planner,
		error) {
		return reference.Random(seed), nil
	}},
	{"reference best fit", []float64{89.99, 92.82, 92.86, 93.08}, true, func(*trace.Trace, int) (replay.Planner,
		error) {
		return reference.BestFit(), nil
	}},
	{"reference FGD", []float64{89.98, 94.90, 95.23, 95.39}, true, func(t *trace.Trace, _ int) (replay.Planner,
		error) {
		return reference.FGD(t), nil
	}},
	{"gangd (beside FGD)", []float64{89.98, 94.90, 95.23, 95.39}, false, func(*trace.Trace, int) (replay.Planner, error) {
		p, err := readPolicy("default", nil)
		if err != nil {
			return nil, err
		}
		return p.planner(nil), nil
	}},
}

// fillSlack is how far an allocation may be from the published one, in points.
const fillSlack = 0.4

// openb fills the cluster pod by pod, with orders of arrival of several seeds.
func (o *rowsOptions) openb(p *printer) (missed int, err error) {
	t, err := trace.Read(filepath.Join(o.traces, "openb_default.csv.gz"), "")
	if err != nil {
		return 0, err
	}
	c, err := readCluster(filepath.Join(o.traces, "openb_nodes.csv.gz"), 0)
	if err != nil {
		return 0, err
	}
	capacity := int64(0)
	for i := range c.Nodes {
		capacity += int64(c.Nodes[i].Cards) * c.Nodes[i].VRAM >> 20
	}
	unit := func(j *trace.Job) int64 { return int64(j.GPUs()) * j.VRAM >> 20 }
	p.printf("openb: %s, allocation in %% of all cards, mean of %d seeds (published in brackets)\n%-24s", c.Name, o.seeds, "  asked for")
	for _, m := range fillMarks {
		p.printf(" %18s", percent(m))
	}
	p.printf("\n")
	for _, f := range fillings {
		sum := make([]float64, len(fillMarks))
		for seed := 42; seed < 42+o.seeds; seed++ {
			planner, err := f.planner(t, seed)
			if err != nil {
				return missed, err
			}
			out, err := replay.Fill(trace.Arrivals(t, seed, capacity*13/10, unit), c, planner, api.DefaultSettings(), unit, capacity, fillMarks)
			if err != nil {
				return missed, fmt.Errorf("openb: %s: %w", f.name, err)
			}
			for i := range out {
				sum[i] += 100 * out[i].Allocated / float64(o.seeds)
			}
		}
		missed += f.show(p, sum)
	}
	return missed, nil
}

func (f *filling) show(p *printer, got []float64) int {
	p.printf("  %-22s", f.name)
	mark, miss := "", 0
	if f.believe {
		mark = "  ok"
	}
	for i, v := range got {
		p.printf("  %7.2f  (%5.2f) ", v, f.row[i])
		if f.believe && (v < f.row[i]-fillSlack || v > f.row[i]+fillSlack) {
			mark, miss = fmt.Sprintf("  MISSED: want within %.1f points", fillSlack), 1
		}
	}
	p.printf("%s\n", mark)
	return miss
}
