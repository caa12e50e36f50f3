package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
)

// database is the store as package sqlstore sees it.
type database struct{ *Store }

// Reading reads in a snapshot of its own.
func (d database) Reading(ctx context.Context, f func(*sqlstore.Reader) error) error {
	return d.readingBy(ctx, d.read, f)
}

// ReadingSpec reads on a connection that nobody else has.
func (d database) ReadingSpec(ctx context.Context, f func(*sqlstore.Reader) error) error {
	return d.readingBy(ctx, d.readSpec, f)
}

func (d database) readingBy(ctx context.Context, by *sql.DB, f func(*sqlstore.Reader) error) error {
	if err := d.readable(); err != nil {
		return err
	}
	tx, err := d.begin(ctx, by, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	err = f(sqlstore.NewReader(ctx, tx))
	if ctx.Err() == nil { // else the caller has no time
		d.note(err)
	}
	return said(err)
}

// readable: a leader that was overtaken still reads, for those that it has to answer before it ends.
func (s *Store) readable() error {
	if err := s.usable(); err != nil && !errors.Is(err, store.ErrFenced) {
		return err
	}
	return nil
}

// twice asks again where a connection has died since it was used last; what it asks may be asked twice.
func (s *Store) twice(ctx context.Context, ask func() error) error {
	err := ask()
	if away(err) && ctx.Err() == nil {
		dropIdle(s.write, writers)
		dropIdle(s.read, readers)
		dropIdle(s.readSpec, specReaders)
		err = ask()
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // else nobody waits for it, and that it failed says nothing of the database
		s.note(err)
	}
	return said(err)
}

// begin begins a transaction.
func (s *Store) begin(ctx context.Context, db *sql.DB, o *sql.TxOptions) (tx *sql.Tx, err error) {
	err = s.twice(ctx, func() error {
		tx, err = db.BeginTx(ctx, o)
		return err
	})
	return tx, err
}

// rowsBeside is how large a write beside commits may be, a piece of a checkpoint or of what is forgotten.
const rowsBeside = 10_000

// Alone runs a write beside commits, exactly once. It waits while the database is away: a caller who
// goes meanwhile changes nothing.
func (d database) Alone(ctx context.Context, lazy bool, f func(sqlstore.Writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := d.Store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.leads(); err != nil {
		return err
	}
	return s.once(&s.beside, s.beside.number+1, rowsBeside, func(ctx context.Context) error {
		tx, err := s.begin(ctx, s.write, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if lazy {
			if _, err := tx.ExecContext(ctx, "SET LOCAL synchronous_commit = off"); err != nil {
				return err
			}
		}
		if err := f(writer{ctx, tx}); err != nil {
			return err
		}
		var one int
		if err := tx.QueryRowContext(ctx, "WITH mine AS (UPDATE beside SET lineage = lineage + 1 WHERE lineage = $1 AND term = $2 RETURNING "+
			"one) SELECT 1 / count(*) FROM mine",
			s.beside.number, int64(s.term.Load())).Scan(&one); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Forgotten specs are stored again with the next job that has one. It is called within Alone.
func (d database) Forgotten(hashes []string) {
	for _, h := range hashes {
		delete(d.specs, h)
	}
}

// writer is a write transaction.
type writer struct {
	ctx context.Context
	tx  *sql.Tx
}

func cleaned(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = clean(a)
	}
	return out
}

func (w writer) Exec(text string, args ...any) (int64, error) {
	res, err := w.tx.ExecContext(w.ctx, text, cleaned(args)...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (w writer) Ints(text string, n int, args ...any) ([]int64, error) {
	out, to := make([]int64, n), make([]any, n)
	for i := range out {
		to[i] = &out[i]
	}
	if err := w.tx.QueryRowContext(w.ctx, text, cleaned(args)...).Scan(to...); err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return out, nil
}

func (w writer) Texts(text string, args ...any) (out []string, err error) {
	rows, err := w.tx.QueryContext(w.ctx, text, cleaned(args)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var t string
		if err := rows.Scan(&t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}
