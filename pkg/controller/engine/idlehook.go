package engine

import (
	"context"
	"sync"

	"gangd/pkg/api"
)

// tellQueue is how many words may wait for the site's idle hook. Beyond that they are left
// out, and said so in the log: the events are on record, and a mail that comes an hour late
// helps nobody.
const tellQueue = 256

// idleHook runs the site's idle hook, one word at a time, in a goroutine that ends with the
// engine.
type idleHook struct {
	words chan IdleEvent
	end   context.CancelFunc
	wg    sync.WaitGroup
}

// IdleEvent is what the idle hook is told of a gang.
type IdleEvent struct {
	What string // "warn", "end", "over"
	Job  int64
	User string
	Text string
}

func (t *idleHook) init(ctx context.Context, e *Engine) {
	ctx, t.end = context.WithCancel(ctx)
	t.words = make(chan IdleEvent, tellQueue)
	t.wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case w := <-t.words:
				hook := e.conf().TellIdle
				if hook == nil {
					continue // the site has none any more
				}
				if err := hook(ctx, w); err != nil {
					e.log.Error("idle hook failed", "job", w.Job, "what", w.What, "err", err)
				}
			}
		}
	})
}

func (t *idleHook) close() {
	t.end()
	t.wg.Wait()
}

// tellIdle passes on what committed events say of idle gangs.
func (e *Engine) tellIdle(evs []api.Event) {
	if e.conf().TellIdle == nil {
		return
	}
	for i := range evs {
		ev := &evs[i]
		var what string
		switch {
		case ev.Type == api.EventIdleWarned:
			what = "warn"
		case ev.Type == api.EventIdleOver:
			what = "over"
		case ev.Type == api.EventDrainStarted && ev.Cause == api.CauseIdle:
			what = "end"
		default:
			continue
		}
		w := IdleEvent{What: what, Job: ev.JobID, Text: ev.Text}
		if j := e.view.job(ev.JobID); j != nil {
			w.User = j.User
		}
		select {
		case e.idleHook.words <- w:
		default:
			e.log.Error("idle hook is too slow: left out", "job", w.Job, "what", w.What)
		}
	}
}
