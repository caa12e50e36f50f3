package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
)

// DatabaseName is the file of the state directory that holds everything.
const DatabaseName = "state.db"

// Pragmas of every connection.
//   - synchronous FULL: NORMAL lost hundreds of acknowledged commits at power loss.
//   - wal_autocheckpoint 0: a checkpoint inside a commit stalls it for two fsyncs of the
//     whole database; see checkpoint.go for when it is done instead.
//   - busy_timeout: nobody else writes; it covers the instant in which a checkpoint
//     restarts the log under a reader, and readers of a database in memory.
//
// Left as SQLite has them, because nothing else was faster beyond the noise: page_size
// 4096 (2048 and 8192 within 5 %), cache_size 2 MB (16 and 64 MB the same with 100,000 jobs
// touched at random: 7.5 us a row, the kernel's cache does the work), mmap_size 0 (7.0 us,
// but an I/O error would be a SIGBUS).
const pragmas = "_pragma=busy_timeout(10000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(0)&_pragma=temp_store(MEMORY)&" +
	"_pragma=wal_autocheckpoint(0)"

// Store keeps the state in one SQLite file, or in memory.
type Store struct {
	*sqlstore.Store
	log  *slog.Logger
	dir  string // empty: in memory
	lock *os.File
	read *sql.DB
	// readSpec is for what nodes wait for alone.
	readSpec *sql.DB
	spare    *spareFile // nil: in memory

	mu      sync.Mutex // one transaction of the writer at a time; guards what follows
	w       *writer
	st      *statements
	nextID  int64
	nextSeq int64
	specs   sqlstore.Specs

	lineage atomic.Uint64
	failed  atomic.Pointer[error] // set once: every call but Close gives it
	check   *checkpointer
	closed  bool
}

var _ store.Store = (*Store)(nil)

// Options are what a caller may set; the zero value is right for a daemon.
type Options struct {
	Log *slog.Logger // nil: none
	// NewJobFloor: batches with new jobs are refused with less free space than this.
	// 0: DefaultNewJobFloor.
	NewJobFloor int64
	// Progress is called again and again while a start goes on; nil: nobody wants to know.
	Progress func()
}

// Open opens or makes the store of a state directory and locks that for this process.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	texts, err := sqlstore.Migrations(migrationFiles)
	if err != nil {
		return nil, err
	}
	return open(ctx, dir, o, texts)
}

func open(ctx context.Context, dir string, o Options, texts []string) (_ *Store, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	magic, err := fileSystem(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if err := refuseNetworkFS(dir, magic, string(mounts)); err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	s := newStore(o.Log)
	s.dir, s.lock, s.spare, s.Progress = dir, lock, newSpareFile(dir, o.NewJobFloor), o.Progress
	name := filepath.Join(dir, DatabaseName)
	dsn := fmt.Sprintf("file:%s?_pragma=journal_mode(WAL)&_pragma=journal_size_limit(%d)&%s", uriPath(name), walKeep, pragmas)
	err = s.start(ctx, name, dsn, texts)
	if err != nil && s.spare.full() && s.spare.release() {
		s.log.Warn("state disk full: gave up the reserve file to start", "dir", dir)
		if s.w != nil {
			_ = s.w.close()
		}
		err = s.start(ctx, name, dsn, texts)
	}
	if err != nil {
		if s.spare.full() {
			err = fmt.Errorf("%w under %s: free some room there to start: %w", store.ErrFull, dir, err)
		}
		s.Close()
		return nil, err
	}
	if s.check, err = startCheckpointer(ctx, s, dsn); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func newStore(log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Store{log: log}
	s.Store = sqlstore.New(database{s})
	return s
}

// start connects, migrates and reads the counters.
func (s *Store) start(ctx context.Context, name, dsn string, texts []string) (err error) {
	s.specs = sqlstore.Specs{}
	if s.w, err = connect(ctx, dsn); err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	if err := migrate(s.w, name, texts, s.progress); err != nil {
		return err
	}
	if s.dir != "" {
		// SQLite makes the names of its logs durable, but not that of a new database.
		if err := syncDir(s.dir); err != nil {
			return err
		}
	}
	if s.st, err = prepareStatements(s.w); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c, err := s.counters()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := s.Start(s.w); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.lineage.Store(uint64(c.lineage))
	s.nextID, s.nextSeq = c.nextID, c.nextSeq

	connector, err := sqlite.NewConnector(dsn + "&_pragma=query_only(1)")
	if err != nil {
		return err
	}
	// Reads are rare (history, start-up, scripts that are launched) and bound by CPU; each
	// connection has its own page cache.
	s.read, s.readSpec = sql.OpenDB(connector), sql.OpenDB(connector)
	s.read.SetMaxOpenConns(4)
	s.read.SetMaxIdleConns(2)
	s.readSpec.SetMaxOpenConns(2)
	s.readSpec.SetMaxIdleConns(1)
	return nil
}

func (s *Store) progress() {
	if s.Progress != nil {
		s.Progress()
	}
}

// Room is ErrFull while there is less space than new jobs need.
func (s *Store) Room() error { return s.spare.room() }

// Lineage is the number of the last commit.
func (s *Store) Lineage() uint64 { return s.lineage.Load() }

// usable gives the error that everything but Close has to give.
func (s *Store) usable() error {
	if p := s.failed.Load(); p != nil {
		return *p
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

// Close ends the store and gives the state directory back. A store that has failed is left as
// it is on the disk: SQLite's last connection would copy the log into the database as it
// closes, with fsyncs that report success once the kernel has told of a failed one.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	failed := s.failed.Load() != nil
	closed := fmt.Errorf("%w", store.ErrClosed)
	s.failed.CompareAndSwap(nil, &closed)
	s.mu.Unlock()

	var errs []error
	if s.check != nil {
		errs = append(errs, s.check.stop())
	}
	if s.read != nil {
		errs = append(errs, s.read.Close(), s.readSpec.Close())
	}
	if s.w != nil && !failed { // the last connection: it empties the log into the database
		errs = append(errs, s.w.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// uriPath escapes what SQLite's URI syntax gives a meaning.
func uriPath(name string) string {
	var b []byte
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '?', '#', '%':
			b = fmt.Appendf(b, "%%%02x", c)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// exists reports whether something has this name.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
