package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/jobs"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/table/column"
)

func newEvents() *cobra.Command {
	var follow, asJSON bool
	var since int64
	var limit int
	cmd := &cobra.Command{
		Use: "events [JOB]", Short: "what happened, to a job or to all",
		Example: `  gctl events 12                       the story of job 12
  gctl events --follow                 all jobs, from now on
  gctl events --follow --json --since=480   one object a line, from event 480 on`,
		Long: `An event's number (seq) orders all events of a controller: --since=SEQ gives those
after it, so that a reader that was cut off misses none.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return Usagef("gctl events takes one job, or none for all; got %s", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var ref api.JobRef
			var err error
			if len(args) == 1 {
				if ref, err = oneRef(args[0]); err != nil {
					return err
				}
			}
			switch {
			case cmd.Flags().Changed("limit") && limit < 1:
				return Usagef("invalid value %d for --limit: want a number from 1", limit)
			case limit > 0 && follow:
				return Usagef("--limit and --follow exclude each other: what is followed has no end")
			}
			c := client.New()
			if follow {
				return followEvents(cmd, c, ref, since, asJSON)
			}
			if asJSON {
				reply, err := c.Events(cmd.Context(), ref, max(since, 0), limit)
				if err != nil {
					return err
				}
				return WriteJSON(cmd.OutOrStdout(), reply)
			}
			var before time.Time
			return c.EventPages(cmd.Context(), ref, max(since, 0), limit, func(evs []api.Event) error {
				defer func() { before = evs[len(evs)-1].Time }()
				return writeEvents(screenOf(cmd.OutOrStdout()), evs, before, namesOf(cmd.Context(), c, evs))
			})
		},
		ValidArgsFunction: completeJobs,
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "go on with new events, as they come")
	f.Int64Var(&since, "since", -1, "only events after number `SEQ` (0: from the beginning)")
	f.IntVar(&limit, "limit", 0, "at most this many, `N` (default all)")
	f.Lookup("limit").DefValue = "0"
	f.BoolVar(&asJSON, "json", false, "as JSON; with --follow one object a line")
	f.Lookup("since").DefValue = "0"
	return cmd
}

func followEvents(cmd *cobra.Command, c *client.Client, ref api.JobRef, since int64, asJSON bool) error {
	s := screenOf(cmd.OutOrStdout())
	lines := json.NewEncoder(s.w)
	lines.SetEscapeHTML(false)
	names := map[int64]string{} // each job is asked for once
	return c.ResumeEvents(cmd.Context(), ref, since, waiting(cmd), func(ev api.Event) error {
		if asJSON {
			return lines.Encode(ev)
		}
		if _, known := names[ev.JobID]; !known && ref != (api.JobRef{}) {
			maps.Copy(names, namesOf(cmd.Context(), c, []api.Event{ev}))
		}
		_, err := fmt.Fprintln(s.w, eventLine(s, &ev, time.Time{}, names[ev.JobID]))
		return err
	})
}

// namesOf are the names of the elements of arrays among the jobs of events, 3_1. Who does not find them has their numbers.
func namesOf(ctx context.Context, c *client.Client, events []api.Event) map[int64]string {
	var refs []api.JobRef
	names := map[int64]string{}
	for i := range events {
		if _, known := names[events[i].JobID]; !known && events[i].JobID != 0 {
			names[events[i].JobID] = strconv.FormatInt(events[i].JobID, 10)
			refs = append(refs, api.JobRef{ID: events[i].JobID, Index: -1})
		}
	}
	if len(refs) == 0 {
		return nil
	}
	reply, err := c.Jobs(ctx, &api.JobQuery{Refs: refs, All: true, Past: true, NoRanks: true})
	if err != nil {
		return names
	}
	for i := range reply.Jobs {
		names[reply.Jobs[i].JobID] = jobs.Ref(&reply.Jobs[i]).String()
	}
	return names
}

// writeEvents prints a story: the clock, the time since the line before, and what happened.
func writeEvents(s *screen, events []api.Event, before time.Time, names map[int64]string) error {
	out := bufio.NewWriter(s.w)
	for i := range events {
		fmt.Fprintln(out, eventLine(s, &events[i], before, names[events[i].JobID]))
		before = events[i].Time
	}
	return out.Flush()
}

// eventLine is one event for people; name is its job's, "" where only its number is known.
func eventLine(s *screen, ev *api.Event, before time.Time, name string) string {
	clock := ev.Time.Local().Format("2006-01-02T15:04:05.000")
	gap := "        "
	if !before.IsZero() {
		gap = fmt.Sprintf("%8s", gapText(ev.Time.Sub(before)))
	}
	head := fmt.Sprintf("%s %s  job %s", clock, gap, cmp.Or(name, strconv.FormatInt(ev.JobID, 10)))
	if ev.JobID == 0 { // of a node, or of its card
		head = fmt.Sprintf("%s %s  node %s", clock, gap, ev.Node)
	}
	if ev.Type == api.EventReconfigured {
		head = fmt.Sprintf("%s %s  gangd", clock, gap)
	}
	if ev.Epoch > 0 {
		head += " epoch " + strconv.Itoa(ev.Epoch)
	}
	return s.paint(faint, column.Printable(head)) + "  " + s.paint(eventStyle(ev), column.Printable(told(eventText(ev))))
}

// gapText is the time since the last event, in three figures.
func gapText(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < 10*time.Millisecond:
		return fmt.Sprintf("+%.1fms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("+%.0fms", d.Seconds()*1000)
	case d < 100*time.Second:
		return fmt.Sprintf("+%.1fs", d.Seconds())
	}
	return "+" + ago(d)
}

func eventStyle(ev *api.Event) style {
	switch ev.Type {
	case api.EventDrainStarted, api.EventRolledBack, api.EventStaleRefused, api.EventMemberFound, api.EventMemoryKills, api.EventNotice,
		api.EventUnheard,
		api.EventStallSuspected, api.EventIdleWarned, api.EventWatchBlind, api.EventStacks:
		return yellow
	case api.EventEnded:
		return stateStyle(ev.State)
	}
	return plain
}

// eventText tells an event in words; one of a type that this program does not know yet is
// named as it came.
func eventText(ev *api.Event) string {
	switch ev.Type {
	case api.EventReserved:
		return "reserved on " + hostlist.Compress(ev.Nodes)
	case api.EventRolledBack:
		return "rolled back to the queue" + because(ev)
	case api.EventNotice:
		return fmt.Sprintf("notice %s, %d s before the end%s%s", ev.Signal, ev.LeadSeconds, optional(": ", string(ev.Cause)), because(ev))
	case api.EventRankExited:
		return rankText(ev) + " exited" + codeText(ev) + onNode(ev)
	case api.EventDrainStarted:
		return fmt.Sprintf("drain started: %s%s, %s stopped%s", ev.Cause, triggerText(ev), count(ev.Moved, "rank", "ranks"), because(ev))
	case api.EventMemberStopped:
		return memberText(ev)
	case api.EventDrainCompleted:
		return fmt.Sprintf("drain completed in %.3g s: %s%s", ev.Seconds, ev.Outcome, because(ev))
	case api.EventMemoryKills:
		return "out of memory" + onNode(ev) + because(ev)
	case api.EventStaleRefused:
		return fmt.Sprintf("refused stale epoch %d%s", ev.ClaimedEpoch, onNode(ev))
	case api.EventMemberFound:
		return fmt.Sprintf("found epoch %d%s%s", ev.ClaimedEpoch, onNode(ev), because(ev))
	case api.EventCheckpoint:
		return fmt.Sprintf("%s saved a checkpoint of %d bytes", rankText(ev), ev.Bytes)
	case api.EventReady:
		return fmt.Sprintf("ready: %s, %.3g s after the start", count(ev.Size, "rank", "ranks"), ev.Seconds)
	case api.EventAcknowledged:
		return fmt.Sprintf("stop acknowledged by %d of %d", ev.Acknowledged, ev.Size)
	case api.EventUnheard:
		return "notice without a hearer" + because(ev)
	case api.EventStallSuspected:
		return "stall suspected" + onNode(ev) + because(ev)
	case api.EventStallDismissed:
		return "stall dismissed" + because(ev)
	case api.EventIdleWarned:
		return "idle" + because(ev)
	case api.EventIdleOver:
		return "not idle any more" + because(ev)
	case api.EventWatchBlind:
		return "watchdog blind" + because(ev)
	case api.EventSignalled:
		return "signal " + ev.Signal + because(ev)
	case api.EventEnded:
		return "ended: " + string(ev.State) + optional(" (", string(ev.Cause)) + closing(ev.Cause != "") + because(ev)
	}
	if ev.Reservation != "" {
		return "reservation " + ev.Reservation + " " + strings.TrimPrefix(string(ev.Type), "reservation_") + because(ev)
	}
	return string(ev.Type) + because(ev)
}

func because(ev *api.Event) string { return optional(": ", ev.Text) }

func onNode(ev *api.Event) string { return optional(" on ", ev.Node) }

func closing(open bool) string {
	if open {
		return ")"
	}
	return ""
}

func rankText(ev *api.Event) string {
	switch {
	case ev.Task != nil:
		return "task " + strconv.Itoa(ev.Task.Task) + " of step " + api.StepText(ev.JobID, ev.Task.Step)
	case ev.Rank == nil:
		return "a rank"
	}
	return "rank " + strconv.Itoa(*ev.Rank)
}

func codeText(ev *api.Event) string {
	switch {
	case ev.Signal != "":
		return " by signal " + ev.Signal
	case ev.ExitCode != nil:
		return " with " + strconv.Itoa(*ev.ExitCode)
	}
	return ""
}

func triggerText(ev *api.Event) string {
	if ev.Trigger == nil {
		return ""
	}
	return " of rank " + strconv.Itoa(*ev.Trigger)
}

// memberText says where a member stopped, with the exit codes of its ranks.
func memberText(ev *api.Event) string {
	text := "member on " + ev.Node + " stopped"
	switch {
	case ev.Forced && ev.Text == "":
		text = "member on " + ev.Node + " stopped by KILL at the end of the grace"
	case ev.Forced:
		text = "member on " + ev.Node + " forced out, its end is not proven" + because(ev)
	}
	var codes []string
	for _, rank := range slices.Sorted(maps.Keys(ev.ExitCodes)) {
		codes = append(codes, fmt.Sprintf("%d:%d", rank, ev.ExitCodes[rank]))
	}
	if len(codes) > 0 {
		text += " (exit codes " + strings.Join(codes, " ") + ")"
	}
	return text
}
