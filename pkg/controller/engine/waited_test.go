package engine

import (
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// TestWhatAnEndedJobWaitedFor: of a job that has ended its events tell how long it waited, by whom it was held, what else it had to wait for, and
// what came of the tries to start it; what was after the first start does not count.
func TestWhatAnEndedJobWaitedFor(t *testing.T) {
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	is := func(typ api.EventType, minute int, text string) api.Event {
		return api.Event{Type: typ, Time: at(minute), Text: text, Nodes: []string{"n1", "n2"}}
	}
	waited := func(ev api.Event, room time.Duration) api.Event { ev.Seconds = room.Seconds(); return ev }
	for _, c := range []struct {
		name string
		evs  []api.Event
		job  func(j *gang.Job)
		want []string
	}{
		{"at once", []api.Event{is(api.EventSubmitted, 0, ""), is(api.EventStarted, 0, ""), is(api.EventEnded, 5, "")}, nil,
			[]string{"waited 0 s, from 12:00:00 until it started on n[1-2]"}},
		{"for room", []api.Event{waited(is(api.EventStarted, 90, ""), 90*time.Minute), is(api.EventEnded, 95, "")}, nil,
			[]string{"waited 1 h 30 min, from 12:00:00 until it started on n[1-2]", "of that 1 h 30 min for room and its turn in the queue"}},
		{"for seconds, no more for room than in all", []api.Event{{Type: api.EventStarted, Time: noon.Add(2900 * time.Millisecond), Nodes: []string{"n1"}, Seconds: 2.9}}, nil,
			[]string{"waited 2 s, from 12:00:00 until it started on n1", "of that 2 s for room and its turn in the queue"}},
		{"held twice, and again while it ran", []api.Event{is(api.EventHeld, 0, gang.HeldUser), is(api.EventReleased, 10, ""), is(api.EventHeld, 20, gang.HeldAdmin), is(api.EventReleased, 25, ""),
			is(api.EventStarted, 30, ""), is(api.EventHeld, 31, gang.HeldUser), is(api.EventRolledBack, 32, "n2 refused"), is(api.EventStarted, 50, ""), is(api.EventEnded, 55, "")}, nil,
			[]string{"waited 30 min, from 12:00:00 until it started on n[1-2]", "of that 15 min held by an admin", "started 2 times in all: gacct 7 shows each"}},
		{"never", []api.Event{is(api.EventHeld, 5, gang.HeldUser), is(api.EventRolledBack, 6, "n1 refused"), is(api.EventRolledBack, 7, "n2 refused"), is(api.EventEnded, 10, "")},
			func(j *gang.Job) {
				j.Dependency, j.Spec.Begin = &api.Dependency{On: []api.Condition{{Kind: api.AfterOK, Job: 3}}}, at(24*60)
			},
			[]string{"waited 10 min, from 12:00:00, and never started", "of that 5 min held by its owner", "had to wait for afterok:3", "was to begin at 2026-03-02 12:00:00 or later", "2 tries to start it came to nothing; the last: n2 refused"}},
		{"about to start", []api.Event{is(api.EventSubmitted, 0, ""), is(api.EventReserved, 1, "")}, nil, nil},
	} {
		j := waitingJob(func(j *gang.Job) {
			j.Submit = at(0)
			if c.job != nil {
				c.job(j)
			}
		})
		w := waitsOf(c.evs)
		if got := w.lines(j, at(60)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", c.name, got, c.want)
		}
	}
}
