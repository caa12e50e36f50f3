package gangsim

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"gangd/pkg/client/program"
	"gangd/pkg/client/statusline"
	"gangd/pkg/lab/replay"
	"gangd/pkg/lab/trace"
)

// published is one row of an experiment that others have published, and how near ours must
// come for the simulator to be believed.
type published struct {
	trace, policy string
	quantity      string // "jct" or "delay"
	value         float64
	least, most   float64 // allowed deviation, as a share; both 0: for comparison only
}

// believed are the rows of ../shared/traces: those of the Muri artifact (SRTF and SRSF, which
// charges more than its own model, so that ours must not lie above), and of an independent
// prototype under the same rules (the others).
var believed = []published{
	{"philly1", "fifo", "jct", 10997597, -0.006, 0.006}, {"philly1", "sjf", "jct", 1623603, -0.001, 0.001},
	{"philly1", "srtf", "jct", 1370603, -0.07, 0}, {"philly1", "srsf", "jct", 980141, -0.07, 0}, {"philly1", "easy", "jct", 5736842, 0, 0},
	{"philly1", "las", "delay", 2499774, 0, 0},
	{"philly3", "fifo", "jct", 991200, -0.006, 0.006}, {"philly3", "sjf", "jct", 262098, -0.001, 0.001},
	{"philly3", "srtf", "jct", 193082, -0.07, 0}, {"philly3", "srsf", "jct", 185022, -0.07, 0}, {"philly3", "easy", "jct", 445193, 0, 0},
	{"itp04", "fifo", "delay", 20274, -0.006, 0.006}, {"itp04", "sjf", "delay", 4092, -0.001, 0.001},
	{"itp04", "srtf", "delay", 1405, 0, 0}, {"itp04", "srsf", "delay", 1018, 0, 0}, {"itp04", "easy", "delay", 10286, 0, 0},
	{"itp04", "las", "delay", 1711, 0, 0},
}

// clusters are those of the published experiments; of itp04 the size is a choice.
var clusters = map[string]string{"philly1": "8x8", "philly3": "8x8", "itp04": "72x8"}

// rowsOptions are those of `gangsim rows`.
type rowsOptions struct {
	line   *statusline.Line
	traces string
	seeds  int
	only   []string
}

func newRows() *cobra.Command {
	o := &rowsOptions{}
	cmd := &cobra.Command{
		Use:   "rows [OPTIONS]",
		Short: "our rows beside published ones",
		Example: `  gangsim rows --traces=../shared/traces              all of them, some minutes
  gangsim rows --traces=../shared/traces --only=philly3
  gangsim rows --traces=../shared/traces --only=openb --seeds=2`,
		Long: `Plays the traces of published experiments with the reference orders and placements, and
with gangd's defaults, and prints each row beside the published one. It fails when a
reference is farther from its row than it may be: then no figure of this simulator counts.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.line = lineOf(cmd)
			return o.run(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	noProgress(f)
	f.StringVar(&o.traces, "traces", os.Getenv("GANG_TRACES"), "`DIR` with philly1.csv.gz and the others (default: $GANG_TRACES)")
	f.IntVar(&o.seeds, "seeds", 10, "`N` orders of arrival for openb")
	f.StringSliceVar(&o.only, "only", nil, "`TRACES` of philly1, philly3, itp04, openb")
	return cmd
}

var rowTraces = []string{"philly1", "philly3", "itp04", "openb"}

func (o *rowsOptions) run(w io.Writer) error {
	if o.traces == "" {
		return program.Usagef("--traces is missing: name the folder with the traces, or set GANG_TRACES")
	}
	for _, name := range o.only {
		if !slices.Contains(rowTraces, name) {
			return program.Usagef("--only=%s: want some of philly1, philly3, itp04, openb", name)
		}
	}
	if o.seeds < 1 || o.seeds > 100 {
		return program.Usagef("--seeds=%d: want 1 to 100", o.seeds)
	}
	p := &printer{w: w}
	missed, seen := 0, 0
	for _, name := range rowTraces {
		if len(o.only) > 0 && !slices.Contains(o.only, name) {
			continue
		}
		var n int
		var err error
		if name == "openb" {
			n, err = o.openb(p)
		} else {
			n, err = o.queueing(p, name)
		}
		var missing *fs.PathError
		if errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) {
			p.printf("%s: not there: %s\n", name, missing.Path)
			continue
		} else if err != nil {
			return err
		}
		seen++
		missed += n
	}
	switch {
	case p.err != nil:
		return p.err
	case seen == 0:
		return fmt.Errorf("none of the traces is in %s: nothing was compared", o.traces)
	case missed > 0:
		return fmt.Errorf("%d rows are farther from the published ones than they may be", missed)
	}
	return nil
}

// queueing plays one trace with its references, then with gangd's defaults at each level
// of what users know.
func (o *rowsOptions) queueing(p *printer, name string) (missed int, err error) {
	in := &input{limits: "file", line: o.line, costs: replay.Costs{Restart: replay.RestartOfTraces}}
	path := filepath.Join(o.traces, name+".csv.gz")
	if in.trace, err = trace.Read(path, ""); err != nil {
		return 0, err
	}
	if in.cluster, err = readCluster(clusters[name], 0); err != nil {
		return 0, err
	}
	p.printf("%s: %d jobs on %s\n%-40s %12s %12s %8s\n", name, len(in.trace.Jobs), in.cluster.Name, "", "published", "here", "")
	for _, b := range believed {
		if b.trace != name {
			continue
		}
		pol, err := readPolicy(b.policy, nil)
		if err != nil {
			return missed, err
		}
		r, err := in.play(pol)
		if err != nil {
			return missed, fmt.Errorf("%s: %s: %w", name, pol.name, err)
		}
		missed += b.show(p, pol, r)
	}
	return missed, o.product(p, path, in)
}

func (b *published) show(p *printer, pol *policy, r *played) int {
	got := r.Completion.Average
	what := "average completion"
	if b.quantity == "delay" {
		got, what = r.Delay.Average, "average delay"
	}
	off := got/b.value - 1
	mark, miss := "", 0
	if b.least != 0 || b.most != 0 {
		if mark = "ok"; off < b.least || off > b.most {
			mark, miss = fmt.Sprintf("MISSED: want %+.1f to %+.1f %%", 100*b.least, 100*b.most), 1
		}
	}
	p.printf("  %-38s %12s %12s %+7.2f %%  %s\n", pol.name+", "+what, thousands(b.value), thousands(got), 100*off, mark)
	return miss
}

// product is gangd with the defaults of a site that sets nothing, and with preemption.
func (o *rowsOptions) product(p *printer, path string, in *input) error {
	p.printf("  %-30s %8s %12s %12s %10s %12s %8s\n", "gangd, time limits", "", "avg delay", "p99 delay", "longest", "avg compl.", "jobs/s")
	for _, set := range [][]string{nil, {"preempt=service"}} {
		pol, err := readPolicy("default", set)
		if err != nil {
			return err
		}
		for _, level := range trace.LimitLevels {
			if in.trace, err = trace.Read(path, ""); err != nil {
				return err
			}
			if err := in.trace.SetLimits(level); err != nil {
				return err
			}
			for _, lost := range losses(pol, level) {
				in.costs.Lost = lost
				r, err := in.play(pol)
				name := pol.name + ", " + level
				if lost > 0 {
					name += fmt.Sprintf(", %s lost", lost)
				}
				if err != nil {
					p.printf("  %-39s %v\n", name, err)
					continue
				}
				p.printf("  %-39s %12s %12s %8.1f d %12s %8.0f\n", name, thousands(r.Delay.Average), thousands(r.Delay.P99),
					r.Delay.Max/86400, thousands(r.Completion.Average), r.JobsPerSecond)
			}
		}
	}
	return nil
}
