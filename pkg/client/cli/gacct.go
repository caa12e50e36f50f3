package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/output"
	"gangd/pkg/client/program"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/used"
)

// gacct is one call of the command.
type gacct struct {
	sel      selection
	since    string // a day; empty: the last 24 hours
	noHeader bool
	asJSON   bool
	parsable bool
	used     bool // what was used, instead of how it ended
	plot     bool
	hooked   bool // what the site's hooks said
}

// attemptsReply is `gacct --json`.
type attemptsReply struct {
	SchemaVersion int           `json:"schema_version"`
	Attempts      []api.Attempt `json:"attempts"`
	Jobs          []api.Job     `json:"jobs"` // whose attempts these are, without ranks
}

// NewGacct is the command gacct.
func NewGacct() *cobra.Command {
	g := &gacct{}
	cmd := &cobra.Command{
		Use:   "gacct [OPTIONS] [JOB...]",
		Short: "show the attempts of jobs, ended ones too",
		Example: `  gacct 12                 every attempt of job 12: why it ended, where, how long
  gacct -e 12              what it used of what it had asked for, and what to ask for next time
  gacct -e --since=7d      the same of my jobs of the last seven days, a line each`,
		Long: `One line for each attempt, that is each time a gang really started. Without a JOB the
jobs are those of the last 24 hours, or since --since, yours unless --user or
another choice says otherwise.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g.sel.jobs = append(g.sel.jobs, args...)
			return g.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&g.sel.jobs, "jobs", "j", nil, "only these `JOBS`")
	g.sel.addFilters(f)
	f.StringSliceVarP(&g.sel.states, "state", "s", nil, "jobs in these `STATES`")
	f.StringVarP(&g.since, "since", "S", "", "jobs that have not ended, or ended since this `DAY`: 2026-11-01, or 7d for so many days back")
	f.BoolVar(&g.noHeader, "noheader", false, "no header")
	f.BoolVar(&g.asJSON, "json", false, "as JSON")
	f.BoolVarP(&g.parsable, "parsable", "P", false, "columns whole, a | between them")
	f.BoolVarP(&g.used, "efficiency", "e", false, "what was used of what was asked for, and advice")
	f.BoolVar(&g.plot, "plot", false, "with -e of one job: how it went with time")
	f.BoolVar(&g.hooked, "hooks", false, "what the site's prolog and epilog wrote, and why starts were refused")
	cmd.ValidArgsFunction = completeJobs
	completeFlags(cmd)
	program.Coloured(cmd)
	program.Timeout(cmd)
	return cmd
}

func (g *gacct) run(cmd *cobra.Command) error {
	if g.sel.empty() {
		g.sel.me = true
	}
	q, err := g.sel.query(cmd)
	if err != nil {
		return err
	}
	g.sel.warn(cmd, client.New())
	if g.since != "" && len(q.Refs) > 0 {
		return Usagef("--since chooses jobs by their time: name none beside it")
	}
	c := client.New()
	var details []*api.JobDetail
	var failed []error
	if len(q.Refs) > 0 {
		details, failed = jobDetails(cmd.Context(), c, q.Refs)
		details = slices.DeleteFunc(details, func(d *api.JobDetail) bool { return !chosen(&q, d) })
	} else {
		since := now().Add(-lastDay)
		if g.since != "" {
			if since, err = dayStart(g.since); err != nil {
				return err
			}
		}
		if details, err = pastJobs(cmd.Context(), c, &q, since); err != nil {
			return err
		}
	}
	if len(details) == 0 && len(failed) > 0 && !g.asJSON {
		return joinFailures(cmd, failed)
	}
	show := g.show
	switch {
	case g.asJSON:
	case g.hooked:
		show = func(s *screen, details []*api.JobDetail) error { return g.hooks(cmd.Context(), c, s, details) }
	case g.used:
		show = g.efficiency
	}
	if err := show(screenOf(cmd.OutOrStdout()), details); err != nil {
		return err
	}
	if len(q.Refs) == 0 && g.since == "" && !g.asJSON && !g.parsable && !g.noHeader {
		what := "these are the jobs"
		if len(details) == 0 {
			what = "there is no such job"
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "gacct: %s of the last 24 hours; further back: gacct --since=7d\n", what)
	}
	return joinFailures(cmd, failed)
}

// lastDay is how far back jobs are shown where nothing says how far.
const lastDay = 24 * time.Hour

// dayStart is when a day began.
func dayStart(text string) (time.Time, error) {
	day, err := dayOf(text)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.DateOnly, day)
}

// pastJobs gives the jobs that have not ended, or ended since then, and that a query chooses.
func pastJobs(ctx context.Context, c *client.Client, q *api.JobQuery, since time.Time) (found []*api.JobDetail, err error) {
	err = c.History(ctx, &api.HistoryQuery{Users: q.Users, Since: since}, func(d *api.JobDetail) error {
		if chosen(q, d) {
			found = append(found, d)
		}
		return nil
	})
	return found, err
}

// chosen: a job is what a query asks for, as it is now or ended; a node counts that any attempt was on.
func chosen(q *api.JobQuery, d *api.JobDetail) bool {
	wanted := func(of []string, is ...string) bool {
		return len(of) == 0 || slices.ContainsFunc(is, func(s string) bool { return slices.Contains(of, s) })
	}
	j := &d.Job
	nodes := slices.Clone(j.Nodes)
	for i := range d.Attempts {
		nodes = append(nodes, d.Attempts[i].Nodes...)
	}
	return wanted(q.Users, j.User, strconv.FormatUint(uint64(j.UID), 10)) && wanted(q.Names, j.Name) && wanted(q.Accounts, j.Account) &&
		j.InPartition(q.Partitions) &&
		wanted(q.Nodes, nodes...) && (len(q.States) == 0 || slices.Contains(q.States, j.State))
}

// jobDetails asks for all jobs at once and gives them in the order of what named them: the id of an array
// names all its elements. What names nothing is asked for by itself, for the reason, and so is a person's last job.
func jobDetails(ctx context.Context, c *client.Client, refs []api.JobRef) (found []*api.JobDetail, failed []error) {
	named := slices.DeleteFunc(slices.Clone(refs), func(r api.JobRef) bool { return r.Last > 0 })
	of := map[api.JobRef][]*api.JobDetail{}
	if len(named) > 0 {
		err := c.History(ctx, &api.HistoryQuery{Refs: named}, func(d *api.JobDetail) error {
			j := &d.Job
			id := api.JobRef{ID: j.JobID, Index: -1}
			of[id] = append(of[id], d)
			if j.ArrayIndex != nil {
				of[api.JobRef{ID: j.ArrayJobID, Index: *j.ArrayIndex}] = []*api.JobDetail{d}
				if all := (api.JobRef{ID: j.ArrayJobID, Index: -1}); all != id {
					of[all] = append(of[all], d)
				}
			}
			return nil
		})
		if err != nil {
			return nil, []error{err}
		}
	}
	shown := map[int64]bool{}
	for _, ref := range refs {
		all := of[ref]
		if len(all) == 0 {
			d, err := c.Job(ctx, ref)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			all = append(all, d)
		}
		for _, d := range all {
			if !shown[d.Job.JobID] {
				shown[d.Job.JobID] = true
				found = append(found, d)
			}
		}
	}
	return found, failed
}

func (g *gacct) show(s *screen, details []*api.JobDetail) error {
	attempts, jobs := []api.Attempt{}, []api.Job{}
	for _, d := range details {
		attempts = append(attempts, d.Attempts...)
		jobs = append(jobs, d.Job)
		jobs[len(jobs)-1].Ranks = []api.Rank{}
	}
	if g.asJSON {
		return WriteJSON(s.w, attemptsReply{SchemaVersion: api.SchemaVersion, Attempts: attempts, Jobs: jobs})
	}
	if g.parsable {
		for _, d := range details {
			for i := range d.Attempts {
				d.Attempts[i].TriggerRole = "" // a script cuts a number there
			}
		}
	}
	t := attemptTable(details, true)
	t.noHeader = g.noHeader
	if g.parsable {
		return t.bars(s.w)
	}
	if err := t.write(s); err != nil || len(details) != 1 || g.noHeader {
		return err
	}
	for _, line := range endLines(attempts) {
		fmt.Fprintln(s.w, output.Fold(column.Printable(line), s.width))
	}
	return nil
}

// endLines say what ended the attempts in which something went wrong, what was reported first where that was something
// else, and when each rank ended.
func endLines(attempts []api.Attempt) (lines []string) {
	for i := range attempts {
		a := &attempts[i]
		// elsewhere it is part of the text
		if a.Stacks != nil && (a.Text == "" || len(a.Stacks.Odd) == 0 && (a.Cause == api.CauseTimeout || a.Cause == api.CauseDeadline)) {
			lines = append(lines, fmt.Sprintf("attempt %d: when it was stopped: %s", a.Attempt, a.Stacks.Text))
		}
		if a.Text == "" || a.StartedBy == nil && len(a.Ends) < 2 {
			continue
		}
		text := fmt.Sprintf("attempt %d: %s", a.Attempt, a.Text)
		if by := a.StartedBy; by != nil {
			text += "; reported first: " + by.Text
		}
		lines = append(lines, text)
		if len(a.Ends) > 1 {
			lines = append(lines, "  ends: "+endTimes(a))
		}
	}
	return lines
}

// mostEnds is how many ends of an attempt are shown, the first ones.
const mostEnds = 16

// endTimes are the ends of ranks in the order in which they ended, by themselves first.
func endTimes(a *api.Attempt) string {
	ends := slices.Clone(a.Ends)
	slices.SortStableFunc(ends, func(x, y api.AttemptEnd) int { return cmp.Compare(x.MS, y.MS) })
	var out []string
	within := 0.0
	for i, e := range ends {
		within = max(within, e.Within)
		if i >= mostEnds {
			continue
		}
		code := -1
		if e.Rank < len(a.ExitCodes) {
			code = a.ExitCodes[e.Rank]
		}
		text := fmt.Sprintf("rank %d +%.1f ms (%d", e.Rank, e.MS, code)
		if !e.Own {
			text += ", stopped"
		}
		out = append(out, text+")")
	}
	if more := len(ends) - mostEnds; more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	text := strings.Join(out, ", ")
	if within > 0 {
		text += fmt.Sprintf("; clocks of nodes known to %.1f ms", within)
	}
	return text
}

// attemptTable has one line an attempt. Of several jobs it says whose they are, and has a line for those that ended without one.
func attemptTable(details []*api.JobDetail, whose bool) *table {
	t := &table{}
	if whose {
		t.cols = []tableColumn{{head: "JOBID", right: true, keep: true}, {head: "NAME", width: 8}}
	}
	cause := len(t.cols) + 1
	t.cols = append(t.cols, tableColumn{head: "ATTEMPT", right: true, spare: 3}, tableColumn{head: "CAUSE", width: 9, keep: true},
		tableColumn{head: "TRIGGER", right: true, spare: 7}, tableColumn{head: "EXIT", right: true, spare: 5},
		tableColumn{head: "CODE", right: true, spare: 8},
		tableColumn{head: "START", width: 19, spare: 1}, tableColumn{head: "ELAPSED", right: true, keep: true},
		tableColumn{head: "GPUTIME", right: true, spare: 6}, tableColumn{head: "NODES", spare: 4})
	// the column is there where it says something
	imaged := whose && slices.ContainsFunc(details, func(d *api.JobDetail) bool { return d.Job.Image != "" })
	if imaged {
		t.cols = append(t.cols, tableColumn{head: "IMAGE", spare: 9})
	}
	t.cols = append(t.cols, tableColumn{head: "REASON", wrap: true})
	var causes []api.Cause
	line := func(j *api.Job, why string, c api.Cause, cells ...string) {
		var row []string
		if whose {
			row = []string{jobfield.IDText(j), j.Name}
		}
		row = append(row, cells...)
		if imaged {
			row = append(row, imageText(j))
		}
		t.rows, causes = append(t.rows, append(row, why)), append(causes, c)
	}
	for _, d := range details {
		for i := range d.Attempts {
			a := &d.Attempts[i]
			why := a.Text
			if i == len(d.Attempts)-1 && d.Job.State.Ended() {
				why = cmp.Or(d.Job.Verdict, why) // which says too why there was no other
			}
			line(&d.Job, why, a.Cause, attemptCells(a)...)
		}
		if len(d.Attempts) == 0 && d.Job.State.Ended() && whose {
			line(&d.Job, cmp.Or(d.Job.Verdict, "never started"), d.Job.Cause, "-", string(d.Job.Cause), "-", "-", "-", "-", "-", "-", "-")
		}
	}
	t.style = func(row, col int) style {
		if col != cause {
			return plain
		}
		return causeStyle(causes[row])
	}
	return t
}

func attemptCells(a *api.Attempt) []string {
	cause, trigger := string(a.Cause), "-"
	if cause == "" {
		cause = "running"
	}
	if a.TriggerRank != nil {
		trigger = strconv.Itoa(*a.TriggerRank)
		if a.TriggerRole != "" {
			trigger += "(" + a.TriggerRole + ")"
		}
	}
	return []string{strconv.Itoa(a.Attempt), cause, trigger, exitSummary(a.ExitCodes), codeSummary(a), jobfield.Stamp(a.StartTime),
		used.Elapsed(a, now()),
		jobfield.Elapsed(time.Duration(a.GPUSeconds) * time.Second), hostlist.Compress(a.Nodes)}
}

// imageText is the image that a job runs in, with the digest of what was imported; -: none.
func imageText(j *api.Job) string {
	switch {
	case j.Image == "":
		return "-"
	case j.ImageDigest == "" || strings.Contains(j.Image, "@"):
		return j.Image
	}
	return j.Image + "@" + j.ImageDigest
}

// codeSummary is the one number of an attempt, - where it has none yet.
func codeSummary(a *api.Attempt) string {
	if a.Code < 0 || a.Cause == "" {
		return "-"
	}
	return strconv.Itoa(a.Code)
}

// exitSummary is the exit code of all ranks, or the distinct ones.
func exitSummary(codes []int) string {
	distinct := slices.Compact(slices.Sorted(slices.Values(codes)))
	distinct = slices.DeleteFunc(distinct, func(c int) bool { return c < 0 }) // of a rank that runs, or was lost
	if len(distinct) == 0 {
		return "-"
	}
	var text []string
	for _, c := range distinct {
		text = append(text, strconv.Itoa(c))
	}
	return strings.Join(text, ",")
}

func causeStyle(c api.Cause) style {
	switch c {
	case api.CauseNone, api.CauseCompleted:
		return green
	case api.CausePreempted, api.CauseRequeued:
		return yellow
	case api.CauseCancelled:
		return faint
	}
	return red
}
