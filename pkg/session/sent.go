package session

import (
	"slices"

	"gangd/pkg/api"
)

// specChunk is how many bytes of scripts and environments one frame carries at most: four
// of the largest scripts, a quarter of the frame limit after base64.
const specChunk = 16 << 20

// sentState is what a session's peer has been told: the base of the next difference. Both
// halves keep the same rule for specs: one is dropped when the last assignment that names
// it is forgotten, so that a node that runs for months does not keep every script it saw.
type sentState struct {
	revision uint64
	full     bool // a Full set was sent
	members  map[api.MemberKey]sentMember
	specs    map[string]int         // hash -> assignments that name it
	asked    map[api.MemberKey]bool // were to be forgotten in the last set, and it was told so
}

type sentMember struct {
	gate   *api.Gate
	stop   *api.Stop
	check  *api.Check
	steps  []api.StepOrder
	passed bool
	spec   string
}

func newSent() *sentState {
	return &sentState{members: map[api.MemberKey]sentMember{}, specs: map[string]int{}}
}

// diff gives the messages that bring the peer from what it was told to want; none when
// nothing differs. All but the last carry only specs.
func (s *sentState) diff(want []api.Assignment, specs map[string]*api.Spec) []*api.Desired {
	d := &api.Desired{Full: !s.full}
	asked := map[api.MemberKey]bool{}
	named := make(map[api.MemberKey]bool, len(want))
	var chunks chunker
	for i := range want {
		a := &want[i]
		if a.Body == nil {
			// The peer is told once to forget it, also when it has never heard of it: it may have
			// been desired and given up again between two looks at the set.
			if _, known := s.members[a.MemberKey]; !known && !s.asked[a.MemberKey] {
				d.Forget = append(d.Forget, a.MemberKey)
			}
			asked[a.MemberKey] = true
			continue
		}
		named[a.MemberKey] = true
		old, known := s.members[a.MemberKey]
		if known && equal(old.gate, a.Gate) && equal(old.stop, a.Stop) && equal(old.check, a.Check) && SameSteps(old.steps, a.Steps) && old.passed == a.Passed {
			continue
		}
		change := api.Assignment{MemberKey: a.MemberKey, Gate: a.Gate, Stop: a.Stop, Check: a.Check, Steps: a.Steps, Passed: a.Passed}
		now := sentMember{gate: a.Gate, stop: a.Stop, check: a.Check, steps: a.Steps, passed: a.Passed, spec: old.spec}
		if !known {
			change.Body = a.Body
			now.spec = a.Body.SpecHash
			if _, told := s.specs[now.spec]; !told {
				chunks.add(now.spec, specs[now.spec])
			}
			s.specs[now.spec]++
		}
		s.members[a.MemberKey] = now
		d.Assignments = append(d.Assignments, change)
	}
	s.asked = asked
	d.Forget = append(d.Forget, s.forget(named)...)
	slices.SortFunc(d.Forget, api.MemberKey.Compare)
	if s.full && len(d.Assignments) == 0 && len(d.Forget) == 0 {
		return nil
	}
	s.full = true
	out := chunks.split(d)
	for _, d := range out {
		s.revision++
		d.Revision = s.revision
	}
	return out
}

// forget drops what is not named any more, in any order.
func (s *sentState) forget(named map[api.MemberKey]bool) []api.MemberKey {
	if len(named) == len(s.members) {
		return nil // every member is named: each was just put there
	}
	var out []api.MemberKey
	for k, m := range s.members {
		if named[k] {
			continue
		}
		out = append(out, k)
		delete(s.members, k)
		release(s.specs, m.spec)
	}
	return out
}

func release(specs map[string]int, hash string) {
	if specs[hash]--; specs[hash] <= 0 {
		delete(specs, hash)
	}
}

func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// SameSteps: of an ordered step only its stop ever changes.
func SameSteps(a, b []api.StepOrder) bool {
	return slices.EqualFunc(a, b, func(x, y api.StepOrder) bool { return x.ID == y.ID && x.Stop == y.Stop })
}

// chunker packs specs into as few messages as the frame limit allows.
type chunker struct {
	full []map[string]*api.Spec
	last map[string]*api.Spec
	size int
}

func (c *chunker) add(hash string, s *api.Spec) {
	if s == nil {
		return
	}
	size := len(s.Script)
	for _, e := range s.Env {
		size += len(e)
	}
	if c.size+size > specChunk && len(c.last) > 0 {
		c.full = append(c.full, c.last)
		c.last, c.size = nil, 0
	}
	if c.last == nil {
		c.last = map[string]*api.Spec{}
	}
	c.last[hash] = s
	c.size += size
}

func (c *chunker) split(d *api.Desired) []*api.Desired {
	var out []*api.Desired
	for _, specs := range c.full {
		out = append(out, &api.Desired{Specs: specs})
	}
	d.Specs = c.last
	return append(out, d)
}
