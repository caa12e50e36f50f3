package stepclient

import (
	"bytes"

	"gangd/pkg/wire/pmi"
	"gangd/pkg/wire/stepwire"
)

// fence is what the nodes of a step published since all of them were last at a fence of PMI.
type fence struct {
	pieces [][]byte
	bytes  int
	at     map[int]bool // parts
}

// publish keeps a piece until all nodes are there.
func (s *step) publish(f stepwire.Frame) {
	s.mu.Lock()
	s.fence.bytes += len(f.Data)
	much := s.fence.bytes > pmi.MaxStore
	if !much {
		s.fence.pieces = append(s.fence.pieces, bytes.Clone(f.Data))
	}
	s.mu.Unlock()
	if much && !s.isKilled() {
		s.error("mpi/%s: the tasks of StepId=%s publish more than %d bytes", s.plugin(), s.text(), pmi.MaxStore)
		s.fail()
	}
}

// arrived is a node whose tasks are all at the fence. The last has all go on, with what all published.
func (s *step) arrived(part int) {
	s.mu.Lock()
	if s.fence.at == nil {
		s.fence.at = map[int]bool{}
	}
	s.fence.at[part] = true
	if len(s.fence.at) < len(s.parts) {
		s.mu.Unlock()
		return
	}
	pieces := s.fence.pieces
	s.fence.pieces, s.fence.at = nil, nil
	s.mu.Unlock()
	for _, p := range pieces {
		s.toAll(stepwire.Publish, p)
	}
	s.toAll(stepwire.Fence, nil)
}

// fail ends a step that a task wants ended, and that has failed whatever its tasks say.
func (s *step) fail() {
	s.mu.Lock()
	s.failed = true
	s.mu.Unlock()
	s.Kill(false)
}
