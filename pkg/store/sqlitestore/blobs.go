package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/store"
)

// pieces is how many pieces one checkpoint's numbers have room for; 64 are needed.
const pieces = 1024

// startCheckpoints drops the pieces of puts that a crash cut off, and finds the next number.
func (s *Store) startCheckpoints() error {
	if err := s.w.exec(fmt.Sprintf("DELETE FROM checkpoint_piece WHERE id/%d NOT IN (SELECT id FROM checkpoint)", pieces)); err != nil {
		return err
	}
	last, err := s.w.ints("SELECT coalesce(max(id), 0) FROM checkpoint", 1)
	if err != nil {
		return err
	}
	s.lastBlob = last[0]
	return nil
}

// PutCheckpoint writes piece by piece, each in a transaction of its own: a commit that comes
// meanwhile waits for one piece and not for sixteen megabytes.
func (s *Store) PutCheckpoint(ctx context.Context, k store.SetKey, rank int, key string, r io.Reader) (store.CheckpointSet, int64, error) {
	var none store.CheckpointSet
	if err := s.Room(); err != nil {
		return none, 0, err
	}
	s.mu.Lock()
	s.lastBlob++
	id := s.lastBlob
	s.mu.Unlock()
	buf := make([]byte, store.CheckpointPiece)
	var size int64
	for n := int64(0); ; n++ {
		got, err := io.ReadFull(r, buf)
		size += int64(got)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !last:
			return none, 0, errors.Join(err, s.dropPieces(id))
		case size > api.MaxCheckpointBytes:
			return none, 0, errors.Join(api.TooLarge(), s.dropPieces(id))
		case ctx.Err() != nil:
			return none, 0, errors.Join(ctx.Err(), s.dropPieces(id))
		}
		var set store.CheckpointSet
		err = s.alone(func() error {
			if got > 0 {
				if err := s.st.piece.run(id*pieces+n, slices.Clone(buf[:got])); err != nil {
					return err
				}
			}
			if !last {
				return nil
			}
			var err error
			set, err = s.finishPut(id, k, rank, key, size)
			return err
		})
		switch {
		case err != nil:
			return none, 0, errors.Join(err, s.dropPieces(id))
		case last:
			return set, size, nil
		}
	}
}

// alone runs f in a transaction of the writer.
func (s *Store) alone(f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.transaction(f)
}

// transaction is one of the writer, under the store's mu.
func (s *Store) transaction(f func() error) error {
	err := s.st.begin.run()
	if err == nil {
		err = f()
	}
	if err == nil {
		err = s.st.commit.run()
	}
	if err == nil {
		s.check.committed(store.CheckpointPiece / 4096) // so that the log is looked at
		return nil
	}
	if rb := s.st.rollback.run(); rb != nil && !s.w.idle() {
		return s.fail(fmt.Errorf("roll back: %v; after: %v", rb, err))
	}
	if isFull(err) {
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return s.fail(err)
}

// finishPut makes the row that makes the pieces a checkpoint, and drops the last but two.
func (s *Store) finishPut(id int64, k store.SetKey, rank int, key string, size int64) (set store.CheckpointSet, err error) {
	mine := fmt.Sprintf("job = %d AND epoch = %d AND step = %d AND rank = %d", k.Job, k.Epoch, k.Step, rank)
	last, err := s.w.ints("SELECT coalesce(max(put), 0), coalesce(max(id), 0) FROM checkpoint WHERE "+mine, 2)
	if err != nil {
		return set, err
	}
	put := last[0] + 1
	again, err := s.sameKey(last[1], key)
	if err != nil {
		return set, err
	}
	if again { // the answer to the put before was lost
		err = s.w.exec(fmt.Sprintf("DELETE FROM checkpoint_piece WHERE id >= %d AND id < %d", id*pieces, (id+1)*pieces))
	} else {
		err = s.st.checkpoint.run(id, k.Job, int64(k.Epoch), int64(k.Step), int64(rank), put, size, key)
	}
	if err != nil {
		return set, err
	}
	if err := s.dropWhere(fmt.Sprintf("%s AND put <= %d", mine, put-2)); err != nil {
		return set, err
	}
	sum, err := s.w.ints(fmt.Sprintf("SELECT count(*), coalesce(sum(bytes), 0) FROM (SELECT bytes, max(put) FROM checkpoint "+
		"WHERE job = %d AND epoch = %d AND step = %d GROUP BY rank)", k.Job, k.Epoch, k.Step), 2)
	if err != nil {
		return set, err
	}
	return store.CheckpointSet{Ranks: int(sum[0]), Bytes: sum[1]}, nil
}

func (s *Store) sameKey(id int64, key string) (bool, error) {
	if id == 0 || key == "" {
		return false, nil
	}
	n, err := s.w.ints(fmt.Sprintf("SELECT count(*) FROM checkpoint WHERE id = %d AND hex(key) = '%X'", id, key), 1)
	return err == nil && n[0] > 0, err
}

// dropWhere removes checkpoints with their pieces; the condition is ours.
func (s *Store) dropWhere(where string) error {
	for _, text := range []string{
		fmt.Sprintf("DELETE FROM checkpoint_piece WHERE id IN (SELECT p.id FROM checkpoint c JOIN checkpoint_piece p "+
			"ON p.id >= c.id*%d AND p.id < (c.id+1)*%d WHERE %s)", pieces, pieces, where),
		"DELETE FROM checkpoint WHERE " + where,
	} {
		if err := s.w.exec(text); err != nil {
			return err
		}
	}
	return nil
}

// dropPieces removes what a put that failed has left.
func (s *Store) dropPieces(id int64) error {
	if s.usable() != nil {
		return nil // the next start does it
	}
	return s.alone(func() error {
		return s.w.exec(fmt.Sprintf("DELETE FROM checkpoint_piece WHERE id >= %d AND id < %d", id*pieces, (id+1)*pieces))
	})
}

// Checkpoint opens one of the newest set.
func (s *Store) Checkpoint(ctx context.Context, k store.SetKey, rank int) (io.ReadCloser, int64, error) {
	var id, size int64
	err := s.reading(ctx, func(r *reader) error {
		puts := map[int]int64{}
		err := r.each(func(scan func(...any) error) error {
			var rank int
			var put int64
			err := scan(&rank, &put)
			puts[rank] = put
			return err
		}, "SELECT rank, max(put) FROM checkpoint WHERE job = ? AND epoch = ? AND step = ? GROUP BY rank", k.Job, k.Epoch, k.Step)
		if err != nil {
			return err
		}
		return r.tx.QueryRowContext(ctx, "SELECT id, bytes FROM checkpoint WHERE job = ? AND epoch = ? AND step = ? AND rank = ? AND put = ?",
			k.Job, k.Epoch, k.Step, rank, store.InStep(puts, rank)).Scan(&id, &size)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, 0, fmt.Errorf("checkpoint of rank %d in epoch %d of job %d: %w", rank, k.Epoch, k.Job, store.ErrNotFound)
	case err != nil:
		return nil, 0, err
	}
	return &pieceReader{ctx: ctx, s: s, next: id * pieces, left: size}, size, nil
}

// pieceReader reads a checkpoint piece by piece, so that no read transaction lasts as long
// as its caller takes.
type pieceReader struct {
	ctx  context.Context
	s    *Store
	next int64
	left int64
	buf  []byte
}

func (p *pieceReader) Read(b []byte) (int, error) {
	if len(p.buf) == 0 {
		if p.left == 0 {
			return 0, io.EOF
		}
		err := p.s.reading(p.ctx, func(r *reader) error {
			return r.tx.QueryRowContext(p.ctx, "SELECT data FROM checkpoint_piece WHERE id = ?", p.next).Scan(&p.buf)
		})
		if errors.Is(err, sql.ErrNoRows) {
			return 0, fmt.Errorf("checkpoint was replaced while it was read: %w", store.ErrNotFound)
		}
		if err != nil {
			return 0, err
		}
		p.next++
		p.left -= int64(len(p.buf))
	}
	n := copy(b, p.buf)
	p.buf = p.buf[n:]
	return n, nil
}

func (p *pieceReader) Close() error { return nil }

// PruneCheckpoints drops all sets of ranks, or of tasks, but some.
func (s *Store) PruneCheckpoints(ctx context.Context, job int64, tasks bool, keep []store.SetKey) error {
	where := fmt.Sprintf("job = %d AND step < 0", job)
	if tasks {
		where = fmt.Sprintf("job = %d AND step >= 0", job)
	}
	for _, k := range keep {
		where += fmt.Sprintf(" AND NOT (epoch = %d AND step = %d)", k.Epoch, k.Step)
	}
	return s.dropSets(ctx, where)
}

// DropCheckpoints drops all of a job.
func (s *Store) DropCheckpoints(ctx context.Context, job int64) error {
	return s.dropSets(ctx, fmt.Sprintf("job = %d", job))
}

func (s *Store) dropSets(ctx context.Context, where string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.alone(func() error { return s.dropWhere(where) })
}

// CheckpointJobs names the jobs that have any.
func (s *Store) CheckpointJobs(ctx context.Context) (jobs []int64, err error) {
	err = s.reading(ctx, func(r *reader) error {
		return r.each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			jobs = append(jobs, id)
			return err
		}, "SELECT DISTINCT job FROM checkpoint ORDER BY job")
	})
	return jobs, err
}
