package engine

import (
	"context"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// fencer runs the site's fence hook for nodes that keep a gang from starting, each in a
// goroutine of its own: a hook may take a minute. They end with the engine.
type fencer struct {
	ctx  context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
	busy map[string]bool
}

func (f *fencer) init(ctx context.Context) {
	f.ctx, f.end = context.WithCancel(ctx)
	f.busy = map[string]bool{}
}

func (f *fencer) close() {
	f.end()
	f.wg.Wait()
}

// fenceLost looks whether a node is to be fenced, when events say that one came or went.
func (e *Engine) fenceLost(evs []api.Event) {
	if e.conf().Fence == nil {
		return
	}
	for i := range evs {
		if evs[i].Type == api.EventNodeLost || evs[i].Type == api.EventNodeUp {
			for _, node := range e.world.Fenceable() {
				e.fencer.start(e, node)
			}
			return
		}
	}
}

func (f *fencer) start(e *Engine, node string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy[node] {
		return
	}
	f.busy[node] = true
	f.wg.Go(func() {
		f.fence(e, node)
		f.mu.Lock()
		delete(f.busy, node)
		f.mu.Unlock()
	})
}

// fence asks the hook until it succeeds or the node needs no fencing any more. After a failure it is asked again, for a power switch may
// be busy, or a network just coming back.
func (f *fencer) fence(e *Engine, node string) {
	for {
		conf := e.conf()
		if conf.Fence == nil {
			return // the site has none any more
		}
		e.log.Warn("fence hook started", "node", node)
		err := conf.Fence(f.ctx, node)
		if err == nil {
			// Refused when the node came back meanwhile: then it has said itself what runs.
			_, err = e.Do(f.ctx, gang.NodeFence{Node: node, By: "the fence hook"})
			e.log.Warn("fence hook done", "node", node, "err", err)
			return
		}
		e.log.Error("fence hook failed", "node", node, "again_in", conf.FenceRetry, "err", err)
		select {
		case <-f.ctx.Done():
			return
		case <-time.After(conf.FenceRetry):
		}
		if !e.stillFenceable(f.ctx, node) {
			return
		}
	}
}

func (e *Engine) stillFenceable(ctx context.Context, node string) bool {
	still := false
	err := e.inspect(ctx, func() {
		for _, n := range e.world.Fenceable() {
			still = still || n == node
		}
	})
	return err == nil && still
}
