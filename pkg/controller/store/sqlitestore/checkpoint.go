package sqlitestore

import (
	"context"
	"fmt"
	"sync"

	"gangd/pkg/controller/store"
)

// walSoft is the length of the log, in pages, from which it is copied into the database:
// 4 MiB. Shorter costs more fsyncs a commit; longer makes a start after a crash read more
// and each copy longer. walKeep is the size above which the file of the log is cut when
// it is used again: overwriting a file of its final size spares the file system a journal
// entry in each fsync.
const (
	walSoft = 1024
	walKeep = 64 << 20
)

// looking costs as much as a row, hence not after each commit.
const lookAfterRows = 64

// checkpointer copies the log into the database. It owns one goroutine and a connection,
// so that a copy and its two fsyncs do not wait inside a commit: first everything beside
// running commits, then the little that was added meanwhile with commits held up, because
// the log is only used again from its start once all of it has been copied.
type checkpointer struct {
	s    *Store
	w    *writer
	wake chan struct{}
	quit chan struct{}
	done sync.WaitGroup
	rows int // since the last look; guarded by the store's mu
}

func startCheckpointer(ctx context.Context, s *Store, dsn string) (*checkpointer, error) {
	w, err := connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	// A reader in the way is no reason to wait here: the next look comes soon.
	if err := w.exec("PRAGMA busy_timeout = 0"); err != nil {
		_ = w.close()
		return nil, err
	}
	c := &checkpointer{s: s, w: w, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	c.done.Go(c.run)
	return c, nil
}

// committed is told of each commit, under the store's mu.
func (c *checkpointer) committed(rows int) {
	if c == nil {
		return
	}
	if c.rows += rows + 1; c.rows < lookAfterRows {
		return
	}
	c.rows = 0
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *checkpointer) stop() error {
	close(c.quit)
	c.done.Wait()
	return c.w.close()
}

func (c *checkpointer) run() {
	for {
		select {
		case <-c.quit:
			return
		case <-c.wake:
		}
		if c.s.usable() != nil {
			return
		}
		if err := c.look(); err != nil {
			c.s.fail(fmt.Errorf("checkpoint: %w", err))
			return
		}
	}
}

// look copies the log when it has become long.
func (c *checkpointer) look() error {
	if pages, err := c.pass("NOOP"); err != nil || pages < walSoft {
		return err
	}
	if _, err := c.pass("PASSIVE"); err != nil {
		return err
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.usable() != nil {
		return nil
	}
	_, err := c.pass("PASSIVE")
	return err
}

// pass gives the length of the log in pages. A full disk only means that the log stays
// at present; any other error leaves the database unknown.
func (c *checkpointer) pass(mode string) (pages int64, err error) {
	r, err := c.w.Ints("PRAGMA wal_checkpoint("+mode+")", 3) // busy, pages in the log, pages copied
	switch {
	case isFull(err):
		c.s.log.Warn("state disk full: the log can't be copied into the database yet", "dir", c.s.dir, "error", store.ErrFull)
		return 0, nil
	case err != nil:
		return 0, err
	}
	return r[1], nil
}
