package gang

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cron"
)

// A line of a cron table is one job, which waits for its next time, runs, ends, and waits again under its
// number. So it never runs twice at once, and a time that comes while it runs, or is kept from running, is left out. One that
// passes while no controller is there is late, and runs once.

// PutCrontab replaces the cron table of a user. Of lines that were in it before the jobs stay.
type PutCrontab struct {
	User, Text, By string
	Lines          []CronLine
}

// CronLine is a line of it, and what it asks for; [api.Spec.Cron] is set.
type CronLine struct {
	First, Last int
	Submit      Submit
}

func (PutCrontab) event() {}

// CrontabRow is a user's table in its newest form, nil: there is none any more.
type CrontabRow struct {
	User string
	T    *api.Crontab
}

// crontabs are the tables of all users.
type crontabs struct {
	byUser map[string]*api.Crontab
	zones  func(name string) *time.Location

	dirty map[string]*api.Crontab // those that changed, nil for one that is gone
}

// SetZones says what a time zone is; without it there is but one. An unknown one is nil.
func (w *World) SetZones(zone func(name string) *time.Location) { w.site.crontabs.zones = zone }

// of is that of a user, nil: none.
func (ct *crontabs) of(user string) *api.Crontab { return ct.byUser[user] }

// list are those of all users, by name.
func (ct *crontabs) list() map[string]*api.Crontab { return maps.Clone(ct.byUser) }

// due is when a line is due after a time; zero: never.
func (ct *crontabs) due(c *api.Cron, after time.Time) time.Time {
	s, err := cron.Parse(c.Schedule)
	zone := ct.zone(c.Zone)
	if err != nil || zone == nil {
		return time.Time{}
	}
	return s.Next(after.In(zone)).UTC()
}

func (ct *crontabs) zone(name string) *time.Location {
	switch {
	case ct.zones != nil:
		return ct.zones(name)
	case name == "":
		return time.UTC
	}
	return nil
}

// Recurs reports whether it comes again by a cron table: when the job ends it waits for its next time.
func Recurs(j *Job) bool { return j.Spec.Cron != nil && j.Verdict == nil && !j.LastRun }

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

func (ct *crontabs) set(user string, t *api.Crontab) {
	if t.Text == "" {
		t = nil
		delete(ct.byUser, user)
	} else {
		ct.byUser[user] = t
	}
	ct.dirty[user] = t
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
		sb.record.emitJob(j, api.Event{Type: api.EventHeld, Text: fmt.Sprintf("%s: time zone %q is not known here any more", HeldAdmin, j.Spec.Cron.Zone)})
		return
	}
	j.Eligible = at
	sb.clock.in(at.Sub(sb.clock.now.Wall), timer{kind: timerEligible, job: j.ID})
	sb.record.emitJob(j, api.Event{Type: api.EventComesAgain, Text: "next at " + at.In(sb.crontabs.zone(j.Spec.Cron.Zone)).Format(time.RFC3339)})
}

// begins: a job waits for a time that it was given, not for the end of a back-off.
func begins(j *Job) bool {
	return j.Epoch == 0 || j.Spec.Cron != nil && j.BackoffUntil.Before(j.Eligible)
}

// crontabs: each job that comes again is of one line, and each line has one.
func (v *verifier) crontabs() {
	of := map[int64]string{}
	for _, user := range slices.Sorted(maps.Keys(v.w.site.crontabs.byUser)) {
		for _, l := range v.w.site.crontabs.byUser[user].Lines {
			e := v.w.jobs.byID[l.JobID]
			v.check(e != nil && Recurs(e.job) && e.job.User == user && of[l.JobID] == "", "the cron table of %s has job %d, which is not its own, or does not come again", user, l.JobID)
			of[l.JobID] = user
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.w.jobs.byID)) {
		j := v.w.jobs.byID[id].job
		v.check(!Recurs(j) || of[id] != "", "job %d comes again, and is of no cron table", id)
	}
}
