package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gangd/pkg/controller/store"
)

// Backup writes a copy of one commit beside running ones: VACUUM INTO reads one snapshot
// and leaves a compact database without a log. The copy gets its name when it is whole
// and on the disk. To use it, put it as state.db into an empty state directory.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := s.usable(); err != nil {
		return err
	}
	if exists(path) {
		return fmt.Errorf("backup to %s: %w", path, store.ErrExists)
	}
	part := path + ".part"
	// Left over by a backup that was cut short.
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	defer os.Remove(part)
	if err := s.copyTo(ctx, part); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	// A link, not a rename: it refuses a name that came to exist meanwhile.
	if err := os.Link(part, path); err != nil {
		return fmt.Errorf("backup to %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

func (s *Store) copyTo(ctx context.Context, name string) error {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	// query_only counts the copy as a write of this database, which it isn't.
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = 0"); err != nil {
		return err
	}
	// The file system is named because that of a database in memory is memory.
	_, err = conn.ExecContext(ctx, "VACUUM INTO ?1", "file:"+uriPath(name)+"?vfs=unix")
	if _, back := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA query_only = 1"); err == nil {
		err = back
	}
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	return f.Sync()
}
