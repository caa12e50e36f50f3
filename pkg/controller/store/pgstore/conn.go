package pgstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sys/unix"

	"gangd/pkg/controller/store"
)

const (
	// dialTime is for one server of several.
	dialTime = 2 * time.Second
	// deadPeer is how long a server may leave bytes unconfirmed: one that lost its power says nothing.
	deadPeer = 3 * time.Second
)

// configOf reads a connection string. session is how the database names our connections.
func configOf(url, session string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err // pgx leaves the password out
	}
	// The extended protocol without names: one round trip, and nothing stays on a connection that
	// the next transaction may not get.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.StatementCacheCapacity, cfg.DescriptionCacheCapacity = 0, 0
	cfg.RuntimeParams["application_name"] = session
	if !strings.Contains(url, "connect_timeout") {
		cfg.ConnectTimeout = dialTime
	}
	d := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadPeer, Interval: time.Second, Count: 3},
		Control: func(network, _ string, c syscall.RawConn) error {
			if !strings.HasPrefix(network, "tcp") {
				return nil
			}
			var err error
			return errors.Join(c.Control(func(fd uintptr) {
				err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(deadPeer.Milliseconds()))
			}), err)
		},
	}
	cfg.DialFunc = d.DialContext
	return cfg, nil
}

func connect(cfg *pgx.ConnConfig, most int) *sql.DB {
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db
}

// dropIdle closes connections that nobody uses: to a server that is not the primary any more, say.
func dropIdle(db *sql.DB, most int) {
	db.SetMaxIdleConns(0)
	db.SetMaxIdleConns(most)
}

// pipeline runs statements as one implicit transaction, in one round trip.
func pipeline(ctx context.Context, db *sql.DB, b *pgx.Batch) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var failed error
	err = conn.Raw(func(c any) error {
		pg := c.(*stdlib.Conn).Conn()
		if failed = pg.SendBatch(ctx, b).Close(); failed != nil && away(failed) {
			return driver.ErrBadConn // it is not used again
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// What the database says of a statement or a transaction is final: nothing of it was written.
const (
	codeDiskFull = "53100"
	codeDivision = "22012" // the fence's
	codeReadOnly = "25006" // of a server that is not the primary any more
)

func codeOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// away reports an error that says nothing of what was asked: no connection, no answer in time,
// a server that ends or begins, or has no room for one more.
func away(err error) bool {
	code := codeOf(err)
	switch {
	case err == nil:
		return false
	case code == "":
		return !errors.Is(err, sql.ErrNoRows) && !errors.Is(err, sql.ErrTxDone) && fromOutside(err)
	case code == codeDiskFull:
		return false
	case code == codeReadOnly:
		return true
	}
	switch code[:2] {
	case "08", "57", "53": // connection, operator (shutdown, cancelled), resources
		return true
	}
	return false
}

// fromOutside tells errors of a connection from those of what is run over it.
func fromOutside(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) || pgconn.Timeout(err) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, net.ErrClosed) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// again reports a transaction that the database gave up for another's sake; it can be tried again.
func again(err error) bool {
	switch codeOf(err) {
	case "40001", "40P01", "55P03": // serialization, deadlock, lock not available
		return true
	}
	return false
}

// said makes an error of the database one of package store where it is.
func said(err error) error {
	switch {
	case err == nil || errors.Is(err, store.ErrAway):
		return err
	case away(err):
		return fmt.Errorf("%w: %w", store.ErrAway, err)
	case codeOf(err) == codeDiskFull:
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	}
	return err
}
