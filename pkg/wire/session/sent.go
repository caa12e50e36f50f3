package session

import (
	"iter"
	"slices"

	"gangd/pkg/api"
)

// specChunk is how many bytes of scripts, arguments and environments a frame carries at most, unless
// one specification alone has more. So much of them is in the controller's memory for each session.
const specChunk = 1 << 20

// sentState is what a session's peer has been told: the base of the next difference. Both
// halves keep the same rule for specs: one is dropped when the last assignment that names
// it is forgotten, so that a node that runs for months does not keep every script it saw.
type sentState struct {
	revision uint64
	full     bool // a Full set was sent
	members  map[api.MemberKey]sentMember
	specs    map[string]int         // hash -> assignments that name it
	parts    string                 // the name of a node that reads [api.GangPart]; empty: it does not
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
// nothing differs. All but the last carry only specs, which are read one message before they
// are wanted: a reader that does not go on gives up the session. An error is the last that it gives.
func (s *sentState) diff(want []api.Assignment, read func(hash string) (*api.Spec, error)) iter.Seq2[*api.Desired, error] {
	return func(yield func(*api.Desired, error) bool) {
		number := func(d *api.Desired) *api.Desired {
			s.revision++
			d.Revision = s.revision
			return d
		}
		d, unsent := s.changes(want)
		specs, size := map[string]*api.Spec{}, int64(0)
		for _, hash := range unsent {
			spec, err := read(hash)
			if err != nil {
				yield(nil, err)
				return
			}
			if n := spec.TextBytes(); len(specs) > 0 && size+n > specChunk {
				if !yield(number(&api.Desired{Specs: specs}), nil) {
					return
				}
				specs, size = map[string]*api.Spec{}, 0
			}
			specs[hash] = spec
			size += spec.TextBytes()
		}
		if s.full && len(d.Assignments) == 0 && len(d.Forget) == 0 {
			return
		}
		s.full = true
		if len(specs) > 0 {
			d.Specs = specs
		}
		yield(number(d), nil)
	}
}

// changes is what differs from what the peer was told to want, and the specs that it does not have.
func (s *sentState) changes(want []api.Assignment) (d *api.Desired, unsent []string) {
	d = &api.Desired{Full: !s.full}
	asked := map[api.MemberKey]bool{}
	named := make(map[api.MemberKey]bool, len(want))
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
		if known && sameGate(old.gate, a.Gate) && equal(old.stop, a.Stop) && equal(old.check, a.Check) && SameSteps(old.steps, a.Steps) &&
			old.passed == a.Passed {
			continue
		}
		change := api.Assignment{MemberKey: a.MemberKey, Gate: a.Gate, Stop: a.Stop, Check: a.Check, Steps: a.Steps, Passed: a.Passed}
		now := sentMember{gate: a.Gate, stop: a.Stop, check: a.Check, steps: a.Steps, passed: a.Passed, spec: old.spec}
		if !known {
			change.Body, now.spec = a.Body, a.Body.SpecHash
			if s.parts != "" {
				change.Body = a.Body.For(s.parts)
			}
			if _, told := s.specs[now.spec]; !told {
				unsent = append(unsent, now.spec)
			}
			s.specs[now.spec]++
		}
		s.members[a.MemberKey] = now
		d.Assignments = append(d.Assignments, change)
	}
	s.asked = asked
	d.Forget = append(d.Forget, s.forget(named)...)
	slices.SortFunc(d.Forget, api.MemberKey.Compare)
	return d, unsent
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

// sameGate: what a node has opened by itself, with a port that it has picked, it need not be told.
func sameGate(old, now *api.Gate) bool {
	if old != nil && now != nil && old.Alone && !now.Alone {
		return old.TimeLimit == now.TimeLimit
	}
	return equal(old, now)
}

// SameSteps: of an ordered step only its stop ever changes, and on its node whether it is held.
func SameSteps(a, b []api.StepOrder) bool {
	return slices.EqualFunc(a, b, func(x, y api.StepOrder) bool { return x.ID == y.ID && x.Stop == y.Stop && x.Held == y.Held })
}
