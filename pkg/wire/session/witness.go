package session

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// A witness is a second connection beside a session over a network, on which the node never
// says a word. A kernel resets the connection of a process that died with unread data, and a
// firewall may do the same in its name: from such an end of its session a node learns nothing
// about who ended it. On a silent line nothing can lie unread, so the kernel of a controller
// that was killed closes it in order, whatever the session was carrying.

// witnessPatience is how long the end of a witness may come after its session's: one kernel
// sends both, and a lost packet is sent again after 200 ms at the earliest.
const witnessPatience = time.Second

// witness is the node's end.
type witness struct {
	cancel context.CancelFunc
	open   chan struct{} // closed when the controller has taken the line
	over   chan struct{} // closed when err is there
	err    error
}

// witness opens one with a controller: beside the session that was just greeted, or where there is none.
// A controller that offers none leaves the node with what its session tells.
func (c *Client) witness(ctx context.Context, at target, path string) *witness {
	ctx, cancel := context.WithCancel(ctx)
	w := &witness{cancel: cancel, open: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(w.over)
		ws, below, err := c.open(ctx, at, path)
		if err != nil {
			w.err = err
			return
		}
		l := newLink(ctx, ws, below.Conn, maxControllerFrame)
		l.watchdog.stop() // it is silent by nature
		l.ended = below.ended.Load
		close(w.open)
		_, w.err = l.read()
		l.end(w.err)
	}()
	return w
}

// verdict is what ended the session: err, or what the witness saw where err leaves open who
// it was.
func (w *witness) verdict(err error) error {
	var said closeReason
	if HungUp(err) || errors.As(err, &said) {
		return err
	}
	select {
	case <-w.open:
	default:
		return err
	}
	if !errors.Is(err, errSilent) { // a line that is cut tells no more by waiting
		late := time.AfterFunc(witnessPatience, w.cancel)
		<-w.over
		late.Stop()
	}
	if w.isOver() && errors.Is(w.err, errDied) {
		return errDied
	}
	return err
}

// died says whether the line has ended because the controller's process did.
func (w *witness) died() bool { return w.isOver() && HungUp(w.err) }

// isOver says whether the line has ended, or never was.
func (w *witness) isOver() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// end closes the line and waits for it.
func (w *witness) end() {
	w.cancel()
	<-w.over
}

// Witness serves the witness of a node's session until that session or the process ends.
func (h *Hub) Witness(w http.ResponseWriter, r *http.Request, node string) {
	s := h.session(node)
	if s == nil || !h.enter() {
		http.Error(w, "no session of this node is open", http.StatusConflict)
		return
	}
	// It ends with its session, and by a reset as that does (see [tlsLine]): this process lives.
	h.silent(h.accept(s.link.ctx, w, r, node), node)
}

// silent serves a line until it ends, as [Hub.Serve] does; nil: there is none.
func (h *Hub) silent(l *link, node string) {
	if l == nil {
		h.serving.Done()
		return
	}
	l.watchdog.stop() // it is silent by nature
	go h.beside(node, func() {
		_, err := l.read()
		l.end(err)
	})
}

// Line serves a silent line of a node that has no session here. It lasts as long as this process, which
// says so as it ends.
func (h *Hub) Line(w http.ResponseWriter, r *http.Request, node string) {
	if !h.enter() {
		http.Error(w, "controller is stopping", http.StatusServiceUnavailable)
		return
	}
	l := h.accept(context.WithoutCancel(h.ctx), w, r, node)
	if l != nil {
		stop := context.AfterFunc(h.ctx, func() { l.close(websocket.StatusGoingAway, "controller is stopping") })
		context.AfterFunc(l.ctx, func() { stop() })
	}
	h.silent(l, node)
}
