package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
)

// database is the store as package sqlstore sees it.
type database struct{ *Store }

// Reading reads on a connection of its own.
func (d database) Reading(ctx context.Context, f func(*sqlstore.Reader) error) error {
	return d.readingBy(ctx, d.read, f)
}

// ReadingSpec reads on one of those that nobody else has.
func (d database) ReadingSpec(ctx context.Context, f func(*sqlstore.Reader) error) error {
	return d.readingBy(ctx, d.readSpec, f)
}

func (d database) readingBy(ctx context.Context, by *sql.DB, f func(*sqlstore.Reader) error) error {
	if err := d.usable(); err != nil {
		return err
	}
	tx, err := by.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	return f(sqlstore.NewReader(ctx, tx))
}

// Alone runs a transaction of the writer. One that need not survive a power cut waits for no disk:
// the next commit makes it durable with itself, as the log has one order.
func (d database) Alone(_ context.Context, lazy bool, f func(sqlstore.Writer) error) error {
	s := d.Store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	if lazy {
		if _, err := s.w.Exec("PRAGMA synchronous = NORMAL"); err != nil {
			return s.fail(err)
		}
	}
	err := s.transaction(func() error { return f(s.w) })
	if lazy {
		if _, back := s.w.Exec("PRAGMA synchronous = FULL"); back != nil {
			return s.fail(back)
		}
	}
	return err
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

// Forgotten specs are stored again with the next job that has one. It is called within Alone.
func (d database) Forgotten(hashes []string) {
	for _, h := range hashes {
		delete(d.specs, h)
	}
}
