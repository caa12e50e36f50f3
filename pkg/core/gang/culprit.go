package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// Whoever is reported first is often not who ended first. The peers of a rank see its closed socket and leave within
// a millisecond; their word comes at once, that of a machine without power comes never, and that of one that
// boots comes minutes later. So the first report only begins the drain. What ended the epoch, and what is charged for it,
// is judged when the drain is complete, from all reports. Nothing waits for that judgement: a node that is
// silent keeps its member unproven, and the drain with it, for as long as it always did.

// Evidence is what a report rests on.
type Evidence string

// The kinds of evidence that outweigh what peers did, strongest first, and an end by itself. Another reason (a gang that
// stalled, a launch that failed) has none of these: it stands unless a node or a card is lost.
const (
	EvidenceLost Evidence = "lost" // a member is gone and has not said how, or its node is
	EvidenceCard Evidence = "card" // a card must not be used any more
	// a member has stopped itself at the time limit, and its peers have seen that before they did so themselves
	EvidenceLimit  Evidence = "limit"
	EvidenceMemory Evidence = "memory" // the kernel, or its node, ended something for want of memory
	EvidenceEnd    Evidence = "end"    // a rank ended by itself, and not well
	EvidenceShell  Evidence = "shell"  // the same of what its shell ran when it was stopped: it may have been first
)

// Report is one reason why an epoch had to end.
type Report struct {
	Evidence Evidence      `json:"evidence,omitempty"`
	Cause    api.Cause     `json:"cause"`
	Trigger  int           `json:"trigger"` // rank, -1: none
	Text     string        `json:"text,omitempty"`
	Late     time.Duration `json:"late,omitempty"` // of an end: it may have been so long before it was seen
}

// mostReports bounds what a drain keeps: of a thousand ranks that leave because one did, the last say nothing.
const mostReports = 32

// accident takes in that something went wrong. The first report begins the drain, others are weighed at its end. A
// drain that somebody wanted, or whose work is done, is no accident: there it is recorded as a later cause.
func (st *stops) accident(e *entry, r Report) {
	d := e.job.Drain
	if d == nil {
		st.beginDrain(e, &Drain{Cause: r.Cause, Trigger: r.Trigger, Text: r.Text, Reports: []Report{r}})
		return
	}
	st.drain(e, r.Cause, -1, "")
	if len(d.Reports) == 0 || r.Trigger < 0 || slices.ContainsFunc(d.Reports, func(o Report) bool {
		return o.Evidence == r.Evidence &&
			o.Trigger == r.Trigger
	}) {
		return
	}
	d = st.jobs.edit(e).Drain
	if len(d.Reports) < mostReports {
		d.Reports = append(slices.Clip(d.Reports), r)
		return
	}
	// The last of the ends gives its place, but never the first report.
	at := -1
	for i := 1; i < len(d.Reports); i++ {
		if d.Reports[i].Evidence == EvidenceEnd && (at < 0 || st.endOf(e.job, d.Reports[i].Trigger).After(st.endOf(e.job,
			d.Reports[at].Trigger))) {
			at = i
		}
	}
	if at > 0 && (r.Evidence != EvidenceEnd || st.endOf(e.job, r.Trigger).Before(st.endOf(e.job, d.Reports[at].Trigger))) {
		d.Reports = slices.Clone(d.Reports)
		d.Reports[at] = r
	}
}

// missing: a member is gone, or out of reach for good, and its ranks have not said how they ended. In a drain that says
// something of what began it only where the member was not heard of after that: one that has said that it is being
// stopped lived on.
func (st *stops) missing(e *entry, i int, text string) {
	if e.job.Drain == nil {
		if first := st.lost(e, i); first >= 0 {
			st.accident(e, Report{Evidence: EvidenceLost, Cause: api.CauseNodeLost, Trigger: first, Text: text})
		}
		return
	}
	m := &e.job.Members[i]
	if m.Heeded || len(e.job.Drain.Reports) == 0 {
		return
	}
	st.accident(e, Report{Evidence: EvidenceLost, Cause: api.CauseNodeLost, Trigger: m.Ranks[0], Text: text})
}

// heeds notes that a member has said that it is being stopped: it was there after what the drain was begun for.
func (st *stops) heeds(e *entry, i int, ma *api.MemberActual) bool {
	d := e.job.Drain
	if d == nil || len(d.Reports) == 0 || ma.Stopping != d.Cause || e.job.Members[i].Heeded {
		return false
	}
	st.jobs.edit(e).Members[i].Heeded = true
	return true
}

// nearLimit is how far apart the members of a gang come to its time limit: each has counted it since its own start.
const nearLimit = time.Second

// atLimit: what a drain was begun for was no sooner than the time limit, as far as can be told.
func (st *stops) atLimit(j *Job) bool {
	r := j.Drain.Reports
	if len(r) == 0 || r[0].Evidence != EvidenceEnd || TimeLimit(j) <= 0 {
		return false
	}
	return !st.endOf(j, r[0].Trigger).Before(j.Start.Add(TimeLimit(j) - nearLimit))
}

// killed puts on record that the kernel has killed processes of a member for want of memory.
func (st *stops) killed(e *entry, i int, ma *api.MemberActual) bool {
	k, m := ma.Kills, &e.job.Members[i]
	if k == nil || k.Count <= m.Killed {
		return false
	}
	m = &st.jobs.edit(e).Members[i]
	m.Killed, m.Kills = k.Count, max(m.Kills, k.Before)
	if m.Kills > 0 {
		m.KillText = killsText(k)
	}
	st.record.emitJob(e.job, api.Event{Type: api.EventMemoryKills, Node: m.Node, Text: killsText(k)})
	return true
}

// culprit says what ended the epoch of a drain, and which ranks may as well be the trigger. Of a script that has returned what
// its last step did, it says which task of that was the first.
func (st *stops) culprit(j *Job) (out Report, tied []int) {
	out, tied = st.strongest(j)
	ended := out.Evidence == EvidenceEnd || out.Evidence == EvidenceMemory
	if f := endingStep(j); f != nil && (ended && scriptOver(j) || out.Cause == api.CauseCompleted) {
		return f.report(), nil // what the script has made of it
	}
	f := j.StepFault
	if ended && f != nil && f.Epoch == j.Epoch && scriptOver(j) && j.Ranks[0].ExitCode == f.ExitCode {
		out.Text += fmt.Sprintf("; step %d: %s", f.Step, f.Text)
	}
	return out, tied
}

// strongest is the report on the strongest evidence.
func (st *stops) strongest(j *Job) (out Report, tied []int) {
	d := j.Drain
	out = Report{Cause: d.Cause, Trigger: d.Trigger, Text: d.Text}
	switch {
	case d.Cause == api.CauseCompleted:
		if m := killedMember(j); m != nil {
			return ofKills(j, m), nil
		}
		return out, nil
	case len(d.Reports) == 0:
		return out, nil
	}
	of := func(kind Evidence) (all []Report) {
		for _, r := range d.Reports {
			if r.Evidence == kind {
				all = append(all, r)
			}
		}
		return all
	}
	for _, kind := range []Evidence{EvidenceLost, EvidenceCard, EvidenceLimit} {
		if all := of(kind); len(all) > 0 {
			return all[0], nil
		}
	}
	if d.Reports[0].Evidence == "" {
		return out, nil
	}
	if all := of(EvidenceMemory); len(all) > 0 {
		return st.earliest(j, all, nil)
	}
	if m := killedMember(j); m != nil {
		return ofKills(j, m), nil
	}
	return st.earliest(j, of(EvidenceEnd), of(EvidenceShell))
}

// killedMember is the first of which something was killed before anything stopped it; nil: there is none.
func killedMember(j *Job) *Member {
	if i := slices.IndexFunc(j.Members, func(m Member) bool { return m.Kills > 0 }); i >= 0 {
		return &j.Members[i]
	}
	return nil
}

// ofKills is the report on a member none of whose ranks says that memory had run out: who was told has made
// something else of it, or nothing.
func ofKills(j *Job, m *Member) Report {
	rank := m.Ranks[0]
	return Report{Evidence: EvidenceMemory, Cause: api.CauseOOM, Trigger: rank, Text: fmt.Sprintf("%s: %s", cmp.Or(whoOf(j, m), m.Node),
		m.KillText)}
}

// whoOf names the only rank of a member; empty: it has several, or is part of an allocation.
func whoOf(j *Job, m *Member) string {
	if len(m.Ranks) > 1 || !hasProcess(j, m.Ranks[0]) {
		return ""
	}
	return rankName(j, m.Ranks[0])
}

// sameMoment is below what tells which of two processes ended first where both are on one machine and their
// supervisor was not kept waiting: a shell is told of the end of its program, and ends itself, in about as long as a
// peer takes to see a closed socket and to leave.
const sameMoment = 2 * time.Millisecond

// earliest is the report on the rank that ended first, by the clocks of their supervisors. Who can't be told from it is named,
// and tied with it; so are those who may have ended first and were stopped.
func (st *stops) earliest(j *Job, all, maybe []Report) (first Report, tied []int) {
	slices.SortStableFunc(all, func(a, b Report) int {
		return cmp.Or(st.endOf(j, a.Trigger).Compare(st.endOf(j, b.Trigger)), cmp.Compare(a.Trigger, b.Trigger))
	})
	first = all[0]
	var apart time.Duration
	for _, r := range slices.Concat(all[1:], maybe) {
		if d := st.endOf(j, r.Trigger).Sub(st.endOf(j, first.Trigger)); r.Evidence == EvidenceShell || d <= st.doubt(j, first, r) {
			tied = append(tied, r.Trigger)
			apart = max(apart, d)
		}
	}
	first.Text = tieText("rank", first.Trigger, tied, apart) + first.Text
	return first, tied
}

// tieText names those who may as well be the first; empty: nobody.
func tieText(kind string, first int, tied []int, apart time.Duration) string {
	var near []string
	for i, n := range tied {
		if i == 3 {
			near = append(near, fmt.Sprintf("%d more", len(tied)-i))
			break
		}
		near = append(near, fmt.Sprint(n))
	}
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("%s %d, or %s: %s ms apart; ", kind, first, strings.Join(near, ", "), milliseconds(apart))
}

// sigKill is how the kernel ends what has no memory. It and sigTerm are how a machine that goes down ends all that runs there.
const (
	sigKill = 9
	sigTerm = 15
)

// blameTask says which task of a step that failed ended first by itself, by the clocks of the nodes; false: nothing is known of one.
func (st *stops) blameTask(j *Job, s *Step, out *api.Step) bool {
	aborted := slices.ContainsFunc(s.Parts, func(p StepPart) bool {
		return slices.ContainsFunc(p.Ends, func(e api.TaskEnd) bool { return e.Aborted != "" })
	})
	if out.State != api.JobFailed && out.State != api.JobOutOfMemory && !aborted || out.ExitCode == nil || *out.ExitCode == 0 {
		return false
	}
	type end struct {
		api.TaskEnd
		node   string
		at     time.Time
		within time.Duration
		short  bool
	}
	var all []end
	memory := slices.ContainsFunc(s.Parts, func(p StepPart) bool { return p.OOM })
	for i := range s.Parts {
		p := &s.Parts[i]
		node := j.Members[p.Member].Node
		c := st.nodes.clockOf(node)
		for _, e := range p.Ends {
			all = append(all, end{e, node, e.Time.Add(-c.Ahead), c.Within, p.OOM})
		}
	}
	killed := func(e end) bool { return e.short && e.Signal == sigKill }
	// Where memory has run out, what ended elsewhere is what came of it; and there, what the kernel did not end.
	for _, rule := range []func(end) bool{func(e end) bool { return e.short }, killed} {
		if memory && slices.ContainsFunc(all, rule) {
			all = slices.DeleteFunc(all, func(e end) bool { return !rule(e) })
		}
	}
	if len(all) == 0 {
		return false
	}
	slices.SortStableFunc(all, func(a, b end) int { return a.at.Compare(b.at) })
	first := all[0]
	var apart time.Duration
	for _, e := range all[1:] {
		doubt := sameMoment + first.Late + e.Late
		if e.node != first.node {
			doubt += first.within + e.within
		}
		if d := e.at.Sub(first.at); d <= doubt {
			out.TiedTasks, apart = append(out.TiedTasks, e.Task), max(apart, d)
		}
	}
	how := fmt.Sprintf("exited with code %d", first.ExitCode)
	switch {
	case killed(first):
		how = "ran out of memory"
	case first.Aborted != "":
		how = fmt.Sprintf("aborted (%s)", first.Aborted)
	case first.Signal != 0:
		how = fmt.Sprintf("was ended by signal %d", first.Signal)
	}
	out.TriggerTask = &first.Task
	out.Text = fmt.Sprintf("%stask %d %s on %s", tieText("task", first.Task, out.TiedTasks, apart), first.Task, how, first.node)
	if first.short && !killed(first) {
		out.Text += ", where memory had run out"
	}
	return true
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

// doubt is how far apart two ends have to be for their order to be known.
func (st *stops) doubt(j *Job, a, b Report) time.Duration {
	doubt := sameMoment + a.Late + b.Late
	if x, y := j.Ranks[a.Trigger].Slot.Node, j.Ranks[b.Trigger].Slot.Node; x != y {
		doubt += st.nodes.clockOf(x).Within + st.nodes.clockOf(y).Within
	}
	return doubt
}

// endOf is when a rank ended, by this machine's clock.
func (st *stops) endOf(j *Job, rank int) time.Time {
	return j.Ranks[rank].End.Add(-st.nodes.clockOf(j.Ranks[rank].Slot.Node).Ahead)
}

// ends are when the ranks of an epoch ended, from the first of them on; none where there is only one.
func (st *stops) ends(j *Job) (out []EpochEnd) {
	if len(j.Ranks) < 2 {
		return nil
	}
	var first time.Time
	oneClock := !slices.ContainsFunc(j.Ranks, func(r Rank) bool { return r.Slot.Node != j.Ranks[0].Slot.Node })
	for i := range j.Ranks {
		if r := &j.Ranks[i]; hasProcess(j, i) && r.Exited && !r.End.IsZero() {
			if at := st.endOf(j, i); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	for i := range j.Ranks {
		if r := &j.Ranks[i]; hasProcess(j, i) && r.Exited && !r.End.IsZero() {
			end := EpochEnd{Rank: i, After: st.endOf(j, i).Sub(first).Round(10 * time.Microsecond), Own: r.State == api.RankDone ||
				r.State == api.RankFailed}
			if !oneClock {
				end.Within = st.nodes.clockOf(r.Slot.Node).Within
			}
			out = append(out, end)
		}
	}
	return out
}

// asShell gives a rank that ended by a signal, or could not be started, the exit code that
// a shell would report; most nodes do so already.
func asShell(ra api.RankActual) *api.RankActual {
	ra.Exited = ra.Exited || ra.Error != ""
	switch {
	case !ra.Exited || ra.ExitCode != 0:
	case ra.Error != "":
		ra.ExitCode = 126
	case ra.Signal != 0:
		ra.ExitCode = 128 + ra.Signal
	}
	return &ra
}

// crashCause: a rank that kept to what it had asked for, and was killed because others had used
// up the machine, has lost its node as with bad hardware. One that asked for nothing is one of
// those others.
func crashCause(ra *api.RankActual) api.Cause {
	switch {
	case hostOOM(ra):
		return api.CauseNodeLost
	case ra.OOM || ra.CUDAOOM:
		return api.CauseOOM
	}
	return api.CauseCrash
}

// endReport is what the end of a rank by itself says of its gang's.
func endReport(j *Job, ra *api.RankActual) Report {
	r := Report{Evidence: EvidenceEnd, Cause: crashCause(ra), Trigger: ra.Rank, Text: exitText(j, ra), Late: ra.Late}
	if ra.OOM || ra.CUDAOOM {
		r.Evidence = EvidenceMemory
	}
	return r
}

func hostOOM(ra *api.RankActual) bool { return ra.OOM && ra.HostOOM && ra.MemoryAsked > 0 }

// ownEnd: the rank ended by itself, before a stop reached it.
func ownEnd(ma *api.MemberActual, ra *api.RankActual) bool {
	return ra.Exited && (ma.Stopping == "" || ra.Own)
}
