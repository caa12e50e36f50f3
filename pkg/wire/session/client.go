package session

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/lifesign"
)

// Options say where the controllers are and how to reach them.
type Options struct {
	// Controllers are addresses, "unix:/path" or "host:port", at least one. Where there are several the
	// leader tells the rest.
	Controllers []string
	TLS         *tls.Config // with "host:port": both sides verified; nil: plain TCP, for tests, until [Client.UseTLS]
	Agent       Agent
	Log         *slog.Logger
	Sign        *lifesign.Loop // told that the session's loop goes round; nil: nobody watches
	Kept        Kept           // what an earlier process of this node's has kept
}

// Client keeps one session of a node up: it reconnects until it is closed.
type Client struct {
	opts    Options
	cancel  context.CancelFunc
	done    chan struct{}
	out     outbox
	contact contact
	now     atomic.Pointer[clientSession]  // the session that is open; nil: none
	calls   atomic.Uint64                  // number of the last call: across sessions, so that a late piece meets no other call
	lease   time.Duration                  // of the last Welcome; owned by run
	at      target                         // of the session that is tried or open; owned by run
	turn    int                            // of the addresses; owned by run
	trial   atomic.Pointer[trial]          // the session that is tried; nil: none
	hint    atomic.Pointer[api.Controller] // who is said to lead, where no session was tried yet
	again   chan struct{}                  // of capacity 1: a try is worth while now
	beat    atomic.Int64                   // the site's heartbeat
	asking  words
	tls     atomic.Pointer[tls.Config] // nil: none
}

// NewClient makes a client that does nothing until it is started: its agent may need it.
func NewClient(opts Options) *Client {
	c := &Client{opts: opts, done: make(chan struct{}), contact: contact{site: opts.Kept}}
	c.tls.Store(opts.TLS)
	c.out.init()
	c.again = make(chan struct{}, 1)
	return c
}

// UseTLS has addresses host:port reached over TLS from now on: a node that began without a certificate has one.
func (c *Client) UseTLS(conf *tls.Config) { c.tls.Store(conf) }

// Start starts to keep a session up and returns at once.
func (c *Client) Start(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	go c.run(ctx)
}

// Wake says that the agent has something to report. It never blocks.
func (c *Client) Wake() { c.out.changed() }

// errAgain ends a session whose hello is not true any more.
var errAgain = errors.New("what this node said in its hello has changed: it says hello again")

// Again has the agent say hello anew: the session that is open ends, and the next is opened as after any end.
func (c *Client) Again() {
	if s := c.now.Load(); s != nil {
		s.link.end(errAgain)
	}
}

// Connected reports whether a session is open now.
func (c *Client) Connected() bool { return c.now.Load() != nil }

// LastContact is when the controller was last known to hear this node, on CLOCK_BOOTTIME:
// when the last answered beat was sent, or when its host last said that no controller runs
// there (none can place this node's work elsewhere then): the connection was refused, after
// the controller had itself ended the last session. Over a network a refusal alone proves
// nothing: a firewall refuses in anybody's name. Of several controllers all must have said so, or that
// they don't lead, and the oldest word counts. Zero: never.
func (c *Client) LastContact() time.Duration { return time.Duration(c.contact.last.Load()) }

// Close ends the session of a client that was started and waits for its goroutines.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}

// ended takes in how a line with a controller came to its end.
func (c *Client) ended(controller string, died bool) {
	if !c.contact.ended(controller, died) {
		return
	}
	if err := c.contact.keep(c.opts.Agent); err != nil {
		c.opts.Log.Warn("end of the session not kept", "err", err)
	}
}
