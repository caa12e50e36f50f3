package session

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
)

// hubSession is one session at the controller. serve is its reader; write is what its writer runs.
type hubSession struct {
	hubHalf
	hub   *Hub
	link  *link
	hello *api.Hello
	done  chan struct{} // closed when serve is over

	writer  writer
	first   frames // what is written first; nil: it was
	ticker  *time.Timer
	every   time.Duration // that is how often it ticks
	beatDue atomic.Bool

	// Under hub.mu: a newer session took the place of this one.
	replaced bool

	streams streams
	calls   calls
}

// outbox is what the writer has to send besides the desired set.
type outbox struct {
	mu       sync.Mutex
	wake     chan struct{} // of capacity 1: there is something
	poked    func()        // is told instead; nil: nobody is
	dirty    bool          // the desired set may have changed
	echo     uint64
	got      time.Time // of a node: when what it echoes came
	requests []api.StreamRequest
	replies  []api.StreamReply
	calls    []api.CallPiece
}

func (o *outbox) init() { o.wake = make(chan struct{}, 1) }

func (o *outbox) poke() {
	if o.poked != nil {
		o.poked()
		return
	}
	select {
	case o.wake <- struct{}{}:
	default: // a wake-up is waiting already: one frame serves both
	}
}

func (o *outbox) put(f func()) {
	o.mu.Lock()
	f()
	o.mu.Unlock()
	o.poke()
}

func (o *outbox) changed() { o.put(func() { o.dirty = true }) }

func (s *hubSession) serve(node string) {
	defer close(s.done)
	err := s.greet(node)
	if err != nil {
		s.hub.log.Warn("session refused", "node", node, "err", err)
		s.link.close(websocket.StatusPolicyViolation, err.Error())
		if s.hello != nil {
			s.hub.remove(s)
		}
		return
	}
	s.hub.log.Info("session opened", "node", s.hello.Node, "members", len(s.hello.Members))
	err = s.read()
	if errors.Is(err, errFrame) {
		s.link.close(websocket.StatusInvalidFramePayloadData, err.Error())
	}
	s.link.end(err)
	s.ticker.Stop()
	s.writer.end()
	s.streams.end(api.Errorf(api.CodeUnavailable, "node %s: session ended: %v", s.hello.Node, err))
	s.calls.end(api.Errorf(api.CodeUnavailable, "node %s: session ended: %v", s.hello.Node, err))
	s.calls.jobs.Wait()
	s.hub.remove(s)
	s.hub.log.Info("session ended", "node", s.hello.Node, "err", err)
}

// greet reads the Hello, makes this the session of its node, and starts the writer.
func (s *hubSession) greet(node string) error {
	typ, r, err := s.link.next()
	if err != nil {
		return err
	}
	s.link.watchdog.stop() // it has spoken: for how long it waits is nothing that it does
	select {
	case s.hub.turns <- struct{}{}:
		defer func() { <-s.hub.turns }()
	case <-s.link.ctx.Done():
		return s.link.why(s.link.ctx.Err())
	}
	if s.link.under != nil && hungUp(s.link.under) {
		return errClosed // while it waited: to take it in would be a commit for nobody
	}
	s.link.watchdog.start(helloTimeout)
	f, err := checked(s.link.message(typ, r))
	if err != nil {
		return err
	}
	if err := checkHello(f.Hello, node); err != nil {
		return err
	}
	s.hello = f.Hello
	if err := s.hub.install(s); err != nil {
		s.hello = nil // not this node's session: nothing to take out
		return err
	}
	s.link.watchdog.stop() // the commit may take its time
	welcome, err := s.hub.handler.NodeHello(s.link.ctx, s.hello)
	if err != nil {
		return err
	}
	s.link.greeted(welcome.Settings.Heartbeat)
	s.greeted(s.hello)
	s.streams.init(&s.out)
	s.first = s.welcome(welcome)
	s.every = welcome.Settings.Heartbeat
	s.ticker = stopped(s.tick)
	s.ticker.Reset(s.every)
	s.writer.begin()
	return nil
}

// tick is what happens each heartbeat.
func (s *hubSession) tick() {
	if s.link.ctx.Err() != nil {
		return
	}
	s.ticker.Reset(s.every)
	if !s.beaten.Swap(false) {
		s.beatDue.Store(true)
		s.writer.poke()
	}
}

func checkHello(h *api.Hello, node string) error {
	switch {
	case h == nil:
		return api.Errorf(api.CodeInvalid, "the first frame of a session must be a hello")
	case h.Protocol != api.SessionProtocol:
		return api.Errorf(api.CodeInvalid, "gnoded %s speaks session protocol %d, this controller %d: install the same version on both",
			h.Version, h.Protocol, api.SessionProtocol)
	case node != "" && h.Node != node:
		return api.Errorf(api.CodePermission, "the certificate is node %q's, the hello says %q", node, h.Node)
	}
	return nil
}

func (s *hubSession) read() error {
	for {
		f, err := checked(s.link.read())
		if err != nil {
			return err
		}
		s.take(f)
		for i := range f.Replies {
			s.streams.reply(&f.Replies[i])
		}
		for i := range f.Calls {
			if p := &f.Calls[i]; p.Call != nil {
				s.answer(p)
			} else {
				s.calls.piece(p)
			}
		}
	}
}

// checked is a frame of the node, held against the ranges of its fields: a certificate
// makes a node's word its own, not true.
func checked(f *api.Frame, err error) (*api.Frame, error) {
	if err != nil {
		return nil, err
	}
	if err := bound.Check(f); err != nil {
		return nil, fmt.Errorf("%w: %w", errFrame, err)
	}
	return f, nil
}

// write sends the Welcome, then whatever is due, one frame for all that came together.
func (s *hubSession) write() error {
	due := s.first
	switch {
	case due != nil:
		s.first = nil
	case s.beatDue.Swap(false):
		due = s.beat()
	default:
		due = s.due()
	}
	for f, err := range due {
		if err == nil {
			err = s.link.write(f)
		}
		if err != nil {
			s.link.end(err)
			return err
		}
	}
	return nil
}
