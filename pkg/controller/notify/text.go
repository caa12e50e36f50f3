package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"gangd/pkg/api"
	"gangd/pkg/core/cmdline/when"
)

// id of a letter as receivers see it: no other letter has it, of a store put back in time neither.
func id(l *api.Letter) string { return fmt.Sprintf("%d-%x", l.ID, l.Time.UnixMilli()) }

// line of text without what would begin another.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, s)
}

// chat is a text for a program that formats what it is sent: nothing in it calls a channel together, is a link under another
// name, or looks like words of the site. A word joiner, which nobody sees, parts what would be a mention or a link.
var chat = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u2060", "](", "]\u2060(", "*", "\u2217", "`", "'").Replace

// subject says an event in the words of Slurm's mails, which people have filters for.
func subject(l *api.Letter) string {
	name := fmt.Sprintf("Job_id=%s Name=%s", l.Ref, l.JobName)
	if l.Array != nil {
		name = "Array Summary " + name
	}
	return plain("Slurm " + name + " " + happened(l))
}

func happened(l *api.Letter) string {
	switch l.Type {
	case api.NotifyBegin:
		return "Began, Queued time " + when.Span(l.Queued)
	case api.NotifyEnd, api.NotifyFail:
		word := "Ended"
		if l.Type == api.NotifyFail {
			word = "Failed"
		}
		if a := l.Array; a != nil {
			state := string(l.State)
			if len(a.States) > 1 {
				state = "Mixed"
			}
			return fmt.Sprintf("%s, %s, ExitCode [%d-%d]", word, state, a.MinExit, a.MaxExit)
		}
		return fmt.Sprintf("%s, Run time %s, %s, ExitCode %d", word, when.Span(l.Ran), l.State, l.ExitCode)
	case api.NotifyRequeue:
		return "Requeued, Run time " + when.Span(l.Ran)
	case api.NotifyInvalidDepend:
		return "Invalid dependency"
	case api.NotifyTimeLimit:
		return "Reached time limit, Run time " + when.Span(l.Ran)
	case api.NotifyTimeLimit90, api.NotifyTimeLimit80, api.NotifyTimeLimit50:
		return fmt.Sprintf("Reached %d%% of time limit, Run time %s", l.Type.Percent(), when.Span(l.Ran))
	case api.NotifyStall:
		return "Stopped: it stalled, Run time " + when.Span(l.Ran)
	case api.NotifyIdle:
		return "Cards idle, Run time " + when.Span(l.Ran)
	case api.NotifyPreempt:
		return "Preempted, Run time " + when.Span(l.Ran)
	case api.NotifyMore:
		return fmt.Sprintf("and %d more events", total(l))
	}
	return string(l.Type)
}

func total(l *api.Letter) (n int) {
	for _, k := range l.More {
		n += k
	}
	return n
}

// title of a delivery: its one event, or how many there are.
func title(all []*api.Letter) string {
	if len(all) == 1 {
		return subject(all[0])
	}
	return fmt.Sprintf("Slurm %d events of jobs of %s", len(all), plain(all[0].User))
}

// body says a delivery in full.
func body(all []*api.Letter) string {
	var b strings.Builder
	for i, l := range all {
		if len(all) > 1 {
			if i > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintln(&b, subject(l))
		}
		say := func(name, format string, args ...any) {
			fmt.Fprintf(&b, "%-12s%s\n", name+":", plain(fmt.Sprintf(format, args...)))
		}
		say("Job", "%s (%s) of %s", l.Ref, l.JobName, l.User)
		say("Time", "%s", l.Time.Format(time.RFC3339))
		if l.Text != "" {
			say("Why", "%s", l.Text)
		}
		if l.TimeLimit > 0 {
			say("Time limit", "%s", when.Span(l.TimeLimit))
		}
		if a := l.Array; a != nil && l.State != "" {
			for _, s := range api.JobStates {
				if a.States[s] > 0 {
					say(string(s), "%d of %d", a.States[s], a.Count)
				}
			}
			if len(a.Failed) > 0 {
				say("Failed", "%s", strings.Trim(fmt.Sprint(a.Failed), "[]"))
			}
			if a.Requeued > 0 {
				say("Requeued", "%d times", a.Requeued)
			}
		}
		for _, t := range slices.Sorted(maps.Keys(l.More)) {
			say(string(t), "%d", l.More[t])
		}
		say("Id", "%s", id(l))
	}
	return b.String()
}
