package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/table/jobfield"
)

// namedJobs is the jobs that a reference means, ended ones too: of the id of an array all its elements.
func namedJobs(ctx context.Context, c *client.Client, ref api.JobRef) ([]api.Job, error) {
	reply, err := c.Jobs(ctx, &api.JobQuery{Refs: []api.JobRef{ref}, All: true, Past: true, NoRanks: true})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(reply.Jobs, func(a, b api.Job) int { return int(a.JobID - b.JobID) })
	return reply.Jobs, nil
}

// isArray: the jobs are what the id of an array means.
func isArray(jobs []api.Job) bool { return len(jobs) > 1 && jobs[0].ArrayIndex != nil }

// arrayStates is "2 RUNNING (20_[0-1]), 6 PENDING (20_[2-7])", in the order of the first of each.
func arrayStates(jobs []api.Job) string {
	var order []api.JobState
	of := map[api.JobState][]int{}
	for i := range jobs {
		j := &jobs[i]
		if of[j.State] == nil {
			order = append(order, j.State)
		}
		of[j.State] = append(of[j.State], *j.ArrayIndex)
	}
	var parts []string
	for _, st := range order {
		parts = append(parts, fmt.Sprintf("%d %s (%s)", len(of[st]), st, elements(jobs[0].ArrayJobID, of[st])))
	}
	return strings.Join(parts, ", ")
}

// elements is 20_3, or 20_[2-7] for several.
func elements(array int64, indices []int) string {
	slices.Sort(indices)
	list := jobfield.IndexRanges(indices)
	if len(indices) > 1 {
		list = "[" + list + "]"
	}
	return strconv.FormatInt(array, 10) + "_" + list
}

// arrayFields is what all elements have in common, in the lines that one is shown in.
func arrayFields(jobs []api.Job) []string {
	first := &jobs[0]
	head := fmt.Sprintf("ArrayJobId=%d JobName=%s Elements=%d", first.ArrayJobID, first.Name, len(jobs))
	if first.ArrayLimit > 0 {
		head += fmt.Sprintf(" ArrayTaskThrottle=%d", first.ArrayLimit)
	}
	lines := []string{head, "States=" + arrayStates(jobs)}
	all := make([][]string, len(jobs))
	for i := range jobs {
		all[i] = jobFields(&jobs[i])
	}
	for _, line := range all[0][1:] {
		if !slices.ContainsFunc(all[1:], func(of []string) bool { return !slices.Contains(of, line) }) {
			lines = append(lines, line)
		}
	}
	return lines
}

// writeArray is what gctl show job says of an array as a whole: what its elements share, and a
// line for each, those that wait alike on one.
func writeArray(s *screen, jobs []api.Job) error {
	writeFields(s, arrayFields(jobs))
	line, err := readFormat(&jobfield.Gqueue, "%.18i %.12T %.19S %.10M %.6D %R", "")
	if err != nil {
		return err
	}
	folded := jobfield.Fold{ByReason: true}.Rows(jobs)
	rows := make([]*jobfield.Row, len(folded))
	for i := range folded {
		rows[i] = &folded[i]
	}
	slices.SortFunc(rows, jobfield.CompareIDs)
	fmt.Fprintf(s.w, "\n%s\n", s.paint(bold, "Elements"))
	t := tableOf(&line, rows, false)
	t.style = func(r, col int) style { return queueStyle(rows[r], line.Columns[col].Field) }
	return t.write(s)
}

// whyWaits is the elements of an array to be explained: the first of those that wait for the same,
// and which they are.
func whyWaits(jobs []api.Job) (first []*api.Job, like []string) {
	of := map[string][]int{}
	for i := range jobs {
		if j := &jobs[i]; j.State == api.JobPending {
			if of[j.Reason] == nil {
				first = append(first, j)
			}
			of[j.Reason] = append(of[j.Reason], *j.ArrayIndex)
		}
	}
	for _, j := range first {
		like = append(like, elements(j.ArrayJobID, of[j.Reason]))
	}
	return first, like
}
