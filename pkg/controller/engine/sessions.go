package engine

import (
	"context"
	"errors"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// The engine is the handler behind the node sessions (session.Handler).

// NodeHello takes in a node with all that it has; the answer comes after the commit.
func (e *Engine) NodeHello(ctx context.Context, h *api.Hello) (*api.Welcome, error) {
	_, err := e.Do(ctx, e.helloEvent(h))
	if load := h.Load; load != nil && err == nil {
		e.NodeLoad(h.Node, load)
	}
	return e.welcome(err)
}

func (e *Engine) helloEvent(h *api.Hello) gang.NodeHello {
	said := *h
	said.Load = nil // which is not kept in the store
	return gang.NodeHello{Hello: said}
}

// welcome answers a hello that came to err.
func (e *Engine) welcome(err error) (*api.Welcome, error) {
	// On hold a node is kept in session, so that its ranks need not fear for their lease.
	if err != nil && e.view.onHold() == "" {
		return nil, err
	}
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	w := &api.Welcome{Version: e.opt.Version, Settings: e.conf().Settings}
	if e.view.hold == "" { // else the node keeps what it knows better
		w.Lineage, w.Run = e.view.lineage, e.run()
		w.LineageProof = e.view.proof
	}
	return w, nil
}

// Settings are the site's, for nodes in session.
func (e *Engine) Settings() *api.Settings { return &e.conf().Settings }

// NodeReport queues what changed on a node. It blocks only while the inbox is full, which
// holds the node's session back and nobody else's.
func (e *Engine) NodeReport(node string, a *api.Actual) {
	e.post(gang.NodeReport{Node: node, Actual: *a})
}

// NodeSample queues what a node's cards were seen doing.
func (e *Engine) NodeSample(node string, s []api.CardSample) {
	e.post(gang.NodeSample{Node: node, Cards: s})
}

// NodeLoad keeps how busy a node is. Nothing is decided by it.
func (e *Engine) NodeLoad(node string, l *api.NodeLoad) { e.loads.Store(node, *l) }

// NodeGone queues the end of a node's session.
func (e *Engine) NodeGone(node string) {
	e.notes.cut(node)
	e.loads.Delete(node)
	e.post(gang.NodeGone{Node: node})
}

// Desired is the newest committed desired set of a node; ok is false on hold.
func (e *Engine) Desired(node string) (a []api.Assignment, ok bool) {
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	return e.view.desired[node], e.view.hold == ""
}

// Reboot is what a node is to be told of a reboot, by the newest commit.
func (e *Engine) Reboot(node string) *api.RebootOrder {
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	if e.view.hold != "" {
		return nil
	}
	return gang.RebootOrder(e.view.nodes[node])
}

// Spec reads a specification for a node that shall run it. Of one whose row is damaged it is
// without a script, and the node refuses it as the job's own fault: no node could run it.
func (e *Engine) Spec(hash string) (*api.Spec, error) {
	s, err := e.store.Spec(context.Background(), hash)
	switch {
	case errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrFailed) || errors.Is(err, store.ErrFenced) ||
		errors.Is(err, store.ErrAway):
		return nil, err
	case err != nil:
		e.log.Error("a script can't be read from the store", "spec", hash, "err", err, "next", "gangd verify names what is damaged")
		return &api.Spec{}, nil
	}
	return s, nil
}

// Lineage is the number of the newest commit with its proof, 0 on hold.
func (e *Engine) Lineage() (n uint64, proof string) {
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	if e.view.hold != "" {
		return 0, ""
	}
	return e.view.lineage, e.view.proof
}
