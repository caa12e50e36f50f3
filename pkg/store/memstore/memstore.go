// Package memstore is a store in memory, for tests and simulations of what stands on top
// of a store.
//
// A [Disk] is what outlives the process: it holds encoded rows, so that nothing a caller
// does to its values reaches what was committed, and what comes back has gone through the
// same encoding as on a real disk. [Disk.Open] is the process that has it open, one at a
// time; [Disk.Crash] is the end of that process by kill -9.
//
// Failure rules are those of package store. [Disk.FailCommit] and [Disk.SetFull] bring
// them about.
package memstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"gangd/pkg/gang"
	"gangd/pkg/store"
	"gangd/pkg/store/internal/row"
)

// Disk is what was committed.
type Disk struct {
	mu     sync.Mutex
	d      data
	open   *Store
	full   bool
	broken *fault // of the next commit
}

type fault struct {
	err   error
	after bool
}

// data is exported field by field for Backup, which writes it as JSON.
type data struct {
	Lineage         uint64
	NextID, NextSeq int64
	Specs           map[string][]byte
	Jobs            map[int64]jobRow
	Ranks           map[int64]map[int][]byte
	Epochs          map[int64]map[int][]byte
	Steps           map[int64]map[int][]byte // ended ones, by job, and epoch with number
	Nodes           map[string][]byte
	Reservations    map[string][]byte
	Events          []eventRow // by Seq
	Checkpoints     map[int64]checkpoints
	Releases        []store.Release // oldest first
	Runs            []store.Run     // oldest first
	Claims          []byte
}

type jobRow struct {
	Spec  string
	Ended *time.Time // nil: lives
	Data  []byte
}

type eventRow struct {
	Seq, Job int64
	Data     []byte
}

// NewDisk makes an empty one.
func NewDisk() *Disk { return &Disk{d: newData()} }

func newData() data {
	return data{
		NextID: 1, NextSeq: 1,
		Specs: make(map[string][]byte), Jobs: make(map[int64]jobRow), Ranks: make(map[int64]map[int][]byte),
		Epochs: make(map[int64]map[int][]byte), Steps: make(map[int64]map[int][]byte), Nodes: make(map[string][]byte), Checkpoints: make(map[int64]checkpoints),
		Reservations: make(map[string][]byte),
	}
}

// New is a store on a disk of its own.
func New() *Store {
	s, _ := NewDisk().Open() // nobody else has it open
	return s
}

// Open opens the disk; [store.ErrLocked] while another store has it open.
func (d *Disk) Open() (*Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != nil {
		return nil, fmt.Errorf("disk in memory: %w", store.ErrLocked)
	}
	d.open = &Store{disk: d}
	return d.open, nil
}

// Crash ends the process that has the disk open: what it committed stays, and it can do
// nothing more.
func (d *Disk) Crash() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open != nil {
		d.open.dead = store.ErrClosed
		d.open = nil
	}
}

// FailCommit makes the next commit fail with err, which leaves the batch written or not.
func (d *Disk) FailCommit(err error, written bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken = &fault{err: err, after: written}
}

// SetFull takes the room for new jobs away, or gives it back.
func (d *Disk) SetFull(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

// Clone is a copy as it is now. Rows are never changed in place, so that copying the maps
// is enough.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.d
	c.Specs, c.Jobs, c.Nodes, c.Reservations = maps.Clone(c.Specs), maps.Clone(c.Jobs), maps.Clone(c.Nodes), maps.Clone(c.Reservations)
	c.Ranks, c.Epochs, c.Steps = cloneTwo(c.Ranks), cloneTwo(c.Epochs), cloneTwo(c.Steps)
	c.Checkpoints = make(map[int64]checkpoints, len(d.d.Checkpoints))
	for job, epochs := range d.d.Checkpoints {
		c.Checkpoints[job] = make(checkpoints, len(epochs))
		for epoch, ranks := range epochs {
			c.Checkpoints[job][epoch] = maps.Clone(ranks)
		}
	}
	c.Events = c.Events[:len(c.Events):len(c.Events)]
	return &Disk{d: c, full: d.full}
}

func cloneTwo(m map[int64]map[int][]byte) map[int64]map[int][]byte {
	out := make(map[int64]map[int][]byte, len(m))
	for k, v := range m {
		out[k] = maps.Clone(v)
	}
	return out
}

// Store is a disk that is open.
type Store struct {
	disk *Disk
	dead error // guarded by the disk's mu
}

var _ store.Store = (*Store)(nil)

// Lineage is the number of the last commit.
func (s *Store) Lineage() uint64 {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.disk.d.Lineage
}

// Close gives the disk back.
func (s *Store) Close() error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.dead = store.ErrClosed
	if s.disk.open == s {
		s.disk.open = nil
	}
	return nil
}

// Advance raises lineage and next id.
func (s *Store) Advance(ctx context.Context, lineage uint64, nextID int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.dead != nil {
		return s.dead
	}
	d.d.Lineage, d.d.NextID = max(d.d.Lineage, lineage), max(d.d.NextID, nextID)
	d.d.Runs = slices.Clone(d.d.Runs[max(0, len(d.d.Runs)-1):])
	return nil
}

// Room is ErrFull after [Disk.SetFull].
func (s *Store) Room() error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.disk.full {
		return fmt.Errorf("disk in memory: %w", store.ErrFull)
	}
	return nil
}

// Commit applies one batch.
func (s *Store) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.dead != nil {
		return 0, s.dead
	}
	nextID, nextSeq := max(d.d.NextID, ch.NextID), max(d.d.NextSeq, ch.NextSeq)
	if len(ch.Jobs)+len(ch.Ranks)+len(ch.Epochs)+len(ch.Nodes)+len(ch.Reservations)+len(ch.Events)+len(ch.Steps) == 0 && ch.Claims == nil && nextID == d.d.NextID && nextSeq == d.d.NextSeq {
		return d.d.Lineage, nil
	}
	if d.full && d.d.hasNewJobs(ch) {
		return 0, fmt.Errorf("disk in memory: %w", store.ErrFull)
	}
	put := batch{specs: make(map[string]bool)}
	err := put.encode(ch, &d.d)
	broken := d.broken
	d.broken = nil
	if err == nil && broken != nil {
		err = broken.err
	}
	if err == nil || (broken != nil && broken.after) {
		put.apply(&d.d)
		d.d.Lineage++
		d.d.NextID, d.d.NextSeq = nextID, nextSeq
	}
	if err != nil {
		s.dead = fmt.Errorf("%w: commit %d: %w", store.ErrFailed, d.d.Lineage+1, err)
		return 0, s.dead
	}
	return d.d.Lineage, nil
}

func (d *data) hasNewJobs(ch *gang.Changes) bool {
	for _, j := range ch.Jobs {
		if j.ID >= d.NextID {
			return true
		}
	}
	return false
}

// batch is one commit encoded, before anything of it is applied: all or nothing.
type batch struct {
	puts  []func(*data)
	specs map[string]bool // in this batch already: the elements of an array share one
}

func (b *batch) add(f func(*data)) { b.puts = append(b.puts, f) }

func (b *batch) apply(d *data) {
	for _, f := range b.puts {
		f(d)
	}
}

func (b *batch) encode(ch *gang.Changes, d *data) error {
	for _, j := range ch.Jobs {
		if err := b.job(j, d); err != nil {
			return err
		}
	}
	for i := range ch.Ranks {
		r := ch.Ranks[i]
		enc, err := row.Rank(&r.Rank)
		if err != nil {
			return err
		}
		if row.Blank(&r.Rank) {
			b.add(func(d *data) { delete(d.Ranks[r.Job], r.Index) })
			continue
		}
		b.add(func(d *data) { putTwo(d.Ranks, r.Job, r.Index, enc) })
	}
	for i := range ch.Epochs {
		e := ch.Epochs[i]
		enc, err := row.Epoch(&e)
		if err != nil {
			return err
		}
		b.add(func(d *data) { putTwo(d.Epochs, e.Job, e.Epoch, enc) })
	}
	for i := range ch.Steps {
		st := &ch.Steps[i]
		number, err := strconv.Atoi(st.StepID)
		if err != nil {
			return fmt.Errorf("step %q of job %d has no number", st.StepID, st.JobID)
		}
		enc, err := row.Step(st)
		if err != nil {
			return err
		}
		job, at := st.JobID, st.Epoch<<stepBits|number
		b.add(func(d *data) { putTwo(d.Steps, job, at, enc) })
	}
	if claims := slices.Clone(ch.Claims); claims != nil {
		b.add(func(d *data) { d.Claims = claims })
	}
	for _, n := range ch.Nodes {
		enc, err := row.Node(n)
		if err != nil {
			return err
		}
		b.add(func(d *data) { d.Nodes[n.Name] = enc })
	}
	for _, r := range ch.Reservations {
		if r.R == nil {
			b.add(func(d *data) { delete(d.Reservations, r.Name) })
			continue
		}
		enc, err := row.Reservation(r.R)
		if err != nil {
			return err
		}
		b.add(func(d *data) { d.Reservations[r.Name] = enc })
	}
	return b.events(ch, d)
}

func (b *batch) job(j *gang.Job, d *data) error {
	enc, err := row.Job(j)
	if err != nil {
		return err
	}
	r := jobRow{Spec: j.SpecHash, Data: enc}
	if at, ok := row.Ended(j); ok {
		r.Ended = &at
	}
	if _, known := d.Specs[j.SpecHash]; !known && !b.specs[j.SpecHash] && j.ID >= d.NextID {
		if j.Spec == nil {
			return fmt.Errorf("job %d has no spec", j.ID)
		}
		spec, err := row.Spec(j.Spec)
		if err != nil {
			return err
		}
		b.specs[j.SpecHash] = true
		b.add(func(d *data) { d.Specs[j.SpecHash] = spec })
	}
	b.add(func(d *data) { d.Jobs[j.ID] = r })
	return nil
}

func (b *batch) events(ch *gang.Changes, d *data) error {
	var last int64
	if n := len(d.Events); n > 0 {
		last = d.Events[n-1].Seq
	}
	for i := range ch.Events {
		e := ch.Events[i]
		if e.Seq <= last {
			return fmt.Errorf("event %d comes after event %d", e.Seq, last)
		}
		last = e.Seq
		enc, err := row.Event(&e)
		if err != nil {
			return err
		}
		b.add(func(d *data) { d.Events = append(d.Events, eventRow{Seq: e.Seq, Job: e.JobID, Data: enc}) })
	}
	return nil
}

// stepBits: the number of a step fits, with its epoch above it.
const stepBits = 31

func putTwo(m map[int64]map[int][]byte, job int64, index int, enc []byte) {
	if m[job] == nil {
		m[job] = make(map[int][]byte)
	}
	m[job][index] = enc
}
