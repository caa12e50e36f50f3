package engine

import (
	"context"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/fault"
	"gangd/pkg/gang"
)

// A store that went back in time (an old copy put back) does not know what was ordered
// since: whom it started, which ids it gave out. A node that has seen a higher commit
// number gives it away. The controller holds then: it answers, shows what it knows, and
// takes in nothing at all, so that its commit number can't grow past what the nodes have
// seen and the hold end by itself. It starts nothing and kills nothing; what runs runs on.

// idsPerCommit is how many ids are skipped for each commit that an accepted store lacks.
// No bound is certain (one commit may hold arrays of ten thousand); ids are plentiful.
const idsPerCommit = 1000

// minSkip is skipped at least, for the one large array.
const minSkip = 1_000_000

var errHold = &api.Error{Code: api.CodeOnHold, Message: "the controller is on hold: its store is older than what its nodes have seen",
	Hint: "gctl ping says more; an admin puts the newest store back, or accepts this one with gangd --accept-store"}

// checkLineage looks at a hello before it is applied. It says whether the event may be.
func (e *Engine) checkLineage(ctx context.Context, ev gang.Event) error {
	hello, ok := ev.(gang.NodeHello)
	if !ok || hello.Hello.LineageSeen <= e.store.Lineage() || fault.Is(fault.HoldIgnored) {
		return nil
	}
	seen, have := hello.Hello.LineageSeen, e.store.Lineage()
	if !e.opt.AcceptStore {
		text := fmt.Sprintf("HOLD: the store is at commit %d, but node %s has seen commit %d: an old copy was put back",
			have, hello.Hello.Node, seen)
		e.view.setHold(text)
		e.log.Error(text, "next", "put the newest store back, or accept this one: gangd --accept-store")
		return nil
	}
	next := e.world.NextID() + max(minSkip, int64(seen-have)*idsPerCommit)
	if err := e.store.Advance(ctx, seen, next); err != nil {
		return err
	}
	e.world.SkipIDs(next)
	e.view.setLineage(seen)
	e.log.Warn("an older store was accepted", "commit", have, "seen", seen, "node", hello.Hello.Node, "next_id", next)
	return nil
}

func (v *view) setHold(text string) {
	v.mu.Lock()
	v.hold = text
	v.mu.Unlock()
}

// onHold says why the controller holds; empty when it does not.
func (v *view) onHold() string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.hold
}
