package engine

import (
	"context"
	"errors"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// Driver turns an engine by hand instead of by [Engine.Run], for a simulator: no
// goroutine, no timer, no clock but the injected one. Each turn is one batch through the
// same begin, commit and finish. The site's fence hook, the sweeping of checkpoints and
// the forgetting of history, which have goroutines of their own in Run, are done in the turn.
type Driver struct {
	e         *Engine
	waiting   *openBatch // its commit found the disk full, or was made and is not told yet
	committed bool
}

// errUnanswered: what was handed in waits for room on the disk.
var errUnanswered = api.Errorf(api.CodeUnavailable, "the state disk is full: no answer yet")

// Drive makes the caller the engine's one goroutine. Run must not be called.
func (e *Engine) Drive() *Driver {
	e.driver = &Driver{e: e}
	return e.driver
}

// Waiting reports whether a turn has something to do now.
func (d *Driver) Waiting() bool {
	return d.waiting == nil && (len(d.e.inbox) > 0 || len(d.e.kept) > 0 || d.e.plan.again)
}

// Deadline is when the core's next timer is due, or history is to be looked at.
func (d *Driver) Deadline() (mono time.Duration, ok bool) {
	if d.e.view.onHold() != "" {
		return 0, false
	}
	mono, ok = d.e.deadline()
	if look, some := d.e.nextLook(); some && (!ok || look < mono) {
		return look, true
	}
	return mono, ok
}

// Turn does what [Engine.Run] does in one round: a batch of what waits, or a tick. full
// says that the disk has no room: the batch waits, and a turn after [FullRetry] tries again.
// An error ends the engine as it ends Run.
func (d *Driver) Turn(ctx context.Context) (full bool, err error) {
	if !d.committed {
		if full, err = d.Commit(ctx); full || err != nil {
			return full, err
		}
	}
	return false, d.Finish(ctx)
}

// Commit is the first half of a turn, to the end of the commit; [Driver.Finish] is the other, which
// tells it. What is handed in between waits for the next turn.
func (d *Driver) Commit(ctx context.Context) (full bool, err error) {
	e := d.e
	again := d.waiting != nil
	if again {
		for len(e.inbox) > 0 {
			e.setAside(<-e.inbox)
		}
	} else {
		batch := e.gather(nil)
		if len(batch) == 0 {
			batch = append(batch, request{ev: gang.Tick{}})
		}
		if d.waiting, err = e.begin(ctx, batch); err != nil {
			return false, err
		}
	}
	if err := e.tryCommit(ctx, &d.waiting.ch, again); errors.Is(err, store.ErrFull) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	d.committed = true
	return false, nil
}

// Finish is described at Commit.
func (d *Driver) Finish(ctx context.Context) error {
	e := d.e
	if !d.committed { // another turn has told it
		return nil
	}
	if err := e.seated(); err != nil {
		return err
	}
	done := d.waiting
	d.waiting, d.committed = nil, false
	e.finish(done)
	for len(e.sweepQueue) > 0 {
		e.drop(ctx, <-e.sweepQueue)
	}
	e.historyTurn(ctx)
	return nil
}

// FullRetry is how long a batch that found the disk full waits.
const FullRetry = fullRetry

// Hand hands in an event; its outcome comes with the turn that commits it.
func (d *Driver) Hand(ev gang.Event) <-chan gang.Outcome {
	reply := make(chan gang.Outcome, 1)
	d.e.inbox <- request{ev: ev, reply: reply}
	return reply
}

// Submit is [Engine.Submit] up to where that waits.
func (d *Driver) Submit(ctx context.Context, r *api.SubmitRequest, who Caller) (<-chan gang.Outcome, error) {
	ev, _, err := d.e.resolve(ctx, r, who)
	if err != nil {
		return nil, err
	}
	if ev.Recalled, err = recall(ctx, d.e.store, ev.Spec.Dependency, d.e.view.job, maxWaits); err != nil {
		return nil, err
	}
	return d.Hand(*ev), nil
}

// Hello is [Engine.NodeHello] up to where that waits; [Driver.Welcome] is the rest.
func (d *Driver) Hello(h *api.Hello) <-chan gang.Outcome { return d.Hand(d.e.helloEvent(h)) }

// Welcome answers a hello whose outcome has come.
func (d *Driver) Welcome(out gang.Outcome) (*api.Welcome, error) {
	if out.Refused != nil {
		return d.e.welcome(out.Refused)
	}
	return d.e.welcome(nil)
}

// World is the live state, to be looked at between turns.
func (d *Driver) World() *gang.World { return d.e.world }

// OnHold says why the engine holds; empty when it does not.
func (d *Driver) OnHold() string { return d.e.view.onHold() }

// until turns until an answer is there: the caller of Do is the engine's goroutine itself.
func (d *Driver) until(ctx context.Context, reply <-chan gang.Outcome) (gang.Outcome, error) {
	for {
		select {
		case out := <-reply:
			if out.Refused != nil {
				return out, out.Refused
			}
			return out, nil
		default:
		}
		if full, err := d.Turn(ctx); err != nil {
			return gang.Outcome{}, err
		} else if full {
			return gang.Outcome{}, errUnanswered
		}
	}
}
