package session

import (
	"context"
	"io"
	"sync"

	"gangd/pkg/api"
)

// maxCalls bounds what the ranks of one node have open at a time: each waits in a
// goroutine at the controller, and may hold a window of 256 KiB.
const maxCalls = 4096

// calls are the open calls of one session, on either side.
type calls struct {
	mu    sync.Mutex
	open  map[uint64]*callFlow
	ended *api.Error
	jobs  sync.WaitGroup // answers under way, at the controller
}

// callFlow is one call: what comes can be read, what is written goes out, each within its
// window.
type callFlow struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	out    *outbox
	id     uint64

	mu      sync.Mutex
	changed *sync.Cond
	credit  int64 // bytes that may still be sent
	pieces  [][]byte
	held    int  // bytes in pieces
	eof     bool // the peer sends no more
	result  *api.CallResult
	err     *api.Error
}

func newCallFlow(ctx context.Context, out *outbox, id uint64) *callFlow {
	f := &callFlow{out: out, id: id, credit: api.StreamWindow}
	f.changed = sync.NewCond(&f.mu)
	f.ctx, f.cancel = context.WithCancelCause(ctx)
	// Whoever waits below learns of the end through the condition.
	context.AfterFunc(f.ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})
	return f
}

func (f *callFlow) send(p api.CallPiece) {
	p.ID = f.id
	f.out.put(func() { f.out.calls = append(f.out.calls, p) })
}

// deliver takes in a piece of the peer. It never blocks.
func (f *callFlow) deliver(p *api.CallPiece) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.credit += max(p.Credit, 0)
	if len(p.Data) > 0 {
		if f.held += len(p.Data); f.held > 2*api.StreamWindow {
			// A peer that ignores its window must not fill memory.
			f.cancel(api.Errorf(api.CodeInternal, "peer sent more than its window of %d bytes", api.StreamWindow))
			return
		}
		f.pieces = append(f.pieces, p.Data)
	}
	if p.Result != nil {
		f.result = p.Result
	}
	if p.Error != nil {
		f.err = p.Error
	}
	f.eof = f.eof || p.EOF
	f.changed.Broadcast()
}

// Read gives what the peer sent. The window moves when a piece was read whole.
func (f *callFlow) Read(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.pieces) == 0 {
		switch {
		case f.err != nil:
			return 0, f.err
		case f.eof:
			return 0, io.EOF
		case f.ctx.Err() != nil:
			return 0, context.Cause(f.ctx)
		}
		f.changed.Wait()
	}
	n := copy(b, f.pieces[0])
	f.held -= n
	if f.pieces[0] = f.pieces[0][n:]; len(f.pieces[0]) == 0 {
		f.pieces = f.pieces[1:]
	}
	f.send(api.CallPiece{Credit: int64(n)})
	return n, nil
}

// Write sends b as far as the window goes and waits for the rest. It fails when the peer
// has answered already.
func (f *callFlow) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := f.take(min(len(b)-done, pieceBytes))
		if err != nil {
			return done, err
		}
		f.send(api.CallPiece{Data: append([]byte(nil), b[done:done+n]...)})
		done += n
	}
	return done, nil
}

func (f *callFlow) take(n int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.credit <= 0 {
		switch {
		case f.err != nil:
			return 0, f.err
		case f.ctx.Err() != nil:
			return 0, context.Cause(f.ctx)
		}
		f.changed.Wait()
	}
	if f.err != nil {
		return 0, f.err
	}
	got := min(int64(n), f.credit)
	f.credit -= got
	return int(got), nil
}

// outcome is the peer's last word; to be asked after everything was read.
func (f *callFlow) outcome() (*api.CallResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.err != nil:
		return nil, f.err
	case f.result != nil:
		return f.result, nil
	case f.ctx.Err() != nil:
		return nil, context.Cause(f.ctx)
	}
	return nil, api.Errorf(api.CodeInternal, "the controller ended the call without an answer")
}

func (c *calls) start(ctx context.Context, out *outbox, id uint64) (*callFlow, *api.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended != nil:
		return nil, c.ended
	case len(c.open) >= maxCalls:
		return nil, api.Errorf(api.CodeUnavailable, "this node has %d calls open already; try again", maxCalls)
	}
	if c.open == nil {
		c.open = map[uint64]*callFlow{}
	}
	f := newCallFlow(ctx, out, id)
	c.open[id] = f
	return f, nil
}

func (c *calls) drop(f *callFlow) {
	f.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, f.id)
}

// piece hands a piece to its call. Late ones of a call that is over are thrown away.
func (c *calls) piece(p *api.CallPiece) {
	c.mu.Lock()
	f := c.open[p.ID]
	c.mu.Unlock()
	switch {
	case f == nil:
	case p.Cancel:
		f.cancel(errCancelled)
	default:
		f.deliver(p)
	}
}

// end fails every open call.
func (c *calls) end(why *api.Error) {
	c.mu.Lock()
	c.ended = why
	open := c.open
	c.open = nil
	c.mu.Unlock()
	for _, f := range open {
		f.cancel(why)
	}
}

// answer serves one call of a node in a goroutine of its own.
func (s *hubSession) answer(p *api.CallPiece) {
	f, refused := s.calls.start(s.link.ctx, &s.out, p.ID)
	if refused != nil {
		s.out.put(func() {
			s.out.calls = append(s.out.calls, api.CallPiece{ID: p.ID, EOF: true, Error: refused})
		})
		return
	}
	call := p.Call
	f.deliver(p) // it may carry data and the end of them too
	s.calls.jobs.Go(func() {
		defer s.calls.drop(f)
		result, err := s.hub.handler.NodeCall(f.ctx, s.hello.Node, call, f, f)
		last := api.CallPiece{EOF: true, Result: result}
		if err != nil {
			last.Error = asError(err)
		}
		f.send(last)
	})
}

func asError(err error) *api.Error {
	if e, ok := err.(*api.Error); ok {
		return e
	}
	return api.Errorf(api.CodeOf(err), "%v", err)
}

// Call asks the controller: body, if any, is sent whole, then what comes is copied to w
// until the controller's last word. Without a session it fails at once with
// [api.CodeUnavailable].
func (c *Client) Call(ctx context.Context, call *api.Call, body io.Reader, w io.Writer) (*api.CallResult, error) {
	s := c.now.Load()
	if s == nil {
		return nil, api.Errorf(api.CodeUnavailable, "the node has no connection to the controller; try again in a second")
	}
	f, refused := s.calls.start(ctx, &c.out, c.calls.Add(1))
	if refused != nil {
		return nil, refused
	}
	defer s.calls.drop(f)
	f.send(api.CallPiece{Call: call, EOF: body == nil})
	err := f.exchange(body, w)
	result, why := f.outcome()
	if why == nil && err == nil {
		return result, nil
	}
	// Over on this side alone, as far as we know.
	f.send(api.CallPiece{Cancel: true})
	if why == nil || err != nil && api.CodeOf(why) == api.CodeInternal {
		return nil, err
	}
	return nil, why
}

func (f *callFlow) exchange(body io.Reader, w io.Writer) error {
	if body != nil {
		if _, err := io.Copy(f, body); err != nil {
			return err
		}
		f.send(api.CallPiece{EOF: true})
	}
	if w == nil {
		w = io.Discard
	}
	_, err := io.Copy(w, f)
	return err
}

func bytesOfCall(p *api.CallPiece) int    { return len(p.Data) }
func bytesOfReply(r *api.StreamReply) int { return len(r.Data) }

// takePieces splits off the first maxReplyBytes.
func takePieces[P any](all []P, bytes func(*P) int) (now, later []P) {
	size := 0
	for i := range all {
		if size += bytes(&all[i]); size > maxReplyBytes && i > 0 {
			return all[:i:i], all[i:]
		}
	}
	return all, nil
}
