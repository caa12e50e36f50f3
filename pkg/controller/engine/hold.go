package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// A store that went back in time (an old copy put back) does not know what was ordered
// since: whom it started, which ids it gave out. A node that has seen a higher commit
// number gives it away. The controller holds then: it answers, shows what it knows, and
// takes in nothing at all, so that its commit number can't grow past what the nodes have
// seen and the hold end by itself. It starts nothing and kills nothing; what runs runs on.

// idsPerCommit is how many ids are skipped for each commit that an accepted store lacks.
// No bound is certain (one commit may hold arrays of ten thousand); ids are plentiful.
const idsPerCommit = 1000

// maxMissed commits are skipped for at most: ids stay far below what row ids hold (2^47).
const maxMissed = 1 << 32

// minSkip is skipped at least, for the one large array.
const minSkip = 1_000_000

var errHold = &api.Error{Code: api.CodeOnHold, Message: "the controller is on hold: its store is older than what its nodes have seen",
	Hint: "gctl ping says more; an admin puts the newest store back, or accepts this one with gangd --accept-store"}

// beginRun notes this process in the store. Where there is no room for that it goes without a
// name, and tells nodes none: one that no later process finds in the store would look like
// that of another copy.
func (e *Engine) beginRun(ctx context.Context) error {
	if e.opt.Run == "" {
		return nil
	}
	runs, err := e.store.Begin(ctx, e.opt.Run)
	if errors.Is(err, store.ErrFull) {
		e.log.Warn("state disk full: until the next start an old copy of the store is known by its commit number alone")
		return nil
	}
	e.runs = runs
	return err
}

func (e *Engine) run() string {
	if len(e.runs) == 0 {
		return ""
	}
	return e.opt.Run
}

// lastOf is the highest commit that this store has of a run. Of one that it does not know it
// can have none from after this process began: a copy from before that run, or the store to
// which one puts back what a copy was put in the place of.
func (e *Engine) lastOf(run string) uint64 {
	now := e.store.Lineage()
	if run == "" || len(e.runs) == 0 {
		return now
	}
	for i := range e.runs {
		switch {
		case e.runs[i].Name != run:
		case i == len(e.runs)-1:
			return now
		default:
			return max(e.runs[i+1].Began, e.accepted)
		}
	}
	return max(e.runs[len(e.runs)-1].Began, e.accepted)
}

// prove is what nobody without the key can say of a commit of a run. Without a key (on a unix
// socket with one user) it is empty, and a node is believed.
func (e *Engine) prove(run string, lineage uint64) string {
	if len(e.opt.LineageKey) == 0 {
		return ""
	}
	mac := hmac.New(sha256.New, e.opt.LineageKey)
	fmt.Fprintf(mac, "%s %d", run, lineage)
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// checkLineage looks at a hello before it is applied, and gives back the event to apply. What a
// node claims and can't prove puts that node out of use, not the cluster on hold.
func (e *Engine) checkLineage(ctx context.Context, ev gang.Event) (gang.Event, error) {
	hello, ok := ev.(gang.NodeHello)
	if !ok {
		return ev, nil
	}
	seen, have := hello.Hello.LineageSeen, e.lastOf(hello.Hello.RunSeen)
	if seen <= have {
		return ev, nil
	}
	if !hmac.Equal([]byte(hello.Hello.LineageProof), []byte(e.prove(hello.Hello.RunSeen, seen))) {
		hello.Hello.Health.Sick = fmt.Sprintf("it claims commit %d, which no controller gave it: its record is damaged, or it lies", seen)
		e.log.Error("a node's claim of a commit is not believed", "node", hello.Hello.Node, "claimed", seen, "commit", have,
			"next", "look at the node; remove the file lineage in its state directory and start gnoded again")
		return hello, nil
	}
	if !e.opt.AcceptStore {
		text := fmt.Sprintf("HOLD: the store is at commit %d, but node %s has seen commit %d: an old copy was put back",
			have, hello.Hello.Node, seen)
		if now := e.store.Lineage(); now >= seen {
			text = fmt.Sprintf("HOLD: by this store an earlier start of the controller ended at commit %d, and it is at commit %d now, but node "+
				"%s has seen commit %d of that start: an old copy was put back",
				have, now, hello.Hello.Node, seen)
		}
		e.view.setHold(text)
		e.log.Error(text, "next", "put the newest store back, or accept this one: gangd --accept-store")
		return ev, nil
	}
	next := e.world.NextID() + max(minSkip, int64(min(seen-have, maxMissed))*idsPerCommit)
	if err := e.store.Advance(ctx, seen, next); err != nil {
		return nil, err
	}
	e.world.SkipIDs(next)
	e.accepted = max(e.accepted, seen)
	e.setLineage(e.store.Lineage())
	e.log.Warn("an older store was accepted", "commit", have, "seen", seen, "node", hello.Hello.Node, "next_id", next)
	return ev, nil
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
