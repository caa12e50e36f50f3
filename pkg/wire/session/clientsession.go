package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"gangd/pkg/api"
)

// maxReplyBytes is how much of streams one frame carries: small enough that a
// report never waits behind a log for long.
const maxReplyBytes = 64 << 10

// run keeps sessions up until ctx ends.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	defer c.asking.end()
	c.asking.start(ctx, c)
	var wait backoff
	said := map[string]string{} // by address
	for ctx.Err() == nil {
		began := time.Now()
		c.at = c.next()
		greeted, err := c.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if greeted {
			c.ended(c.at.name, HungUp(err))
			c.opts.Agent.Down(err)
		}
		if greeted || err.Error() != said[c.at.address] { // one line for each thing that is wrong, not one for each try
			said[c.at.address] = err.Error()
			c.opts.Log.Warn("no session with the controller", "address", c.at.address, "err", err)
		}
		lasted := time.Duration(0)
		if greeted {
			lasted = time.Since(began)
		}
		if lasted >= steadySession {
			clear(said)
		}
		pause := wait.next(lasted, c.lease, rand.N)
		if c.several() {
			pause = min(pause, askQuick)
		}
		c.away(pause)
		if !c.sleep(ctx, pause) {
			return
		}
	}
}

// away says to who watches that the loop waits for the network, which has a deadline of its own.
func (c *Client) away(within time.Duration) { c.opts.Sign.Away(within + lateness) }

// lateness is how long a loop whose wait is over may take to be given a processor.
const lateness = time.Second

// sleep waits before the next try, unless somebody says meanwhile where to; false: ctx has ended.
func (c *Client) sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.again:
		return true
	case <-ctx.Done():
		return false
	}
}

// clientSession is one session at the node.
type clientSession struct {
	nodeHalf
	c       *Client
	link    *link
	beside  *witness       // nil: not over a network
	with    string         // the controller's name
	jobs    sync.WaitGroup // writer and streams
	streams nodeStreams
	calls   calls
}

// session runs one session. It reports whether the controller welcomed the node.
func (c *Client) session(ctx context.Context) (greeted bool, err error) {
	c.away(helloTimeout)
	life := ctx
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	c.trial.Store(&trial{c.at, give})
	defer c.trial.Store(nil)
	ws, below, err := c.dial(ctx)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errElsewhere) {
			err = cause
		}
		return false, err
	}
	s := &clientSession{nodeHalf: newNodeHalf(c.opts.Agent, &c.out, &c.contact), c: c, link: newLink(ctx, ws, below.Conn, maxControllerFrame)}
	s.link.ended = below.ended.Load
	s.streams = newNodeStreams()
	defer s.jobs.Wait()
	c.away(helloTimeout)
	welcome, err := s.greet()
	if err != nil {
		s.link.end(err)
		return false, err
	}
	c.opts.Sign.Round()
	c.asking.start(life, c)
	if c.at.overTLS(c) {
		s.beside = c.witness(ctx, c.at, api.WitnessPath)
		defer s.beside.end()
	}
	c.now.Store(s)
	c.trial.Store(nil)
	defer func() {
		c.now.Store(nil)
		s.calls.end(api.Errorf(api.CodeUnavailable, "the connection to the controller broke; try again in a second"))
	}()
	s.jobs.Add(1)
	go s.writeLoop(welcome.Settings.Heartbeat)
	err = s.read(nil)
	if errors.Is(err, errFrame) {
		s.link.close(websocket.StatusInvalidFramePayloadData, err.Error())
	}
	s.link.end(err)
	if s.beside != nil && ctx.Err() == nil {
		err = s.beside.verdict(err)
	}
	return true, err
}

// dial opens the session's WebSocket. A refused connection is contact, see [Client.LastContact].
func (c *Client) dial(ctx context.Context) (*websocket.Conn, *line, error) {
	asked := BootTime()
	ws, l, err := c.open(ctx, c.at, api.SessionPath)
	var refused *api.Error
	switch {
	case err == nil:
	case errors.As(err, &refused) && refused.Word != nil:
		c.said(refused.Word, asked)
	case c.nobodyListens(c.at, err):
		c.contact.word(c.at.name, asked)
	case errors.Is(err, syscall.ECONNREFUSED):
		err = errDoubted
	}
	return ws, l, err
}

func (c *Client) open(ctx context.Context, at target, path string) (*websocket.Conn, *line, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	l := &line{}
	transport := c.transport(at, l)
	transport.DisableKeepAlives = true
	defer transport.CloseIdleConnections()
	ws, resp, err := websocket.Dial(ctx, at.url(c, "ws")+path, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, nil, dialError(resp, err)
	}
	return ws, l, nil
}

// line is a connection below TLS that remembers the end which the peer's kernel sent.
type line struct {
	net.Conn
	ended atomic.Bool
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if err == io.EOF {
		l.ended.Store(true)
	}
	return n, err
}

// errDoubted is a refusal over the network that does not count as contact.
var errDoubted = errors.New("connection refused, but the controller had not closed the last session: " +
	"something on the way may refuse in its name, so leases run on")

// nobodyListens: the controller's host answered that no controller runs there. For a unix
// socket that host is this one, and a missing file says the same. See [Client.LastContact].
func (c *Client) nobodyListens(at target, err error) bool {
	if at.unix() {
		return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
	}
	return errors.Is(err, syscall.ECONNREFUSED) && c.contact.hasEnded(at.name)
}

// dialError leaves out the layers of "failed to" that the libraries put around a cause.
func dialError(resp *http.Response, err error) error {
	if resp != nil && resp.StatusCode == http.StatusMisdirectedRequest {
		e := new(api.Error)
		if json.NewDecoder(resp.Body).Decode(e) == nil && e.Code != "" {
			return e
		}
	}
	if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		return errors.New("controller answered " + resp.Status)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op
	}
	return err
}

// greet says Hello and waits for the Welcome.
func (s *clientSession) greet() (*api.Welcome, error) {
	c := s.c
	if err := s.link.write(s.hello()); err != nil {
		return nil, err
	}
	f, err := s.link.read()
	if err != nil {
		return nil, err
	}
	if f.Welcome == nil {
		return nil, errors.New("controller did not answer the hello with a welcome")
	}
	if err := s.welcomed(f.Welcome, f.Controllers); err != nil {
		return nil, err
	}
	c.at.name, s.with = f.Welcome.Name, f.Welcome.Name
	c.beat.Store(int64(f.Welcome.Settings.Heartbeat))
	s.link.greeted(f.Welcome.Settings.Heartbeat)
	c.lease = f.Welcome.Settings.Lease
	return f.Welcome, s.apply(f)
}

func (s *clientSession) read(err error) error {
	for err == nil {
		var f *api.Frame
		s.c.away(s.link.watchdog.longest())
		f, err = s.link.read()
		s.c.opts.Sign.Round()
		if err == nil {
			err = s.apply(f)
		}
	}
	return err
}

func (s *clientSession) apply(f *api.Frame) error {
	if err := s.desired(f); err != nil {
		return err
	}
	for _, r := range f.Streams {
		s.streams.request(s, r)
	}
	for i := range f.Calls {
		s.calls.piece(&f.Calls[i])
	}
	s.heard(f)
	return nil
}

// writeLoop sends what is due, one frame for all that came together.
func (s *clientSession) writeLoop(heartbeat time.Duration) {
	defer s.jobs.Done()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	o := &s.c.out
	for {
		f := &api.Frame{}
		select {
		case <-s.link.ctx.Done():
			return
		case <-o.wake:
		case <-beat.C:
			f.Beat = s.c.contact.beat()
		}
		if s.fill(f) {
			if err := s.link.write(f); err != nil {
				s.link.end(err)
				return
			}
		}
	}
}
