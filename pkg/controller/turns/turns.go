// Package turns gives out turns to what costs the controller much: long answers, large requests, programs of
// the site that submissions wait for.
//
// Invariants: of all users [AtOnce] have a turn at a time, of one user one; users get them in the order in which they
// came to wait, so that who asks for many waits behind everybody who asks for one.
//
// Failure rules: who waits for [Waiting] already is refused; who goes away while it waits leaves nothing behind.
//
// Begin with [Turns]. It must not know what a turn is for.
package turns

import (
	"context"
	"slices"
	"sync"

	"gangd/pkg/api"
)

const (
	// AtOnce go on at the same time: enough to keep two cores busy while slow peers are
	// written to and read from.
	AtOnce = 4
	// Waiting may wait of one user; more are refused.
	Waiting = 64
)

// Turns are those of one kind of work. The zero value is ready.
type Turns struct {
	mu    sync.Mutex
	busy  map[uint32]bool // users who have one
	queue map[uint32][]chan struct{}
	order []uint32 // users who wait, in the order of their turns
}

// Take waits for a turn of a user; done gives it back. Who waits for too many already is refused.
func (t *Turns) Take(ctx context.Context, uid uint32, refusal *api.Error) (done func(), err error) {
	t.mu.Lock()
	if t.busy == nil {
		t.busy, t.queue = map[uint32]bool{}, map[uint32][]chan struct{}{}
	}
	waiting := t.queue[uid]
	if len(waiting) >= Waiting {
		t.mu.Unlock()
		return nil, refusal
	}
	turn := make(chan struct{})
	if len(waiting) == 0 {
		t.order = append(t.order, uid)
	}
	t.queue[uid] = append(waiting, turn)
	t.next()
	t.mu.Unlock()
	select {
	case <-turn:
		return func() { t.end(uid) }, nil
	case <-ctx.Done():
		t.leave(uid, turn)
		return nil, ctx.Err()
	}
}

// next lets in who may: the first users in order who have none.
func (t *Turns) next() {
	for i := 0; i < len(t.order) && len(t.busy) < AtOnce; {
		uid := t.order[i]
		if t.busy[uid] {
			i++
			continue
		}
		t.busy[uid] = true
		turn := t.queue[uid][0]
		t.order = slices.Delete(t.order, i, i+1)
		if t.queue[uid] = t.queue[uid][1:]; len(t.queue[uid]) > 0 {
			t.order = append(t.order, uid) // behind those who wait
		} else {
			delete(t.queue, uid)
		}
		close(turn)
	}
}

func (t *Turns) end(uid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, uid)
	t.next()
}

// leave takes back a wait whose caller has gone, or the turn that came at the same time.
func (t *Turns) leave(uid uint32, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn:
		delete(t.busy, uid)
		t.next()
		return
	default:
	}
	left := slices.DeleteFunc(t.queue[uid], func(c chan struct{}) bool { return c == turn })
	if t.queue[uid] = left; len(left) == 0 {
		delete(t.queue, uid)
		t.order = slices.DeleteFunc(t.order, func(other uint32) bool { return other == uid })
	}
}
