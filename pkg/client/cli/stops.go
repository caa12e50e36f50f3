package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

// stop is how one attempt was brought to its end, gathered from its events.
type stop struct {
	epoch         int
	notice, begun time.Time
	signal, why   string
	acked, size   int
	ackedAt       time.Time
	killed, given []string // nodes whose member needed KILL; was given up without proof
	unheardAt     time.Time
	killedAt      time.Time
	givenAt       time.Time
	over          time.Time
	outcome       string
}

// stopLines tells each stop in one line, with clocks: who looks for where the time went
// reads "notice 14:02:10, acknowledged 3/4, forced 14:03:40" there and not in thirty events.
func stopLines(events []api.Event) []string {
	var stops []*stop
	for i := range events {
		ev := &events[i]
		if ev.JobID == 0 || ev.Epoch == 0 {
			continue
		}
		at := slices.IndexFunc(stops, func(s *stop) bool { return s.epoch == ev.Epoch })
		if at < 0 {
			stops, at = append(stops, &stop{epoch: ev.Epoch}), len(stops)
		}
		stops[at].take(ev)
	}
	var lines []string
	for _, s := range stops {
		if !s.notice.IsZero() || !s.begun.IsZero() {
			lines = append(lines, s.String())
		}
	}
	return lines
}

func (s *stop) take(ev *api.Event) {
	switch ev.Type {
	case api.EventNotice:
		s.notice, s.signal = ev.Time, ev.Signal
		if s.why == "" {
			s.why = string(ev.Cause)
		}
	case api.EventAcknowledged:
		s.acked, s.size, s.ackedAt = ev.Acknowledged, ev.Size, ev.Time
	case api.EventUnheard:
		s.unheardAt = ev.Time
	case api.EventDrainStarted:
		s.begun = ev.Time
		s.name(ev)
	case api.EventMemberStopped:
		switch {
		case ev.Forced && ev.Text == "":
			s.killed, s.killedAt = append(s.killed, ev.Node), ev.Time
		case ev.Forced:
			s.given, s.givenAt = append(s.given, ev.Node), ev.Time
		}
	case api.EventDrainCompleted:
		s.over, s.outcome = ev.Time, ev.Outcome
		if ev.Cause != "" {
			s.name(ev) // what was reported first may not be what it is judged by
		}
	}
}

// name takes over why the stop is, by an event of it.
func (s *stop) name(ev *api.Event) {
	s.why = string(ev.Cause)
	if ev.Trigger != nil {
		s.why += triggerText(ev)
	}
}

func (s *stop) String() string {
	clock := func(t time.Time) string { return t.Local().Format("15:04:05") }
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	// A notice before the time limit comes before the stop, every other one with it.
	if !s.begun.IsZero() && !s.notice.Before(s.begun) || s.notice.IsZero() {
		add("stopped %s", clock(s.begun))
	}
	if !s.notice.IsZero() {
		add("notice %s %s", s.signal, clock(s.notice))
	}
	if s.acked > 0 {
		add("acknowledged %d/%d %s", s.acked, s.size, clock(s.ackedAt))
	}
	if !s.notice.IsZero() && s.notice.Before(s.begun) {
		add("stopped %s", clock(s.begun))
	}
	if !s.unheardAt.IsZero() {
		add("nobody listened")
	}
	if len(s.killed) > 0 {
		add("forced %s on %s", clock(s.killedAt), hostlist.Compress(s.killed))
	}
	if len(s.given) > 0 {
		add("given up %s on %s", clock(s.givenAt), hostlist.Compress(s.given))
	}
	if !s.over.IsZero() {
		add("over %s: %s", clock(s.over), s.outcome)
	}
	return fmt.Sprintf("attempt %d, %s: %s", s.epoch, s.why, strings.Join(parts, ", "))
}
