// Package disk is the controller's disk for tests of what stands on a store: the same SQL as in
// production, in memory, with the faults of a disk.
//
// A [Disk] is what outlives the process. [Disk.Open] is the process that has it open, one at a
// time; [Disk.Crash] is the end of that process by kill -9. It knows no engine: it is given
// batches, and says what became of them.
//
// Failure rules are those of package store; [Disk.FailCommit], [Disk.SlowCommits] and
// [Disk.SetFull] bring them about.
//
// Begin with Disk.
package disk

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/core/gang"
)

// Disk is what was committed.
type Disk struct {
	memory *sqlitestore.Memory

	mu   sync.Mutex
	open *Store
	full bool
	fail error         // of the next commit
	slow time.Duration // of each commit
}

// New makes an empty one, which lives until the end of the test.
func New(t testing.TB) *Disk {
	t.Helper()
	m, err := sqlitestore.NewMemory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return of(t, m)
}

func of(t testing.TB, m *sqlitestore.Memory) *Disk {
	d := &Disk{memory: m}
	t.Cleanup(func() {
		d.Crash()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Open is a store on a disk of its own.
func Open(t testing.TB) *Store {
	t.Helper()
	return New(t).Open(t)
}

// Open opens the disk for a process; the one before must be over.
func (d *Disk) Open(t testing.TB) *Store {
	t.Helper()
	s, err := d.memory.Open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != nil {
		t.Fatal("the disk is open")
	}
	d.open = &Store{Store: s, disk: d}
	return d.open
}

// Crash ends the process that has the disk open: what it committed stays, and it can do nothing
// more.
func (d *Disk) Crash() {
	d.mu.Lock()
	s := d.open
	d.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

// FailCommit makes the next commit fail.
func (d *Disk) FailCommit(err error) { d.set(func() { d.fail = err }) }

// SlowCommits makes each commit take so long.
func (d *Disk) SlowCommits(pause time.Duration) { d.set(func() { d.slow = pause }) }

// SetFull takes the room for new jobs away, or gives it back.
func (d *Disk) SetFull(full bool) { d.set(func() { d.full = full }) }

func (d *Disk) set(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// Copy is another disk with what is committed now.
func (d *Disk) Copy(t testing.TB) *Disk {
	t.Helper()
	m, err := d.memory.Copy(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return of(t, m)
}

// Store is a disk that is open.
type Store struct {
	*sqlitestore.Store
	disk *Disk
}

var _ store.Store = (*Store)(nil)

// Room is ErrFull after [Disk.SetFull].
func (s *Store) Room() error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.full {
		return fmt.Errorf("disk in memory: %w", store.ErrFull)
	}
	return nil
}

// Commit applies one batch, unless the disk is at fault.
func (s *Store) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	d := s.disk
	d.mu.Lock()
	fail, full, slow := d.fail, d.full && submits(ch), d.slow
	if !full {
		d.fail = nil
	}
	d.mu.Unlock()
	time.Sleep(slow)
	switch {
	case full:
		return 0, fmt.Errorf("disk in memory: %w", store.ErrFull)
	case fail != nil:
		return 0, fmt.Errorf("%w: commit %d: %w", store.ErrFailed, s.Lineage()+1, fail)
	}
	return s.Store.Commit(ctx, ch)
}

func submits(ch *gang.Changes) bool {
	for i := range ch.Events {
		if ch.Events[i].Type == api.EventSubmitted {
			return true
		}
	}
	return false
}

// Close gives the disk back.
func (s *Store) Close() error {
	err := s.Store.Close()
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.open == s {
		s.disk.open = nil
	}
	return err
}
