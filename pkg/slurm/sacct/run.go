package sacct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/table/accttable"
	"gangd/pkg/wire/people"
)

// clock is the wall clock, a variable so that tests stand still.
var clock = time.Now

// Run is sacct.
func Run(args []string, s cmdline.Streams) int {
	return cmdline.Exit(command.Print(run(args, s), s))
}

func run(args []string, s cmdline.Streams) error {
	a := &ask{Streams: s}
	if err := a.read(args); err != nil {
		return err
	}
	now := clock()
	if err := a.window(now); err != nil {
		return err
	}
	if a.verbose {
		fmt.Fprintf(s.Err, "sacct: Jobs Eligible in the time window from %s to %s\n", longTime(a.from), longTime(a.to))
	}
	t, err := a.table()
	if err != nil {
		return err
	}
	details, err := a.fetch()
	if err != nil {
		return err
	}
	switch {
	case a.batchScript:
		return a.writeScripts(details, s)
	case a.document.Asked():
		style, err := a.document.Style(context.Background(), client.New(), s)
		if err != nil {
			return err
		}
		style.Command = append([]string{"sacct"}, args...)
		return style.Write(s.Out, documentOf(a.choose(details, now), style))
	}
	return write(t, a.choose(details, now), a.noHeader, s)
}

func longTime(t time.Time) string {
	if t.IsZero() {
		return "Epoch 0"
	}
	return t.Local().Format("Mon Jan 02 15:04:05 2006")
}

func (a *ask) table() (*accttable.Table, error) {
	format := cmp.Or(strings.Join(append(a.columns, cmdline.Split(a.format)...), ","), os.Getenv("SACCT_FORMAT"))
	old := false
	if strings.EqualFold(format, "all") {
		var err error
		if old, err = oldSlurm(); err != nil {
			return nil, err
		}
	}
	chosen, err := chooseColumns(format, formatDefault, fieldColumns(old))
	if err != nil {
		return nil, err
	}
	return &accttable.Table{Columns: chosen, Style: a.style, Delimiter: a.delimiter}, nil
}

func chooseColumns(format, otherwise string, all []accttable.Column) ([]accttable.Choice, error) {
	switch {
	case strings.EqualFold(format, "all"):
		return accttable.All(all), nil
	case format == "":
		format = otherwise
	}
	chosen, err := accttable.Parse(format, all)
	var unknown *accttable.UnknownError
	if errors.As(err, &unknown) {
		if now := removed[strings.ToLower(unknown.Name)]; now != "" {
			return nil, fatalf("%s has been removed, please use %s", strings.Replace(now, "TRES", "GRES", 1), now)
		}
		return nil, fmt.Errorf("Invalid field requested: \"%s\"", unknown.Name) //nolint:staticcheck // Slurm's words
	}
	return chosen, err
}

// fetch asks the controller for what may be shown.
func (a *ask) fetch() ([]*api.JobDetail, error) {
	q := &api.HistoryQuery{Since: a.from, Until: a.to, Users: a.users}
	if !a.fromSet {
		q.Since = time.Time{}
		if len(a.jobs) == 0 {
			q.Since = a.from
		}
	}
	for _, j := range a.jobs {
		q.Refs = append(q.Refs, j.JobRef)
	}
	var out []*api.JobDetail
	err := client.New().History(context.Background(), q, func(d *api.JobDetail) error {
		out = append(out, d)
		return nil
	})
	return out, err
}

func write(t *accttable.Table, records []*record, noHeader bool, s cmdline.Streams) error {
	var b strings.Builder
	if !noHeader {
		b.WriteString(t.Header())
	}
	values := make([]string, len(t.Columns))
	for _, r := range records {
		for i := range t.Columns {
			values[i] = fields[t.Columns[i].Index].text(r)
		}
		b.WriteString(t.Row(values))
	}
	_, err := fmt.Fprint(s.Out, b.String())
	return err
}

// writeScripts is --batch-script.
func (a *ask) writeScripts(details []*api.JobDetail, s cmdline.Streams) error {
	if len(a.jobs) == 0 {
		return errors.New("You must request specific jobs with '-j' when requesting a job script") //nolint:staticcheck // Slurm's words
	}
	for _, r := range a.choose(details, clock()) {
		if !r.isJob() {
			continue
		}
		text, err := client.New().Script(context.Background(), api.JobRef{ID: r.job.JobID, Index: -1})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "Batch Script for %s\n%s\n%s\n", r.id(), strings.Repeat("-", 80), text)
	}
	return nil
}

// read takes the command line.
func (a *ask) read(args []string) error {
	rest, err := command.Parse(a, args, a.Streams)
	if err != nil {
		return err
	}
	if err := command.NoMore(rest, a.Streams); err != nil {
		return err
	}
	if len(a.users) == 0 && !a.everybody && len(a.jobs) == 0 && os.Getuid() != 0 {
		a.users = []string{people.Me(context.Background())}
	}
	return nil
}

func parseTime(v string) (time.Time, error) {
	if v == "" {
		return time.Time{}, nil
	}
	t, err := when.Parse(v, clock(), when.Past)
	if err != nil {
		return t, cmdline.Bare(err.Error())
	}
	return t, nil
}
