package gangsim

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/plot"
	"gangd/pkg/lab/replay"
)

// figuresOf are figures of one kind.
type figuresOf struct {
	title string
	rows  []row
}

// row is one line of the table of figures.
type row struct {
	name string
	of   func(*played) string
	// value is what runs are compared by; nil: more is neither better nor worse. Of less, less is better.
	value func(*played) float64
	less  bool
}

// seconds is a row of a time in seconds, of which less is better.
func seconds(name string, value func(*played) float64) row {
	return row{name, func(r *played) string { return span(value(r)) }, value, true}
}

// groups are the figures of a run, in the order in which people ask for them.
var groups = []figuresOf{
	{"How long jobs waited", []row{
		seconds("average queue delay", func(r *played) float64 { return r.Delay.Average }),
		seconds("median queue delay", func(r *played) float64 { return r.Delay.Median }),
		seconds("p99 queue delay", func(r *played) float64 { return r.Delay.P99 }),
		seconds("longest queue delay", func(r *played) float64 { return r.Delay.Max }),
		seconds("average wait for the first start", func(r *played) float64 { return r.Start.Average })}},
	{"When they were done", []row{
		seconds("average completion time", func(r *played) float64 { return r.Completion.Average }),
		seconds("median completion time", func(r *played) float64 { return r.Completion.Median }),
		seconds("p99 completion time", func(r *played) float64 { return r.Completion.P99 }),
		seconds("makespan", func(r *played) float64 { return r.Makespan })}},
	{"What the cards did", []row{
		{"cards in use", func(r *played) string { return percent(r.Utilisation) }, func(r *played) float64 { return r.Utilisation }, false},
		{"free cards on nodes in use", func(r *played) string { return percent(r.Fragmentation) },
			func(r *played) float64 { return r.Fragmentation }, true},
		{"preemptions", func(r *played) string { return strconv.Itoa(r.Preemptions) }, nil, false},
		{"work done again, card-hours", func(r *played) string { return fmt.Sprintf("%.0f", r.LostSeconds/3600) },
			func(r *played) float64 { return r.LostSeconds }, true},
		{"ended by their limit", func(r *played) string { return strconv.Itoa(r.TimedOut) },
			func(r *played) float64 { return float64(r.TimedOut) }, true}}},
}

// costs are what the simulation itself took.
var costs = figuresOf{"What the simulation took", []row{
	{"plans", func(r *played) string { return strconv.Itoa(r.Plans) }, nil, false},
	{"time of a plan, average", func(r *played) string {
		return millis(r.PlanTime / time.Duration(max(1, r.Plans)))
	}, nil, false},
	{"time of a plan, longest", func(r *played) string { return millis(r.PlanMax) }, nil, false},
	{"jobs simulated a second", func(r *played) string { return fmt.Sprintf("%.0f", r.JobsPerSecond) }, nil, false},
	{"jobs a second of CPU time", func(r *played) string { return fmt.Sprintf("%.0f", float64(r.Jobs)/max(1e-6, r.cpu.Seconds())) }, nil,
		false},
	{"memory", func(r *played) string { return fmt.Sprintf("%.0f MiB", float64(r.memory)/(1<<20)) }, nil, false},
}}

// groupsOf are the figures of runs of one trace: of all jobs, where these are not all as wide by width, and at last
// what it took.
func groupsOf(runs []*played) []figuresOf {
	out := slices.Clone(groups)
	if len(runs) > 0 && len(runs[0].Widths) > 1 {
		for i := range runs[0].Widths {
			of := func(value func(w *replay.Width) float64) func(*played) float64 {
				return func(r *played) float64 { return value(&r.Widths[i]) }
			}
			long := of(func(w *replay.Width) float64 { return w.Long })
			out = append(out, figuresOf{"How long " + widthName(&runs[0].Widths[i]) + " waited", []row{
				seconds("average delay", of(func(w *replay.Width) float64 { return w.Delay.Average })),
				seconds("p99 delay", of(func(w *replay.Width) float64 { return w.Delay.P99 })),
				seconds("longest delay", of(func(w *replay.Width) float64 { return w.Delay.Max })),
				{"delayed over 48 h", func(r *played) string { return percent(long(r)) }, long, true}}})
		}
	}
	return append(out, costs)
}

// change is how far a run is from the first in percent, empty where there is nothing to say, and whether it is better.
func (w *row) change(first, r *played) (text string, tone plot.Tone) {
	if w.value == nil || first == r {
		return "", plot.Even
	}
	was, is := w.value(first), w.value(r)
	switch {
	case was == is || was == 0:
		return "", plot.Even
	case is < was == w.less:
		tone = plot.Better
	default:
		tone = plot.Worse
	}
	if math.Abs(is/was-1) < 0.005 { // of which a person would say that it is the same
		tone = plot.Even
	}
	return fmt.Sprintf("%+.0f %%", 100*(is/was-1)), tone
}

// widthName is "342 jobs of 2 to 8 cards".
func widthName(w *replay.Width) string {
	cards := fmt.Sprintf("%d to %d cards", w.From, w.To)
	switch {
	case w.To == 0:
		cards = fmt.Sprintf("%d cards and more", w.From)
	case w.To == 1:
		cards = "one card or none"
	}
	return fmt.Sprintf("%s of %s", thousands(float64(w.Jobs)), cards)
}

// inWords is span where one unit is enough.
func inWords(s float64) string {
	switch {
	case s >= 2*86400:
		return fmt.Sprintf("%.1f d", s/86400)
	case s >= 7200:
		return fmt.Sprintf("%.1f h", s/3600)
	case s >= 120:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.0f s", s)
}

// span writes seconds with what they are in the unit that fits: "20,232 s (5.6 h)".
func span(s float64) string {
	text := thousands(s) + " s"
	switch {
	case s >= 2*86400:
		return fmt.Sprintf("%s (%.1f d)", text, s/86400)
	case s >= 7200:
		return fmt.Sprintf("%s (%.1f h)", text, s/3600)
	}
	return text
}

func thousands(v float64) string {
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

// title says what was played on what.
func (in *input) title() string {
	return fmt.Sprintf("%s: %s jobs over %.1f days on %s", filepath.Base(in.trace.File), thousands(float64(len(in.trace.Jobs))),
		in.trace.Span().Hours()/24, in.cluster.Name)
}

// load is how much of the cards the trace asks for until its last submission.
func (in *input) load() string {
	cards, span := float64(in.cluster.Cards()), in.trace.Span().Seconds()
	if cards == 0 || span == 0 {
		return ""
	}
	return fmt.Sprintf("the jobs' work is %.2f of what the cards can do until the last submission", in.trace.GPUSeconds()/cards/span)
}

func (in *input) remarks() []string {
	out := []string{"time limits: " + in.limits, "a restart after a preemption costs " + in.cost}
	if l := in.load(); l != "" {
		out = append([]string{l}, out...)
	}
	return append(out, in.notes...)
}

func writeText(w io.Writer, in *input, runs []*played) error {
	p := &printer{w: w}
	p.printf("%s\n", in.title())
	for _, n := range in.remarks() {
		p.printf("  %s\n", n)
	}
	p.printf("\n%-42s", "")
	for _, r := range runs {
		p.printf(" %22s", short(r.policy.name))
	}
	p.printf("\n")
	for _, g := range groupsOf(runs) {
		p.printf("%s\n", g.title)
		for _, row := range g.rows {
			p.printf("  %-40s", row.name)
			for _, r := range runs {
				p.printf(" %22s", row.of(r))
			}
			p.printf("\n")
		}
	}
	return p.err
}

// short is the end of a long name: of paths that is what tells them apart.
func short(s string) string {
	if r := []rune(s); len(r) > 22 {
		return "~" + string(r[len(r)-21:])
	}
	return s
}

// jsonRun is one run of `gangsim --json`.
type jsonRun struct {
	Policy string `json:"policy"`
	*replay.Result
	CPU         time.Duration `json:"cpu_ns"`
	MemoryBytes uint64        `json:"memory_bytes"`
}

type jsonReply struct {
	SchemaVersion int       `json:"schema_version"`
	Trace         string    `json:"trace"`
	Cluster       string    `json:"cluster"`
	Limits        string    `json:"limits"`
	Notes         []string  `json:"notes"`
	Runs          []jsonRun `json:"runs"`
}

func writeJSON(w io.Writer, in *input, runs []*played) error {
	reply := jsonReply{SchemaVersion: api.SchemaVersion, Trace: in.trace.File, Cluster: in.cluster.Name, Limits: in.limits,
		Notes: in.remarks()}
	for _, r := range runs {
		reply.Runs = append(reply.Runs, jsonRun{r.policy.name, r.Result, r.cpu, r.memory})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(reply)
}

// writeJobs writes what became of each job, one line for each job and policy.
func writeJobs(path string, runs []*played) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Close()) }()
	b := bufio.NewWriter(f)
	w := csv.NewWriter(b)
	if err := w.Write([]string{"policy", "job_id", "gpus", "submit_s", "start_s", "end_s", "delay_s", "starts"}); err != nil {
		return err
	}
	for _, r := range runs {
		for i := range r.Outcomes {
			o := &r.Outcomes[i]
			s := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }
			if err := w.Write([]string{r.policy.name, o.ID, strconv.Itoa(o.GPUs), s(o.Submit), s(o.Start), s(o.End), s(o.Delay),
				strconv.Itoa(o.Epochs)}); err != nil {
				return err
			}
		}
	}
	w.Flush()
	return cmp.Or(w.Error(), b.Flush())
}

func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}
