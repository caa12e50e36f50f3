package pgstore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
)

// How many connections a store has at most: for its writes and who leads, and for readers.
const (
	writers = 4
	readers = 4
	// specReaders read scripts for nodes.
	specReaders = 2
)

// Store is one process's share of a database.
type Store struct {
	*sqlstore.Store
	log     *slog.Logger
	goes    func()
	session string
	write   *sql.DB
	read    *sql.DB
	// readSpec is for what nodes wait for alone.
	readSpec *sql.DB
	tryTime  time.Duration
	quit     chan struct{} // closed by Close: whoever waits for the database gives up

	mu      sync.Mutex // one write at a time; guards what follows
	meta    counter
	beside  counter
	nextID  int64
	nextSeq int64
	specs   sqlstore.Specs
	lineage atomic.Uint64

	term   atomic.Uint64 // 0: not the leader
	renews atomic.Int32  // tries to renew the seat that have no answer yet
	failed atomic.Pointer[error]
	gone   atomic.Pointer[absence]
	closed sync.Once
}

// absence is when the database was first not reached, and why.
type absence struct {
	since time.Time
	why   error
}

var _ store.Shared = (*Store)(nil)

// Options are what a caller may set.
type Options struct {
	// URL is how the database is reached: a URL or key=value pairs as libpq takes them, with
	// several hosts where there are standbys.
	URL string
	Log *slog.Logger // nil: none
	// Progress is called again and again while the store waits for the database or reads much; nil: nobody
	// wants to know.
	Progress func()
	// tryTime is given to each try of a write; 0: usual.
	tryTime time.Duration
}

// How long a try of a write may take: the first firstTry, and tryRow more for each row, a later one twice as long as that before
// it, up to what a large batch takes on a busy disk.
const (
	firstTry   = time.Second
	tryRow     = 200 * time.Microsecond
	longestTry = 15 * time.Second
)

// Open connects as a follower, and makes the tables in a database that has none.
func Open(ctx context.Context, o Options) (*Store, error) {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	s := &Store{log: o.Log, goes: o.Progress, tryTime: o.tryTime, session: "gangd " + hex.EncodeToString(b), quit: make(chan struct{}),
		specs: sqlstore.Specs{}}
	s.meta, s.beside = counter{table: "meta"}, counter{table: "beside"}
	log := s.log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s.log = slog.New(slog.DiscardHandler) // until it is open: the caller has the error, and tries again
	if s.goes == nil {
		s.goes = func() {}
	}
	s.Store = sqlstore.New(database{s})
	s.Progress = s.goes
	cfg, err := configOf(o.URL, s.session)
	if err != nil {
		return nil, err
	}
	s.write, s.read, s.readSpec = connect(cfg, writers), connect(cfg, readers), connect(cfg, specReaders)
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(said(err), s.Close())
	}
	s.log = log
	warnings, err := s.Doctor(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	for _, w := range warnings {
		s.log.Warn("database: " + w)
	}
	return s, nil
}

// Lineage is the number of the last commit, as of the take-over and this process's own since.
func (s *Store) Lineage() uint64 { return s.lineage.Load() }

// Room says nothing: a database that is full says so at a commit.
func (s *Store) Room() error { return s.usable() }

// Away says since when the database has not answered.
func (s *Store) Away() (time.Time, error) {
	if a := s.gone.Load(); a != nil {
		return a.since, a.why
	}
	return time.Time{}, nil
}

// note keeps whether the database answers.
func (s *Store) note(err error) {
	switch {
	case !away(err):
		if was := s.gone.Swap(nil); was != nil {
			s.log.Info("database is back", "away", time.Since(was.since).Round(time.Millisecond))
		}
	case s.gone.CompareAndSwap(nil, &absence{time.Now(), err}):
		s.log.Warn("database away", "error", err)
	}
}

// usable gives the error that everything but Close has to give.
func (s *Store) usable() error {
	if p := s.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// leads gives the error that writes have to give.
func (s *Store) leads() error {
	if err := s.usable(); err != nil {
		return err
	}
	if s.term.Load() == 0 {
		return fmt.Errorf("this process has not taken over: %w", store.ErrFenced)
	}
	return nil
}

// fail makes the store refuse everything from here on.
func (s *Store) fail(err error) error {
	err = fmt.Errorf("%w: %w", store.ErrFailed, err)
	if s.failed.CompareAndSwap(nil, &err) {
		s.log.Error("state store failed", "error", err)
	}
	return *s.failed.Load()
}

// Close ends the store. Whoever leads goes on leading until its ttl is over: see Resign.
func (s *Store) Close() (err error) {
	s.closed.Do(func() {
		gone := fmt.Errorf("%w", store.ErrClosed)
		s.failed.CompareAndSwap(nil, &gone)
		close(s.quit)
		err = errors.Join(s.write.Close(), s.read.Close(), s.readSpec.Close())
	})
	return err
}
