package gangsim

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/client/statusline"
	"gangd/pkg/core/script"
	"gangd/pkg/lab/replay"
	"gangd/pkg/lab/trace"
)

// options are those of one call.
type options struct {
	cluster  string
	addNodes int
	format   string
	swfUnit  string
	limits   string
	defaults []string
	copies   int
	policies []string
	compare  bool
	set      []string
	restart  string
	lostWork string
	report   string
	jobs     string
	asJSON   bool
}

// New is the command gangsim.
func New() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "gangsim [OPTIONS] TRACE [POLICY...]",
		Short: "play a trace of jobs on the scheduler",
		Example: `  gangsim --cluster=72x8 jobs.csv                       how a site with defaults would have served these jobs
  gangsim --compare --cluster=8x8 --report=out jobs.csv old.toml new.toml
                                                        two configurations side by side, with plots
  gangsim --cluster=site.toml --add-nodes=2 sacct.txt   what if we had two more nodes
  gangsim --cluster=8x8 --default-time=none,3-0,7-0 jobs.csv
                                                        what a default of three days would do, and of seven`,
		Long: `Plays the jobs of TRACE on the scheduler of gangd, under a virtual clock, and says how
long they waited. TRACE is CSV, SWF, the output of sacct -P, or of gacct --json; POLICY is
a gangd.toml, "default", or one of the reference orders fifo easy las sjf srtf srsf.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.cluster, "cluster", "", "NODESxCARDS[xVRAM] such as 72x8x80G, or a `FILE`: .toml, or a list of nodes in .csv")
	f.IntVar(&o.addNodes, "add-nodes", 0, "`N` more nodes like the last one; negative: so many less")
	f.StringVar(&o.format, "format", "", "`FORMAT` of the trace: csv, swf, sacct or gacct (default: seen from the file)")
	f.StringVar(&o.swfUnit, "swf-unit", "cpu", "what a processor of SWF is: `UNIT` cpu or card")
	f.StringVar(&o.limits, "limits", "file", "time limits: `LEVEL` file, half, none, x2 (up to twice the duration) or exact")
	f.StringSliceVar(&o.defaults, "default-time", nil, "`TIMES` that stand in for limits that jobs lack, each played, such as none,3-0,7-0 "+
		"(default: the policy's partition's)")
	f.IntVar(&o.copies, "copies", 1, "play each job `N` times, spread over an hour")
	f.StringSliceVar(&o.policies, "policy", nil, "plan by `POLICY` (may be repeated)")
	f.BoolVar(&o.compare, "compare", false, "what follows the trace are policies, shown side by side")
	f.StringArrayVar(&o.set, "set", nil, "`KEY=VALUE` on top of each configuration")
	f.StringVar(&o.restart, "restart", "traces", "`COST` of a restart after a preemption: none, a time, or traces (7, 30, 60 s for 1, up "+
		"to 8, more cards)")
	f.StringVar(&o.lostWork, "lost-work", "0s", "work that a preemption loses, a `TIME`")
	f.StringVar(&o.report, "report", "", "write report.md, and report.html with plots, into `DIR`")
	f.StringVar(&o.jobs, "jobs", "", "write what became of each job as CSV to `FILE`")
	f.BoolVar(&o.asJSON, "json", false, "as JSON")
	noProgress(f)
	cmd.AddCommand(newRows())
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	if len(args) > 1 && !o.compare {
		return program.Usagef("one TRACE is played at a time, got %s; --compare plays it with several policies", strings.Join(args, " "))
	}
	names := append(slices.Clone(o.policies), args[1:]...)
	if len(names) == 0 {
		names = []string{"default"}
	}
	if o.compare && len(names) < 2 {
		return program.Usagef("--compare wants two policies or more behind the trace, got %s", strings.Join(names, " "))
	}
	var policies []*policy
	for _, name := range names {
		p, err := readPolicy(name, o.set)
		if err != nil {
			return err
		}
		policies = append(policies, p)
	}
	in, err := o.read(args[0])
	if err != nil {
		return err
	}
	in.line = lineOf(cmd)
	policies = in.withDefaults(policies)
	var runs []*played
	for _, p := range policies {
		r, err := in.play(p)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", filepath.Base(in.trace.File), p.name, err)
		}
		runs = append(runs, r)
	}
	if err := o.write(in, runs); err != nil {
		return err
	}
	if o.asJSON {
		return writeJSON(cmd.OutOrStdout(), in, runs)
	}
	return writeText(cmd.OutOrStdout(), in, runs)
}

// input is all that the runs of one call have in common.
type input struct {
	trace   *trace.Trace
	cluster *replay.Cluster
	costs   replay.Costs
	cost    string // in words
	// stands are the times that stand in for limits that jobs lack, one after another, 0: none;
	// none of them: what the policy's partition says.
	stands []time.Duration
	limits string
	notes  []string
	line   *statusline.Line
}

// played is one run.
type played struct {
	policy *policy
	*replay.Result
	memory uint64        // taken from the system by now
	cpu    time.Duration // of this process, for the run
}

func (o *options) read(path string) (*input, error) {
	in := &input{limits: o.limits}
	var err error
	if o.cluster == "" {
		return nil, program.Usagef("--cluster is missing: say what the jobs run on, such as --cluster=72x8")
	}
	if in.cluster, err = readCluster(o.cluster, o.addNodes); err != nil {
		return nil, err
	}
	if o.copies < 1 || o.copies > 1000 {
		return nil, program.Usagef("--copies=%d: want 1 to 1000", o.copies)
	}
	for _, s := range o.defaults {
		d := time.Duration(0)
		if s != "none" {
			if d, err = script.ParseTime(s); err != nil {
				return nil, program.Usagef("--default-time: %s", err)
			}
		}
		in.stands = append(in.stands, d)
	}
	if err := o.readCosts(in); err != nil {
		return nil, err
	}
	if !slices.Contains(trace.LimitLevels, o.limits) {
		return nil, program.Usagef("--limits=%s: want one of %s", o.limits, strings.Join(trace.LimitLevels, ", "))
	}
	if o.swfUnit != "cpu" && o.swfUnit != "card" {
		return nil, program.Usagef("--swf-unit=%s: want cpu or card", o.swfUnit)
	}
	if in.trace, err = trace.Read(path, o.format); err != nil {
		return nil, err
	}
	if err := in.trace.SetLimits(o.limits); err != nil {
		return nil, err
	}
	if o.copies > 1 {
		in.trace.Copies(o.copies)
	}
	if err := in.cut(o.swfUnit == "card"); err != nil {
		return nil, err
	}
	in.notes = append(in.notes, in.trace.Notes()...)
	in.standIn()
	return in, nil
}

func (o *options) readCosts(in *input) error {
	lost, err := script.ParseSeconds(o.lostWork)
	if err != nil {
		return program.Usagef("--lost-work: %s", err)
	}
	in.costs.Lost = lost
	switch o.restart {
	case "traces":
		in.costs.Restart, in.cost = replay.RestartOfTraces, "7, 30 or 60 s for 1, up to 8 or more cards"
	case "none":
		in.cost = "nothing"
	default:
		d, err := script.ParseSeconds(o.restart)
		if err != nil {
			return program.Usagef("--restart: %s; or none, or traces", err)
		}
		in.costs.Restart, in.cost = func(int) time.Duration { return d }, d.String()
	}
	if lost > 0 {
		in.cost += fmt.Sprintf(" and %s of work", lost)
	}
	return nil
}

// cut makes ranks of a trace that counts processors alone.
func (in *input) cut(cards bool) error {
	if !slices.ContainsFunc(in.trace.Jobs, func(j trace.Job) bool { return j.Units > 0 }) {
		return nil
	}
	per := 0
	for i := range in.cluster.Nodes {
		n := &in.cluster.Nodes[i]
		if cards {
			per = max(per, n.Cards)
		} else if n.CPUs < manyCPUs {
			per = max(per, n.CPUs)
		}
	}
	if per == 0 {
		return program.Usagef("the jobs of this trace ask for processors: say how many a node has, with cpus in a cluster file, or " +
			"--swf-unit=card")
	}
	in.trace.Cut(per, cards)
	return nil
}

// standIn counts what the trace lacks, and says what takes its place.
func (in *input) standIn() {
	none := 0
	for i := range in.trace.Jobs {
		if in.trace.Jobs[i].Limit == 0 {
			none++
		}
	}
	switch {
	case none == 0:
	case len(in.stands) > 0:
		names := make([]string, len(in.stands))
		for i, d := range in.stands {
			names[i] = standName(d)
		}
		in.notes = append(in.notes, fmt.Sprintf("%d jobs have no time limit, %s stands in (--default-time)", none,
			strings.Join(names, ", then ")))
	default:
		in.notes = append(in.notes, fmt.Sprintf("%d jobs have no time limit: the partition's default time stands in, where it has one", none))
	}
}

func standName(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

func noProgress(f *pflag.FlagSet) { f.Bool("no-progress", false, "no status line on a terminal") }

// lineOf is where a command shows how far it is; nil: nowhere.
func lineOf(cmd *cobra.Command) *statusline.Line {
	if quiet, _ := cmd.Flags().GetBool("no-progress"); quiet {
		return nil
	}
	return statusline.Open(cmd.ErrOrStderr())
}

// withDefaults is each policy with each of the times that stand in for limits.
func (in *input) withDefaults(policies []*policy) (out []*policy) {
	if len(in.stands) == 0 {
		return policies
	}
	for _, p := range policies {
		for _, d := range in.stands {
			own := *p
			part := api.Partition{Name: replay.Partition}
			if len(p.partitions) > 0 {
				part = p.partitions[0]
			}
			part.DefaultTime = d
			own.partitions = []api.Partition{part}
			if len(in.stands) > 1 {
				own.name += " " + standName(d)
			}
			out = append(out, &own)
		}
	}
	return out
}

func (in *input) play(p *policy) (*played, error) {
	var sim *replay.Sim
	var err error
	sim, err = replay.New(in.trace, in.cluster, p.planner(func() replay.Truth { return sim.Truth() }),
		replay.Options{Settings: p.settings, Costs: in.costs, Partitions: p.partitions,
			Tell: func(over, jobs int) {
				in.line.Work(filepath.Base(in.trace.File)+", "+p.name+": jobs over", int64(over), int64(jobs))
			}})
	if err != nil {
		return nil, err
	}
	before := cpuTime()
	r, err := sim.Run()
	in.line.Clear()
	if err != nil {
		return nil, err
	}
	spent := cpuTime() - before
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return &played{policy: p, Result: r, memory: m.Sys, cpu: spent}, nil
}

// cpuTime is what this process has used: on a machine that does other work too, the only
// measure of speed that can be compared.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (o *options) write(in *input, runs []*played) error {
	if o.jobs != "" {
		if err := writeJobs(o.jobs, runs); err != nil {
			return err
		}
	}
	if o.report == "" {
		return nil
	}
	return writeReport(o.report, in, runs)
}

// printer keeps a writer's first error to the end.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
