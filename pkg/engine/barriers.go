package engine

import (
	"context"
	"sync"

	"gangd/pkg/api"
	"gangd/pkg/gang"
)

// barriers are where the ranks of gangs wait for each other by name. They live in memory:
// after a restart of the controller who still waits comes again.
type barriers struct {
	mu   sync.Mutex
	jobs map[int64]*meeting
}

// meeting is the barriers of one epoch.
type meeting struct {
	epoch int
	open  map[string]*barrier
	past  map[string]map[int]string // key by rank of the last release of a name
}

type barrier struct {
	arrived map[int]string // key by rank
	done    chan struct{}
	err     *api.Error // why it will never be released; set before done is closed
}

// wait comes to a barrier and stays until it is released.
func (s *barriers) wait(ctx context.Context, j *gang.Job, rank int, ask *api.Barrier) (*api.CallResult, error) {
	size := gang.Processes(j)
	b, err := s.arrive(j, rank, ask, size)
	if err != nil {
		return nil, err
	}
	if b == nil { // released before, and the answer was lost
		return &api.CallResult{Size: size}, nil
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

func (s *barriers) arrive(j *gang.Job, rank int, ask *api.Barrier, size int) (*barrier, *api.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.jobs[j.ID]
	if m == nil || m.epoch < j.Epoch {
		m = &meeting{epoch: j.Epoch, open: map[string]*barrier{}, past: map[string]map[int]string{}}
		if s.jobs == nil {
			s.jobs = map[int64]*meeting{}
		}
		s.jobs[j.ID] = m
	}
	if key, ok := m.past[ask.Name][rank]; ok && key != "" && key == ask.Key {
		return nil, nil
	}
	b := m.open[ask.Name]
	if b == nil {
		b = &barrier{arrived: map[int]string{}, done: make(chan struct{})}
		m.open[ask.Name] = b
	}
	b.arrived[rank] = ask.Key
	if err := never(j, ask.Name, b); err != nil {
		delete(b.arrived, rank)
		return nil, err
	}
	if len(b.arrived) >= size {
		m.past[ask.Name] = b.arrived
		delete(m.open, ask.Name)
		close(b.done)
	}
	return b, nil
}

// leave takes back an arrival whose caller went away, unless the barrier was released.
func (s *barriers) leave(j *gang.Job, rank int, ask *api.Barrier, b *barrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.jobs[j.ID]; m != nil && m.open[ask.Name] == b && b.arrived[rank] == ask.Key {
		delete(b.arrived, rank)
	}
}

// check ends the barriers that can't be released any more.
func (s *barriers) check(j *gang.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.jobs[j.ID]
	if m == nil {
		return
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
	if j.Verdict != nil || m.epoch != j.Epoch {
		delete(s.jobs, j.ID)
	}
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
