package hosts

import (
	"fmt"
	"slices"
	"strings"

	"gangd/e2e/tally"
	"gangd/pkg/api"
)

// audit compares what the controller says of every job with what the ranks have witnessed.
func (o *load) audit() {
	l, t := o.l, o.l.t
	t.Helper()
	tally.Did("gangs submitted meanwhile", len(o.acked))
	var r api.JobsReply
	l.client().Decode(&r, "gqueue", "--json", "-t", "all")
	var a struct{ Attempts []api.Attempt }
	l.client().Decode(&a, "gacct", "--json")
	byName := map[string][]int64{}
	jobs := map[int64]*api.Job{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		jobs[j.JobID] = j
		byName[j.Name] = append(byName[j.Name], j.JobID)
	}
	o.auditIDs(byName)
	events := l.events()
	w := l.witnesses(0)
	tally.Checked(t, "epochs that overlap", overlaps(w)...)
	attempts := map[key]*api.Attempt{}
	for i := range a.Attempts {
		at := &a.Attempts[i]
		attempts[key{at.JobID, at.Epoch, 0}] = at
	}
	tally.Checked(t, "exit codes lost or invented", l.auditCodes(jobs, attempts, w, events, o.killed)...)
	tally.Checked(t, "epochs started after an acknowledged cancel", o.undead(w, events)...)
	tally.Checked(t, "jobs that ended not once", auditEnds(jobs, events)...)
	tally.Checked(t, "processes that escaped", append(l.living(), l.strangers()...)...)
	if out, errs, code := l.run("gangd", "verify"); code != 0 {
		t.Errorf("gangd verify: exit %d\n%s%s", code, out, errs)
	}
}

// auditIDs: each acknowledged job is there once, under the id that was told, and what was
// not acknowledged at most once.
func (o *load) auditIDs(byName map[string][]int64) {
	t := o.l.t
	var lost, doubled, twice []string
	for name := range o.asked {
		id, acked := o.acked[name]
		have := byName[name]
		switch {
		case len(have) > 1:
			doubled = append(doubled, fmt.Sprintf("%s is jobs %v", name, have))
		case acked && !slices.Contains(have, id):
			lost = append(lost, fmt.Sprintf("%s was told to be job %d, is %v", name, id, have))
		}
	}
	for id, n := range o.ids {
		if n > 1 {
			twice = append(twice, fmt.Sprintf("id %d, %d times", id, n))
		}
	}
	tally.Checked(t, "acknowledged jobs lost", lost...)
	tally.Checked(t, "jobs doubled", doubled...)
	tally.Checked(t, "ids used twice", twice...)
}

// auditCodes: what a rank said it would end with is on record for its epoch, and what is on
// record it has said. A rank that was killed has said nothing, and its code is a signal's;
// -1 says that a code is not known, which is true only of a member whose end nobody saw: it
// was forced out, or its shim was killed or its host lost its power.
func (l *lab) auditCodes(jobs map[int64]*api.Job, attempts map[key]*api.Attempt, w map[key]*seen, events []api.Event, killed bool) []string {
	var out []string
	unknown := 0
	unseen := map[key]bool{}
	for _, e := range events {
		// A text says by what else than its shim's word the end of a member is known.
		if e.Type == api.EventMemberStopped && (e.Forced || killed && e.Text != "") {
			for rank := range e.ExitCodes {
				unseen[key{e.JobID, e.Epoch, rank}] = true
			}
		}
	}
	for k, s := range w {
		at := attempts[key{k.job, k.epoch, 0}]
		if at == nil || k.rank >= len(at.ExitCodes) {
			out = append(out, fmt.Sprintf("job %d epoch %d rank %d ran, and no attempt is on record", k.job, k.epoch, k.rank))
			continue
		}
		code := at.ExitCodes[k.rank]
		switch {
		case code == -1:
			unknown++
			if !unseen[k] {
				out = append(out, fmt.Sprintf("job %d epoch %d rank %d: unknown, but its member was seen to end (cause %s)", k.job, k.epoch, k.rank, at.Cause))
			}
		case s.exit != nil && code != *s.exit:
			out = append(out, fmt.Sprintf("job %d epoch %d rank %d ended with %d, on record is %d", k.job, k.epoch, k.rank, *s.exit, code))
		case s.exit == nil && code <= 128:
			out = append(out, fmt.Sprintf("job %d epoch %d rank %d was killed, on record is %d", k.job, k.epoch, k.rank, code))
		}
	}
	for id, j := range jobs {
		ran := map[int]*int{}
		for rank := range j.Size {
			if s := w[key{id, j.Epoch, rank}]; s != nil {
				ran[rank] = s.exit
			}
		}
		said := func(code int) bool {
			for _, c := range ran {
				if c != nil && *c == code {
					return true
				}
			}
			return false
		}
		switch {
		case j.State == api.JobCompleted && len(ran) != j.Size:
			out = append(out, fmt.Sprintf("job %d COMPLETED with %d of %d ranks", id, len(ran), j.Size))
		case j.State == api.JobCompleted && slices.ContainsFunc(values(ran), func(c *int) bool { return c == nil || *c != 0 }):
			out = append(out, fmt.Sprintf("job %d COMPLETED, but not all of its ranks ended with 0", id))
		case j.State == api.JobFailed && j.Cause == api.CauseCrash && (j.ExitCode == nil || !said(*j.ExitCode)):
			out = append(out, fmt.Sprintf("job %d FAILED with %v, which no rank said", id, *j.ExitCode))
		}
	}
	tally.Did("ranks started, and compared with what is on record", len(w))
	tally.Did("... of which the record says that their end is unknown", unknown)
	l.t.Logf("%d ranks on record, %d of them with an end that nobody saw", len(w), unknown)
	return out
}

func values(m map[int]*int) []*int {
	var out []*int
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// undead names the epochs that were started, by the record or by a rank's word, after a cancel
// of the job had been acknowledged.
func (o *load) undead(w map[key]*seen, events []api.Event) []string {
	var out []string
	opened := map[key]bool{}
	for _, e := range events {
		if e.Type != api.EventStarted {
			continue
		}
		opened[key{e.JobID, e.Epoch, 0}] = true
		if at := o.over[e.JobID]; !at.IsZero() && e.Time.After(at) {
			out = append(out, fmt.Sprintf("job %d epoch %d, %s after", e.JobID, e.Epoch, e.Time.Sub(at)))
		}
	}
	for k := range w {
		if !opened[key{k.job, k.epoch, 0}] {
			out = append(out, fmt.Sprintf("job %d epoch %d rank %d ran, and no start is on record", k.job, k.epoch, k.rank))
		}
	}
	return out
}

// auditEnds: the story of each job has one end.
func auditEnds(jobs map[int64]*api.Job, events []api.Event) []string {
	ends := map[int64]int{}
	for _, e := range events {
		if e.Type == api.EventEnded {
			ends[e.JobID]++
		}
	}
	var wrong []string
	for id, j := range jobs {
		if !j.State.Ended() || ends[id] != 1 {
			wrong = append(wrong, fmt.Sprintf("job %d is %s with %d ends", id, j.State, ends[id]))
		}
	}
	return wrong
}

// strangers are processes on the hosts that are neither daemons nor shims.
func (l *lab) strangers() []string {
	var out []string
	for name, h := range l.hosts {
		for _, p := range h.processes() {
			if !strings.HasPrefix(p.name, "gangd") && !strings.HasPrefix(p.name, "gnoded") && !strings.HasPrefix(p.name, "gshim") {
				out = append(out, fmt.Sprintf("%s: process %d (%s)", name, p.pid, p.name))
			}
		}
	}
	return out
}
