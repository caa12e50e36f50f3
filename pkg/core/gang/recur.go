package gang

import (
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cron"
)

func (sb *submissions) putCrontab(ev PutCrontab) Outcome {
	old := sb.crontabs.byUser[ev.User]
	if old == nil && ev.Text == "" {
		return refused(api.Errorf(api.CodeNotFound, "%s has no cron table", ev.User))
	}
	if old != nil && old.Text == ev.Text && sb.same(old, ev.Lines) {
		return ignored("the table is so already")
	}
	stay := sb.stay(old, ev.Lines)
	fresh := 0
	for i := range ev.Lines {
		l := &ev.Lines[i]
		if stay[i] != 0 {
			continue
		}
		fresh++
		if err := sb.checkLine(&l.Submit, fresh); err != nil {
			return refused(err.About(api.ReasonCronLine, fmt.Sprintf("%d-%d", l.First, l.Last)))
		}
	}
	t := &api.Crontab{User: ev.User, Text: ev.Text, Lines: []api.CronLine{}, By: ev.By, Time: sb.clock.now.Wall}
	out := Outcome{Applied: true}
	if old != nil {
		stays := make(map[int64]bool, len(stay))
		for _, id := range stay {
			stays[id] = true
		}
		for _, l := range old.Lines {
			if !stays[l.JobID] {
				sb.lineGone(sb.jobs.byID[l.JobID])
			}
		}
	}
	for i := range ev.Lines {
		l, id := &ev.Lines[i], stay[i]
		if id == 0 {
			id = sb.submit(l.Submit).JobIDs[0]
		}
		t.Lines = append(t.Lines, api.CronLine{First: l.First, Last: l.Last, JobID: id})
		out.JobIDs = append(out.JobIDs, id)
	}
	sb.crontabs.set(ev.User, t)
	sb.record.emit(api.Event{Type: api.EventCrontab, Text: by(fmt.Sprintf("cron table of %s: %d lines", ev.User, len(t.Lines)), ev.By)})
	return out
}

// same: every line has its job, in the same lines of the text.
func (sb *submissions) same(t *api.Crontab, lines []CronLine) bool {
	return slices.EqualFunc(t.Lines, lines, func(a api.CronLine, b CronLine) bool {
		return a.First == b.First && a.Last == b.Last && sb.jobs.byID[a.JobID].job.SpecHash == b.Submit.SpecHash
	})
}

// stay gives the job that each line has had before, 0: none.
func (sb *submissions) stay(old *api.Crontab, lines []CronLine) []int64 {
	out := make([]int64, len(lines))
	if old == nil {
		return out
	}
	have := map[string][]int64{}
	for _, l := range old.Lines {
		j := sb.jobs.byID[l.JobID].job
		have[j.SpecHash] = append(have[j.SpecHash], j.ID)
	}
	for i := range lines {
		if ids := have[lines[i].Submit.SpecHash]; len(ids) > 0 {
			out[i], have[lines[i].Submit.SpecHash] = ids[0], ids[1:]
		}
	}
	return out
}

// checkLine refuses what submit would, as the n-th new one.
func (sb *submissions) checkLine(ev *Submit, n int) *api.Error {
	if err := checkSubmit(ev); err != nil {
		return err
	}
	if err := sb.partitions.known(ev.Partition); err != nil {
		return err
	}
	if sb.crontabs.due(ev.Spec.Cron, sb.clock.now.Wall).IsZero() {
		return api.Errorf(api.CodeInvalid, "there is no time zone %q, or no day as %q", ev.Spec.Cron.Zone, ev.Spec.Cron.Schedule)
	}
	return sb.holdings.mayHold(ev, n)
}

// lineGone: what waits for its time is cancelled, what runs does so for the last time.
func (sb *submissions) lineGone(e *entry) {
	sb.jobs.edit(e).LastRun = true
	if blocked(e.job) {
		sb.stops.end(e, verdictOf(e.job, api.CauseCancelled, -1, "its line was taken out of the cron table"))
	}
}

// switchOff makes a comment of the line of a job that was cancelled.
func (sb *submissions) switchOff(e *entry, who string) {
	j := sb.jobs.edit(e)
	j.LastRun = true
	old := sb.crontabs.byUser[j.User]
	t := *old
	t.Lines, t.Time, t.By = nil, sb.clock.now.Wall, who
	for _, l := range old.Lines {
		if l.JobID == j.ID {
			t.Text = cron.Mark(t.Text, "#DISABLED: ", l.First, l.Last)
		} else {
			t.Lines = append(t.Lines, l)
		}
	}
	sb.crontabs.set(j.User, &t)
	sb.record.emit(api.Event{Type: api.EventCrontab, Text: by("a line of the cron table of "+j.User+" was switched off", who)})
}

// comeAgain has a job of a cron table, which has just ended, wait for its next time.
func (sb *submissions) comeAgain(e *entry) {
	j := sb.control.waitAgain(e)
	j.Image, j.StepImages = "", nil // each run takes the image as it is then
	sb.dueAt(e, sb.crontabs.due(j.Spec.Cron, sb.clock.now.Wall))
	sb.deps.watch(e)
	sb.queue.touch(e)
}

// skip has one that waits leave its next time out.
func (sb *submissions) skip(e *entry, who string) Outcome {
	j := sb.jobs.edit(e)
	j.BackoffUntil = time.Time{}
	at := sb.crontabs.due(j.Spec.Cron, later(j.Eligible, sb.clock.now.Wall))
	sb.record.emitJob(j, api.Event{Type: api.EventRequeued, Text: by("leaves a time out", who)})
	sb.dueAt(e, at)
	sb.queue.touch(e)
	return applied()
}

// dueAt sets when a job of a cron table is due. Never, when its zone is known no more: it is held then.
func (sb *submissions) dueAt(e *entry, at time.Time) {
	j := sb.jobs.edit(e)
	if at.IsZero() {
		j.Held = HeldAdmin
		sb.record.emitJob(j, api.Event{Type: api.EventHeld, Text: fmt.Sprintf("%s: time zone %q is not known here any more", HeldAdmin,
			j.Spec.Cron.Zone)})
		return
	}
	j.Eligible = at
	sb.clock.in(at.Sub(sb.clock.now.Wall), timer{kind: timerEligible, job: j.ID})
	sb.record.emitJob(j, api.Event{Type: api.EventComesAgain, Text: "next at " +
		at.In(sb.crontabs.zone(j.Spec.Cron.Zone)).Format(time.RFC3339)})
}
