package supervise

import (
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// Outlook is what the ranks may know of their end: what they read when the signal comes.
type Outlook struct {
	State  State // Leading: noticed, the stop signal is still to come; Stopping: KILL is
	Cause  api.Cause
	Text   string
	Signal string        // the one that tells them now
	Left   time.Duration // until the stop signal, or until KILL
}

// Outlook is the end in sight; ok is false while there is none. During a notice before the
// time limit no stop is under way yet, but the ranks are told of one all the same.
func (m *Machine) Outlook(now Instant) (o Outlook, ok bool) {
	o = Outlook{State: m.state, Cause: m.cause, Text: m.text, Signal: m.signal}
	switch {
	case m.state == Running && m.noticed:
		o.State, o.Cause, o.Text = Leading, api.CauseTimeout, "the time limit of "+when.Words(m.cfg.TimeLimit)+" comes near"
		o.Left = m.timeLimitAt - now.Mono
	case m.state == Leading:
		o.Left = m.stopAt - now.Mono
	case m.state == Stopping:
		o.Left = m.killAt - now.Mono
	default:
		return Outlook{}, false
	}
	if o.State == Leading && m.cfg.Notice != nil {
		o.Signal = m.cfg.Notice.Signal
	}
	if o.Cause == "" {
		o.Cause = api.CauseCompleted // of the script, which has ended
	}
	o.Left = max(o.Left, 0)
	return o, true
}
