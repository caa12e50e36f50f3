package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
)

// pieces is how many pieces one checkpoint's numbers have room for; 64 are needed.
const pieces = 1024

// lastBlob is the number of the newest checkpoint, finished or not.
type lastBlob = atomic.Int64

// Start drops the pieces of puts that a crash cut off, and finds the next number.
func (s *Store) Start(w Writer) error {
	if _, err := w.Exec(fmt.Sprintf("DELETE FROM checkpoint_piece WHERE id/%d NOT IN (SELECT id FROM checkpoint)", pieces)); err != nil {
		return err
	}
	last, err := w.Ints("SELECT coalesce(max(id), 0) FROM checkpoint", 1)
	if err != nil {
		return err
	}
	s.last.Store(last[0])
	return nil
}

// PutCheckpoint writes piece by piece, each in a transaction of its own: a commit that comes
// meanwhile waits for one piece and not for sixteen megabytes.
func (s *Store) PutCheckpoint(ctx context.Context, k store.SetKey, rank int, key string, r io.Reader) (store.CheckpointSet, int64, error) {
	var none store.CheckpointSet
	if err := s.db.Room(); err != nil {
		return none, 0, err
	}
	id := s.last.Add(1)
	buf := make([]byte, store.CheckpointPiece)
	var size int64
	for n := int64(0); ; n++ {
		got, err := io.ReadFull(r, buf)
		size += int64(got)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		switch {
		case err != nil && !last:
			return none, 0, errors.Join(err, s.dropPieces(ctx, id))
		case size > api.MaxCheckpointBytes:
			return none, 0, errors.Join(api.TooLarge(), s.dropPieces(ctx, id))
		case ctx.Err() != nil:
			return none, 0, errors.Join(ctx.Err(), s.dropPieces(ctx, id))
		}
		var set store.CheckpointSet
		err = s.db.Alone(ctx, false, func(w Writer) error {
			if got > 0 {
				if _, err := w.Exec("INSERT INTO checkpoint_piece (id, data) VALUES ($1, $2)", id*pieces+n, slices.Clone(buf[:got])); err != nil {
					return err
				}
			}
			if !last {
				return nil
			}
			var err error
			set, err = finishPut(w, id, k, rank, key, size)
			return err
		})
		switch {
		case err != nil:
			return none, 0, errors.Join(err, s.dropPieces(ctx, id))
		case last:
			return set, size, nil
		}
	}
}

// finishPut makes the row that makes the pieces a checkpoint, and drops the last but two.
func finishPut(w Writer, id int64, k store.SetKey, rank int, key string, size int64) (set store.CheckpointSet, err error) {
	const mine = "job = $1 AND epoch = $2 AND step = $3 AND rank = $4"
	who := []any{k.Job, k.Epoch, k.Step, rank}
	last, err := w.Ints("SELECT coalesce(max(put), 0), coalesce(max(id), 0) FROM checkpoint WHERE "+mine, 2, who...)
	if err != nil {
		return set, err
	}
	put := last[0] + 1
	again, err := sameKey(w, last[1], key)
	if err != nil {
		return set, err
	}
	if again { // the answer to the put before was lost
		_, err = w.Exec("DELETE FROM checkpoint_piece WHERE id >= $1 AND id < $2", id*pieces, (id+1)*pieces)
	} else {
		_, err = w.Exec("INSERT INTO checkpoint (job, epoch, step, rank, id, put, bytes, key) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
			append(slices.Clip(who), id, put, size, key)...)
	}
	if err != nil {
		return set, err
	}
	if err := dropBlobs(w, mine+" AND put <= $5", append(slices.Clip(who), put-2)...); err != nil {
		return set, err
	}
	sum, err := w.Ints("SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM checkpoint AS c WHERE job = $1 AND epoch = $2 AND "+
		"step = $3 AND put = "+
		"(SELECT max(put) FROM checkpoint AS n WHERE n.job = c.job AND n.epoch = c.epoch AND n.step = c.step AND n.rank = c.rank)", 2, who[:3]...)
	if err != nil {
		return set, err
	}
	return store.CheckpointSet{Ranks: int(sum[0]), Bytes: sum[1]}, nil
}

func sameKey(w Writer, id int64, key string) (bool, error) {
	if key == "" {
		return false, nil
	}
	n, err := w.Ints("SELECT count(*) FROM checkpoint WHERE id = $1 AND key = $2", 1, id, key)
	return err == nil && n[0] > 0, err
}

// dropBlobs removes checkpoints with their pieces.
func dropBlobs(w Writer, where string, args ...any) error {
	if _, err := w.Exec(fmt.Sprintf("DELETE FROM checkpoint_piece WHERE id IN (SELECT p.id FROM (SELECT id FROM checkpoint WHERE %s) AS c "+
		"CROSS JOIN checkpoint_piece AS p "+
		"WHERE p.id >= c.id*%d AND p.id < (c.id+1)*%d)", where, pieces, pieces), args...); err != nil {
		return err
	}
	_, err := w.Exec("DELETE FROM checkpoint WHERE "+where, args...)
	return err
}

// dropPieces removes what a put that failed has left; where it can't, the next start does.
func (s *Store) dropPieces(ctx context.Context, id int64) error {
	err := s.db.Alone(context.WithoutCancel(ctx), false, func(w Writer) error {
		_, err := w.Exec("DELETE FROM checkpoint_piece WHERE id >= $1 AND id < $2", id*pieces, (id+1)*pieces)
		return err
	})
	if errors.Is(err, store.ErrFailed) || errors.Is(err, store.ErrClosed) {
		return nil
	}
	return err
}

// Checkpoint opens one of the newest set.
func (s *Store) Checkpoint(ctx context.Context, k store.SetKey, rank int) (io.ReadCloser, int64, error) {
	var id, size int64
	err := s.db.Reading(ctx, func(r *Reader) error {
		puts := map[int]int64{}
		err := r.Each(func(scan func(...any) error) error {
			var rank int
			var put int64
			err := scan(&rank, &put)
			puts[rank] = put
			return err
		}, "SELECT rank, max(put) FROM checkpoint WHERE job = $1 AND epoch = $2 AND step = $3 GROUP BY rank", k.Job, k.Epoch, k.Step)
		if err != nil {
			return err
		}
		return r.One("SELECT id, bytes FROM checkpoint WHERE job = $1 AND epoch = $2 AND step = $3 AND rank = $4 AND put = $5",
			[]any{k.Job, k.Epoch, k.Step, rank, store.InStep(puts, rank)}, &id, &size)
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
		err := p.s.db.Reading(p.ctx, func(r *Reader) error {
			return r.One("SELECT data FROM checkpoint_piece WHERE id = $1", []any{p.next}, &p.buf)
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
	return s.db.Alone(ctx, false, func(w Writer) error { return dropBlobs(w, where) })
}

// CheckpointJobs names the jobs that have any.
func (s *Store) CheckpointJobs(ctx context.Context) (jobs []int64, err error) {
	err = s.db.Reading(ctx, func(r *Reader) error {
		return r.Each(func(scan func(...any) error) error {
			var id int64
			err := scan(&id)
			jobs = append(jobs, id)
			return err
		}, "SELECT DISTINCT job FROM checkpoint ORDER BY job")
	})
	return jobs, err
}
