package jobs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
)

// The usual formats and orders.
const (
	FormatDefault = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	FormatLong    = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	FormatStart   = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
	FormatSteps   = "%.15i %.8j %.9P %.8u %.9M %N"
	FormatOwn     = FormatSteps + " %r" // gqueue's of steps

	SortDefault = "P,t,-p"
	SortStart   = "S"
	SortSteps   = "P,i"
)

// Look is one way to look at the queue: what is asked for, what is shown, in which order.
type Look struct {
	Query api.JobQuery
	Line  column.Line[*jobfield.Row]
	Keys  []column.Key[*jobfield.Row]
	Fold  jobfield.Fold
	// Start asks for the expected start of what waits.
	Start bool
	// Whole asks for more of each job than its line shows.
	Whole bool
	// Ended is called with those of the jobs named by id that have ended and are not shown for that, if there are any.
	Ended func([]api.Job)
}

// ask is the query for it. Jobs named by id are asked for whatever their state, so that one that
// has ended is told from one that never was.
func (l *Look) ask() api.JobQuery {
	ask := l.Query
	ask.Start = l.Start
	if len(ask.Refs) > 0 && len(ask.States) == 0 {
		ask.All = true
	}
	return ask
}

// Fetch asks for the jobs to show; none is called where there is none. Those that have ended are
// then left out, as squeue does, and scripts wait for exactly that.
func (l *Look) Fetch(ctx context.Context, c *client.Client, none func() error) (*api.JobsReply, error) {
	ask := l.ask()
	ask.NoRanks, ask.Cleaning = true, true
	ask.Lines = !l.Whole && !l.Start && jobfield.InLines(&l.Line, l.Keys)
	reply, err := c.Jobs(ctx, &ask)
	if err != nil {
		return nil, err
	}
	if len(reply.Jobs) == 0 && none != nil {
		if err := none(); err != nil {
			return nil, err
		}
	}
	if !l.Query.All && len(ask.States) == 0 {
		var ended []api.Job
		reply.Jobs = slices.DeleteFunc(reply.Jobs, func(j api.Job) bool {
			over := j.State.Ended()
			if over {
				ended = append(ended, j)
			}
			return over
		})
		if len(ended) > 0 && l.Ended != nil {
			l.Ended(ended)
		}
	}
	return reply, nil
}

// WriteJSON writes the jobs with their ranks, and those that have ended, as an [api.JobsReply]; none
// is called where there is none. It has one of them at a time in memory.
func (l *Look) WriteJSON(ctx context.Context, c *client.Client, w io.Writer, none func() error) error {
	const indent = "  "
	out := bufio.NewWriter(w)
	end := "]\n}\n"
	begin := func() { fmt.Fprintf(out, "{\n  %q: %d,\n  %q: [", "schema_version", api.SchemaVersion, "jobs") }
	var text bytes.Buffer
	ask := l.ask()
	err := c.EachJob(ctx, &ask, func(job json.RawMessage) error {
		text.Reset()
		if err := json.Indent(&text, job, indent+indent, indent); err != nil {
			return err
		}
		if end[0] == ']' {
			begin()
			end = "\n" + indent + end
		} else {
			_ = out.WriteByte(',') // the writer keeps its error
		}
		_, _ = out.WriteString("\n" + indent + indent)
		_, err := out.Write(text.Bytes())
		return err
	})
	if err != nil {
		return err
	}
	if end[0] == ']' {
		if err := none(); err != nil {
			return err
		}
		begin()
	}
	_, _ = out.WriteString(end)
	return out.Flush()
}

// Rows is the lines of the jobs in their order. each, where it is given, makes several of one.
func (l *Look) Rows(jobs []api.Job, each func([]*jobfield.Row) []*jobfield.Row) []*jobfield.Row {
	folded := l.Fold.Rows(jobs)
	rows := make([]*jobfield.Row, len(folded))
	for i := range folded {
		rows[i] = &folded[i]
	}
	// By id first, which decides between equals: two calls show the same order.
	slices.SortFunc(rows, jobfield.CompareIDs)
	if each != nil {
		rows = each(rows)
	}
	column.Sort(rows, l.Keys)
	return rows
}

// Environment is squeue's variables that choose jobs, each for a list that was not given.
func Environment(lists map[string]*[]string) {
	for name, list := range lists {
		if v := os.Getenv(name); v != "" && len(*list) == 0 {
			*list = cmdline.Split(v)
		}
	}
}
