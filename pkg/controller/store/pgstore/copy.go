package pgstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/sqlitestore"
)

// Copied says what of a table was copied.
type Copied = sqlstore.Copied

const (
	// copySeat is how long a copy that was killed keeps controllers from leading.
	copySeat = 30 * time.Second
	// copyTime bounds the one transaction of a copy.
	copyTime = 24 * time.Hour
)

// isDatabase tells a connection string from a state directory.
func isDatabase(name string) bool {
	return strings.Contains(name, "://") || strings.Contains(name, "=") && !strings.HasPrefix(name, "/")
}

// Copy copies a store into an empty one and compares them row by row. Each is a state directory or a
// database; nobody may use them meanwhile: [store.ErrLocked]. Between databases what is sealed is
// copied too; the list of controllers never is. copying is told how many rows of how many are done; it may be nil.
func Copy(ctx context.Context, from, to string, copying func(done, all int64)) (all []Copied, err error) {
	source, err := forCopy(ctx, from, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	defer func() { err = errors.Join(err, source.close()) }()
	target, err := forCopy(ctx, to, true)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", to, err)
	}
	defer func() { err = errors.Join(err, target.close()) }()
	target.rows.Copying = copying
	if all, err = target.rows.CopyFrom(ctx, source.rows); err != nil || source.db == nil || target.db == nil {
		return all, err
	}
	sealed, err := source.db.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	for name, data := range sealed {
		if err := target.db.PutSealed(ctx, name, nil, data); err != nil {
			return nil, fmt.Errorf("%s: what is sealed: %w", to, err)
		}
	}
	return all, nil
}

// side is one side of a copy.
type side struct {
	rows  *sqlstore.Store
	db    *Store // nil: a state directory
	close func() error
}

// forCopy takes a store for this process alone.
func forCopy(ctx context.Context, name string, create bool) (*side, error) {
	if !isDatabase(name) {
		if _, err := os.Stat(filepath.Join(name, sqlitestore.DatabaseName)); err != nil && !create {
			return nil, err
		}
		s, err := sqlitestore.Open(ctx, name, sqlitestore.Options{})
		if err != nil {
			return nil, err
		}
		return &side{s.Store, nil, s.Close}, nil
	}
	s, err := Open(ctx, Options{URL: name, tryTime: copyTime})
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	if _, err := s.seize(ctx, store.Controller{Name: "gangd store copy on " + host}, copySeat, store.Leader{}, 0, nil); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // ends with close
		defer close(ended)
		for tick := time.NewTicker(copySeat / 6); ; {
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
				_ = s.Renew(ctx, copySeat) // where it can't, the fence says so
			}
		}
	}()
	return &side{s.Store, s, func() error {
		stop()
		<-ended
		end, cancel := context.WithTimeout(context.Background(), deadPeer)
		defer cancel()
		return errors.Join(s.Resign(end), s.Close())
	}}, nil
}
