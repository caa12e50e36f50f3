package controller

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/wire/auth"
)

// pkiDir holds the certificate authority, the tokens and the revocations, in the state
// directory of a controller on SQLite and in a backup.
const pkiDir = "pki"

// backup copies the state to a new directory: a consistent copy of the store, taken beside
// running commits, and what is kept about certificates, as files wherever it is kept, each of
// which is replaced whole when it changes. Put back in place of the state directory it is a controller's
// that nodes know, as of this moment. The directory gets its name when it is complete.
func backup(ctx context.Context, st store.Store, v auth.Vault, to string) (*api.BackupReply, error) {
	if !filepath.IsAbs(to) {
		return nil, api.Errorf(api.CodeInvalid, "backup to %q: want an absolute path on the controller's host", to)
	}
	to = filepath.Clean(to)
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, refusedPath(err)
		}
		return nil, api.Errorf(api.CodeConflict, "backup to %s: it exists; a backup is written to a new directory", to)
	}
	part, err := os.MkdirTemp(filepath.Dir(to), "."+filepath.Base(to)+"-") // mode 0700
	if err != nil {
		return nil, refusedPath(err)
	}
	defer os.RemoveAll(part)
	copied := filepath.Join(part, sqlitestore.DatabaseName)
	if err := st.Backup(ctx, copied); err != nil {
		return nil, err
	}
	info, err := os.Stat(copied)
	if err != nil {
		return nil, err
	}
	if err := copyVault(v, filepath.Join(part, pkiDir)); err != nil {
		return nil, err
	}
	if err := syncDir(part); err != nil {
		return nil, err
	}
	// Fails where a directory with something in it came to be at to meanwhile.
	if err := os.Rename(part, to); err != nil {
		return nil, refusedPath(err)
	}
	if err := syncDir(filepath.Dir(to)); err != nil {
		return nil, err
	}
	return &api.BackupReply{SchemaVersion: api.SchemaVersion, Path: to, Bytes: info.Size()}, nil
}

// refusedPath is a mistake of the caller's: gangd can't write where they want it to.
func refusedPath(err error) error {
	return &api.Error{Code: api.CodeInvalid, Message: "backup: " + err.Error(),
		Hint: "name a directory that the user gangd runs as may write to"}
}

// copyVault copies what there is; a controller that takes no nodes over TLS has nothing.
func copyVault(v auth.Vault, to string) error {
	all, err := v.Get()
	if err != nil || len(all) == 0 {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for name, data := range all {
		if err := writeSynced(filepath.Join(to, name), bytes.NewReader(data)); err != nil {
			return err
		}
	}
	return syncDir(to)
}

func writeSynced(path string, data io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
