package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"gangd/pkg/api"
)

const (
	// SilentBeats is how many heartbeats of silence end a session: one lost beat on a
	// busy machine must not, and 3 s is what a person waits for "suspect".
	SilentBeats = 3

	// helloTimeout bounds the greeting, before a heartbeat is known. It covers a commit on a slow disk.
	helloTimeout = 15 * time.Second

	// closePatience is how long a peer gets to answer a close before the line is cut.
	closePatience = time.Second

	// maxReasonBytes is what a WebSocket close frame has room for.
	maxReasonBytes = 123

	// Frame limits. A node's hello with 10,000 members is 3 MiB; a controller's full set
	// may carry scripts of 4 MiB each (see specChunk for how many at once).
	maxNodeFrame       = 16 << 20
	maxControllerFrame = 64 << 20
)

// errSilent ends a session whose peer has not been heard for SilentBeats.
var errSilent = errors.New("peer silent")

// errClosed ends a session whose peer closed it without a reason.
var errClosed = errors.New("the other side closed the connection")

// link is one WebSocket with a deadline on silence and one on each write.
type link struct {
	ws       *websocket.Conn
	ctx      context.Context
	cancel   context.CancelCauseFunc
	io       context.Context // of reads and writes: ctx, or one without an end where ctx cuts the connection itself
	watchdog watchdog        // of what is read
	late     watchdog        // of what is written
	patience time.Duration   // of a write; set before the writer starts
	under    syscall.Conn    // the connection below TLS; nil: not known
	ended    func() bool     // the peer's kernel has closed the connection; nil: nobody looks
	line     *tlsLine        // what a controller serves over a network; nil: anything else
}

// newLink begins to wait for the greeting. under is the connection that ws goes over.
func newLink(parent context.Context, ws *websocket.Conn, under net.Conn, limit int64) *link {
	ws.SetReadLimit(limit)
	l := &link{ws: ws, patience: helloTimeout}
	l.under, _ = under.(syscall.Conn)
	l.ctx, l.cancel = context.WithCancelCause(parent)
	l.io = l.ctx
	silent := func() { l.cancel(errSilent) }
	l.watchdog.held, l.watchdog.bark = l.held, silent
	l.late.held, l.late.bark = l.held, silent
	l.watchdog.start(helloTimeout)
	return l
}

// cutBy has the end of the link close its connection itself: to arm and disarm that with each read and write was a seventh of
// what an idle session cost.
func (l *link) cutBy(conn net.Conn) {
	l.io = context.Background()
	context.AfterFunc(l.ctx, func() { _ = conn.Close() })
}

// held says whether the peer has said something that was not read yet.
func (l *link) held() bool { return l.under != nil && unread(l.under) }

// stopped is a timer that calls f when it was reset and that time is over.
func stopped(f func()) *time.Timer {
	t := time.AfterFunc(time.Hour, f)
	t.Stop()
	return t
}

// greeted starts counting silence in heartbeats.
func (l *link) greeted(heartbeat time.Duration) {
	l.patience = SilentBeats * heartbeat
	l.watchdog.start(l.patience)
}

// read gives the next frame. Its errors end the session: errFrame is the peer's fault and
// is worth telling it.
func (l *link) read() (*api.Frame, error) {
	typ, r, err := l.next()
	if err != nil {
		return nil, err
	}
	return l.message(typ, r)
}

// next waits until the peer begins to say something. What that is, is read by message.
func (l *link) next() (websocket.MessageType, io.Reader, error) {
	typ, r, err := l.ws.Reader(l.io)
	if err != nil {
		return 0, nil, l.why(err)
	}
	return typ, r, nil
}

func (l *link) message(typ websocket.MessageType, r io.Reader) (*api.Frame, error) {
	buf := messages.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= mostKept {
			buf.Reset()
			messages.Put(buf)
		}
	}()
	if _, err := buf.ReadFrom(r); err != nil {
		return nil, l.why(err)
	}
	l.watchdog.sign()
	if typ != websocket.MessageText {
		return nil, fmt.Errorf("%w: binary message", errFrame)
	}
	return decodeFrame(buf.Bytes())
}

// messages are buffers for what is read; those larger than mostKept are not kept.
var messages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const mostKept = 64 << 10

// write sends a frame; one writer at a time.
func (l *link) write(f *api.Frame) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	l.late.start(l.patience)
	defer l.late.stop()
	if err := l.ws.Write(l.io, websocket.MessageText, data); err != nil {
		return l.why(err)
	}
	return nil
}

// closeReason is what the peer said as it closed the session.
type closeReason struct {
	text string
	last bool // the peer itself was ending
}

func (g closeReason) Error() string { return g.text }

// errDied ends a session whose peer's process ended: its kernel closed the connection, and
// nobody said so in TLS.
var errDied = fmt.Errorf("%w without a word", errClosed)

// HungUp says of what [Agent.Down] was told whether the controller was ending, in its own
// words or by its kernel's when the process died. One that lives and drops a session closes
// TLS; a line that is cut shows as silence, and a firewall that breaks a connection resets it.
func HungUp(err error) bool {
	var said closeReason
	return errors.Is(err, errDied) || errors.As(err, &said) && said.last
}

// why prefers the cause of an ended session over the broken pipe it shows as, and the
// peer's own words over both.
func (l *link) why(err error) error {
	var closed websocket.CloseError
	switch {
	case errors.As(err, &closed) && closed.Reason != "":
		return closeReason{closed.Reason, closed.Code == websocket.StatusGoingAway}
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		// Without the layers of "failed to" that the library puts around it.
		if l.ended != nil && l.ended() {
			return errDied
		}
		return errClosed
	}
	if cause := context.Cause(l.ctx); cause != nil {
		return cause
	}
	return err
}

// close tells the peer why and ends the session. It returns when the line is cut.
func (l *link) close(code websocket.StatusCode, reason string) {
	l.closeWithin(closePatience, code, reason)
}

// closeWithin is close with so long for the peer to answer.
func (l *link) closeWithin(patience time.Duration, code websocket.StatusCode, reason string) {
	if l.line != nil && code == websocket.StatusGoingAway {
		l.line.ending.Store(true)
	}
	// Close waits up to 5 s for a peer that may be frozen. Ending the context of the
	// reader cuts the line under it.
	hurry := time.AfterFunc(patience, func() { l.cancel(errors.New(reason)) })
	_ = l.ws.Close(code, clip(reason, maxReasonBytes))
	hurry.Stop()
	l.end(errors.New(reason))
}

// end cuts the line at once.
func (l *link) end(cause error) {
	l.cancel(cause)
	l.watchdog.stop()
	_ = l.ws.CloseNow()
}

// clip cuts s to at most n bytes at a rune's border: close reasons have to be UTF-8.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
