package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gangd/pkg/controller/store"
)

// counter is a row that every write of a kind raises.
type counter struct {
	table  string
	number int64 // as of the last write whose outcome is known
}

// once makes a write exactly once. The write is a transaction that raises the counter from number to next
// as its last statement, and may be tried again as long as that is not known to have
// happened. It does not return while the database is away, unless the store is closed. A try of rows takes no longer than
// these should, since its connection may be dead without a sign; the next has twice the time.
func (s *Store) once(c *counter, next int64, rows int, write func(ctx context.Context) error) error {
	bound := max(s.tryTime, min(firstTry+time.Duration(rows)*tryRow, longestTry))
	for refused := 0; ; bound = s.longer(bound) {
		err := s.try(bound, write)
		switch {
		case err == nil:
			c.number = next
			return nil
		case codeOf(err) == codeDivision:
			refused++
		case !away(err) && !again(err):
			return said(err) // the database has said no: nothing was written
		}
		number, settled := s.settle(c)
		switch {
		case settled != nil:
			return settled
		case number == next:
			c.number = next
			return nil
		case number != c.number:
			return s.fail(fmt.Errorf("%w: %s is at %d, this process has written %d", store.ErrWentBack, c.table, number, c.number))
		case refused > 1:
			return s.fail(fmt.Errorf("%s stays at %d: %w", c.table, number, err))
		}
		s.log.Warn("write was lost on the way and is made again", "error", err)
	}
}

// longer is how long the next try may take.
func (s *Store) longer(bound time.Duration) time.Duration {
	return min(2*bound, max(s.tryTime, longestTry))
}

// try does one try.
func (s *Store) try(bound time.Duration, write func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	err := write(ctx)
	s.note(err)
	return err
}

// settle reads a counter once nobody writes it any more: it waits for the row. It writes, and so is
// durable: what it has seen is, too.
func (s *Store) settle(c *counter) (number int64, err error) {
	const shortest, longest = 20 * time.Millisecond, 200 * time.Millisecond
	bound := max(s.tryTime, firstTry)
	for wait := shortest; ; wait, bound = min(2*wait, longest), s.longer(bound) {
		dropIdle(s.write, writers)
		err := s.try(bound, func(ctx context.Context) error {
			return s.write.QueryRowContext(ctx, "UPDATE "+c.table+" SET settled = settled + 1 WHERE term = $1 RETURNING lineage",
				int64(s.term.Load())).Scan(&number)
		})
		switch {
		case err == nil:
			return number, nil
		case errors.Is(err, sql.ErrNoRows):
			return 0, s.fail(store.ErrFenced)
		case !away(err) && !again(err):
			return 0, s.fail(err)
		}
		select {
		case <-s.quit:
			return 0, fmt.Errorf("%w while it waited for the database: %w", store.ErrClosed, err)
		case <-time.After(wait):
			s.goes()
		}
	}
}
