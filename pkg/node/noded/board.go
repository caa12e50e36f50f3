package noded

import (
	"maps"
	"slices"
	"sync"

	"gangd/pkg/api"
)

// Board is what this node has to say: the newest word on each member, and which of them
// the controller has not been told. However many members change while a frame is under
// way, the next one carries all of them.
type Board struct {
	mu       sync.Mutex
	members  map[api.MemberKey]api.MemberActual
	dirty    map[api.MemberKey]struct{}
	gone     []api.MemberKey
	revision uint64
	health   api.NodeHealth
	unwell   bool              // health has not been told
	reboot   *api.RebootActual // that failed; nil: none
	failed   bool              // reboot has not been told
	wake     func()            // asks the session to come for a report
}

// NewBoard makes an empty one; wake asks the session to come for a report.
func NewBoard(wake func()) *Board {
	return &Board{members: map[api.MemberKey]api.MemberActual{}, dirty: map[api.MemberKey]struct{}{}, wake: wake}
}

// Put records the newest word on a member.
func (b *Board) Put(a api.MemberActual) {
	b.mu.Lock()
	b.members[a.MemberKey] = a
	b.dirty[a.MemberKey] = struct{}{}
	b.mu.Unlock()
	b.wake()
}

func (b *Board) setHealth(h api.NodeHealth) {
	b.mu.Lock()
	b.health, b.unwell = h, true
	b.mu.Unlock()
	b.wake()
}

// RebootFailed records why a reboot that was ordered can't be.
func (b *Board) RebootFailed(a api.RebootActual) {
	b.mu.Lock()
	b.reboot, b.failed = &a, true
	b.mu.Unlock()
	b.wake()
}

// RebootNow is the last reboot that could not be, for a Hello.
func (b *Board) RebootNow() *api.RebootActual {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reboot
}

func (b *Board) healthNow() api.NodeHealth {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.health
}

// Note records a word on a member that is not worth a frame of its own.
func (b *Board) Note(a api.MemberActual) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.members[a.MemberKey] = a
}

// Drop records that nothing of a member is left. Of one whose end was told nobody waits for that word: it goes with the
// next frame, or beat.
func (b *Board) Drop(k api.MemberKey) {
	b.mu.Lock()
	_, untold := b.dirty[k]
	told := !untold && Ended(b.members[k].Phase)
	delete(b.members, k)
	delete(b.dirty, k)
	b.gone = append(b.gone, k)
	b.mu.Unlock()
	if !told {
		b.wake()
	}
}

// Applied records the newest desired set that was taken in.
func (b *Board) Applied(revision uint64) {
	b.mu.Lock()
	b.revision = revision
	b.mu.Unlock()
}

// All is everything, for a Hello; after it only changes are told.
func (b *Board) All() []api.MemberActual {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.dirty)
	b.unwell, b.failed = false, false // the hello says it
	b.gone, b.revision = nil, 0       // revisions count within one session
	return slices.SortedFunc(maps.Values(b.members), func(x, y api.MemberActual) int { return x.Compare(y.MemberKey) })
}

// Report is what changed since the last one, nil when nothing did.
func (b *Board) Report() *api.Actual {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.dirty) == 0 && len(b.gone) == 0 && !b.unwell && !b.failed {
		return nil
	}
	a := &api.Actual{Revision: b.revision, Gone: b.gone}
	if b.unwell {
		h := b.health
		a.Health, b.unwell = &h, false
	}
	if b.failed {
		a.Reboot, b.failed = b.reboot, false
	}
	for k := range b.dirty {
		a.Members = append(a.Members, b.members[k])
	}
	slices.SortFunc(a.Members, func(x, y api.MemberActual) int { return x.Compare(y.MemberKey) })
	clear(b.dirty)
	b.gone = nil
	return a
}
