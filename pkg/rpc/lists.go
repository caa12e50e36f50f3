package rpc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/auth"
)

// Lists of jobs are what costs the controller memory: 100,000 jobs are hundreds of megabytes
// of text. A few are made at once, users take turns, and of one user one at a time; calls that
// list nothing (a submission) never wait here.
const (
	// listsAtOnce are made at the same time: enough to keep two cores busy while slow readers are
	// written to.
	listsAtOnce = 4
	// listsWaiting may wait of one user; more are refused.
	listsWaiting = 64
	// writePatience is how long a reader may take over a piece of a list before it is cut: it
	// keeps others waiting.
	writePatience = 10 * time.Second
)

// listTurns gives out the turns.
type listTurns struct {
	mu    sync.Mutex
	busy  map[uint32]bool // users whose list is being made
	queue map[uint32][]chan struct{}
	order []uint32 // users who wait, in the order of their turns
}

// take waits for a turn of a user; done gives it back.
func (t *listTurns) take(ctx context.Context, uid uint32) (done func(), err error) {
	t.mu.Lock()
	if t.busy == nil {
		t.busy, t.queue = map[uint32]bool{}, map[uint32][]chan struct{}{}
	}
	waiting := t.queue[uid]
	if len(waiting) >= listsWaiting {
		t.mu.Unlock()
		return nil, &api.Error{Code: api.CodeTooMany, RetryAfter: 1, Message: fmt.Sprintf("%d lists of yours wait already, the most that may", listsWaiting),
			Hint: "ask once and for less: gqueue -j ID, gqueue --me, or follow with gqueue --watch"}
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

// next lets in who may: the first users in order of whom none is being served.
func (t *listTurns) next() {
	for i := 0; i < len(t.order) && len(t.busy) < listsAtOnce; {
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

func (t *listTurns) end(uid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, uid)
	t.next()
}

// leave takes back a wait whose caller has gone, or the turn that came at the same time.
func (t *listTurns) leave(uid uint32, turn chan struct{}) {
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

// listing is a handler whose answer may be long: it waits for its turn, and a reader who stops
// is cut.
func (s *Server) listing(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, id auth.Identity) error {
		ask, err := io.ReadAll(r.Body) // before the turn: who sends slowly keeps nobody waiting
		if err != nil {
			return err
		}
		r.Body = io.NopCloser(bytes.NewReader(ask))
		done, err := s.lists.take(r.Context(), id.UID)
		if err != nil {
			return err
		}
		defer done()
		out := http.NewResponseController(w)
		defer out.SetWriteDeadline(time.Time{})
		return h(&patient{ResponseWriter: w, out: out}, r, id)
	}
}

// patient gives each piece of an answer its own deadline.
type patient struct {
	http.ResponseWriter
	out *http.ResponseController
}

// Unwrap is for [http.ResponseController].
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p *patient) Write(b []byte) (int, error) {
	const piece = 256 << 10
	written := 0
	for {
		_ = p.out.SetWriteDeadline(time.Now().Add(writePatience))
		n, err := p.ResponseWriter.Write(b[written:min(written+piece, len(b))])
		if written += n; err != nil || written == len(b) {
			return written, err
		}
	}
}
