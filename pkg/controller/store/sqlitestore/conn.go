package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// writer is the one connection that writes. It speaks to the driver itself: database/sql
// would add a lock, an argument conversion and three allocations to each row, and could
// hand a statement of a transaction to another connection.
type writer struct {
	conn  driver.Conn
	stmts []*statement
}

// statement is a prepared statement with its arguments, reused from row to row.
type statement struct {
	text string
	stmt driver.StmtExecContext
	args []driver.NamedValue
}

func connect(ctx context.Context, dsn string) (*writer, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{conn: conn}, nil
}

func (w *writer) close() error {
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.stmt.(driver.Stmt).Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

// prepare makes a statement of n arguments that lives as long as the connection.
func (w *writer) prepare(text string, n int) (*statement, error) {
	st, err := w.conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", text, err)
	}
	s := &statement{text: text, stmt: st.(driver.StmtExecContext), args: make([]driver.NamedValue, n)}
	for i := range s.args {
		s.args[i].Ordinal = i + 1
	}
	w.stmts = append(w.stmts, s)
	return s, nil
}

// exec runs statements without arguments.
func (w *writer) exec(text string) error {
	_, err := w.conn.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}

// Exec runs a statement that is not worth preparing.
func (w *writer) Exec(text string, args ...any) (int64, error) {
	res, err := w.conn.(driver.ExecerContext).ExecContext(context.Background(), text, named(args))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", text, err)
	}
	return res.RowsAffected()
}

// named are arguments as the driver takes them.
func named(args []any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		if n, ok := a.(int); ok {
			a = int64(n)
		}
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

// Ints reads one row of integers.
func (w *writer) Ints(text string, n int, args ...any) ([]int64, error) {
	rows, err := w.conn.(driver.QueryerContext).QueryContext(context.Background(), text, named(args))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	defer rows.Close()
	vals := make([]driver.Value, n)
	if err := rows.Next(vals); err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	out := make([]int64, n)
	for i, v := range vals {
		out[i], _ = v.(int64)
	}
	return out, nil
}

// Texts reads one column of texts.
func (w *writer) Texts(text string, args ...any) (out []string, err error) {
	rows, err := w.conn.(driver.QueryerContext).QueryContext(context.Background(), text, named(args))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	defer rows.Close()
	for vals := make([]driver.Value, 1); ; {
		if err := rows.Next(vals); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		t, _ := vals[0].(string)
		out = append(out, t)
	}
}

func (s *statement) run(args ...any) error {
	for i, a := range args {
		s.args[i].Value = a
	}
	if _, err := s.stmt.ExecContext(context.Background(), s.args[:len(args)]); err != nil {
		return fmt.Errorf("%s: %w", s.text, err)
	}
	return nil
}

// sqliteCode is SQLite's primary result code in err's chain, 0 when there is none.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func isFull(err error) bool { return sqliteCode(err) == sqlite3.SQLITE_FULL }

// idle reports whether no transaction is open.
func (w *writer) idle() bool { return w.exec("BEGIN; ROLLBACK") == nil }
