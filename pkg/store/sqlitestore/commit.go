package sqlitestore

import (
	"context"
	"fmt"
	"time"

	"gangd/pkg/gang"
	"gangd/pkg/store"
	"gangd/pkg/store/internal/row"
)

// statements of a commit. Each is prepared once.
type statements struct {
	begin, commit, rollback *statement
	meta, spec              *statement
	jobLive, jobEnded       *statement
	rank, rankGone          *statement
	epoch, node, nodeGone   *statement
	event                   *statement
	piece, checkpoint       *statement
	reservation             *statement
	reservationGone         *statement
	release, specGone       *statement
	step, run, claims       *statement
}

func prepareStatements(w *writer) (statements, error) {
	var st statements
	for _, p := range []struct {
		to   **statement
		args int
		text string
	}{
		{&st.begin, 0, "BEGIN IMMEDIATE"},
		{&st.commit, 0, "COMMIT"},
		{&st.rollback, 0, "ROLLBACK"},
		{&st.meta, 3, "UPDATE meta SET lineage = ?, next_id = ?, next_seq = ?"},
		{&st.spec, 2, "INSERT INTO spec (hash, data) VALUES (?, ?) ON CONFLICT DO NOTHING"},
		{&st.jobLive, 6, "INSERT INTO job (id, array_id, user, spec, submit, data) VALUES (?, ?, ?, ?, ?, ?) " +
			"ON CONFLICT DO UPDATE SET data = excluded.data"},
		{&st.jobEnded, 7, "INSERT INTO job (id, array_id, user, spec, submit, data, ended) VALUES (?, ?, ?, ?, ?, ?, ?) " +
			"ON CONFLICT DO UPDATE SET data = excluded.data, ended = excluded.ended"},
		{&st.rank, 2, "INSERT INTO rank (id, data) VALUES (?, ?) ON CONFLICT DO UPDATE SET data = excluded.data"},
		{&st.rankGone, 1, "DELETE FROM rank WHERE id = ?"},
		{&st.epoch, 3, "INSERT INTO epoch (job, epoch, data) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data"},
		{&st.nodeGone, 1, "DELETE FROM node WHERE name = ?"},
		{&st.node, 2, "INSERT INTO node (name, data) VALUES (?, ?) ON CONFLICT DO UPDATE SET data = excluded.data"},
		{&st.piece, 2, "INSERT INTO checkpoint_piece (id, data) VALUES (?, ?)"},
		{&st.checkpoint, 8, "INSERT INTO checkpoint (id, job, epoch, step, rank, put, bytes, key) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
		{&st.release, 5, "INSERT OR REPLACE INTO release (job, epoch, step, name, keys) VALUES (?, ?, ?, ?, ?)"},
		{&st.reservation, 2, "INSERT INTO reservation (name, data) VALUES (?, ?) ON CONFLICT DO UPDATE SET data = excluded.data"},
		{&st.reservationGone, 1, "DELETE FROM reservation WHERE name = ?"},
		{&st.specGone, 1, "DELETE FROM spec WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM job WHERE substr(spec, 1, 8) = substr(?1, 1, 8) AND spec = ?1)"},
		{&st.step, 4, "INSERT INTO step (job, epoch, step, data) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data"},
		{&st.run, 2, "INSERT INTO run (name, began) VALUES (?, ?)"},
		{&st.claims, 1, "INSERT INTO claims (one, data) VALUES (1, ?) ON CONFLICT DO UPDATE SET data = excluded.data"},
		{&st.event, 3, "INSERT INTO event (seq, job, data) VALUES (?, ?, ?)"},
	} {
		s, err := w.prepare(p.text, p.args)
		if err != nil {
			return st, err
		}
		*p.to = s
	}
	return st, nil
}

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
	newJobs := hasNewJobs(ch, s.nextID)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	lineage, nextID = max(s.lineage.Load(), lineage), max(s.nextID, nextID)
	// In a transaction of its own: a crash between the two leaves a copy that has to be accepted again.
	if err := s.transaction(func() error { return s.w.exec("DELETE FROM run WHERE id < (SELECT max(id) FROM run)") }); err != nil {
		return err
	}
	if err := s.write(&gang.Changes{}, lineage, nextID, s.nextSeq); err != nil {
		return s.fail(fmt.Errorf("advance to commit %d: %w", lineage, err))
	}
	s.lineage.Store(lineage)
	s.nextID = nextID
	return nil
}

// hasNewJobs: ids are given out in order, so a job is new when no commit has covered its id.
func hasNewJobs(ch *gang.Changes, nextID int64) bool {
	for _, j := range ch.Jobs {
		if j.ID >= nextID {
			return true
		}
	}
	return false
}

// write does one transaction. After an error it is rolled back; when even that can't be
// done, the error is not one of a full disk any more.
func (s *Store) write(ch *gang.Changes, lineage uint64, nextID, nextSeq int64) error {
	if err := s.st.begin.run(); err != nil {
		return err
	}
	err := s.batch(ch)
	if err == nil {
		err = s.st.meta.run(int64(lineage), nextID, nextSeq)
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

func (s *Store) batch(ch *gang.Changes) error {
	for _, j := range ch.Jobs {
		if err := s.job(j); err != nil {
			return err
		}
	}
	if err := s.ranks(ch); err != nil {
		return err
	}
	for i := range ch.Epochs {
		e := &ch.Epochs[i]
		data, err := row.Epoch(e)
		if err != nil {
			return err
		}
		if err := s.st.epoch.run(e.Job, int64(e.Epoch), sealed(data, rowName("epoch", e.Job, int64(e.Epoch)))); err != nil {
			return err
		}
	}
	if err := s.steps(ch.Steps); err != nil {
		return err
	}
	for _, name := range ch.Forgot {
		if err := s.st.nodeGone.run(name); err != nil {
			return err
		}
	}
	for _, n := range ch.Nodes {
		data, err := row.Node(n)
		if err != nil {
			return err
		}
		if err := s.st.node.run(n.Name, sealed(data, "node "+n.Name)); err != nil {
			return err
		}
	}
	if err := s.reservations(ch); err != nil {
		return err
	}
	if ch.Claims != nil {
		if err := s.st.claims.run(string(ch.Claims)); err != nil {
			return err
		}
	}
	for i := range ch.Events {
		e := &ch.Events[i]
		data, err := row.Event(e)
		if err != nil {
			return err
		}
		if err := s.st.event.run(e.Seq, e.JobID, sealed(data, rowName("event", e.Seq))); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) reservations(ch *gang.Changes) error {
	for _, r := range ch.Reservations {
		if r.R == nil {
			if err := s.st.reservationGone.run(r.Name); err != nil {
				return err
			}
			continue
		}
		data, err := row.Reservation(r.R)
		if err != nil {
			return err
		}
		if err := s.st.reservation.run(r.Name, sealed(data, "reservation "+r.Name)); err != nil {
			return err
		}
	}
	return nil
}

// maxSpecs bounds the hashes remembered as stored: 4,096 of 64 letters are half a
// megabyte, and forgetting one costs an insert that does nothing.
const maxSpecs = 4096

func (s *Store) job(j *gang.Job) error {
	if err := s.spec(j); err != nil {
		return err
	}
	data, err := row.Job(j)
	if err != nil {
		return err
	}
	text := sealed(data, jobName(j.ID, j.SpecHash))
	if ended, ok := store.EndOf(j); ok {
		return s.st.jobEnded.run(j.ID, j.ArrayID, j.User, j.SpecHash, nanos(j.Submit), text, nanos(ended))
	}
	return s.st.jobLive.run(j.ID, j.ArrayID, j.User, j.SpecHash, nanos(j.Submit), text)
}

// spec stores the spec of a new job; that of an old one is there since its first commit.
func (s *Store) spec(j *gang.Job) error {
	if _, ok := s.specs[j.SpecHash]; ok || j.ID < s.nextID {
		return nil
	}
	if j.Spec == nil {
		return fmt.Errorf("job %d has no spec", j.ID)
	}
	data, err := row.Spec(j.Spec)
	if err != nil {
		return err
	}
	if err := s.st.spec.run(j.SpecHash, sealed(data, "spec "+j.SpecHash)); err != nil {
		return err
	}
	if len(s.specs) >= maxSpecs {
		clear(s.specs)
	}
	s.specs[j.SpecHash] = struct{}{}
	return nil
}

// ranks writes the changed ranks. One that is blank needs no row: it is deleted where it
// may have one, which is never before the first admission of its gang.
func (s *Store) ranks(ch *gang.Changes) error {
	fresh := make(map[int64]bool, len(ch.Jobs))
	for _, j := range ch.Jobs {
		fresh[j.ID] = j.Epoch == 0
	}
	for i := range ch.Ranks {
		r := &ch.Ranks[i]
		if row.Blank(&r.Rank) {
			if fresh[r.Job] {
				continue
			}
			if err := s.st.rankGone.run(rankID(r.Job, r.Index)); err != nil {
				return err
			}
			continue
		}
		data, err := row.Rank(&r.Rank)
		if err != nil {
			return err
		}
		if err := s.st.rank.run(rankID(r.Job, r.Index), sealed(data, rowName("rank", rankID(r.Job, r.Index)))); err != nil {
			return err
		}
	}
	return nil
}

// rankBits: api.MaxGangSize ranks fit.
const rankBits = 16

func rankID(job int64, index int) int64 { return job<<rankBits | int64(index) }

// nanos is a time as a column holds it; the zero time is 0, so that it sorts first.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
