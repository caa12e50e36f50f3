package session

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
)

// Of several controllers a node asks each that it has no session with for its word, over a connection
// that is kept, and over a network holds a silent line to it, whose end tells whether its process ended.

const (
	// askQuick is how often controllers are asked, and a session is tried, while there is none.
	askQuick = 250 * time.Millisecond
	// wordPatience is how long one answer may take. One that comes later is dated by its question all the same.
	wordPatience = 10 * time.Second
)

// target is one address of a controller.
type target struct {
	name    string // empty: not known, or there is one controller
	address string // "unix:/path" or "host:port"
}

func (t target) unix() bool { return strings.HasPrefix(t.address, "unix:") }

func (t target) overTLS(c *Client) bool { return !t.unix() && c.tls.Load() != nil }

// url is the base of URLs there; scheme is "http" or "ws".
func (t target) url(c *Client, scheme string) string {
	switch {
	case t.unix():
		return scheme + "://gangd"
	case c.tls.Load() != nil:
		return scheme + "s://" + t.address
	}
	return scheme + "://" + t.address
}

// transport makes connections there; l, if any, is what the newest of them is looked at through.
func (c *Client) transport(at target, l *line) *http.Transport {
	var d net.Dialer
	network, address := "tcp", at.address
	if at.unix() {
		network, address = "unix", strings.TrimPrefix(at.address, "unix:")
	}
	return &http.Transport{TLSClientConfig: c.tls.Load(), MaxIdleConnsPerHost: 1,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := d.DialContext(ctx, network, address)
			if l == nil {
				return conn, err
			}
			l.Conn = conn
			return l, err
		}}
}

// several says whether the site has several controllers, as far as this node knows.
func (c *Client) several() bool { return len(c.opts.Controllers) > 1 || c.contact.kept().Version > 0 }

// next is where a session is tried: with who is said to lead, else at one address after the other.
func (c *Client) next() target {
	if l := c.hint.Swap(nil); l != nil && len(l.Addresses) > 0 {
		c.turn++
		return target{l.Name, l.Addresses[c.turn%len(l.Addresses)]}
	}
	all := c.targets()
	c.turn++
	return all[c.turn%len(all)]
}

// targets are all addresses: those of the site's list, and those of the configuration.
func (c *Client) targets() (out []target) {
	k := c.contact.kept()
	for i := range k.List {
		for _, a := range k.List[i].Addresses {
			out = append(out, target{k.List[i].Name, a})
		}
	}
	for _, a := range c.opts.Controllers {
		if !slices.ContainsFunc(out, func(t target) bool { return t.address == a }) {
			out = append(out, target{address: a})
		}
	}
	return out
}

// trial is a session that is tried: with one that stands still, perhaps, whose kernel takes the connection
// and whose process says nothing.
type trial struct {
	at   target
	give context.CancelCauseFunc // it up
}

// errElsewhere ends a trial when another controller is known to lead.
var errElsewhere = errors.New("another controller leads")

// said takes in a word. A session with another than who leads by it is ended.
func (c *Client) said(w *api.Word, asked time.Duration) {
	elsewhere, err := c.contact.said(c.opts.Agent, w, asked)
	if err != nil {
		c.opts.Log.Warn("a controller's word was not kept", "controller", w.Name, "err", err)
	}
	s := c.now.Load()
	if w.Leader == nil || s != nil && !elsewhere {
		return
	}
	c.hint.Store(w.Leader)
	if t := c.trial.Load(); t != nil && !slices.Contains(w.Leader.Addresses, t.at.address) {
		t.give(errElsewhere)
	}
	if s != nil && s.term < w.Term {
		s.link.end(errOldTerm)
	}
	select {
	case c.again <- struct{}{}:
	default:
	}
}

// words asks the controllers that no session is with.
type words struct {
	once   sync.Once
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// start begins to ask, once. Before the first session there is nobody to ask for.
func (a *words) start(ctx context.Context, c *Client) {
	if !c.several() {
		return
	}
	a.once.Do(func() {
		var asking context.Context
		asking, a.cancel = context.WithCancel(ctx)
		a.wg.Go(func() { a.follow(asking, c) })
	})
}

func (a *words) end() {
	if a.cancel != nil {
		a.cancel()
	}
	a.wg.Wait()
}

// follow keeps somebody asking each controller of the list, as it changes.
func (a *words) follow(ctx context.Context, c *Client) {
	asked := map[string]context.CancelFunc{}
	version := uint64(0)
	for ctx.Err() == nil {
		if k := c.contact.kept(); k.Version != version {
			version = k.Version
			for name, stop := range asked { // its addresses may be others
				stop()
				delete(asked, name)
			}
			for i := range k.List {
				var one context.Context
				one, asked[k.List[i].Name] = context.WithCancel(ctx)
				a.wg.Go(func() { c.askAgain(one, k.List[i]) })
			}
		}
		wait(ctx, askQuick)
	}
	for _, stop := range asked {
		stop()
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// askAgain asks one controller while no session is with it, and holds a silent line to it.
func (c *Client) askAgain(ctx context.Context, who api.Controller) {
	var beside *witness
	defer func() {
		if beside != nil {
			beside.end()
		}
	}()
	var last target
	var secured *tls.Config
	var transport *http.Transport
	defer func() {
		if transport != nil {
			transport.CloseIdleConnections()
		}
	}()
	for turn := 0; ctx.Err() == nil && len(who.Addresses) > 0; {
		if c.inSession(who.Name) {
			wait(ctx, askQuick)
			continue
		}
		at := target{who.Name, who.Addresses[turn%len(who.Addresses)]}
		if conf := c.tls.Load(); at != last || conf != secured {
			if transport != nil {
				transport.CloseIdleConnections()
			}
			last, secured, transport = at, conf, c.transport(at, nil)
		}
		if beside != nil && beside.isOver() {
			c.ended(who.Name, beside.died())
			beside = nil
		}
		ok := c.ask(ctx, at, transport)
		if !ok {
			turn++
		} else if beside == nil && at.overTLS(c) {
			beside = c.witness(ctx, at, api.LinePath)
		}
		pause := askQuick
		if c.Connected() {
			pause = max(pause, time.Duration(c.beat.Load()))
		}
		wait(ctx, pause)
	}
}

// inSession says whether the session that is open is with this controller.
func (c *Client) inSession(name string) bool {
	s := c.now.Load()
	return s != nil && s.with == name
}

// ask asks once; false: nothing came.
func (c *Client) ask(ctx context.Context, at target, transport *http.Transport) bool {
	ctx, cancel := context.WithTimeout(ctx, wordPatience)
	defer cancel()
	asked := BootTime()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.url(c, "http")+api.WordPath, nil)
	if err != nil {
		return false
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		if c.nobodyListens(at, err) {
			c.contact.word(at.name, asked)
		}
		return false
	}
	defer resp.Body.Close()
	w := new(api.Word)
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(w) != nil || w.Name != at.name {
		return false
	}
	c.said(w, asked)
	return true
}
