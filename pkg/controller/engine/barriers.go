package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// barriers are where the ranks of gangs, and the tasks of steps, wait for each other by name. Who waits lives in
// memory: after a restart of the controller it comes again, with the same key. That a
// barrier was released is on disk before anybody hears of it: of those who come again some
// may belong to it, and the others will never come a second time.
type barriers struct {
	mu   sync.Mutex
	jobs map[int64]*epochBarriers
	keep func(store.Release) error // makes a release durable
}

// epochBarriers is the barriers of one epoch.
type epochBarriers struct {
	epoch int
	open  map[barrierKey]*barrier
	past  map[barrierKey]*barrier // the last release of a name; it may still be on its way to the disk
	order []barrierKey            // of past, oldest first
}

// barrierKey is a name, which each party has for itself.
type barrierKey struct {
	step int // [store.OfRanks]: the gang's own
	name string
}

// ended says whether a task has; see [rankNotes.ended].
type ended func(j *gang.Job, k api.TaskKey) bool

type barrier struct {
	size    int
	arrived map[int]string // key by rank
	done    chan struct{}
	err     *api.Error // why it will never be released; set before done is closed
}

// restoreBarriers takes over what was released before the controller started.
func (e *Engine) restoreBarriers(ctx context.Context) error {
	e.barriers.keep = func(r store.Release) error { return e.store.PutRelease(context.Background(), r) }
	all, err := e.store.Releases(ctx)
	if err != nil {
		return err
	}
	for _, r := range all {
		if j := e.view.job(r.Job); j == nil || j.Verdict != nil {
			continue // the sweeper's
		}
		b := &barrier{arrived: r.Keys, done: make(chan struct{})}
		close(b.done)
		e.barriers.meeting(r.Job, r.Epoch).remember(barrierKey{r.Step, r.Name}, b)
	}
	return nil
}

// meeting gives that of an epoch, and forgets the job's of an epoch before; s.mu is held.
func (s *barriers) meeting(job int64, epoch int) *epochBarriers {
	m := s.jobs[job]
	if m == nil || m.epoch < epoch {
		m = &epochBarriers{epoch: epoch, open: map[barrierKey]*barrier{}, past: map[barrierKey]*barrier{}}
		if s.jobs == nil {
			s.jobs = map[int64]*epochBarriers{}
		}
		s.jobs[job] = m
	}
	return m
}

// remember keeps a release for those who ask again, as many as the store does.
func (m *epochBarriers) remember(at barrierKey, b *barrier) {
	m.forget(at)
	m.past[at] = b
	m.order = append(m.order, at)
	mine := slices.DeleteFunc(slices.Clone(m.order), func(p barrierKey) bool { return p.step != at.step })
	if len(mine) > store.KeptReleases {
		m.forget(mine[0])
	}
	if len(m.order) > store.MostReleases {
		m.forget(m.order[0])
	}
}

func (m *epochBarriers) forget(at barrierKey) {
	delete(m.past, at)
	m.order = slices.DeleteFunc(m.order, func(p barrierKey) bool { return p == at })
}

// wait comes to a barrier and stays until it is released.
func (s *barriers) wait(ctx context.Context, j *gang.Job, p party, rank int, ask *api.Barrier, over ended) (*api.CallResult, error) {
	at := barrierKey{p.step, ask.Name}
	b, last, err := s.arrive(j, at, rank, ask.Key, p.size, over)
	if err != nil {
		return nil, err
	}
	if last {
		s.release(j, at, b)
	}
	select {
	case <-b.done:
		if b.err != nil {
			return nil, b.err
		}
		return &api.CallResult{Size: p.size}, nil
	case <-ctx.Done():
		s.leave(j, at, rank, ask.Key, b)
		return nil, context.Cause(ctx)
	}
}

// arrive finds the barrier that a rank has come to; last: all have come, and the caller is
// the one to release it.
func (s *barriers) arrive(j *gang.Job, at barrierKey, rank int, key string, size int, over ended) (b *barrier, last bool, err *api.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.meeting(j.ID, j.Epoch)
	if m.epoch != j.Epoch { // the next epoch has begun since the caller looked
		return nil, false, api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", j.Epoch, j.ID)
	}
	if b := m.past[at]; b != nil && key != "" && b.arrived[rank] == key {
		return b, false, nil // the answer was lost
	}
	b = m.open[at]
	if b == nil {
		b = &barrier{size: size, arrived: map[int]string{}, done: make(chan struct{})}
		m.open[at] = b
	}
	b.arrived[rank] = key
	if err := never(j, at, b, over); err != nil {
		delete(b.arrived, rank)
		return nil, false, err
	}
	if len(b.arrived) < size {
		return b, false, nil
	}
	delete(m.open, at)
	m.remember(at, b)
	return b, true, nil
}

// release makes a release durable and tells those who wait. One that could not be kept is
// none: everybody comes again. Only a full disk holds nobody up: that the answer is lost with
// the controller is rarer than a disk that stays full.
func (s *barriers) release(j *gang.Job, at barrierKey, b *barrier) {
	err := s.keep(store.Release{SetKey: setKey(j, j.Epoch, at.step), Name: at.name, Keys: b.arrived})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !errors.Is(err, store.ErrFull) {
		b.err = api.Errorf(api.CodeUnavailable, "barrier %s: its release could not be kept: %v", at.name, err)
		if m := s.jobs[j.ID]; m != nil && m.past[at] == b {
			m.forget(at)
		}
	}
	close(b.done)
}

// leave takes back an arrival whose caller went away, unless all had come.
func (s *barriers) leave(j *gang.Job, at barrierKey, rank int, key string, b *barrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.jobs[j.ID]; m != nil && m.open[at] == b && b.arrived[rank] == key {
		delete(b.arrived, rank)
	}
}

// check ends the barriers that can't be released any more. It says whether the job is over
// and has releases, which nobody needs any more.
func (s *barriers) check(j *gang.Job, gone ended) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.jobs[j.ID]
	if m == nil {
		return false
	}
	for at, b := range m.open {
		if err := never(j, at, b, gone); err != nil || m.epoch != j.Epoch {
			if err == nil {
				err = api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", m.epoch, j.ID)
			}
			b.err = err
			delete(m.open, at)
			close(b.done)
		}
	}
	if j.Verdict != nil {
		delete(s.jobs, j.ID)
	}
	return j.Verdict != nil
}

// never says why a barrier of the current epoch will not be released.
func never(j *gang.Job, at barrierKey, b *barrier, gone ended) *api.Error {
	p := party{at.step, b.size}
	switch {
	case j.Drain != nil || j.Verdict != nil:
		return api.Errorf(api.CodeConflict, "barrier %s: job %d is being stopped", at.name, j.ID)
	case p.ofStep() && gang.StepOf(j, p.step) == nil:
		return api.Errorf(api.CodeConflict, "barrier %s: %s is over", at.name, p.text(j))
	}
	for r := range b.size {
		if _, came := b.arrived[r]; came {
			continue
		}
		if p.ofStep() && gone(j, api.TaskKey{Step: p.step, Task: r}) || !p.ofStep() && j.Ranks[r].Exited {
			return api.Errorf(api.CodeConflict, "barrier %s: %s has ended and will not come", at.name, p.member(j, r))
		}
	}
	return nil
}
