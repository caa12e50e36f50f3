package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gangd/pkg/api"
)

// The outbox holds what people are to be told of events, a letter for each event and address. A letter is
// written in the commit of its event and leaves in that of [LettersDone], so that a crash at any moment
// sends it twice at worst. Letters are values: who changes one puts another in its place.
//
// Of an array as a whole there is one letter an address, a draft from its first event on: it counts the
// elements and is finished with the last one's end.

// mostLetters is how many letters of one user may wait; what comes then is counted in one that stands for all.
const mostLetters = 1000

// lettersOfEvent is for how many letters an event has room: one an address, the draft of its array beside each, and
// the report.
const lettersOfEvent = 2*api.MaxNotify + 1

// mostGivenUp bounds the record of letters that were given up.
const mostGivenUp = 1000

// outbox is all letters, by id.
type outbox struct {
	letters map[int64]*api.Letter
	drafts  map[address]int64 // of arrays
	more    map[address]int64 // letters that stand for many; array is 0
	waiting map[waiter]int    // drafts and those given up not counted
	dirty   map[int64]struct{}
}

// waiter is whose letters wait. Reports are counted apart: who has many of them is still told what happens.
type waiter struct {
	user   string
	report bool
}

func waiterOf(l *api.Letter) waiter { return waiter{l.User, l.Type == api.NotifyReport} }

type address struct {
	array            int64
	user, target, to string
}

func newOutbox() outbox {
	return outbox{letters: map[int64]*api.Letter{}, drafts: map[address]int64{}, more: map[address]int64{}, waiting: map[waiter]int{},
		dirty: map[int64]struct{}{}}
}

// LetterRow is a letter in its newest form, nil: it is gone.
type LetterRow struct {
	ID     int64
	Letter *api.Letter
}

// LettersDone says what became of letters.
type LettersDone struct {
	Sent    []LetterRef
	GivenUp []LetterRef
	// Again: what was given up is tried once more.
	Again bool
}

// LetterRef is a letter as it was when it was handed over.
type LetterRef struct {
	ID    int64
	Rev   int
	Error string // of one that was given up
}

func (LettersDone) event() {}

func addressOf(l *api.Letter) address {
	a := address{user: l.User, target: l.Target, to: l.To}
	if l.Draft {
		a.array = l.JobID
	}
	return a
}

// put replaces the letter of an id; nil takes it away.
func (o *outbox) put(id int64, l *api.Letter) {
	if old := o.letters[id]; old != nil {
		o.count(old, -1)
		delete(o.letters, id)
	}
	if l != nil {
		o.letters[id] = l
		o.count(l, 1)
	}
	o.dirty[id] = struct{}{}
}

func (o *outbox) count(l *api.Letter, d int) {
	index := o.drafts
	switch {
	case l.Draft:
	case !l.GivenUp.IsZero():
		return
	default:
		k := waiterOf(l)
		if o.waiting[k] += d; o.waiting[k] == 0 {
			delete(o.waiting, k)
		}
		if l.Type != api.NotifyMore {
			return
		}
		index = o.more
	}
	if d > 0 {
		index[addressOf(l)] = l.ID
	} else {
		delete(index, addressOf(l))
	}
}

// take gives what changed, in order.
func (o *outbox) take() (out []LetterRow) {
	for _, id := range slices.Sorted(maps.Keys(o.dirty)) {
		out = append(out, LetterRow{ID: id, Letter: o.letters[id]})
	}
	clear(o.dirty)
	return out
}

func (o *outbox) restore(saved []*api.Letter) {
	for _, l := range saved {
		o.put(l.ID, l)
	}
	clear(o.dirty)
}

// list is all letters by id.
func (o *outbox) list() (out []*api.Letter) {
	for _, id := range slices.Sorted(maps.Keys(o.letters)) {
		out = append(out, o.letters[id])
	}
	return out
}

// notifyTypes are the kinds that an event of a job is; of several the first that is asked for is told.
func notifyTypes(j *Job, ev *api.Event) []api.NotifyType {
	switch ev.Type {
	case api.EventStarted:
		return []api.NotifyType{api.NotifyBegin}
	case api.EventEnded:
		switch {
		case ev.Cause == api.CauseCancelled && j.Waits != "" && j.CancelledBy == "":
			return []api.NotifyType{api.NotifyInvalidDepend, api.NotifyEnd}
		case endedWell(ev.State):
			return []api.NotifyType{api.NotifyEnd}
		}
		return []api.NotifyType{api.NotifyFail, api.NotifyEnd}
	case api.EventDependencyFailed:
		return []api.NotifyType{api.NotifyInvalidDepend}
	case api.EventDrainStarted:
		switch ev.Cause {
		case api.CauseTimeout:
			return []api.NotifyType{api.NotifyTimeLimit}
		case api.CauseStalled, api.CauseGPUHang:
			return []api.NotifyType{api.NotifyStall}
		case api.CausePreempted:
			return []api.NotifyType{api.NotifyPreempt}
		}
	case api.EventStacks:
		if ev.Cause == api.CauseStalled || ev.Cause == api.CauseGPUHang {
			return []api.NotifyType{api.NotifyStall}
		}
	case api.EventDrainCompleted:
		if ev.Outcome == string(api.RankBlocked) {
			return []api.NotifyType{api.NotifyRequeue}
		}
	case api.EventRequeued:
		return []api.NotifyType{api.NotifyRequeue}
	case api.EventIdleWarned:
		return []api.NotifyType{api.NotifyIdle}
	case api.EventTimeLimitNear:
		for _, t := range percents {
			if t.Percent() == ev.Percent {
				return []api.NotifyType{t}
			}
		}
	}
	return nil
}

// endedWell: as Slurm has it, a job that somebody cancelled did not fail.
func endedWell(s api.JobState) bool { return s == api.JobCompleted || s == api.JobCancelled }

// percents are the kinds about a part of the time limit, the largest first.
var percents = []api.NotifyType{api.NotifyTimeLimit90, api.NotifyTimeLimit80, api.NotifyTimeLimit50}

// notify writes the letters of an event of a job, as that is at the event. dumps: where its processes are is told when it is
// stopped for a hang; last: it was the last of its array to end.
func (o *outbox) notify(j *Job, ev *api.Event, dumps, last bool) {
	types := notifyTypes(j, ev)
	if ev.Type == api.EventDrainStarted && slices.Contains(types, api.NotifyStall) && dumps {
		return // it is told with where the processes were, which comes in a moment
	}
	for i := range j.Spec.Notify {
		n := &j.Spec.Notify[i]
		l := letterOf(j, n, ev, i)
		if j.ArrayID != 0 && !n.Wants(api.NotifyArrayTasks) && (len(types) == 0 || types[0].Percent() == 0) && o.countIn(j, n, types, l, last) {
			continue
		}
		if at := slices.IndexFunc(types, n.Wants); at >= 0 {
			l.Type = types[at]
			o.post(l)
		}
	}
}

func letterOf(j *Job, n *api.Notify, ev *api.Event, i int) *api.Letter {
	l := &api.Letter{ID: ev.Seq*lettersOfEvent + int64(i), User: j.User, Target: n.Target, To: n.To, Time: ev.Time, JobID: j.ID,
		Ref: j.Ref().String(), JobName: j.Name,
		State: ev.State, Cause: ev.Cause, TimeLimit: TimeLimit(j), Text: ev.Text}
	if ev.ExitCode != nil {
		l.ExitCode = *ev.ExitCode
	}
	if ev.Type == api.EventStacks && j.Drain != nil {
		l.Text = j.Drain.Text + "; " + ev.Text
	}
	if !j.Start.IsZero() {
		l.Queued, l.Ran = max(j.Start.Sub(j.Eligible), 0), max(ev.Time.Sub(j.Start), 0)
	}
	return l
}

// asWhole are the kinds that are told of an array as a whole.
var asWhole = []api.NotifyType{api.NotifyBegin, api.NotifyEnd, api.NotifyFail, api.NotifyRequeue, api.NotifyInvalidDepend}

// countIn counts an event into the draft of its array; false: it is one of the element's own.
func (o *outbox) countIn(j *Job, n *api.Notify, types []api.NotifyType, l *api.Letter, last bool) bool {
	if len(types) == 0 || !slices.Contains(asWhole, types[0]) || !slices.ContainsFunc(asWhole, n.Wants) {
		return false
	}
	whole := *l
	whole.JobID, whole.Ref = j.ArrayID, fmt.Sprintf("%d_*", j.ArrayID)
	at := address{array: j.ArrayID, user: l.User, target: l.Target, to: l.To}
	d := api.Letter{}
	if old := o.letters[o.drafts[at]]; old != nil {
		d = *old
		a := *old.Array
		a.States, a.Failed, a.Sent = maps.Clone(a.States), slices.Clone(a.Failed), slices.Clone(a.Sent)
		d.Array = &a
	} else {
		d = whole
		d.ID += api.MaxNotify // beside that of its first event
		d.Draft, d.Type = true, api.NotifyEnd
		d.Array = &api.LetterArray{Count: arrayCount(j), States: map[api.JobState]int{}}
	}
	a := d.Array
	d.Rev++
	over := false
	switch {
	case types[0] == api.NotifyRequeue:
		a.Requeued++
	case l.State != "":
		countEnd(a, l, j.ArrayIndex)
		over = last
	}
	d.Time, d.State, d.Cause, d.ExitCode, d.Text = l.Time, l.State, l.Cause, l.ExitCode, ""
	once := types[0] != api.NotifyEnd && types[0] != api.NotifyFail && n.Wants(types[0]) && !slices.Contains(a.Sent, types[0])
	if once {
		a.Sent = append(a.Sent, types[0])
	}
	if !over {
		o.put(d.ID, &d)
	} else {
		o.finish(n, &d)
	}
	if once {
		whole.Type = types[0]
		o.post(&whole)
	}
	return true
}

func countEnd(a *api.LetterArray, l *api.Letter, index int) {
	if len(a.States) == 0 {
		a.MinExit = l.ExitCode
	}
	a.States[l.State]++
	a.MinExit, a.MaxExit = min(a.MinExit, l.ExitCode), max(a.MaxExit, l.ExitCode)
	if !endedWell(l.State) && len(a.Failed) < api.MaxFailedListed {
		a.Failed = append(a.Failed, index)
	}
}

// finish makes the last letter of an array out of its draft, if it is asked for.
func (o *outbox) finish(n *api.Notify, d *api.Letter) {
	o.put(d.ID, nil)
	types := []api.NotifyType{api.NotifyFail, api.NotifyEnd}
	d.State = worst(d.Array.States)
	if endedWell(d.State) {
		types = types[1:]
	}
	d.Draft, d.Cause, d.ExitCode = false, "", d.Array.MaxExit
	if at := slices.IndexFunc(types, n.Wants); at >= 0 {
		d.Type = types[at]
		o.post(d)
	}
}

// worst is the state that says most about an array: one that failed in, else completed, else cancelled.
func worst(states map[api.JobState]int) api.JobState {
	for _, s := range api.JobStates {
		if states[s] > 0 && !endedWell(s) {
			return s
		}
	}
	if states[api.JobCompleted] > 0 {
		return api.JobCompleted
	}
	return api.JobCancelled
}

// post puts a letter into the outbox; where too many of its user wait, into the one that stands for them.
func (o *outbox) post(l *api.Letter) {
	if o.waiting[waiterOf(l)] < mostLetters {
		o.put(l.ID, l)
		return
	}
	m := *l
	if old := o.letters[o.more[addressOf(l)]]; old != nil {
		m = *old
		m.More = maps.Clone(m.More)
		m.Rev++
	} else {
		m.Type, m.More, m.Text, m.Array = api.NotifyMore, map[api.NotifyType]int{}, "", nil
	}
	m.More[l.Type]++
	m.Time = l.Time
	o.put(m.ID, &m)
}

// postReport has written behind the job's output what it used. Of more than [mostLetters] of a user that wait, because
// their nodes are away, the rest is not written.
func (o *outbox) postReport(j *Job, ev *api.Event) {
	l := letterOf(j, &api.Notify{To: j.Ranks[0].Slot.Node}, ev, lettersOfEvent-1)
	if l.Type = api.NotifyReport; o.waiting[waiterOf(l)] < mostLetters {
		o.put(l.ID, l)
	}
}

// settle says what became of letters that were handed over.
func (o *outbox) settle(ev LettersDone, now time.Time) Outcome {
	done := false
	for _, r := range ev.Sent {
		// One to which something was added meanwhile goes once more, whole.
		if l := o.letters[r.ID]; l != nil && l.Rev == r.Rev {
			o.put(r.ID, nil)
			done = true
		}
	}
	for _, r := range ev.GivenUp {
		if l := o.letters[r.ID]; l != nil && l.GivenUp.IsZero() {
			c := *l
			c.GivenUp, c.Error = now, r.Error
			o.put(r.ID, &c)
			done = true
		}
	}
	if ev.Again {
		for _, l := range o.givenUp() {
			c := *l
			c.GivenUp, c.Error, c.Time = time.Time{}, "", now
			o.put(c.ID, &c)
			done = true
		}
	}
	o.forgetGivenUp(now)
	if !done {
		return ignored("none of these letters waits")
	}
	return applied()
}

// givenUp are the letters that were given up, the oldest first.
func (o *outbox) givenUp() (out []*api.Letter) {
	for _, l := range o.letters {
		if !l.GivenUp.IsZero() {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *api.Letter) int { return cmp.Or(a.GivenUp.Compare(b.GivenUp), cmp.Compare(a.ID, b.ID)) })
	return out
}

// forgetGivenUp keeps the record of them within bounds.
func (o *outbox) forgetGivenUp(now time.Time) {
	all := o.givenUp()
	for i, l := range all {
		if len(all)-i > mostGivenUp || now.Sub(l.GivenUp) > api.GivenUpKept {
			o.put(l.ID, nil)
		}
	}
}
