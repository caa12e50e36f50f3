package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/internal/row"
)

// Database is where the rows are.
type Database interface {
	// Reading runs f in a read transaction.
	Reading(ctx context.Context, f func(*Reader) error) error
	// ReadingSpec is Reading by connections of its own: a node that waits for a script does not wait
	// behind people who read history.
	ReadingSpec(ctx context.Context, f func(*Reader) error) error
	// Alone runs f in a write transaction that is no commit. One that is lazy need not survive a
	// power cut until the next that isn't. After an error nothing of it was written.
	Alone(ctx context.Context, lazy bool, f func(Writer) error) error
	// Room is that of [store.Store].
	Room() error
	Lineage() uint64
	// Forgotten is told of specs that are not stored any more.
	Forgotten(hashes []string)
}

// Writer is a write transaction.
type Writer interface {
	// Exec gives how many rows there were.
	Exec(text string, args ...any) (int64, error)
	// Ints reads one row of integers.
	Ints(text string, n int, args ...any) ([]int64, error)
	// Texts reads one column of texts.
	Texts(text string, args ...any) ([]string, error)
}

// Store is the part of a store that is the same over each database.
type Store struct {
	db Database
	// Progress is called for each row that Load reads; nil: nobody wants to know.
	Progress func()
	// Copying is told how many rows CopyFrom has copied and compared, of how many; nil: nobody wants to know.
	Copying func(done, all int64)
	last    lastBlob
}

// New makes the part of a store over its database.
func New(db Database) *Store { return &Store{db: db} }

// Reader is one read transaction: everything it reads is of one commit.
type Reader struct {
	ctx     context.Context
	tx      *sql.Tx
	specs   map[string]heldSpec // shared by all jobs that it reads
	options row.Options
	goes    func() // called for each row; nil: not a start
}

// heldSpec is what is kept of a specification that was read.
type heldSpec struct {
	spec  *api.Spec // without name and texts
	bytes int64     // of them
}

// NewReader reads in a transaction.
func NewReader(ctx context.Context, tx *sql.Tx) *Reader {
	return &Reader{ctx: ctx, tx: tx, specs: make(map[string]heldSpec)}
}

// Each runs a query and gives every row to f, which scans it.
func (r *Reader) Each(f func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := r.tx.QueryContext(r.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if r.goes != nil {
			r.goes()
		}
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// One scans the one row of a query; [sql.ErrNoRows]: there is none.
func (r *Reader) One(query string, args []any, to ...any) error {
	return r.tx.QueryRowContext(r.ctx, query, args...).Scan(to...)
}

// named is Each for rows of a name and what is stored under it.
func (r *Reader) named(f func(name string, data []byte) error, query string, args ...any) error {
	return r.Each(func(scan func(...any) error) error {
		var name string
		var data sql.RawBytes
		if err := scan(&name, &data); err != nil {
			return err
		}
		return f(name, data)
	}, query, args...)
}

// ids reads one column of ids.
func (r *Reader) ids(query string, take func(id int64), args ...any) error {
	return r.Each(func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		take(id)
		return err
	}, query, args...)
}

// nanos is a time as a column holds it; the zero time is 0, so that it sorts first.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
