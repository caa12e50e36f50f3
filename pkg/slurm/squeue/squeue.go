package squeue

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/slurm"
)

// maxID is how long an id with a list of array elements may be: Slurm writes it into 32 bytes.
const maxID = 31

// maxIndices is how long a list of array elements may be, see SLURM_BITSTR_LEN.
const maxIndices = 64

// squeue is one call.
type squeue struct {
	choices
	cmdline.Streams
	jobs.Look
	args []string
	view *jobfield.View
	// onNodes are those of which steps are shown; none: of all.
	onNodes []string
	tiers   map[string]int // of partitions, with --priority
}

// Run is the command.
func Run(args []string, s cmdline.Streams) int {
	q := &squeue{Streams: s, args: args}
	rest, err := command.Parse(&q.choices, args, s)
	if err != nil {
		return cmdline.Exit(err)
	}
	rest = q.behind(rest)
	if len(rest) > 0 {
		fmt.Fprint(s.Out, usage)
		s.Errorf("squeue", "Unrecognized option: %s", rest[0])
		return 1
	}
	return cmdline.Exit(command.Print(q.run(context.Background()), s))
}

// behind takes the ids that stand behind a bare -j or -s as a word of their own, though their
// values are optional: people write both, and squeue reads both.
func (q *squeue) behind(rest []string) []string {
	if q.jobFlag && q.jobs == nil && len(rest) > 0 {
		q.jobs, rest = cmdline.SplitIDs(rest[0]), rest[1:]
	}
	if q.stepFlag && q.steps == nil && len(rest) > 0 {
		q.steps, rest = cmdline.Split(rest[0]), rest[1:]
	}
	return rest
}

func (q *squeue) run(ctx context.Context) error {
	q.environment(os.Getenv)
	c := client.New()
	if err := q.settle(ctx, c); err != nil {
		return err
	}
	if q.verbose > 0 {
		q.tellChoices()
	}
	return slurm.Repeat(q.Streams, q.iterate, func() error { return q.once(ctx, c) })
}

// settle makes of the choices what the controller is asked and what is printed.
func (q *squeue) settle(ctx context.Context, c *client.Client) error {
	if err := q.select_(ctx, c); err != nil {
		return err
	}
	q.Whole = q.stepFlag || q.reservation != ""
	q.view = &jobfield.View{Stamp: slurm.Stamper(os.Getenv("SLURM_TIME_FORMAT"), jobfield.Now), NoConvert: q.noConvert,
		BitLen: maxIndices, Cut: maxID}
	if n, asked := slurm.IndexLength(); asked {
		q.view.BitLen, q.view.Cut = n, 0
	}
	if q.stepFlag {
		return nil
	}
	bad := func(what string) { q.Errorf("squeue", "Invalid job format specification: %s", what) }
	if q.longFormat != nil {
		q.Line = jobfield.Squeue.Names(*q.longFormat, bad)
	} else {
		format := q.usualFormat()
		if q.format != nil {
			format = *q.format
		}
		q.Line = jobfield.Squeue.Letters(format, bad)
	}
	q.Start = q.longFormat != nil || q.Line.Has("SeY")
	q.Fold = jobfield.Fold{Expand: q.array || q.elements(), View: q.view}
	return nil
}

func (q *squeue) usualFormat() string {
	switch {
	case q.onlyState:
		return "%.18i %.2t"
	case q.start:
		return jobs.FormatStart
	case q.long:
		return jobs.FormatLong
	}
	return jobs.FormatDefault
}

// order reads -S; a mistake in it is said after the heading, as squeue does.
func (q *squeue) order() error {
	order := jobs.SortDefault
	if q.start {
		order = jobs.SortStart
	}
	if q.sort != nil {
		order = *q.sort
	}
	if strings.EqualFold(order, "cluster") { // there is one
		order = ""
	}
	keys, bad := jobfield.Squeue.Keys(order)
	if bad != "" {
		return fmt.Errorf("Invalid sort specification: %s", bad)
	}
	q.Keys = keys
	return nil
}

// once shows the queue once.
func (q *squeue) once(ctx context.Context, c *client.Client) error {
	if q.document.Asked() {
		return q.dump(ctx, c)
	}
	var sortErr error
	if !q.stepFlag {
		sortErr = q.order()
	}
	all, err := q.fetch(ctx, c)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(q.Out, 64<<10)
	defer out.Flush()
	if q.cluster && !q.noHeader {
		fmt.Fprintln(out, "CLUSTER: "+cmdline.Cluster)
	}
	if (q.long || q.iterate > 0) && !q.noHeader {
		fmt.Fprintln(out, jobfield.Now().Local().Format("Mon Jan 02 15:04:05 2006"))
	}
	if q.stepFlag {
		return q.writeSteps(out, all)
	}
	if !q.noHeader {
		writeLine(out, q.Line.AppendHead(nil))
	}
	if sortErr != nil {
		return sortErr
	}
	var each func([]*jobfield.Row) []*jobfield.Row
	if q.priority {
		if err := q.loadTiers(ctx, c); err != nil {
			return err
		}
		each = q.eachPartition
	}
	b := make([]byte, 0, 256)
	for _, r := range q.Rows(all, each) {
		b = q.Line.Append(b[:0], r)
		writeLine(out, b)
	}
	return nil
}

func writeLine(out *bufio.Writer, line []byte) {
	out.Write(line)
	out.WriteByte('\n')
}

// elements reports whether single elements of arrays were named: these are shown one by one.
func (q *squeue) elements() bool {
	return slices.ContainsFunc(q.Query.Refs, func(r api.JobRef) bool { return r.Index >= 0 })
}

// fetch asks for the jobs to show.
func (q *squeue) fetch(ctx context.Context, c *client.Client) ([]api.Job, error) {
	if q.nothing() {
		return nil, nil
	}
	reply, err := q.Fetch(ctx, c, nil)
	if err != nil && q.ofArrays(ctx, c) {
		return nil, nil
	}
	if err != nil {
		return nil, q.notLoaded(err)
	}
	all := reply.Jobs
	if !q.stepFlag {
		all = api.WithIDs(api.Split(all), q.Query.Refs)
	}
	return slices.DeleteFunc(all, func(j api.Job) bool { return !q.chosen(&j) }), nil
}

// ofArrays reports whether what was asked for are elements that their arrays, which are there, do not have:
// squeue shows nothing for them.
func (q *squeue) ofArrays(ctx context.Context, c *client.Client) bool {
	var arrays api.JobQuery
	for _, r := range q.Query.Refs {
		if r.Index < 0 {
			return false
		}
		arrays.Refs = append(arrays.Refs, api.JobRef{ID: r.ID, Index: -1})
	}
	if len(arrays.Refs) == 0 {
		return false
	}
	reply, err := c.Jobs(ctx, &arrays)
	return err == nil && len(reply.Jobs) > 0
}

// chosen reports whether a job is in the reservation and in one of the partitions that were asked for.
// That is asked here and not of the controller, which refuses a partition that it does not have; squeue
// shows nothing for it.
func (q *squeue) chosen(j *api.Job) bool {
	if q.notMe && slices.Contains(jobs.Me(), j.User) {
		return false
	}
	if q.reservation != "" && j.Reservation != q.reservation || q.licenses != "" && !asksFor(jobfield.Note("Licenses", j), q.licenses) {
		return false
	}
	if len(q.Query.Names) > 0 && !slices.Contains(q.Query.Names, j.Name) { // of a component that another one of its job brought
		return false
	}
	return j.InPartition(q.partitions)
}

// loadTiers asks for the tiers of the partitions, which are part of a priority.
func (q *squeue) loadTiers(ctx context.Context, c *client.Client) error {
	reply, err := c.Nodes(ctx)
	if err != nil {
		return q.notLoaded(err)
	}
	q.tiers = map[string]int{}
	for _, p := range reply.Partitions {
		q.tiers[p.Name] = p.Tier
	}
	return nil
}

// eachPartition is --priority: a job that waits in several partitions has a line for each of
// them that was asked for. By tier as -S has the priority, and of one tier the last one first.
func (q *squeue) eachPartition(rows []*jobfield.Row) []*jobfield.Row {
	var out []*jobfield.Row
	for _, r := range rows {
		parts := strings.Split(r.Partition, ",")
		if len(parts) == 1 {
			out = append(out, r)
			continue
		}
		slices.Reverse(parts)
		slices.SortStableFunc(parts, func(a, b string) int {
			if q.rising() {
				a, b = b, a
			}
			return cmp.Compare(q.tiers[b], q.tiers[a])
		})
		for _, p := range parts {
			if len(q.partitions) == 0 || slices.Contains(q.partitions, p) {
				one, job := *r, *r.Job
				job.Partition = p
				one.Job = &job
				out = append(out, &one)
			}
		}
	}
	return out
}

// rising reports whether -S wants the lowest priority first.
func (q *squeue) rising() bool {
	if q.sort == nil {
		return false
	}
	keys := strings.Split(*q.sort, ",")
	return slices.Contains(keys, "p") || slices.Contains(keys, "+p")
}

// nothing reports that what was asked for can't be had by any job.
func (q *squeue) nothing() bool {
	return !q.stepFlag && (len(q.qos) > 0 || q.licenses != "" && !jobfield.HasNote("Licenses") ||
		len(q.states) > 0 && len(q.Query.States) == 0 && !q.Query.All)
}

// notLoaded words an error of the controller's as slurm_load_jobs does. Of several jobs those
// that nobody knows are left out in silence.
func (q *squeue) notLoaded(err error) error {
	if api.CodeOf(err) == api.CodeNotFound && len(q.jobs) > 1 {
		return nil
	}
	fmt.Fprintf(q.Err, "slurm_load_jobs error: %s\n", slurm.Words(err))
	return cmdline.Status(1)
}

// tellChoices is -v.
func (q *squeue) tellChoices() {
	null := func(s string) string { return cmp.Or(s, "(null)") }
	deref := func(s *string) string {
		if s == nil {
			return "(null)"
		}
		return *s
	}
	number := map[bool]int{true: 1}
	w := q.Out
	fmt.Fprintln(w, "-----------------------------")
	for _, line := range []struct {
		name  string
		value any
	}{
		{"all        ", q.all}, {"array      ", q.array}, {"federation ", q.federation}, {"format     ", deref(q.format)},
		{"iterate    ", q.iterate}, {"job_flag   ", number[q.jobFlag]}, {"jobs       ", null(strings.Join(q.jobs, ","))},
		{"licenses   ", null(q.licenses)}, {"local      ", q.local}, {"names      ", null(strings.Join(q.names, ","))},
		{"nodes      ", q.nodes}, {"partitions ", null(strings.Join(q.partitions, ","))}, {"priority   ", q.priority},
		{"reservation", null(q.reservation)}, {"sibling     ", q.sibling}, {"sort       ", deref(q.sort)},
		{"start_flag ", number[q.start]}, {"states     ", null(strings.Join(q.states, ","))}, {"step_flag  ", number[q.stepFlag]},
		{"steps      ", null(strings.Join(q.steps, ","))}, {"users      ", null(strings.Join(q.users, ","))}, {"verbose    ", q.verbose},
	} {
		fmt.Fprintf(w, "%s = %v\n", line.name, line.value)
	}
	fmt.Fprint(w, "-----------------------------\n\n\n")
}

// writeSteps is --steps.
func (q *squeue) writeSteps(out *bufio.Writer, all []api.Job) error {
	choice := jobs.StepChoice{IDs: q.steps, Nodes: q.onNodes}
	if job, bad := choice.Bad(); bad {
		return fmt.Errorf("Invalid job_step id: %s.??", job)
	}
	bad := func(what string) { q.Errorf("squeue", "Invalid job step format specification: %s", what) }
	var line column.Line[*jobs.StepRow]
	switch {
	case q.longFormat != nil:
		line = jobs.StepFields.Names(*q.longFormat, bad)
	case q.format != nil:
		line = jobs.StepFields.Letters(*q.format, bad)
	default:
		line = jobs.StepFields.Letters(jobs.FormatSteps, bad)
	}
	order := jobs.SortSteps
	if q.sort != nil {
		order = *q.sort
	}
	keys, wrong := jobs.StepFields.Keys(order)
	if !q.noHeader {
		writeLine(out, line.AppendHead(nil))
	}
	if wrong != "" {
		return cmdline.Status(1)
	}
	for _, s := range choice.Rows(all, q.view, keys) {
		writeLine(out, line.Append(nil, s))
	}
	return nil
}

// asksFor reports whether one of the names in a list is in what a job asks for, NAME:N,...
func asksFor(asked, names string) bool {
	for one := range strings.SplitSeq(asked, ",") {
		name, _, _ := strings.Cut(one, ":")
		if name != "" && slices.Contains(strings.Split(names, ","), name) {
			return true
		}
	}
	return false
}
