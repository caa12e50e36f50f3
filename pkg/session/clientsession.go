package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"gangd/pkg/api"
)

const (
	// The back-off between tries. The first retry is at once: a controller that was
	// restarted is there again within milliseconds. The ceiling is what a person waits
	// without asking; leaseTries lowers it for a short lease.
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second

	// leaseTries is how often at least a node asks in the time of its lease: each refused
	// connection renews it, and the gaps between them must not use it up.
	leaseTries = 8

	// steadySession is how long a session lasts for the next retry to be at once again: a
	// controller that refuses each hello must not be asked in a tight loop.
	steadySession = time.Second

	// maxReplyBytes is how much of streams one frame carries: small enough that a
	// report never waits behind a log for long.
	maxReplyBytes = 64 << 10
)

// run keeps sessions up until ctx ends.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	wait := time.Duration(0)
	said := ""
	for ctx.Err() == nil {
		began := time.Now()
		greeted, err := c.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if greeted {
			c.opts.Agent.Down(err)
		}
		if greeted || err.Error() != said { // one line for each thing that is wrong, not one for each try
			said = err.Error()
			c.opts.Log.Warn("no session with the controller", "address", c.opts.Address, "err", err)
		}
		if greeted && time.Since(began) >= steadySession {
			wait, said = 0, ""
			continue
		}
		wait = min(max(2*wait, minBackoff), c.longestWait())
		// A jitter of half the wait spreads a site's nodes after a restart of the controller.
		if !sleep(ctx, wait/2+rand.N(wait/2+1)) {
			return
		}
	}
}

func (c *Client) longestWait() time.Duration {
	if c.lease <= 0 {
		return maxBackoff
	}
	return min(maxBackoff, max(c.lease/leaseTries, minBackoff))
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// clientSession is one session at the node.
type clientSession struct {
	c       *Client
	link    *link
	specs   specCache
	jobs    sync.WaitGroup // writer and streams
	streams nodeStreams
	calls   calls
}

// session runs one session. It reports whether the controller welcomed the node.
func (c *Client) session(ctx context.Context) (greeted bool, err error) {
	ws, err := c.dial(ctx)
	if err != nil {
		return false, err
	}
	s := &clientSession{c: c, link: newLink(ctx, ws, maxControllerFrame), specs: newSpecCache()}
	s.streams.open = map[uint64]*nodeStream{}
	c.out.put(func() { c.out.echo, c.out.replies, c.out.calls = 0, nil, nil }) // the last session's
	defer s.jobs.Wait()
	welcome, err := s.greet()
	if err != nil {
		s.link.end(err)
		return false, err
	}
	c.contact.connected.Store(true)
	defer c.contact.connected.Store(false)
	c.now.Store(s)
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
	return true, err
}

// dial opens the WebSocket. A refused connection is contact, see [Client.LastContact].
func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	asked := BootTime()
	var d net.Dialer
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, c.opts.Network, c.opts.Address)
		},
		TLSClientConfig:   c.opts.TLS,
		DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	host, scheme := c.opts.Address, "ws://"
	if c.opts.Network == "unix" {
		host = "gangd"
	}
	if c.opts.TLS != nil {
		scheme = "wss://"
	}
	ws, resp, err := websocket.Dial(ctx, scheme+host+api.SessionPath, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, CompressionMode: websocket.CompressionDisabled})
	if err == nil {
		return ws, nil
	}
	if nobodyListens(c.opts.Network, err) {
		c.contact.at(asked)
	}
	return nil, dialError(resp, err)
}

// nobodyListens: the controller's host answered that no controller runs there. For a unix
// socket that host is this one, and a missing file says the same.
func nobodyListens(network string, err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || network == "unix" && errors.Is(err, os.ErrNotExist)
}

// dialError leaves out the layers of "failed to" that the libraries put around a cause.
func dialError(resp *http.Response, err error) error {
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
	// What happens from here on is reported in this session: a wake-up that comes
	// between Hello and the first report is kept in the outbox.
	hello := c.opts.Agent.Hello()
	hello.Protocol = api.SessionProtocol
	asked := BootTime()
	if err := s.link.write(&api.Frame{Hello: hello}); err != nil {
		return nil, err
	}
	f, err := s.link.read()
	if err != nil {
		return nil, err
	}
	if f.Welcome == nil {
		return nil, errors.New("controller did not answer the hello with a welcome")
	}
	c.contact.at(asked)
	s.link.greeted(f.Welcome.Settings.Heartbeat)
	c.lease = f.Welcome.Settings.Lease
	c.opts.Agent.Welcome(f.Welcome)
	return f.Welcome, s.apply(f)
}

func (s *clientSession) read(err error) error {
	for err == nil {
		var f *api.Frame
		if f, err = s.link.read(); err == nil {
			err = s.apply(f)
		}
	}
	return err
}

func (s *clientSession) apply(f *api.Frame) error {
	if f.Desired != nil {
		if err := s.specs.apply(f.Desired); err != nil {
			return err
		}
		s.c.opts.Agent.Desired(f.Desired)
	}
	for _, o := range f.Signals {
		s.streams.start(s, api.StreamRequest{Signal: &o})
	}
	for _, r := range f.Streams {
		s.streams.request(s, r)
	}
	for i := range f.Calls {
		s.calls.piece(&f.Calls[i])
	}
	if f.Lineage != 0 {
		s.c.opts.Agent.Lineage(f.Lineage)
	}
	if f.Beat != 0 {
		s.c.out.put(func() { s.c.out.echo = f.Beat })
	}
	if f.Echo != 0 {
		s.c.contact.echo(f.Echo)
	}
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

// fill puts into f what is due; false: nothing is.
func (s *clientSession) fill(f *api.Frame) bool {
	o := &s.c.out
	o.mu.Lock()
	dirty := o.dirty
	f.Echo = o.echo
	f.Replies, o.replies = takeReplies(o.replies)
	f.Calls, o.calls = takeCalls(o.calls)
	more := len(o.replies) > 0 || len(o.calls) > 0
	o.dirty, o.echo = false, 0
	o.mu.Unlock()
	if more {
		o.poke()
	}
	if dirty || f.Beat != 0 {
		f.Actual = s.c.opts.Agent.Report()
		f.Samples = s.c.opts.Agent.Samples()
		f.Notes = s.c.opts.Agent.Notes()
	}
	return f.Beat != 0 || f.Echo != 0 || f.Actual != nil || len(f.Samples) > 0 || len(f.Replies) > 0 || len(f.Notes) > 0 || len(f.Calls) > 0
}

// takeReplies splits off the first maxReplyBytes.
func takeReplies(all []api.StreamReply) (now, later []api.StreamReply) {
	size := 0
	for i := range all {
		if size += len(all[i].Data); size > maxReplyBytes && i > 0 {
			return all[:i:i], all[i:]
		}
	}
	return all, nil
}
