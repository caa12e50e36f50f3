package sqlitestore

import (
	"context"
	"fmt"
	"sync/atomic"

	"gangd/pkg/controller/store/internal/sqlstore"
)

var memories atomic.Int64

// Memory is a database in memory that outlives the stores which have it open, as a disk
// outlives processes: for simulations. It is the same SQL, without durability.
type Memory struct {
	dsn   string
	texts []string
	keep  *writer // the database lives while a connection is open
}

// NewMemory makes an empty one. It lives until Close.
func NewMemory(ctx context.Context) (*Memory, error) {
	texts, err := sqlstore.Migrations(migrationFiles)
	if err != nil {
		return nil, err
	}
	// SQLite's memdb shares a database among the connections of one process when its name
	// begins with a slash.
	m := &Memory{dsn: fmt.Sprintf("file:/gangd-%d?vfs=memdb", memories.Add(1)), texts: texts}
	if m.keep, err = connect(ctx, m.dsn+"&"+pragmas); err != nil {
		return nil, err
	}
	return m, nil
}

// Open opens a store on what was committed. Close of a store is the end of the process
// that had it, in good order or not: what was committed is there, nothing else.
func (m *Memory) Open(ctx context.Context) (*Store, error) {
	s := newStore(nil)
	if err := s.start(ctx, "state in memory", m.dsn+"&"+pragmas, m.texts); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Copy is another database with what is committed now.
func (m *Memory) Copy(ctx context.Context) (*Memory, error) {
	c, err := NewMemory(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.keep.exec("VACUUM INTO '" + c.dsn + "'"); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Pages is the size of the database in its pages and the size of one in bytes.
func (m *Memory) Pages() (pages, bytes int64, err error) {
	n, err := m.keep.Ints("SELECT page_count, page_size FROM pragma_page_count, pragma_page_size", 2)
	if err != nil {
		return 0, 0, err
	}
	return n[0], n[1], nil
}

// Ended counts the ended jobs in it, and the pages that wait to be used again.
func (m *Memory) Ended() (jobs, free int64, err error) {
	n, err := m.keep.Ints("SELECT (SELECT count(*) FROM job WHERE ended IS NOT NULL), freelist_count FROM pragma_freelist_count", 2)
	if err != nil {
		return 0, 0, err
	}
	return n[0], n[1], nil
}

// Close ends it; stores on it must be closed before.
func (m *Memory) Close() error { return m.keep.close() }

// OpenMemory makes a store in memory of its own. It lives until Close.
func OpenMemory(ctx context.Context) (*Store, error) {
	m, err := NewMemory(ctx)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Open(ctx)
}
