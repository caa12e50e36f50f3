package main

import (
	"context"
	"sync/atomic"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/finding"
)

const (
	findingsEvery = 5 * time.Minute // as often as a health program runs
	findingsMost  = 32              // that the controller is told of
)

// findings are what `gnoded check` finds while the daemon runs, for gctl doctor. They are looked up beside: a resolver or a mount that
// hangs stops nothing else.
type findings struct {
	check func(ctx context.Context) finding.List
	last  atomic.Pointer[finding.List]
}

// keep looks again and again until ctx ends.
func (f *findings) keep(ctx context.Context) {
	tick := time.NewTicker(findingsEvery)
	defer tick.Stop()
	for {
		done := make(chan finding.List, 1)
		go func() { done <- f.check(ctx) }() // it may hang in a file system for ever, and the daemon's end does not wait for it
		select {
		case <-ctx.Done():
			return
		case l := <-done:
			l = l.Sorted()
			l = l[:min(len(l), findingsMost)]
			f.last.Store(&l)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// now are the last ones.
func (f *findings) now() []api.DoctorFinding {
	if l := f.last.Load(); l != nil {
		return *l
	}
	return nil
}
