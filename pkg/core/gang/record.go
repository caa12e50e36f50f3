package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// record is what a commit adds to what was before: events with their letters, attempts, and what their members used.
type record struct {
	set   *api.Settings
	clock *clock
	jobs  *jobs
	queue *queue

	outbox   outbox
	nextSeq  int64 // of events
	events   []api.Event
	epochs   map[api.MemberKey]EpochRow
	measures []MeasureRow
}

// emit puts one line into the story.
func (r *record) emit(ev api.Event) {
	ev.Seq, ev.Time = r.nextSeq, r.clock.now.Wall
	r.nextSeq++
	r.events = append(r.events, ev)
}

// emitJob is emit for the current epoch of a job.
func (r *record) emitJob(j *Job, ev api.Event) {
	ev.JobID, ev.Epoch = j.ID, j.Epoch
	r.emit(ev)
	if len(j.Spec.Notify) > 0 {
		a := r.queue.arrays[j.ArrayID]
		r.outbox.notify(j, &r.events[len(r.events)-1], r.set.StallDump > 0, a == nil || len(a.waiting) == 0)
	}
	if j.Spec.Report && ev.Type == api.EventEnded && j.Booking != nil {
		r.outbox.postReport(j, &r.events[len(r.events)-1])
	}
}

// measured records what a member used, of cards only those that were its own.
func (r *record) measured(node string, k api.MemberKey, member int, m *api.Measure, had func(uuid string) bool) *api.Measure {
	own := *m
	own.Node, own.Cards = node, nil
	for _, c := range m.Cards {
		if had(c.UUID) {
			own.Cards = append(own.Cards, c)
		}
	}
	r.measures = append(r.measures, MeasureRow{Job: k.Job, Epoch: k.Epoch, Member: member, Measure: &own})
	return &own
}

func (r *record) emitExit(j *Job, ra *api.RankActual) {
	code := ra.ExitCode
	ev := api.Event{Type: api.EventRankExited, Rank: rankPtr(ra.Rank), Node: j.Ranks[ra.Rank].Slot.Node, ExitCode: &code,
		Text: cmp.Or(ra.Error, strings.TrimSpace(forksText(ra)))}
	if ra.Signal != 0 {
		ev.Signal = fmt.Sprint(ra.Signal)
	}
	r.emitJob(j, ev)
}

// take gives what was added, events as they came.
func (r *record) take(ch *Changes) {
	ch.Events, ch.NextSeq, ch.Measures, ch.Letters = r.events, r.nextSeq, r.measures, r.outbox.take()
	for _, k := range slices.SortedFunc(maps.Keys(r.epochs), api.MemberKey.Compare) {
		ch.Epochs = append(ch.Epochs, r.epochs[k])
	}
	r.events, r.measures = nil, nil
	if len(r.epochs) > 0 {
		r.epochs = map[api.MemberKey]EpochRow{}
	}
}

func seconds(d time.Duration) float64 { return max(d, 0).Seconds() }

func rankPtr(rank int) *int {
	if rank < 0 {
		return nil
	}
	return &rank
}

// epochRow is the attempt of the current epoch as it stands.
func epochRow(j *Job) EpochRow {
	row := EpochRow{Job: j.ID, Epoch: j.Epoch, Started: j.Start, Trigger: -1}
	if b := j.Booking; b != nil && b.Epoch == j.Epoch { // else it is that of the epoch before
		row.Booking = b
	}
	for i := range j.Ranks {
		row.Slots = append(row.Slots, j.Ranks[i].Slot)
		row.ExitCodes = append(row.ExitCodes, exitCode(&j.Ranks[i]))
		row.Signals = append(row.Signals, j.Ranks[i].Signal)
		row.OutStarts = append(row.OutStarts, j.Ranks[i].OutStart)
		row.ErrStarts = append(row.ErrStarts, j.Ranks[i].ErrStart)
		row.VRAMPeak = max(row.VRAMPeak, j.Ranks[i].VRAMPeak)
	}
	row.Signals, row.OutStarts, row.ErrStarts = unlessZero(row.Signals), unlessZero(row.OutStarts), unlessZero(row.ErrStarts)
	return row
}

// exitCode is -1 where it is not known.
func exitCode(r *Rank) int {
	if !r.Exited {
		return -1
	}
	return r.ExitCode
}

// unlessZero leaves out what says nothing: most ranks end by themselves and write files of their own.
func unlessZero[T int | int64](all []T) []T {
	if slices.ContainsFunc(all, func(n T) bool { return n != 0 }) {
		return all
	}
	return nil
}
