package session

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coder/websocket"

	"gangd/pkg/api"
)

// Hub is the controller's half of every node's session.
type Hub struct {
	handler Handler
	office  Office
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelCauseFunc
	serving sync.WaitGroup
	turns   chan struct{} // those whose hello is being taken in

	mu      sync.Mutex
	nodes   map[string]*hubSession
	greeted Greetings
	number  uint64 // of the last signal order
	closed  bool
}

// mostGreeted is how many hellos are in memory at a time. What all nodes of a large site say at once, when their
// controller stood still, waits in the kernel.
const mostGreeted = 256

// errReplaced ends a session for a newer one of the same node.
var errReplaced = errors.New("replaced by a newer session of this node")

// NewHub makes a hub without sessions. o is nil where there is one controller.
func NewHub(h Handler, o Office, log *slog.Logger) *Hub {
	hub := &Hub{handler: h, office: o, log: log, turns: make(chan struct{}, mostGreeted), nodes: map[string]*hubSession{}}
	// Orders are numbered from the clock, so that the numbers of the next controller
	// are higher than those of this one: a node applies each number once.
	hub.number = uint64(time.Now().UnixMicro())
	hub.ctx, hub.cancel = context.WithCancelCause(context.Background())
	return hub
}

// Serve upgrades the request and serves the session until it ends, beside the caller: as long as that does not
// return, all that the request has taken stays in memory. node is the name that
// the transport authenticated; empty trusts the Hello (single-user, on a unix socket).
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, node string) {
	if !h.enter() {
		http.Error(w, "controller is stopping", http.StatusServiceUnavailable)
		return
	}
	l := h.accept(h.ctx, w, r, node)
	if l == nil {
		h.serving.Done()
		return
	}
	s := &hubSession{hubHalf: newHubHalf(h.handler, h.office), hub: h, link: l, done: make(chan struct{})}
	s.out.poked, s.writer.write = s.writer.poke, s.write
	go h.beside(node, func() { s.serve(node) })
}

// beside serves a line after its request has returned. What fails in it ends that line alone.
func (h *Hub) beside(node string, serve func()) {
	defer h.serving.Done()
	defer func() {
		if why := recover(); why != nil {
			h.log.Error("session failed", "node", node, "panic", why, "stack", string(debug.Stack()))
		}
	}()
	serve()
}

// accept upgrades a request to a line that ends with ctx; nil: it was answered that it can't be.
func (h *Hub) accept(ctx context.Context, w http.ResponseWriter, r *http.Request, node string) *link {
	under := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(under, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		h.log.Warn("session refused", "node", node, "from", r.RemoteAddr, "err", err)
		return nil // Accept has answered
	}
	l := newLink(ctx, ws, under.conn, maxNodeFrame)
	l.line = under.line
	l.cutBy(under.served)
	return l
}

func (h *Hub) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.serving.Add(1)
	return true
}

// install makes s the session of its node. An older one of the same identity is ended
// and waited for, so that nothing of it arrives after the new Hello; one of another
// identity that still lives wins.
func (h *Hub) install(s *hubSession) error {
	for {
		h.mu.Lock()
		old := h.nodes[s.hello.Node]
		if old != nil && old.hello.StateID != s.hello.StateID {
			h.mu.Unlock()
			return api.Errorf(api.CodeConflict, "another gnoded is connected as node %q (from another state directory): give one of them another "+
				"name",
				s.hello.Node)
		}
		if !h.greeted.Newest(s.hello) {
			h.mu.Unlock()
			return api.Errorf(api.CodeConflict, "node %q has opened another session since it sent this hello", s.hello.Node)
		}
		if old == nil {
			h.nodes[s.hello.Node] = s
			h.mu.Unlock()
			return nil
		}
		old.replaced = true
		h.mu.Unlock()
		// No close handshake: the old line is most likely dead, which is why there is a
		// new one, and its daemon holds the lock of the state directory no more.
		old.link.end(errReplaced)
		<-old.done
	}
}

// remove takes s out, which was installed, and tells the handler, unless a newer session has
// its place. It is told also of one whose hello was not answered: a line that breaks while the
// hello is being committed would leave the node connected for ever, with nobody behind it.
func (h *Hub) remove(s *hubSession) {
	h.mu.Lock()
	replaced := s.replaced
	if h.nodes[s.hello.Node] == s {
		delete(h.nodes, s.hello.Node)
	}
	h.mu.Unlock()
	if !replaced {
		h.handler.NodeGone(s.hello.Node)
	}
}

func (h *Hub) session(node string) *hubSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[node]
}

// Wake says that the desired sets of these nodes changed. It never blocks.
func (h *Hub) Wake(nodes []string) {
	for _, n := range nodes {
		if s := h.session(n); s != nil {
			s.out.changed()
		}
	}
}

// Kick ends the session of a node, whose certificate was revoked for instance.
func (h *Hub) Kick(node string) {
	if s := h.session(node); s != nil {
		s.link.close(websocket.StatusPolicyViolation, "session ended by the controller")
	}
}

// Close tells every node that the controller is ending (they count on it, see
// [Client.LastContact]), ends their sessions and waits for them. A node that does not answer
// within patience is cut off; it has the controller's word all the same, if it reads at all.
func (h *Hub) Close(patience time.Duration) {
	h.mu.Lock()
	h.closed = true
	var told sync.WaitGroup
	for _, s := range h.nodes {
		told.Go(func() { s.link.closeWithin(patience, websocket.StatusGoingAway, "controller is stopping") })
	}
	h.mu.Unlock()
	told.Wait()
	h.cancel(errors.New("controller is stopping"))
	h.serving.Wait()
}
