package pgstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/internal/sqlstore"
	"gangd/pkg/controller/store/sqlitestore"
)

// maxFindings bounds what is said of the ledger: beyond a hundred lines it has to be looked at whole.
const maxFindings = 100

// Verify reads all rows as of one commit and names those that are impossible.
func (s *Store) Verify(ctx context.Context) (out []string, err error) {
	err = database{s}.Reading(ctx, func(r *sqlstore.Reader) error {
		found, err := sqlstore.Examine(r)
		for i := range found {
			out = append(out, found[i].String())
		}
		if err != nil {
			return err
		}
		lines, err := sqlstore.RecountLedger(r, maxFindings)
		out = append(out, lines...)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("verify: %w", err)
	}
	return out, nil
}

// Backup writes what was accepted, as of one commit, into a store of SQLite: state.db of a state
// directory, or the source of a copy into another database. What is sealed, and which
// controllers there are, is no part of it.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("backup to %s: %w", path, err)
		}
	}()
	if err := s.readable(); err != nil {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return store.ErrExists
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".backup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	to, err := sqlitestore.Open(ctx, dir, sqlitestore.Options{})
	if err != nil {
		return err
	}
	_, err = to.CopyFrom(ctx, s.Store)
	if err := errors.Join(err, to.Close()); err != nil { // Close empties its log into the file
		return err
	}
	// A link, not a rename: it refuses a name that came to exist meanwhile.
	return os.Link(filepath.Join(dir, sqlitestore.DatabaseName), path)
}
