package gang

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// cronLine is the n-th line of a table that has no options.
func cronLine(n int, schedule, zone, hash string) CronLine {
	s := specOf(1)
	s.Cron = &api.Cron{Schedule: schedule, Zone: zone}
	return CronLine{First: n, Last: n, Submit: Submit{Spec: s, SpecHash: hash, User: "ada", UID: 1, Partition: "main"}}
}

// table puts ada's table with lines, and a text of as many.
func (b *bench) table(lines ...CronLine) []int64 {
	b.t.Helper()
	return b.must(putLines(lines...)).JobIDs
}

func putLines(lines ...CronLine) PutCrontab {
	var text strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&text, "%s %s\n", l.Submit.Spec.Cron.Schedule, l.Submit.SpecHash)
	}
	return PutCrontab{User: "ada", Text: text.String(), Lines: lines, By: "ada"}
}

// runs has a job of a cron table run for a time and end with a code.
func (b *bench) runs(id int64, d time.Duration, code int) {
	b.t.Helper()
	b.start(id)
	b.after(d)
	b.phase(id, "n1", api.PhaseStopped, exit(0, code))
}

// due: the job waits until a time, and is a candidate then and not before.
func (b *bench) due(id int64, want string) {
	b.t.Helper()
	b.state(id, api.JobPending)
	at, err := time.Parse(time.RFC3339, want)
	if err != nil {
		b.t.Fatal(err)
	}
	if j := b.w.Job(id); !j.Eligible.Equal(at) {
		b.t.Fatalf("job %d is due at %s, want %s", id, j.Eligible, want)
	}
	b.after(at.Sub(b.now.Wall) - time.Second)
	if b.w.Candidate(id) != nil {
		b.t.Fatalf("job %d is a candidate before %s", id, want)
	}
	b.after(time.Second)
	if b.w.Candidate(id) == nil {
		b.t.Fatalf("job %d is no candidate at %s", id, want)
	}
}

func (b *bench) at(wall string) {
	b.t.Helper()
	at, err := time.Parse(time.RFC3339, wall)
	if err != nil {
		b.t.Fatal(err)
	}
	b.now.Wall = at
}

func zones(t *testing.T) func(string) *time.Location {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) *time.Location {
		return map[string]*time.Location{"": time.UTC, "Europe/Berlin": berlin}[name]
	}
}

// A job of a cron table has one number, however it ends; its runs are attempts.
func TestCronJobComesAgain(t *testing.T) {
	b := newBench(t, 1)
	b.at("2026-11-21T08:00:30Z")
	id := b.table(cronLine(1, "*/10 * * * *", "", "x"))[0]
	b.due(id, "2026-11-21T08:10:00Z")
	b.w.jobs.edit(b.w.jobs.byID[id]).Image = "sha256:old"
	b.runs(id, time.Minute, 0)
	b.due(id, "2026-11-21T08:20:00Z")
	if got := b.w.Job(id).Image; got != "" {
		t.Errorf("the next run is held to the image %s of the last", got)
	}
	b.runs(id, 25*time.Minute, 3) // and fails; two times go by while it runs
	b.due(id, "2026-11-21T08:50:00Z")
	b.start(id)
	if j := b.w.Job(id); j.Epoch != 3 || j.Rollbacks != 0 || len(j.Used) != 0 {
		t.Errorf("epoch %d, rollbacks %d, used %v", j.Epoch, j.Rollbacks, j.Used)
	}
	ch := b.w.Take()
	if len(ch.Revived) != 0 {
		t.Errorf("revived %v: no commit has its end", ch.Revived)
	}
	var ended []string
	for _, e := range ch.Events {
		if e.Type == api.EventEnded {
			ended = append(ended, string(e.State))
		}
	}
	if got := strings.Join(ended, " "); got != "COMPLETED FAILED" {
		t.Errorf("ended %q", got)
	}
}

// A time that passes while no controller is there is late, and comes once.
func TestCronWhileAway(t *testing.T) {
	b := newBench(t, 1)
	b.at("2026-11-21T08:00:00Z")
	id := b.table(cronLine(1, "@hourly", "", "x"))[0]
	b.reborn(3*time.Hour + 30*time.Minute)
	if b.w.Candidate(id) == nil {
		t.Fatal("three times have passed, and it does not start")
	}
	b.hello("n1")
	b.runs(id, time.Minute, 0)
	b.reborn(time.Minute)
	b.hello("n1")
	b.due(id, "2026-11-21T12:00:00Z")
}

func TestCronInItsZone(t *testing.T) {
	b := newBench(t, 1)
	b.w.SetZones(zones(t))
	b.at("2026-03-28T00:00:00Z")
	id := b.table(cronLine(1, "30 2 * * *", "Europe/Berlin", "x"))[0]
	b.due(id, "2026-03-28T01:30:00Z")
	b.runs(id, time.Minute, 0)
	b.due(id, "2026-03-29T01:00:00Z") // 02:30 does not come: at 03:00
	b.runs(id, time.Minute, 0)
	b.due(id, "2026-03-30T00:30:00Z")
	b.w.SetZones(func(string) *time.Location { return nil })
	b.runs(id, time.Minute, 0)
	if j := b.w.Job(id); j.Held != HeldAdmin || j.Verdict != nil {
		t.Errorf("its zone is gone: held %q, verdict %v", j.Held, j.Verdict)
	}
}

// Of a new table the lines that were there before keep their jobs.
func TestCrontabReplaced(t *testing.T) {
	b := newBench(t, 1)
	x, y, z := cronLine(1, "@hourly", "", "x"), cronLine(2, "@daily", "", "y"), cronLine(3, "0 * * * *", "", "z")
	b.at("2026-11-21T07:59:00Z")
	ids := b.table(x, y, z)
	b.after(time.Minute)
	b.start(ids[2])
	if out := b.step(putLines(x, y, z)); out.Ignored == "" {
		t.Errorf("the same table: %+v", out)
	}
	y.First, y.Last = 1, 1
	if got := b.table(y, cronLine(2, "@weekly", "", "w")); got[0] != ids[1] || got[1] == ids[0] {
		t.Errorf("jobs %v, were %v", got, ids)
	}
	b.state(ids[0], api.JobCancelled) // waited
	b.state(ids[2], api.JobRunning)
	b.phase(ids[2], "n1", api.PhaseStopped, exit(0, 0))
	b.state(ids[2], api.JobCompleted) // for the last time
	if out := b.step(Requeue{Job: ids[2], Ended: true}); out.Refused == nil {
		t.Error("an ended job of a cron table was queued again")
	}
	b.must(PutCrontab{User: "ada"})
	if b.w.Crontab("ada") != nil {
		t.Error("a table of nothing stays")
	}
	b.state(ids[1], api.JobCancelled)
	if out := b.step(PutCrontab{User: "ada"}); out.Refused == nil {
		t.Error("what is not there was taken away")
	}
}

// One line that can't be is named, and nothing of the table holds.
func TestCrontabRefusedByLine(t *testing.T) {
	b := newBench(t, 1)
	bad := cronLine(2, "@daily", "Mars/Olympus", "y")
	bad.Last = 4
	out := b.step(putLines(cronLine(1, "@daily", "", "x"), bad))
	if e := out.Refused; e == nil || e.Reason != api.ReasonCronLine || e.Subject != "2-4" || !strings.Contains(e.Message, "Mars/Olympus") {
		t.Errorf("%+v", out.Refused)
	}
	if b.w.Crontab("ada") != nil || b.w.NextID() != 1 {
		t.Error("something of it was taken")
	}
}

// Each new line counts against what a user may have.
func TestCrontabWithinLimits(t *testing.T) {
	s := settings()
	s.UserJobs = 2
	b := benchWith(t, 1, s)
	x, y := cronLine(1, "@daily", "", "x"), cronLine(2, "@daily", "", "y")
	if out := b.step(putLines(x, y, cronLine(3, "@daily", "", "z"))); out.Refused == nil || out.Refused.Subject != "3-3" {
		t.Errorf("three of two: %+v", out)
	}
	b.table(x, y)
}

// Who cancels a job of a cron table switches its line off, whatever the job does.
func TestCancelledCronLine(t *testing.T) {
	for _, when := range []string{"waits", "runs", "ends"} {
		t.Run(when, func(t *testing.T) {
			b := newBench(t, 1)
			l := cronLine(1, "* * * * *", "", "x")
			ids := b.table(l, cronLine(2, "@daily", "", "y"))
			id := ids[0]
			if when != "waits" {
				b.after(time.Minute)
				b.start(id)
			}
			if when == "ends" {
				b.phase(id, "n1", api.PhaseRunning, exit(0, 0))
			}
			b.must(Cancel{Job: id, By: "ada"})
			if when == "runs" {
				b.ack(id)
			} else if when == "ends" {
				b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
			}
			if j := b.w.Job(id); j.Verdict == nil {
				t.Fatalf("it goes on: %+v", j)
			}
			if got := b.w.Crontab("ada"); got.Text != "#DISABLED: * * * * * x\n@daily y\n" || len(got.Lines) != 1 || got.Lines[0].JobID != ids[1] {
				t.Errorf("%+v", got)
			}
			b.after(time.Hour)
			if b.w.Candidate(id) != nil {
				t.Error("it comes again")
			}
		})
	}
}

// A requeue leaves a time out, before and while it runs; what a node did is made up for.
func TestRequeuedCronJob(t *testing.T) {
	b := newBench(t, 1)
	b.at("2026-11-21T08:00:00Z")
	id := b.table(cronLine(1, "@hourly", "", "x"))[0]
	b.must(Requeue{Job: id})
	b.due(id, "2026-11-21T10:00:00Z")
	b.start(id)
	b.must(Requeue{Job: id})
	b.ack(id)
	b.due(id, "2026-11-21T11:00:00Z")
	b.start(id)
	b.must(Preempt{Job: id, For: "job 9"})
	b.ack(id)
	if b.w.Candidate(id) == nil {
		t.Error("a run that was preempted waits for another time")
	}
}

func TestCronJobIsNotUpdated(t *testing.T) {
	b := newBench(t, 1)
	id := b.table(cronLine(1, "@hourly", "", "x"))[0]
	if out := b.step(Update{Job: id, Name: new("other")}); out.Refused == nil || out.Refused.Reason != api.ReasonCronJob {
		t.Errorf("%+v", out)
	}
}

// TestNextTimesOfALine: never, of a schedule or a zone that is none.
func TestNextTimesOfALine(t *testing.T) {
	b := newBench(t, 1)
	for want, c := range map[string]api.Cron{"2026-03-02T00:00:00Z": {Schedule: "@daily"}, "2026-03-01T12:05:00Z": {Schedule: "*/5 * * * *"}} {
		if got := b.w.site.crontabs.due(&c, epoch0); got.Format(time.RFC3339) != want {
			t.Errorf("%s: %s", c.Schedule, got)
		}
	}
	for _, c := range []api.Cron{{Schedule: "x"}, {Schedule: "@daily", Zone: "Mars"}} {
		if got := b.w.site.crontabs.due(&c, epoch0); !got.IsZero() {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
