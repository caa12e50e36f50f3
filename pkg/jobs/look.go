package jobs

import (
	"context"
	"os"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/cmdline"
	"gangd/pkg/table/column"
	"gangd/pkg/table/jobfield"
)

// The usual formats and orders.
const (
	FormatDefault = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	FormatLong    = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	FormatStart   = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
	FormatSteps   = "%.15i %.8j %.9P %.8u %.9M %N"

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
	// Whole asks for more of each job than its line shows, Ranks for its ranks too.
	Whole, Ranks bool
}

// Fetch asks for the jobs to show. Jobs named by id are asked for whatever their state, so that
// one that has ended is told from one that never was: none is called where there is none.
// Those that have ended are then left out, as squeue does, and scripts wait for exactly that.
func (l *Look) Fetch(ctx context.Context, c *client.Client, none func() error) (*api.JobsReply, error) {
	ask := l.Query
	ask.NoRanks, ask.Start = !l.Ranks, l.Start
	ask.Lines = !l.Whole && !l.Ranks && !l.Start && jobfield.InLines(&l.Line, l.Keys)
	if len(ask.Refs) > 0 && len(ask.States) == 0 {
		ask.All = true
	}
	reply, err := c.Jobs(ctx, &ask)
	if err != nil {
		return nil, err
	}
	if len(reply.Jobs) == 0 && none != nil {
		if err := none(); err != nil {
			return nil, err
		}
	}
	if !l.Ranks && !l.Query.All && len(ask.States) == 0 {
		reply.Jobs = slices.DeleteFunc(reply.Jobs, func(j api.Job) bool { return j.State.Ended() })
	}
	return reply, nil
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
