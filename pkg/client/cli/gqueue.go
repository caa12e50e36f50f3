package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/client/output"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// gqueue is one call of the command: the options as given and what follows from them.
type gqueue struct {
	sel        selection
	format     string
	longFormat string
	sort       string
	noHeader   bool
	long       bool
	start      bool
	array      bool
	all        bool
	asJSON     bool
	parsable   bool
	watch      bool
	why        string
	iterate    int
	steps      []string
	ofSteps    bool
	errors     io.Writer
	startsOf   bool // --start of jobs that are named: of those that wait no more it is said

	jobs.Look
	stepLine column.Line[*jobs.StepRow]
	stepKeys []column.Key[*jobs.StepRow]
}

// NewGqueue is the command gqueue.
func NewGqueue() *cobra.Command {
	g := &gqueue{}
	cmd := &cobra.Command{
		Use:   "gqueue [OPTIONS] [JOB...]",
		Short: "show the queue",
		Example: `  gqueue --me                    my jobs, running and waiting
  gqueue --why @                 why my last job waits, with the figures
  gqueue -h -o '%i %t' -j 12,14  ids and states for a script`,
		Long: `JOB is 12, 12_3 (an element of an array), 12_[1-3], 10-20, @ (my last job) or @~1
(the one before). -h means no header, as in squeue; this help is --help.`,
		RunE:              func(cmd *cobra.Command, args []string) error { return g.run(cmd, args) },
		ValidArgsFunction: completeJobs,
	}
	g.addFlags(cmd.Flags())
	completeFlags(cmd)
	program.Coloured(cmd)
	program.Timeout(cmd)
	return cmd
}

func (g *gqueue) addFlags(f *pflag.FlagSet) {
	f.StringSliceVarP(&g.sel.jobs, "jobs", "j", nil, "only these `JOBS`")
	g.sel.addFilters(f)
	f.StringSliceVarP(&g.sel.states, "states", "t", nil, "jobs in these `STATES`, of any case and length (PD, running, all)")
	f.StringVarP(&g.format, "format", "o", "", "columns by squeue's letters (`FORMAT`, as in '%.18i %t')")
	f.StringVarP(&g.longFormat, "Format", "O", "", "columns by squeue's `NAMES`, as in jobid:10,state")
	f.StringVarP(&g.sort, "sort", "S", "", "order by letters of -o (`KEYS`, as in 'P,t,-p'; - is descending)")
	f.BoolVarP(&g.noHeader, "noheader", "h", false, "no header")
	f.BoolVarP(&g.long, "long", "l", false, "more columns: state in full, time limit")
	f.BoolVar(&g.start, "start", false, "waiting jobs with their expected start (N/A: not known)")
	f.BoolVarP(&g.array, "array", "r", false, "one line for each element of an array")
	f.BoolVarP(&g.all, "all", "a", false, "all partitions (there are no hidden ones: always so)")
	f.BoolVar(&g.asJSON, "json", false, "all that is known, as JSON")
	f.BoolVarP(&g.parsable, "parsable", "P", false, "columns whole, a | between them")
	f.BoolVar(&g.watch, "watch", false, "show it again whenever something changes")
	f.StringVar(&g.why, "why", "", "why this `JOB` waits, with the figures")
	f.IntVarP(&g.iterate, "iterate", "i", 0, "show it again every so many `SECONDS`; --watch shows each change as it comes")
	f.StringSliceVarP(&g.steps, "steps", "s", nil, "steps of running jobs, or these `STEPS` (12.0)")
	f.Lookup("steps").NoOptDefVal = everyStep
}

// everyStep is --steps without a value.
const everyStep = "all"

func (g *gqueue) run(cmd *cobra.Command, args []string) error {
	g.ofSteps = cmd.Flags().Changed("steps")
	if g.ofSteps && slices.Equal(g.steps, []string{everyStep}) {
		g.steps = nil
		if len(args) > 0 && strings.Contains(args[0], ".") { // people write -s 12.0, and squeue reads it
			g.steps, args = cmdline.Split(args[0]), args[1:]
		}
	}
	g.sel.jobs = append(g.sel.jobs, args...)
	if err := g.settle(cmd); err != nil {
		return err
	}
	c := client.New()
	g.errors = cmd.ErrOrStderr()
	if g.why != "" {
		return g.explain(cmd, c)
	}
	s := screenOf(cmd.OutOrStdout())
	g.widen(s)
	if g.watch {
		return g.follow(cmd.Context(), c, s)
	}
	for {
		if err := g.show(cmd.Context(), c, s); err != nil || g.iterate == 0 {
			return err
		}
		time.Sleep(time.Duration(g.iterate) * time.Second)
		fmt.Fprintln(s.w)
	}
}

// settle checks the options against each other and reads the environment that squeue reads.
func (g *gqueue) settle(cmd *cobra.Command) error {
	f := cmd.Flags()
	switch {
	case f.Changed("iterate") && g.iterate <= 0:
		return Usagef("--iterate=%d: want a number of seconds from 1", g.iterate)
	case f.Changed("iterate") && (g.watch || g.why != ""):
		return Usagef("--iterate goes with neither --watch nor --why")
	case g.ofSteps && (g.asJSON || g.start || g.why != ""):
		return Usagef("--steps goes with neither --json, --start nor --why; steps are in gqueue --json too, within their jobs")
	case g.asJSON && (g.parsable || g.watch):
		return Usagef("--json goes with neither --parsable nor --watch; for a stream of changes: gctl events --follow --json")
	case f.Changed("format") && f.Changed("Format"):
		return Usagef("-o and -O exclude each other")
	}
	g.environment(f)
	g.startsOf = g.start && len(g.sel.states) == 0 && len(g.sel.jobs) > 0
	if g.start && len(g.sel.states) == 0 && !g.startsOf {
		g.sel.states = []string{"PD"}
	}
	var err error
	if g.Query, err = g.sel.query(cmd); err != nil {
		return err
	}
	if g.asJSON || g.watch || !g.sel.ofStrangers() { // else nobody says it, where nothing is found
		g.sel.warn(cmd, client.New())
	}
	if g.ofSteps {
		return g.settleSteps()
	}
	g.Start = g.start
	g.Query.Past = len(g.Query.Refs) > 0
	g.Fold = jobfield.Fold{Expand: g.array, ByReason: true}
	if g.Line, err = readFormat(&jobfield.Gqueue, cmp.Or(g.format, g.usualFormat()), g.longFormat); err != nil {
		return err
	}
	order := jobs.SortDefault
	if g.start {
		order = jobs.SortStart
	}
	g.Keys, err = readSort(&jobfield.Gqueue, cmp.Or(g.sort, order))
	return err
}

// wideWindow is from which width on the usual table has a column more.
const wideWindow = 100

// widen shows how many cards jobs have or ask for where the window has room for it. It asks for more of each job than the short form has,
// which only a person pays: in a pipe the columns are squeue's.
func (g *gqueue) widen(s *screen) {
	if !s.terminal || s.width < wideWindow || g.format != "" || g.longFormat != "" || g.ofSteps || g.parsable {
		return
	}
	at := slices.IndexFunc(g.Line.Columns, func(c column.Column[*jobfield.Row]) bool { return c.Letter == 'D' })
	if at < 0 {
		return
	}
	cards := column.Column[*jobfield.Row]{Field: jobfield.Gqueue.Name("gpus"), Width: 5, Right: true, Suffix: " "}
	g.Line.Columns = slices.Insert(slices.Clone(g.Line.Columns), at+1, cards)
	g.Whole = true
}

// settleSteps is settle for --steps. Steps have no names, states and accounts to be chosen by,
// and nodes of their own.
func (g *gqueue) settleSteps() (err error) {
	choice := jobs.StepChoice{IDs: g.steps}
	if job, bad := choice.Bad(); bad {
		return Usagef("%q is no step: want JOB.STEP, as in 12.0; all steps of a job: gqueue -s -j %s", job, job)
	}
	if g.stepLine, err = readFormat(&jobs.OwnStepFields, cmp.Or(g.format, jobs.FormatOwn), g.longFormat); err != nil {
		return err
	}
	g.stepKeys, err = readSort(&jobs.OwnStepFields, cmp.Or(g.sort, jobs.SortSteps))
	g.Whole = true
	return err
}

// environment takes squeue's variables where no option was given.
func (g *gqueue) environment(f *pflag.FlagSet) {
	if !f.Changed("format") && !f.Changed("Format") && !g.long && !g.start {
		g.format = os.Getenv("SQUEUE_FORMAT")
		if g.format == "" {
			g.longFormat = os.Getenv("SQUEUE_FORMAT2")
		}
	}
	g.sort = cmp.Or(g.sort, os.Getenv("SQUEUE_SORT"))
	jobs.Environment(map[string]*[]string{
		"SQUEUE_USERS": &g.sel.users, "SQUEUE_STATES": &g.sel.states, "SQUEUE_PARTITION": &g.sel.partitions,
		"SQUEUE_ACCOUNT": &g.sel.accounts, "SQUEUE_NAMES": &g.sel.names,
	})
	if os.Getenv("SQUEUE_ARRAY") != "" {
		g.array = true
	}
}

func (g *gqueue) usualFormat() string {
	switch {
	case g.start:
		return jobs.FormatStart
	case g.long:
		return jobs.FormatLong
	}
	return jobs.FormatDefault
}

// fetch asks the controller for the jobs to show; of ids alone at least one has to be there.
func (g *gqueue) fetch(ctx context.Context, c *client.Client) (*api.JobsReply, error) {
	return g.Fetch(ctx, c, g.none)
}

// none is the error for jobs that are asked for by id and not there.
func (g *gqueue) none() error {
	if q := &g.Query; len(q.Refs) > 0 && len(g.sel.users)+len(g.sel.names)+len(q.States) == 0 {
		return &api.Error{Code: api.CodeNotFound, Message: "no job " + refsText(q.Refs), Hint: "list jobs with gqueue, ended ones with gacct"}
	}
	return nil
}

// refsText names the references of a query, a few of them.
func refsText(refs []api.JobRef) string {
	const few = 4
	var names []string
	for _, r := range refs[:min(few, len(refs))] {
		names = append(names, r.String())
	}
	if len(refs) > few {
		names = append(names, "...")
	}
	return strings.Join(names, ",")
}

// show prints the queue once.
func (g *gqueue) show(ctx context.Context, c *client.Client, s *screen) error {
	if g.asJSON {
		return g.WriteJSON(ctx, c, s.w, g.none)
	}
	var ended []api.Job
	g.Ended = func(over []api.Job) { ended = over }
	reply, err := g.fetch(ctx, c)
	if err != nil {
		return err
	}
	if g.startsOf {
		reply.Jobs = slices.DeleteFunc(reply.Jobs, func(j api.Job) bool {
			waits := j.State == api.JobPending
			if !waits {
				fmt.Fprintf(g.errors, "gqueue: job %s waits no more: %s\n", jobfield.IDText(&j), j.State)
			}
			return !waits
		})
	}
	if len(reply.Jobs) == 0 {
		if err := cmp.Or(g.sel.nowhere(ctx, c), g.sel.nobody(ctx, c)); err != nil {
			return err
		}
	}
	if err := g.write(s, reply.Jobs); err != nil {
		return err
	}
	if len(reply.Jobs) == 0 && g.pastOnly() {
		fmt.Fprintln(g.errors, "gqueue: what has ended leaves the queue after some minutes; gacct lists it")
	}
	return g.sayEnded(ctx, c, reply.Jobs, ended)
}

// pastOnly: ended jobs are asked for, too, and none is named.
func (g *gqueue) pastOnly() bool {
	if len(g.Query.Refs) > 0 || g.start || g.iterate > 0 {
		return false
	}
	return g.Query.All || slices.ContainsFunc(g.Query.States, api.JobState.Ended)
}

// maxEnded is of how many jobs named by id it is said how they ended.
const maxEnded = 10

// sayEnded says on standard error how those of the jobs named by id ended that are not shown because they have; of an array of which
// some are shown nothing is said.
func (g *gqueue) sayEnded(ctx context.Context, c *client.Client, shown, ended []api.Job) error {
	going := map[int64]bool{}
	for i := range shown {
		going[shown[i].ArrayJobID] = true
	}
	delete(going, 0)
	var refs []api.JobRef
	for i := range ended {
		j := &ended[i]
		ref := jobs.Ref(j)
		if whole := (api.JobRef{ID: j.ArrayJobID, Index: -1}); j.ArrayIndex != nil && !slices.Contains(g.Query.Refs, ref) {
			if ref = whole; going[j.ArrayJobID] || slices.Contains(refs, whole) {
				continue
			}
		}
		refs = append(refs, ref)
	}
	for _, ref := range refs[:min(len(refs), maxEnded)] {
		over, err := namedJobs(ctx, c, ref)
		if err != nil {
			return err
		}
		fmt.Fprintln(g.errors, "gqueue: "+endedText(ref, over))
	}
	if more := len(refs) - maxEnded; more > 0 {
		fmt.Fprintf(g.errors, "gqueue: and %s more that have ended; gacct lists them\n", count(more, "job", "jobs"))
	}
	return nil
}

// endedText is how a job that was named by its id ended, or the elements of an array.
func endedText(ref api.JobRef, over []api.Job) string {
	if isArray(over) {
		return fmt.Sprintf("array %s has ended: %s; gacct %s", ref, arrayStates(over), ref)
	}
	text := fmt.Sprintf("job %s has ended: %s", ref, over[0].State)
	if over[0].Verdict != "" {
		text += " (" + column.Printable(over[0].Verdict) + ")"
	}
	return text + "; gacct " + ref.String()
}

// write prints jobs as the options say.
func (g *gqueue) write(s *screen, all []api.Job) error {
	if (g.long || g.iterate > 0) && !g.noHeader && !g.parsable {
		fmt.Fprintln(s.w, now().Local().Format("Mon Jan 02 15:04:05 2006"))
	}
	own := g.format != "" || g.longFormat != ""
	if g.ofSteps {
		choice := jobs.StepChoice{IDs: g.steps, Nodes: g.Query.Nodes}
		t := tableOf(&g.stepLine, choice.Rows(all, nil, g.stepKeys), own)
		return g.print(s, t)
	}
	rows := g.Rows(all, nil)
	t := tableOf(&g.Line, rows, own)
	if !own {
		t.style = func(r, col int) style { return queueStyle(rows[r], g.Line.Columns[col].Field) }
	}
	return g.print(s, t)
}

func (g *gqueue) print(s *screen, t *table) error {
	t.noHeader = g.noHeader
	if g.parsable {
		return t.bars(s.w)
	}
	return t.write(s)
}

// tableOf lays rows out. A format of the person's own is followed to the letter, widths
// included; of the usual ones squeue's widths are the least.
func tableOf[R any](line *column.Line[R], rows []R, own bool) *table {
	n := len(line.Columns)
	t := &table{prefix: line.Prefix, cols: make([]tableColumn, n), rows: make([][]string, len(rows))}
	for i, c := range line.Columns {
		t.cols[i] = tableColumn{head: c.Head, width: c.Width, right: c.Right, cut: own, suffix: c.Suffix,
			keep: c.Letter == 'i' || c.Letter == 't' || c.Letter == 'M'}
		if !own && c.Suffix == " " {
			t.cols[i].suffix = ""
		}
		if !own && c.Letter == 'P' {
			t.cols[i].spare = 1
		}
	}
	cells := make([]string, len(rows)*n)
	for r := range rows {
		t.rows[r] = cells[r*n : (r+1)*n]
		for i, c := range line.Columns {
			t.rows[r][i] = c.Text(rows[r])
		}
	}
	return t
}

// queueStyle colours the state, and the reason of what failed.
func queueStyle(r row, f *jobfield.Field) style {
	if f.Letter != 't' && f.Letter != 'T' {
		return plain
	}
	return stateStyle(r.State)
}

// stateStyle is the colour of a job's state.
func stateStyle(st api.JobState) style {
	switch st {
	case api.JobRunning, api.JobCompleted:
		return green
	case api.JobPending:
		return plain
	case api.JobReserved, api.JobCompleting, api.JobSuspended, api.JobPreempted:
		return yellow
	case api.JobCancelled:
		return faint
	}
	return red
}

// explain prints why a job waits.
func (g *gqueue) explain(cmd *cobra.Command, c *client.Client) error {
	ref, err := oneRef(g.why)
	if err != nil {
		return err
	}
	named, err := namedJobs(cmd.Context(), c, ref)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if !isArray(named) {
		name := ref.String()
		if len(named) == 1 {
			name = jobfield.IDText(&named[0])
		}
		return g.explainOne(cmd.Context(), c, out, ref, "job "+name+" is")
	}
	first, like := whyWaits(named)
	if g.asJSON {
		of := &named[0]
		if len(first) > 0 {
			of = first[0]
		}
		return g.explainOne(cmd.Context(), c, out, jobs.Ref(of), "")
	}
	fmt.Fprintf(out, "array %d: %s\n", named[0].ArrayJobID, arrayStates(named))
	for i, j := range first {
		lead := "job " + like[i] + " is"
		if like[i] != jobfield.IDText(j) {
			lead = "jobs " + like[i] + ", of which " + jobfield.IDText(j) + " is"
		}
		if err := g.explainOne(cmd.Context(), c, out, jobs.Ref(j), lead); err != nil {
			return err
		}
	}
	return nil
}

// explainOne prints why one job waits, behind words that name it.
func (g *gqueue) explainOne(ctx context.Context, c *client.Client, out io.Writer, ref api.JobRef, lead string) error {
	why, err := c.Explain(ctx, ref)
	if err != nil {
		return err
	}
	if g.asJSON {
		return WriteJSON(out, why)
	}
	s := screenOf(out)
	fmt.Fprintf(out, "%s %s", lead, s.paint(stateStyle(why.State), string(why.State)))
	if why.Reason != "" && why.Reason != "None" {
		fmt.Fprintf(out, " (%s)", why.Reason)
	}
	fmt.Fprintln(out)
	for line := range strings.Lines(told(why.Why)) {
		fmt.Fprintln(out, output.Fold("  "+column.Printable(strings.TrimRight(line, "\n")), s.width))
	}
	return nil
}

// WriteJSON prints a reply as the outside contract has it.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
