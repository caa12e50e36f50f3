package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/core/table/column"
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/core/table/used"
)

// hookLines are what the site's hooks wrote around attempts, and why one failed.
func hookLines(attempts []api.Attempt) (lines []string) {
	for i := range attempts {
		a := &attempts[i]
		for k := range a.Measures {
			m := &a.Measures[k]
			for _, h := range m.Hooks {
				how := "done"
				if h.Error != "" {
					how = "failed: " + h.Error
				}
				lines = append(lines, fmt.Sprintf("attempt %d  %s  %s  %.3gs  %s", a.Attempt, m.Node, h.Hook, h.Seconds, how))
				for line := range strings.SplitSeq(h.Output, "\n") {
					if line != "" {
						lines = append(lines, "    "+line)
					}
				}
			}
		}
	}
	return lines
}

// startLines are the ways of attempts to their first steps, of those in which one was seen.
func startLines(attempts []api.Attempt) (lines []string) {
	for i := range attempts {
		if e := attempts[i].Efficiency; e != nil && e.Start != nil {
			if text := used.Start(e.Start); text != "" {
				lines = append(lines, fmt.Sprintf("attempt %d  %s", attempts[i].Attempt, text))
			}
		}
	}
	return lines
}

// hooks shows for each job why its starts were refused, and what hooks wrote where it ran.
func (g *gacct) hooks(ctx context.Context, c *client.Client, s *screen, details []*api.JobDetail) error {
	for _, d := range details {
		var lines []string
		err := c.EventPages(ctx, api.JobRef{ID: d.Job.JobID, Index: -1}, 0, 0, func(events []api.Event) error {
			for i := range events {
				if ev := &events[i]; ev.Type == api.EventRolledBack {
					lines = append(lines, "epoch "+strconv.Itoa(ev.Epoch)+"  not started"+because(ev))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, line := range append(lines, hookLines(d.Attempts)...) {
			fmt.Fprintln(s.w, column.Printable("job "+jobfield.IDText(&d.Job)+"  "+line))
		}
	}
	return nil
}
