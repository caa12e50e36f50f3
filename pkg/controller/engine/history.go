package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// historyLook is how often it is looked what of the history has to go.
const historyLook = time.Minute

// historyShare: forgetting rests so many times as long as its last piece took. Commits that
// come meanwhile find the store free nine times in ten, and a core is used by a tenth at most.
// A piece is 32 jobs or 256 rows, so that this is still some hundred jobs a second.
const historyShare = 9

// nodeEvents is how many events of nodes are forgotten at a time.
const nodeEvents = 256

// Past is an ended job as it is archived: `gctl show job --json` with its events.
type Past struct {
	api.JobDetail
	Events []api.Event `json:"events"`
}

// history is what forgetting keeps in mind. Only one goroutine forgets: that of
// [Engine.keepHistory], or the driver's.
type history struct {
	before time.Time     // jobs that ended before are to go
	more   bool          // rows of forgotten jobs are left
	looked time.Duration // when it was last looked, of the driver's clock
	jobs   int           // forgotten since the last look
	texts  texts
	// going are the jobs that are being forgotten; guarded by being the engine's goroutine's.
	going map[int64]bool
}

// texts is how far the history was looked at for jobs that never had an attempt: what they would have run with goes some time after they
// have left memory, and it can be the most of what they take.
type texts struct {
	seen   store.End
	before time.Time // up to where it is to be looked at; zero: it was
}

// textsLeft is how long after it was to leave memory a job's texts stay: those that leave together take a while.
const textsLeft = time.Minute

// textsBack is how far before the end of the last job before a start is looked again: a process of before has done the others.
const textsBack = 10 * time.Minute

// lookAtTexts says up to where is to be looked.
func (e *Engine) lookAtTexts(ctx context.Context, now time.Time) error {
	t := &e.past.texts
	left := e.conf().Settings.KeepEnded + textsLeft
	if t.seen == (store.End{}) {
		last, err := e.store.EndedNth(ctx, 1)
		if err != nil || last.IsZero() {
			return err
		}
		t.seen.At = last.Add(-left - textsBack)
	}
	t.before = now.Add(-left)
	return nil
}

// dropTexts does one piece of it.
func (e *Engine) dropTexts(ctx context.Context) error {
	t := &e.past.texts
	seen, more, err := e.store.DropTexts(ctx, t.seen, t.before, func(id int64) bool { return e.view.job(id) != nil })
	if t.seen = seen; err != nil || !more {
		t.before = time.Time{}
	}
	return err
}

// keepHistory forgets what is older than the site wants to keep, until ctx ends.
func (e *Engine) keepHistory(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		e.look(ctx)
		for work := true; work && ctx.Err() == nil; {
			began := time.Now()
			work = e.forgetSome(ctx)
			timer.Reset(historyShare * time.Since(began))
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		timer.Reset(historyLook)
	}
}

// nextLook is when the driver has a piece to do; ok is false where history is not bounded.
func (e *Engine) nextLook() (mono time.Duration, ok bool) {
	h, set := &e.past, &e.conf().Settings
	switch {
	case h.looked == 0 || h.more || !h.before.IsZero() || !h.texts.before.IsZero():
		return e.opt.Clock.Now().Mono, true
	case set.HistoryKeep == 0 && set.HistoryJobs == 0:
		return 0, false
	}
	return h.looked + historyLook, true
}

// historyTurn is a piece of it in a turn of the driver.
func (e *Engine) historyTurn(ctx context.Context) {
	h := &e.past
	if now := e.opt.Clock.Now().Mono; h.looked == 0 || now-h.looked >= historyLook {
		h.looked = now
		e.look(ctx)
	}
	if !h.before.IsZero() || !h.texts.before.IsZero() || h.more {
		if !e.forgetSome(ctx) {
			h.before = time.Time{}
		}
	}
}

// look finds from when on jobs are kept.
func (e *Engine) look(ctx context.Context) {
	set, now := &e.conf().Settings, e.opt.Clock.Now().Wall
	h := &e.past
	h.before, h.jobs = time.Time{}, 0
	if set.HistoryKeep > 0 {
		h.before = now.Add(-set.HistoryKeep)
	}
	if set.HistoryJobs > 0 {
		at, err := e.store.EndedNth(ctx, set.HistoryJobs)
		if err != nil {
			e.historyFailed(ctx, err)
			return
		}
		if at.After(h.before) {
			h.before = at
		}
	}
	// What is in memory stays in the store.
	if least := now.Add(-set.KeepEnded); h.before.After(least) {
		h.before = least
	}
	if err := e.lookAtTexts(ctx, now); err != nil {
		e.historyFailed(ctx, err)
	}
}

func (e *Engine) historyFailed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		e.log.Warn("history not forgotten", "err", err, "next_try", historyLook)
	}
}

// forgetSome does one piece; false: there is nothing to do until the next look.
func (e *Engine) forgetSome(ctx context.Context) bool {
	if e.view.onHold() != "" {
		return false // nobody knows yet which history this is
	}
	h := &e.past
	did, err := e.forgetPiece(ctx)
	switch {
	case err != nil:
		e.historyFailed(ctx, err)
		return false
	case !did && h.jobs > 0:
		e.log.Info("history forgotten", "jobs", h.jobs, "ended_before", h.before.Format(time.RFC3339))
		h.jobs = 0
	}
	return did
}

func (e *Engine) forgetPiece(ctx context.Context) (did bool, err error) {
	h := &e.past
	if h.more {
		h.more, err = e.store.Forget(ctx, nil)
		return true, err
	}
	if !h.texts.before.IsZero() {
		return true, e.dropTexts(ctx)
	}
	if h.before.IsZero() {
		return false, nil
	}
	inMemory := func(id int64) bool { return e.view.job(id) != nil }
	ids, err := e.store.Due(ctx, h.before, inMemory, store.ForgetBatch)
	if err != nil {
		return false, err
	}
	if len(ids) == 0 {
		n, err := e.store.ForgetNodeEvents(ctx, h.before, nodeEvents)
		return n > 0, err
	}
	if ids, err = e.claim(ctx, ids); err != nil || len(ids) == 0 {
		return false, err
	}
	if err := e.archive(ctx, ids); err != nil {
		return false, err
	}
	h.more, err = e.store.Forget(ctx, ids)
	if err == nil {
		h.jobs += len(ids)
	}
	return true, err
}

// claim marks jobs as going, but those that have come back to memory: a submission may have
// named one as its dependency since it was looked.
func (e *Engine) claim(ctx context.Context, ids []int64) ([]int64, error) {
	mark := func() {
		ids = slices.DeleteFunc(ids, func(id int64) bool { return e.world.Job(id) != nil })
		e.past.going = make(map[int64]bool, len(ids))
		for _, id := range ids {
			e.past.going[id] = true
		}
	}
	if e.driver != nil { // this is the engine's goroutine
		mark()
		return ids, nil
	}
	return ids, e.inspect(ctx, mark)
}

// archive hands jobs out before they are forgotten. After a crash between the two they are
// handed out again.
func (e *Engine) archive(ctx context.Context, ids []int64) error {
	put := e.conf().Archive
	if put == nil { // what is forgotten is lost
		return nil
	}
	past := make([]Past, 0, len(ids))
	for _, id := range ids {
		j, err := e.store.Job(ctx, id)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		d, err := e.Detail(ctx, j)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		evs, err := e.store.Events(ctx, id, 0, 0)
		if err != nil {
			return fmt.Errorf("archive: %w", err)
		}
		past = append(past, Past{JobDetail: *d, Events: evs})
	}
	if err := put(ctx, past); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// recallable drops from the jobs that a dependency brings back to memory those that were
// forgotten since they were read: the core says then that there is no such job. The jobs
// of one array are there together or not at all.
func (e *Engine) recallable(ctx context.Context, jobs []*gang.Job) ([]*gang.Job, error) {
	if len(jobs) == 0 || e.conf().Settings.HistoryKeep == 0 && e.conf().Settings.HistoryJobs == 0 {
		return jobs, nil
	}
	lost := map[int64]bool{}
	for _, j := range jobs {
		if e.world.Job(j.ID) != nil {
			continue
		}
		_, err := e.store.Job(ctx, j.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if err != nil || e.past.going[j.ID] {
			lost[j.ID], lost[j.ArrayID] = true, true
		}
	}
	delete(lost, 0)
	return slices.DeleteFunc(slices.Clone(jobs), func(j *gang.Job) bool { return lost[j.ID] || lost[j.ArrayID] }), nil
}

// recallAgain looks at the event again whose dependency was read before its turn came.
func (e *Engine) recallAgain(ctx context.Context, ev gang.Event) (gang.Event, error) {
	var err error
	switch x := ev.(type) {
	case gang.Submit:
		x.Recalled, err = e.recallable(ctx, x.Recalled)
		return x, err
	case gang.Update:
		x.Recalled, err = e.recallable(ctx, x.Recalled)
		return x, err
	}
	return ev, nil
}
