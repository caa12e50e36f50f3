package engine

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/hostlist"
)

// notWaiting is what is said of a job that does not wait: how it is or how it ended, and for how long and for what it had waited, as its
// events tell. It is read from the store, of a job in memory too.
func (e *Engine) notWaiting(ctx context.Context, j *gang.Job, shown *api.Job) (string, error) {
	now := e.opt.Clock.Now().Wall
	evs, err := e.store.Events(ctx, j.ID, 0, 0)
	w := waitsOf(evs)
	text := "not waiting: " + string(shown.State)
	switch far := importing(j); {
	case j.Verdict != nil:
		text = "ended " + when.Clock(now, cmp.Or(w.ended, j.End, j.Submit)) + ": " + string(shown.State)
		if shown.Verdict != "" {
			text += ": " + shown.Verdict
		}
	case far != "":
		text += ": " + far
	}
	lines := append([]string{text}, w.lines(j, now)...)
	if j.Verdict == nil {
		if said := newestText(evs, func(ev *api.Event) bool { return ev.Epoch == j.Epoch && watchdogSaid[ev.Type] }); said != "" {
			lines = append(lines, "watchdog: "+said)
		}
	}
	return strings.Join(lines, "\n"), err
}

// watchdogSaid are the events that tell what a watchdog thinks of a gang that runs.
var watchdogSaid = map[api.EventType]bool{api.EventStallSuspected: true, api.EventStallDismissed: true, api.EventWatchBlind: true,
	api.EventIdleWarned: true, api.EventIdleOver: true, api.EventStacks: true}

// waits is what the events of a job tell of its wait before it first started, or ended without a start.
type waits struct {
	first   *api.Event // that it started; nil: it has not
	starts  int
	ended   time.Time
	held    time.Duration
	holder  string
	tries   int    // to start it that came to nothing
	refused string // why the last of them did
}

func waitsOf(evs []api.Event) (w waits) {
	var since time.Time // of a hold
	for i := range evs {
		ev := &evs[i]
		if ev.Type == api.EventStarted {
			if w.starts++; w.first == nil {
				w.first = ev
			}
		}
		if w.first != nil {
			if ev.Type == api.EventEnded {
				w.ended = ev.Time
			}
			continue
		}
		switch ev.Type {
		case api.EventHeld:
			if w.holder = ev.Text; since.IsZero() {
				since = ev.Time
			}
		case api.EventReleased, api.EventEnded:
			if !since.IsZero() {
				w.held += ev.Time.Sub(since)
			}
			if since = (time.Time{}); ev.Type == api.EventEnded {
				w.ended = ev.Time
			}
		case api.EventRolledBack:
			w.tries, w.refused = w.tries+1, ev.Text
		}
	}
	return w
}

// lines say for how long a job waited, and for what; none: it is about to start.
func (w *waits) lines(j *gang.Job, now time.Time) []string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case w.first != nil:
		say("waited %s, from %s until it started on %s", when.Words(w.first.Time.Sub(j.Submit)), when.Clock(now, j.Submit),
			hostlist.Compress(w.first.Nodes))
	case w.ended.IsZero():
		return nil
	default:
		say("waited %s, from %s, and never started", when.Words(w.ended.Sub(j.Submit)), when.Clock(now, j.Submit))
	}
	if w.held > 0 {
		say("of that %s held%s", when.Words(w.held), heldBy(w.holder))
	}
	if j.Dependency != nil {
		say("had to wait for %s", j.Dependency)
	}
	if b := j.Spec.Begin; b.After(j.Submit) {
		say("was to begin at %s or later", when.Clock(now, b))
	}
	if w.first != nil {
		if room := time.Duration(w.first.Seconds * float64(time.Second)); room >= time.Second {
			say("of that %s for room and its turn in the queue", when.Words(room))
		}
	}
	if w.tries > 0 {
		tries := "a try"
		if w.tries > 1 {
			tries = fmt.Sprintf("%d tries", w.tries)
		}
		say("%s to start it came to nothing; the last: %s", tries, w.refused)
	}
	if w.starts > 1 {
		say("started %d times in all: gacct %s shows each", w.starts, j.Ref())
	}
	return lines
}

// heldBy says who held a job, as the event of it does.
func heldBy(who string) string {
	switch who {
	case gang.HeldAdmin:
		return " by an admin"
	case gang.HeldUser:
		return " by its owner"
	}
	return ""
}
