package session

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
)

// streams are the questions of the controller that a node answers in pieces.
type streams struct {
	out *outbox

	mu    sync.Mutex
	last  uint64
	open  map[uint64]*stream
	ended *api.Error
}

// stream is one question. What arrives waits in pieces, at most a window of bytes.
type stream struct {
	id     uint64
	wake   chan struct{} // of capacity 1: pieces or an end are there
	mu     sync.Mutex
	pieces []api.StreamReply
	held   int
}

func (s *streams) init(out *outbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out, s.open = out, map[uint64]*stream{}
}

func (s *streams) ask(r api.StreamRequest) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return nil, s.ended
	}
	if s.open == nil {
		return nil, api.Errorf(api.CodeUnavailable, "the node's session is only just opening")
	}
	s.last++
	r.ID = s.last
	st := &stream{id: s.last, wake: make(chan struct{}, 1)}
	s.open[st.id] = st
	s.out.put(func() { s.out.requests = append(s.out.requests, r) })
	return st, nil
}

// drop forgets a stream; the node is told when it has not ended it itself.
func (s *streams) drop(st *stream, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, st.id)
	if !ended && s.ended == nil {
		s.out.put(func() { s.out.requests = append(s.out.requests, api.StreamRequest{ID: st.id, Cancel: true}) })
	}
}

// reply hands a piece to its stream. Late pieces of a dropped stream are thrown away.
func (s *streams) reply(r *api.StreamReply) {
	s.mu.Lock()
	st := s.open[r.ID]
	s.mu.Unlock()
	if st != nil {
		st.push(*r)
	}
}

// end answers every open stream with the reason the session ended for.
func (s *streams) end(why *api.Error) {
	s.mu.Lock()
	s.ended = why
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for _, st := range open {
		st.push(api.StreamReply{ID: st.id, Error: why, EOF: true})
	}
}

func (st *stream) push(r api.StreamReply) {
	st.mu.Lock()
	st.held += len(r.Data)
	if st.held > 2*api.StreamWindow {
		// A node that ignores its window must not fill the controller's memory.
		r = api.StreamReply{ID: r.ID, EOF: true, Error: api.Errorf(api.CodeInternal, "node sent more than its window of %d bytes",
			api.StreamWindow)}
		st.pieces = nil
	}
	st.pieces = append(st.pieces, r)
	st.mu.Unlock()
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// next waits for pieces.
func (st *stream) next(ctx context.Context) ([]api.StreamReply, error) {
	for {
		st.mu.Lock()
		p := st.pieces
		st.pieces, st.held = nil, 0
		st.mu.Unlock()
		if len(p) > 0 {
			return p, nil
		}
		select {
		case <-st.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Signal delivers a one-shot signal to a member and says how many processes got it. A
// zero Number is filled in.
func (h *Hub) Signal(ctx context.Context, node string, o api.SignalOrder) (int, error) {
	if o.Number == 0 {
		h.mu.Lock()
		h.number++
		o.Number = h.number
		h.mu.Unlock()
	}
	return h.ask(ctx, node, api.StreamRequest{Signal: &o})
}

// ResumeCard takes a person's word on a card to its node; an error is why the node does not
// agree.
func (h *Hub) ResumeCard(ctx context.Context, node, uuid string) error {
	_, err := h.ask(ctx, node, api.StreamRequest{CardResume: uuid})
	return err
}

// Stacks asks a node where the processes of a member are. A node of an older release does not answer: ctx bounds the wait.
func (h *Hub) Stacks(ctx context.Context, node string, k api.MemberKey) (*api.MemberStacks, error) {
	var b bytes.Buffer
	if err := h.copy(ctx, node, api.StreamRequest{Stacks: &k}, &b); err != nil {
		return nil, err
	}
	m := &api.MemberStacks{}
	if err := json.Unmarshal(b.Bytes(), m); err != nil {
		return nil, api.Errorf(api.CodeInternal, "node %s: where the processes are: %v", node, err)
	}
	if err := bound.Check(m); err != nil {
		return nil, api.Errorf(api.CodeInternal, "node %s: where the processes are: %v", node, err)
	}
	return m, nil
}

// AppendLog has a text written behind a file of a node.
func (h *Hub) AppendLog(ctx context.Context, node string, a api.LogAppend) error {
	_, err := h.ask(ctx, node, api.StreamRequest{Append: &a})
	return err
}

// ask waits for the whole answer of a node to a question that has no data in it.
func (h *Hub) ask(ctx context.Context, node string, r api.StreamRequest) (int, error) {
	s := h.session(node)
	if s == nil {
		return 0, notConnected(node)
	}
	st, err := s.streams.ask(r)
	if err != nil {
		return 0, err
	}
	processes, ended := 0, false
	defer func() { s.streams.drop(st, ended) }()
	for !ended {
		pieces, err := st.next(ctx)
		if err != nil {
			return processes, err
		}
		for _, p := range pieces {
			if p.Error != nil {
				ended = p.EOF
				return processes, p.Error
			}
			processes += p.Processes
			ended = ended || p.EOF
		}
	}
	return processes, nil
}

// ReadLog copies a file of a node to w until its end, until ctx ends, or until w fails.
func (h *Hub) ReadLog(ctx context.Context, node string, q api.LogRead, w io.Writer) error {
	return h.copy(ctx, node, api.StreamRequest{Log: &q}, w)
}

// copy asks a node for something, and copies the data of the answer.
func (h *Hub) copy(ctx context.Context, node string, r api.StreamRequest, w io.Writer) error {
	s := h.session(node)
	if s == nil {
		return notConnected(node)
	}
	st, err := s.streams.ask(r)
	if err != nil {
		return err
	}
	ended := false
	defer func() { s.streams.drop(st, ended) }()
	for !ended {
		pieces, err := st.next(ctx)
		if err != nil {
			return err
		}
		var n int
		n, ended, err = copyPieces(w, pieces)
		if err != nil {
			return err
		}
		if n > 0 && !ended {
			// The window moves only when the reader took the bytes.
			s.out.put(func() { s.out.requests = append(s.out.requests, api.StreamRequest{ID: st.id, Credit: int64(n)}) })
		}
	}
	return nil
}

func copyPieces(w io.Writer, pieces []api.StreamReply) (n int, ended bool, err error) {
	for _, p := range pieces {
		if p.Began != nil {
			Began(w, *p.Began)
		}
		if len(p.Data) > 0 {
			if _, err := w.Write(p.Data); err != nil {
				return n, ended, err
			}
			n += len(p.Data)
		}
		ended = ended || p.EOF
		if p.Error != nil {
			return n, ended, p.Error
		}
	}
	return n, ended, nil
}

func notConnected(node string) *api.Error {
	return api.Errorf(api.CodeUnavailable, "node %s is not connected", node)
}
