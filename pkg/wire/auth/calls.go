package auth

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// errCut ends the calls of a node whose certificate was revoked.
var errCut = errors.New("the certificate of this node was revoked")

// calls are the calls over TLS that are under way, by the name in their certificate: a
// stream of events would otherwise outlive the revocation of the host that it goes to.
type calls struct {
	mu   sync.Mutex
	next uint64
	cut  map[string]map[uint64]context.CancelCauseFunc
}

func newCalls() *calls { return &calls{cut: map[string]map[uint64]context.CancelCauseFunc{}} }

// enter records a call until done; ctx ends when its certificate is revoked.
func (c *calls) enter(r *http.Request) (ctx context.Context, done func()) {
	if c == nil || len(r.TLS.VerifiedChains) == 0 {
		return r.Context(), func() {}
	}
	who, err := subjectOf(r.TLS.PeerCertificates[0])
	if err != nil {
		return r.Context(), func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next
	c.next++
	if c.cut[who.name] == nil {
		c.cut[who.name] = map[uint64]context.CancelCauseFunc{}
	}
	c.cut[who.name][id] = cancel
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.cut[who.name], id); len(c.cut[who.name]) == 0 {
			delete(c.cut, who.name)
		}
	}
}

// Cut ends the calls that are under way with a certificate of the node.
func (g *Guard) Cut(node string) {
	if g.live == nil {
		return
	}
	g.live.mu.Lock()
	defer g.live.mu.Unlock()
	for _, cancel := range g.live.cut[node] {
		cancel(errCut)
	}
}
