package controller

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/wire/auth"
)

const (
	// dialOthers bounds how long another controller may take to answer a connection, or a question.
	dialOthers = time.Second
	maxWord    = 64 << 10
)

func isUnix(address string) bool { return strings.HasPrefix(address, "unix:") }

// toOthers makes connections to other controllers: over TLS as one of them, or to sockets on this host, whose
// names are in hex for URLs.
func toOthers(p *process) *http.Transport {
	d := net.Dialer{Timeout: dialOthers}
	t := &http.Transport{DisableCompression: true, TLSHandshakeTimeout: dialOthers, IdleConnTimeout: time.Minute,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			if hexed, ok := strings.CutSuffix(host, socketSuffix); ok {
				path, err := hex.DecodeString(hexed)
				if err != nil {
					return nil, err
				}
				return d.DialContext(ctx, "unix", string(path))
			}
			return d.DialContext(ctx, network, address)
		}}
	if p.issuer != nil {
		t.TLSClientConfig = auth.ControllerTLS(p.issuer.CA, p.cfg.Name)
	}
	return t
}

// socketSuffix ends the host of a URL that means a socket; no name in the DNS has it.
const socketSuffix = ".socket.invalid"

// address makes a request one to the controller at an address.
func (f *front) address(r *http.Request, at string) {
	r.Host = ""
	r.Header.Set(passedOn, f.p.cfg.Name)
	if path, unix := strings.CutPrefix(at, "unix:"); unix {
		r.URL.Scheme, r.URL.Host = "http", hex.EncodeToString([]byte(path))+socketSuffix
		return
	}
	r.URL.Scheme, r.URL.Host = "https", at
}

// idle closes what nobody uses at the end.
func (f *front) idle() { f.others.CloseIdleConnections() }

// controllers is who is on the list, as this controller, which leads, sees them.
func (f *front) controllers(ctx context.Context) (*api.ControllersReply, error) {
	l, err := f.office.List(ctx)
	if err != nil {
		return nil, err
	}
	_, term := f.office.Seat()
	out := &api.ControllersReply{SchemaVersion: api.SchemaVersion, Version: uint64(l.Version), Term: term,
		Controllers: make([]api.ControllerState, len(l.All))}
	var asked sync.WaitGroup
	for i := range l.All {
		asked.Go(func() { out.Controllers[i] = f.stateOf(ctx, &l.All[i]) })
	}
	asked.Wait()
	return out, nil
}

// stateOf asks another controller how far it has followed.
func (f *front) stateOf(ctx context.Context, c *store.Controller) api.ControllerState {
	s := api.ControllerState{Name: c.Name, Addresses: c.Address}
	if s.Addresses == nil {
		s.Addresses = []string{}
	}
	switch {
	case c.Removed:
		s.State = api.ControllerRemoved
		return s
	case c.Name == f.p.cfg.Name:
		s.State, s.Lineage = api.ControllerLeads, f.by.st.Lineage()
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, dialOthers)
	defer cancel()
	err := errors.New("it has no address")
	for _, at := range c.Address {
		var w *api.Word
		if w, err = f.wordAt(ctx, at); err == nil && w.Name != c.Name {
			err = fmt.Errorf("controller %s answers at %s", w.Name, at)
		}
		if err == nil {
			s.Lineage, s.BehindSeconds = w.Lineage, float64(w.BehindMsec)/1000
			if newest := f.by.st.Lineage(); newest > w.Lineage {
				s.BehindCommits = newest - w.Lineage
			}
			s.State = api.ControllerStandsBy
			if c.Joining {
				s.State, s.Why = api.ControllerJoins, joinWaits(f.office.Lacking())
			}
			return s
		}
	}
	s.State, s.Why = api.ControllerSilent, err.Error()
	var op net.Error
	if errors.As(err, &op) && op.Timeout() {
		s.Why = fmt.Sprintf("no answer within %s", when.Words(dialOthers))
	}
	return s
}

// joinWaits says for which nodes a controller waits before it may lead.
func joinWaits(nodes []string) string {
	const named = 3
	switch n := len(nodes); {
	case n == 0:
		return ""
	case n > named:
		return fmt.Sprintf("waits for %s and %d more nodes to know of it", strings.Join(nodes[:named], ", "), n-named)
	}
	return fmt.Sprintf("waits for %s to know of it", strings.Join(nodes, ", "))
}

// wordAt asks a controller that stands by for its word, which comes with its refusal.
func (f *front) wordAt(ctx context.Context, at string) (*api.Word, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gangd/v1/ping", nil)
	if err != nil {
		return nil, err
	}
	f.address(r, at)
	resp, err := f.others.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	e := new(api.Error)
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxWord)).Decode(e); err != nil || e.Word == nil {
		return nil, fmt.Errorf("%s: it answered %s, and no word of a controller", at, resp.Status)
	}
	return e.Word, nil
}

// metrics are of this process alone while it stands by: the cluster's are the leader's.
func (f *front) metrics(w http.ResponseWriter, r *http.Request) {
	id, _ := auth.From(r.Context())
	if !auth.Allow(auth.OpMetrics, id, id.UID) {
		answer(w, auth.Denied(auth.OpMetrics, id))
		return
	}
	f.p.metrics(w, r)
}
