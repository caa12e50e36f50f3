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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/table/jobfield"
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
	iterate    string
	steps      string

	query   api.JobQuery
	prefix  string
	columns []shown
	keys    []sortKey
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
	f.StringVarP(&g.iterate, "iterate", "i", "", "refused (`SECONDS`): use --watch, which is pushed")
	f.StringVarP(&g.steps, "steps", "s", "", "refused (`STEPS`): a job's ranks are in --json and gctl show job")
	f.Lookup("steps").NoOptDefVal = "all"
}

func (g *gqueue) run(cmd *cobra.Command, args []string) error {
	g.sel.jobs = append(g.sel.jobs, args...)
	if err := g.settle(cmd.Flags()); err != nil {
		return err
	}
	c := client.New()
	if g.why != "" {
		return g.explain(cmd, c)
	}
	s := screenOf(cmd.OutOrStdout())
	if g.watch {
		return g.follow(cmd.Context(), c, s)
	}
	return g.show(cmd.Context(), c, s)
}

// settle checks the options against each other and reads the environment that squeue reads.
func (g *gqueue) settle(f *pflag.FlagSet) error {
	switch {
	case f.Changed("iterate"):
		return Usagef("--iterate is refused: it polls the controller; use gqueue --watch, which shows each change as it comes")
	case f.Changed("steps"):
		return Usagef("--steps is refused: gangd has ranks where Slurm has steps; use gctl show job ID, or gqueue --json -j ID")
	case g.asJSON && (g.parsable || g.watch):
		return Usagef("--json goes with neither --parsable nor --watch; for a stream of changes: gctl events --follow --json")
	case f.Changed("format") && f.Changed("Format"):
		return Usagef("-o and -O exclude each other")
	}
	g.environment(f)
	if g.start && len(g.sel.states) == 0 {
		g.sel.states = []string{"PD"}
	}
	var err error
	if g.query, err = g.sel.query(); err != nil {
		return err
	}
	if g.longFormat != "" {
		g.columns, err = parseLongFormat(g.longFormat)
	} else {
		g.prefix, g.columns, err = parseFormat(cmp.Or(g.format, g.usualFormat()))
	}
	if err != nil {
		return err
	}
	order := sortDefault
	if g.start {
		order = sortStart
	}
	g.keys, err = parseSort(cmp.Or(g.sort, order))
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
	for name, list := range map[string]*[]string{
		"SQUEUE_USERS": &g.sel.users, "SQUEUE_STATES": &g.sel.states, "SQUEUE_PARTITION": &g.sel.partitions,
		"SQUEUE_ACCOUNT": &g.sel.accounts, "SQUEUE_NAMES": &g.sel.names,
	} {
		if v := os.Getenv(name); v != "" && len(*list) == 0 {
			*list = strings.Split(v, ",")
		}
	}
	if os.Getenv("SQUEUE_ARRAY") != "" {
		g.array = true
	}
}

func (g *gqueue) usualFormat() string {
	switch {
	case g.start:
		return formatStart
	case g.long:
		return formatLong
	}
	return formatDefault
}

// fetch asks the controller for the jobs to show. Jobs named by id are asked for whatever
// their state, so that one that has ended is told from one that never was; the table
// leaves the ended ones out, as squeue does, and scripts wait for exactly that.
func (g *gqueue) fetch(ctx context.Context, c *client.Client) (*api.JobsReply, error) {
	q := g.query
	q.NoRanks, q.Lines, q.Start = !g.asJSON, g.lines() && !g.start, g.start
	if len(q.Refs) > 0 && len(q.States) == 0 {
		q.All = true
	}
	reply, err := c.Jobs(ctx, &q)
	if err != nil {
		return nil, err
	}
	if len(q.Refs) > 0 && len(reply.Jobs) == 0 && len(g.sel.users)+len(g.sel.names)+len(q.States) == 0 {
		return nil, &api.Error{Code: api.CodeNotFound, Message: "no job " + refsText(q.Refs) + " in the queue",
			Hint: "one that ended long ago: gacct -j ID"}
	}
	if !g.asJSON && !g.query.All && len(q.States) == 0 {
		reply.Jobs = slices.DeleteFunc(reply.Jobs, func(j api.Job) bool { return j.State.Ended() })
	}
	return reply, nil
}

// lines reports whether the short form of each job is enough for what is shown.
func (g *gqueue) lines() bool {
	if g.asJSON {
		return false
	}
	for _, c := range g.columns {
		if c.Letter == 0 || !strings.ContainsRune(jobfield.LineLetters, rune(c.Letter)) {
			return false
		}
	}
	for _, k := range g.keys {
		if k.Letter == 0 || !strings.ContainsRune(jobfield.LineLetters, rune(k.Letter)) {
			return false
		}
	}
	return true
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
	reply, err := g.fetch(ctx, c)
	if err != nil {
		return err
	}
	if g.asJSON {
		return writeJSON(s.w, reply)
	}
	return g.write(s, reply.Jobs)
}

// write prints jobs as the options say.
func (g *gqueue) write(s *screen, jobs []api.Job) error {
	rows := jobfield.Fold{Expand: g.array, ByReason: true}.Rows(jobs)
	sortRows(rows, g.keys)
	if g.long && !g.noHeader && !g.parsable {
		fmt.Fprintln(s.w, now().Local().Format("Mon Jan 02 15:04:05 2006"))
	}
	if g.parsable {
		return g.writeParsable(s.w, rows)
	}
	return g.table(rows).write(s)
}

// table lays rows out. A format of the person's own is followed to the letter, widths
// included; of the usual ones squeue's widths are the least.
func (g *gqueue) table(rows []row) *table {
	own := g.format != "" || g.longFormat != ""
	t := &table{noHeader: g.noHeader, cols: make([]column, len(g.columns)), rows: make([][]string, len(rows))}
	for i, c := range g.columns {
		t.cols[i] = column{head: c.Head, width: c.width, right: c.right, cut: own, suffix: c.suffix,
			keep: c.Letter == 'i' || c.Letter == 't' || c.Letter == 'M'}
		if !own && c.suffix == " " {
			t.cols[i].suffix = ""
		}
	}
	cells := make([]string, len(rows)*len(g.columns))
	for r := range rows {
		t.rows[r] = cells[r*len(g.columns) : (r+1)*len(g.columns)]
		for i, c := range g.columns {
			t.rows[r][i] = c.Text(&rows[r])
		}
	}
	if g.prefix != "" {
		t.addPrefix(g.prefix)
	}
	if !own {
		t.style = func(r, col int) style { return queueStyle(&rows[r], g.columns[col].field) }
	}
	return t
}

// addPrefix puts the text before a format's first field in front of every line.
func (t *table) addPrefix(text string) {
	t.cols = append([]column{{head: text, cut: true}}, t.cols...)
	for i := range t.rows {
		t.rows[i] = append([]string{text}, t.rows[i]...)
	}
}

// queueStyle colours the state, and the reason of what failed.
func queueStyle(r *row, f *field) style {
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

func (g *gqueue) writeParsable(w io.Writer, rows []row) error {
	lines := make([][]string, 0, len(rows)+1)
	if !g.noHeader {
		var heads []string
		for _, c := range g.columns {
			heads = append(heads, c.Head)
		}
		lines = append(lines, heads)
	}
	for i := range rows {
		var cells []string
		for _, c := range g.columns {
			cells = append(cells, c.Text(&rows[i]))
		}
		lines = append(lines, cells)
	}
	return writeBars(w, lines)
}

// explain prints why a job waits.
func (g *gqueue) explain(cmd *cobra.Command, c *client.Client) error {
	ref, err := oneRef(g.why)
	if err != nil {
		return err
	}
	why, err := c.Explain(cmd.Context(), ref)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if g.asJSON {
		return writeJSON(out, why)
	}
	s := screenOf(out)
	fmt.Fprintf(out, "job %d is %s", why.JobID, s.paint(stateStyle(why.State), string(why.State)))
	if why.Reason != "" && why.Reason != "None" {
		fmt.Fprintf(out, " (%s)", why.Reason)
	}
	fmt.Fprintln(out)
	for line := range strings.Lines(why.Why) {
		fmt.Fprintf(out, "  %s\n", printable(strings.TrimRight(line, "\n")))
	}
	return nil
}

// writeJSON prints a reply as the outside contract has it.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeBars prints rows with a bar between the cells. A bar or a line end inside a cell
// would shift every column behind it, so both become a question mark.
func writeBars(w io.Writer, lines [][]string) error {
	var b strings.Builder
	for _, cells := range lines {
		for i, cell := range cells {
			if i > 0 {
				b.WriteByte('|')
			}
			b.WriteString(strings.ReplaceAll(printable(cell), "|", "?"))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
