package sqlitestore

import (
	"context"
	"fmt"
	"strings"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/core/gang"
)

// statements of a commit. Each is prepared once.
type statements struct {
	begin, commit, rollback, meta *statement
	put, drop                     map[*sqlstore.Table]*statement
	jobLive                       *statement // leaves ended alone, and so all indexes
	dropSpec                      *statement
}

func prepareStatements(w *writer) (*statements, error) {
	st := &statements{put: map[*sqlstore.Table]*statement{}, drop: map[*sqlstore.Table]*statement{}}
	var err error
	prepare := func(text string, n int) *statement {
		if err != nil {
			return nil
		}
		var s *statement
		s, err = w.prepare(text, n)
		return s
	}
	st.begin, st.commit, st.rollback = prepare("BEGIN IMMEDIATE", 0), prepare("COMMIT", 0), prepare("ROLLBACK", 0)
	st.meta = prepare("UPDATE meta SET lineage = ?, next_id = ?, next_seq = ?, sum = ?", 4)
	for _, t := range sqlstore.Batched {
		if t == sqlstore.Job {
			continue
		}
		st.put[t] = prepare(t.Put(values(t)), len(t.Columns))
	}
	for _, t := range []*sqlstore.Table{sqlstore.Job, sqlstore.Rank, sqlstore.Node, sqlstore.Reservation, sqlstore.Partition, sqlstore.Crontab,
		sqlstore.Letter} {
		st.drop[t] = prepare(fmt.Sprintf("DELETE FROM %s WHERE %s = ?", t.Name, t.KeyNames()), 1)
	}
	// SQLite writes the index of what a statement sets, changed or not: one leaves the spec alone, one the end too.
	// A job that asks for something else is dropped before it is put.
	over := *sqlstore.Job
	over.Changed = []string{"data", "ended"}
	st.put[sqlstore.Job] = prepare(over.Put(values(&over)), len(over.Columns))
	live := *sqlstore.Job
	live.Columns, live.Changed = live.Columns[:len(live.Columns)-1], []string{"data"}
	st.jobLive = prepare(live.Put(values(&live)), len(live.Columns))
	st.dropSpec = prepare(sqlstore.DropUnused, 1)
	return st, err
}

func values(t *sqlstore.Table) string {
	return "VALUES (?" + strings.Repeat(", ?", len(t.Columns)-1) + ")"
}

// Put writes a row at once.
func (st *statements) Put(t *sqlstore.Table, values ...any) error {
	if last := len(values) - 1; t == sqlstore.Job && values[last] == nil {
		return st.jobLive.run(values[:last]...)
	}
	return st.put[t].run(values...)
}

// Drop removes one at once.
func (st *statements) Drop(t *sqlstore.Table, key any) error { return st.drop[t].run(key) }

// DropSpec removes one at once: the rows of all jobs of a batch are put before.
func (st *statements) DropSpec(hash string) error { return st.dropSpec.run(hash) }

// Commit writes one batch in one transaction.
func (s *Store) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return 0, err
	}
	nextID, nextSeq := max(s.nextID, ch.NextID), max(s.nextSeq, ch.NextSeq)
	if ch.Rows() == 0 && nextID == s.nextID && nextSeq == s.nextSeq {
		return s.lineage.Load(), nil
	}
	newJobs := sqlstore.NewJobs(ch, s.nextID)
	if err := s.spare.admit(newJobs); err != nil {
		return 0, err
	}
	lineage := s.lineage.Load() + 1
	err := s.write(ch, lineage, nextID, nextSeq)
	if isFull(err) && !newJobs && s.spare.release() {
		s.log.Warn("state disk full: gave up the reserve file to record what ended", "dir", s.dir)
		err = s.write(ch, lineage, nextID, nextSeq)
	}
	switch {
	case isFull(err):
		return 0, fmt.Errorf("%w: %w", store.ErrFull, err)
	case err != nil:
		return 0, s.fail(fmt.Errorf("commit %d: %w", lineage, err))
	}
	s.lineage.Store(lineage)
	s.nextID, s.nextSeq = nextID, nextSeq
	s.check.committed(ch.Rows())
	return lineage, nil
}

// Advance raises lineage and next id in a transaction of its own.
func (s *Store) Advance(ctx context.Context, lineage uint64, nextID int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// In a transaction of its own: a crash between the two leaves a copy that has to be accepted again.
	if err := s.ForgetRuns(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	lineage, nextID = max(s.lineage.Load(), lineage), max(s.nextID, nextID)
	if err := s.write(&gang.Changes{}, lineage, nextID, s.nextSeq); err != nil {
		return s.fail(fmt.Errorf("advance to commit %d: %w", lineage, err))
	}
	s.lineage.Store(lineage)
	s.nextID = nextID
	return nil
}

// write does one transaction. After an error it is rolled back; when even that can't be
// done, the error is not one of a full disk any more.
func (s *Store) write(ch *gang.Changes, lineage uint64, nextID, nextSeq int64) error {
	if err := s.st.begin.run(); err != nil {
		return err
	}
	err := sqlstore.Batch(ch, s.nextID, s.specs, s.st)
	if err == nil {
		c := counters{lineage: int64(lineage), nextID: nextID, nextSeq: nextSeq}
		err = s.st.meta.run(c.lineage, c.nextID, c.nextSeq, c.check())
	}
	if err == nil {
		err = s.st.commit.run()
	}
	if err == nil {
		return nil
	}
	clear(s.specs)
	// SQLite has ended the transaction by itself after some errors, a full disk among
	// them; then there is nothing to roll back.
	if rb := s.st.rollback.run(); rb != nil && !s.w.idle() {
		return fmt.Errorf("roll back: %v; after: %v", rb, err)
	}
	return err
}
