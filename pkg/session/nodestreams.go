package session

import (
	"context"
	"errors"
	"sync"

	"gangd/pkg/api"
)

// maxNodeStreams bounds what one controller asks of a node at a time; each may hold a
// window of 256 KiB.
const maxNodeStreams = 64

// pieceBytes is the most that one StreamReply carries.
const pieceBytes = 32 << 10

// nodeStreams are the questions that a node is answering.
type nodeStreams struct {
	mu   sync.Mutex
	open map[uint64]*nodeStream
}

// nodeStream is the writer that an answer goes to. It blocks while the window is full.
type nodeStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	out    *outbox
	id     uint64
	mu     sync.Mutex
	credit int64
	more   chan struct{} // of capacity 1: the window moved
}

var errCancelled = errors.New("the reader went away")

// request applies one request: a new question, credit for one, or its end.
func (n *nodeStreams) request(s *clientSession, r api.StreamRequest) {
	if r.Log != nil || r.Signal != nil || r.CardResume != "" {
		n.start(s, r)
		return
	}
	n.mu.Lock()
	st := n.open[r.ID]
	n.mu.Unlock()
	switch {
	case st == nil: // it ended while this was on its way
	case r.Cancel:
		st.cancel()
	default:
		st.grant(r.Credit)
	}
}

// start answers a question in a goroutine of its own.
func (n *nodeStreams) start(s *clientSession, r api.StreamRequest) {
	st := &nodeStream{out: &s.c.out, id: r.ID, credit: api.StreamWindow, more: make(chan struct{}, 1)}
	n.mu.Lock()
	if len(n.open) >= maxNodeStreams {
		n.mu.Unlock()
		st.send(api.StreamReply{EOF: true, Error: api.Errorf(api.CodeUnavailable, "the node is answering %d readers already", maxNodeStreams)})
		return
	}
	st.ctx, st.cancel = context.WithCancel(s.link.ctx)
	n.open[r.ID] = st
	n.mu.Unlock()
	s.jobs.Add(1)
	go func() {
		defer s.jobs.Done()
		defer st.cancel()
		last := st.answer(s.c.opts.Agent, r)
		n.mu.Lock()
		delete(n.open, r.ID)
		n.mu.Unlock()
		st.send(last)
	}()
}

func (st *nodeStream) answer(a Agent, r api.StreamRequest) api.StreamReply {
	last := api.StreamReply{EOF: true}
	var err error
	switch {
	case r.Signal != nil:
		last.Processes, err = a.Signal(st.ctx, *r.Signal)
	case r.CardResume != "":
		err = a.ResumeCard(st.ctx, r.CardResume)
	default:
		err = a.ReadLog(st.ctx, *r.Log, st)
	}
	if err != nil && !errors.As(err, &last.Error) {
		last.Error = api.Errorf(api.CodeInternal, "%v", err)
	}
	return last
}

func (st *nodeStream) send(r api.StreamReply) {
	r.ID = st.id
	if r.ID == 0 {
		return // a signal of Frame.Signals: nobody waits
	}
	st.out.put(func() { st.out.replies = append(st.out.replies, r) })
}

// Began implements [LogWriter].
func (st *nodeStream) Began(offset int64) { st.send(api.StreamReply{Began: &offset}) }

func (st *nodeStream) grant(n int64) {
	st.mu.Lock()
	st.credit += max(n, 0)
	st.mu.Unlock()
	select {
	case st.more <- struct{}{}:
	default:
	}
}

// Write sends p as far as the window goes and waits for the rest.
func (st *nodeStream) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n := st.take(min(len(p)-done, pieceBytes))
		if n == 0 {
			select {
			case <-st.more:
			case <-st.ctx.Done():
				return done, errCancelled
			}
			continue
		}
		st.send(api.StreamReply{Data: append([]byte(nil), p[done:done+n]...)})
		done += n
	}
	return done, nil
}

func (st *nodeStream) take(n int) int {
	st.mu.Lock()
	defer st.mu.Unlock()
	got := min(int64(n), st.credit)
	st.credit -= got
	return int(got)
}
