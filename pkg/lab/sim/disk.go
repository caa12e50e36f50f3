package sim

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/core/gang"
)

// disk is the controller's: the database that outlives its process, and an old copy of it.
type disk struct {
	now *sqlitestore.Memory
	old *sqlitestore.Memory // nil: no copy was made
	// onOld: the controller was given the copy. Its writes go there.
	onOld    bool
	oldAt    uint64 // number of its last commit when it was given that
	forked   bool   // the copy was written to
	lineage  uint64 // of the newest commit to the newest store
	full     bool   // new jobs find no room
	jammed   bool   // nothing does
	breaks   bool   // the next commit fails
	breaking bool   // after it was written
}

func (d *disk) make(ctx context.Context) (err error) {
	d.now, err = sqlitestore.NewMemory(ctx)
	return err
}

// skipTo makes the store that of a site which has given out ids before.
func (d *disk) skipTo(ctx context.Context, id int64) error {
	s, err := d.now.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.Advance(ctx, 0, id), s.Close())
}

func (d *disk) current() *sqlitestore.Memory {
	if d.onOld {
		return d.old
	}
	return d.now
}

func (d *disk) copy(ctx context.Context) (err error) {
	if d.old != nil {
		d.old.Close()
	}
	d.old, err = d.now.Copy(ctx)
	return err
}

func (d *disk) close() {
	for _, m := range []*sqlitestore.Memory{d.now, d.old} {
		if m != nil {
			m.Close()
		}
	}
}

var (
	errCrash  = errors.New("crashed")
	errBroken = errors.New("input/output error")
)

// diskStore is the store of one process of the controller, with the faults of the disk.
type diskStore struct {
	*sqlitestore.Store
	g *gangd
}

// Room implements [store.Store].
func (s *diskStore) Room() error {
	if d := s.g.r.disk; d.full || d.jammed {
		return store.ErrFull
	}
	return nil
}

// Commit implements [store.Store].
func (s *diskStore) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	r := s.g.r
	d := r.disk
	if err := s.fence(); err != nil {
		return 0, err
	}
	if d.jammed || d.full && hasNewJobs(ch) {
		return 0, fmt.Errorf("simulated disk: %w", store.ErrFull)
	}
	r.res.Commits++
	n := r.res.Commits
	if r.commitPoint(n, false) {
		return 0, errCrash
	}
	if d.breaks && !d.breaking {
		d.breaks = false
		return 0, errBroken
	}
	if d.onOld {
		r.truth.onOldStore(s.g, d.oldAt)
	}
	lineage, err := s.Store.Commit(ctx, ch)
	if err != nil {
		return 0, err
	}
	r.mix(lineage)
	r.truth.wrote(s.g)
	if d.onOld {
		d.forked = true
	} else {
		d.lineage = lineage
	}
	r.truth.committed(ch)
	if d.breaks {
		d.breaks = false
		return 0, errBroken
	}
	if r.commitPoint(n, true) {
		return 0, errCrash
	}
	return lineage, nil
}

// fence refuses what a controller writes that was replaced, as the database does.
func (s *diskStore) fence() error {
	if db := s.g.r.db; db != nil && db.term != s.g.term {
		return store.ErrFenced
	}
	return nil
}

// PutCheckpoint implements [store.Store].
func (s *diskStore) PutCheckpoint(ctx context.Context, k store.SetKey, rank int, key string, r io.Reader) (store.CheckpointSet, int64,
	error) {
	if err := s.fence(); err != nil {
		return store.CheckpointSet{}, 0, err
	}
	return s.Store.PutCheckpoint(ctx, k, rank, key, r)
}

func hasNewJobs(ch *gang.Changes) bool {
	for i := range ch.Events {
		if ch.Events[i].Type == api.EventSubmitted {
			return true
		}
	}
	return false
}
