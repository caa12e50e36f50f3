package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/store"
)

// barriers are where the ranks of gangs wait for each other by name. Who waits lives in
// memory: after a restart of the controller it comes again, with the same key. That a
// barrier was released is on disk before anybody hears of it: of those who come again some
// may belong to it, and the others will never come a second time.
type barriers struct {
	mu   sync.Mutex
	jobs map[int64]*meeting
	keep func(store.Release) error // makes a release durable
}

// meeting is the barriers of one epoch.
type meeting struct {
	epoch int
	open  map[string]*barrier
	past  map[string]*barrier // the last release of a name; it may still be on its way to the disk
	order []string            // of past, oldest first
}

type barrier struct {
	arrived map[int]string // key by rank
	done    chan struct{}
	err     *api.Error // why it will never be released; set before done is closed
}

// restoreBarriers takes over what was released before the controller started.
func (e *Engine) restoreBarriers(ctx context.Context) error {
	e.meet.keep = func(r store.Release) error { return e.store.PutRelease(context.Background(), r) }
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
		e.meet.meeting(r.Job, r.Epoch).remember(r.Name, b)
	}
	return nil
}

// meeting gives that of an epoch, and forgets the job's of an epoch before; s.mu is held.
func (s *barriers) meeting(job int64, epoch int) *meeting {
	m := s.jobs[job]
	if m == nil || m.epoch < epoch {
		m = &meeting{epoch: epoch, open: map[string]*barrier{}, past: map[string]*barrier{}}
		if s.jobs == nil {
			s.jobs = map[int64]*meeting{}
		}
		s.jobs[job] = m
	}
	return m
}

// remember keeps a release for those who ask again, as many as the store does.
func (m *meeting) remember(name string, b *barrier) {
	m.forget(name)
	m.past[name] = b
	if m.order = append(m.order, name); len(m.order) > store.KeptReleases {
		delete(m.past, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *meeting) forget(name string) {
	delete(m.past, name)
	m.order = slices.DeleteFunc(m.order, func(n string) bool { return n == name })
}

// wait comes to a barrier and stays until it is released.
func (s *barriers) wait(ctx context.Context, j *gang.Job, rank int, ask *api.Barrier) (*api.CallResult, error) {
	size := gang.Processes(j)
	b, last, err := s.arrive(j, rank, ask, size)
	if err != nil {
		return nil, err
	}
	if last {
		s.release(j, ask.Name, b)
	}
	select {
	case <-b.done:
		if b.err != nil {
			return nil, b.err
		}
		return &api.CallResult{Size: size}, nil
	case <-ctx.Done():
		s.leave(j, rank, ask, b)
		return nil, context.Cause(ctx)
	}
}

// arrive finds the barrier that a rank has come to; last: all have come, and the caller is
// the one to release it.
func (s *barriers) arrive(j *gang.Job, rank int, ask *api.Barrier, size int) (b *barrier, last bool, err *api.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.meeting(j.ID, j.Epoch)
	if m.epoch != j.Epoch { // the next epoch has begun since the caller looked
		return nil, false, api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", j.Epoch, j.ID)
	}
	if b := m.past[ask.Name]; b != nil && ask.Key != "" && b.arrived[rank] == ask.Key {
		return b, false, nil // the answer was lost
	}
	b = m.open[ask.Name]
	if b == nil {
		b = &barrier{arrived: map[int]string{}, done: make(chan struct{})}
		m.open[ask.Name] = b
	}
	b.arrived[rank] = ask.Key
	if err := never(j, ask.Name, b); err != nil {
		delete(b.arrived, rank)
		return nil, false, err
	}
	if len(b.arrived) < size {
		return b, false, nil
	}
	delete(m.open, ask.Name)
	m.remember(ask.Name, b)
	return b, true, nil
}

// release makes a release durable and tells those who wait. One that could not be kept is
// none: everybody comes again. Only a full disk holds nobody up: that the answer is lost with
// the controller is rarer than a disk that stays full.
func (s *barriers) release(j *gang.Job, name string, b *barrier) {
	err := s.keep(store.Release{MemberKey: api.MemberKey{Job: j.ID, Epoch: j.Epoch}, Name: name, Keys: b.arrived})
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !errors.Is(err, store.ErrFull) {
		b.err = api.Errorf(api.CodeUnavailable, "barrier %s: its release could not be kept: %v", name, err)
		if m := s.jobs[j.ID]; m != nil && m.past[name] == b {
			m.forget(name)
		}
	}
	close(b.done)
}

// leave takes back an arrival whose caller went away, unless all had come.
func (s *barriers) leave(j *gang.Job, rank int, ask *api.Barrier, b *barrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.jobs[j.ID]; m != nil && m.open[ask.Name] == b && b.arrived[rank] == ask.Key {
		delete(b.arrived, rank)
	}
}

// check ends the barriers that can't be released any more. It says whether the job is over
// and has releases, which nobody needs any more.
func (s *barriers) check(j *gang.Job) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.jobs[j.ID]
	if m == nil {
		return false
	}
	for name, b := range m.open {
		if err := never(j, name, b); err != nil || m.epoch != j.Epoch {
			if err == nil {
				err = api.Errorf(api.CodeStaleEpoch, "epoch %d of job %d is over", m.epoch, j.ID)
			}
			b.err = err
			delete(m.open, name)
			close(b.done)
		}
	}
	if j.Verdict != nil {
		delete(s.jobs, j.ID)
	}
	return j.Verdict != nil
}

// never says why a barrier of the current epoch will not be released.
func never(j *gang.Job, name string, b *barrier) *api.Error {
	if j.Drain != nil || j.Verdict != nil {
		return api.Errorf(api.CodeConflict, "barrier %s: job %d is being stopped", name, j.ID)
	}
	for r := range gang.Processes(j) {
		if _, came := b.arrived[r]; !came && j.Ranks[r].Exited {
			return api.Errorf(api.CodeConflict, "barrier %s: rank %d of job %d has ended and will not come", name, r, j.ID)
		}
	}
	return nil
}
