package controller

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/store"
	"gangd/pkg/controller/store/pgstore"
	"gangd/pkg/wire/auth"
)

const (
	// sealKeyName is the file in the state directory of each of several controllers with the key of what
	// they share: without it the database gives nobody the authority.
	sealKeyName = "seal.key"
	sealKeySize = 32
	// sealedTime bounds one look at what is shared.
	sealedTime = 5 * time.Second
)

func sealKeyPath(stateDir string) string { return filepath.Join(stateDir, pkiDir, sealKeyName) }

// readSealKey gives nil where there is none.
func readSealKey(stateDir string) ([]byte, error) {
	path := sealKeyPath(stateDir)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(key) != sealKeySize {
		return nil, fmt.Errorf("%s is not a key of %d bytes in base64", path, sealKeySize)
	}
	return key, nil
}

func writeSealKey(stateDir string, key []byte) error {
	path := sealKeyPath(stateDir)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := auth.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n")); err != nil {
		return err
	}
	// Root joins for the user that gangd runs as, whose the state directory is.
	info, err := os.Stat(stateDir)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	of := info.Sys().(*syscall.Stat_t)
	return errors.Join(os.Chown(filepath.Dir(path), int(of.Uid), int(of.Gid)), os.Chown(path, int(of.Uid), int(of.Gid)))
}

// sealed is a vault in the database. What is there is encrypted and bound to its name: who can write to the
// database can take it away or put an older one back, and can neither read nor make one.
type sealed struct {
	st   store.Shared
	aead cipher.AEAD

	mu   sync.Mutex
	last map[string][]byte // as the database has it, for all that this process knows
}

var _ auth.Vault = (*sealed)(nil)

func newSealed(st store.Shared, key []byte) (*sealed, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealed{st: st, aead: aead}, err
}

func (s *sealed) String() string { return "the database" }

// errSealed: what the database has was sealed with another key.
var errSealed = errors.New("what the controllers share in the database was sealed with another key than this host has")

// Get implements [auth.Vault].
func (s *sealed) Get() (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), sealedTime)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.st.Sealed(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, data := range all {
		if out[name], err = s.aead.Open(nil, nil, data, []byte(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, errSealed)
		}
	}
	s.last = all
	return out, nil
}

// Put implements [auth.Vault].
func (s *sealed) Put(name string, data []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), sealedTime)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.aead.Seal(nil, nil, data, []byte(name))
	switch err := s.st.PutSealed(ctx, name, s.last[name], next); {
	case errors.Is(err, store.ErrConflict):
		return auth.ErrChanged
	case err != nil:
		return err
	}
	s.last[name] = next
	return nil
}

// openVault opens what the controllers of a database share. The first of them makes the key, and moves what a
// controller on SQLite kept in this state directory into the database.
func openVault(ctx context.Context, st store.Shared, cfg *config.Controller) (*sealed, []byte, error) {
	key, err := readSealKey(cfg.StateDir)
	if err != nil {
		return nil, nil, err
	}
	have, err := st.Sealed(ctx)
	if err != nil {
		return nil, nil, err
	}
	_, shared := have[auth.CAName]
	files := auth.Files(filepath.Join(cfg.StateDir, pkiDir))
	own, err := files.Get()
	made := false
	switch {
	case err != nil:
		return nil, nil, err
	case key == nil && shared:
		return nil, nil, &api.Error{Code: api.CodeConflict, Message: "other controllers lead by this database, and this host has not joined them",
			Hint: "on the host of one of them: gangd controller new; and here: gangd controller join LINE"}
	case key != nil && !shared && own[auth.CAName] == nil:
		return nil, nil, fmt.Errorf("the database has no keys of a cluster, and %s was made for one that had: is it the right database? Put "+
			"pki/ of a backup into %s, or remove that file to begin a new cluster, which all nodes have to join",
			sealKeyPath(cfg.StateDir), cfg.StateDir)
	case key == nil:
		key, made = make([]byte, sealKeySize), true
		rand.Read(key) // never fails, by its documentation
		if err := writeSealKey(cfg.StateDir, key); err != nil {
			return nil, nil, err
		}
	}
	v, err := newSealed(st, key)
	if err == nil {
		err = v.moveIn(files, own)
	}
	if err == nil {
		_, err = auth.OpenCA(v)
	}
	if made && errors.Is(err, auth.ErrChanged) { // another was the first
		err = errors.Join(err, os.Remove(sealKeyPath(cfg.StateDir)))
	}
	if errors.Is(err, errSealed) {
		err = fmt.Errorf("%w (%s); join them again: gangd controller new on the host of one of them, and here gangd controller join LINE", err,
			sealKeyPath(cfg.StateDir))
	}
	return v, key, err
}

// moveIn moves what a controller on SQLite kept into the database, the authority last: when it is there, all is.
func (s *sealed) moveIn(files auth.Files, own map[string][]byte) error {
	all, err := s.Get()
	if err != nil {
		return err
	}
	ca, there := all[auth.CAName]
	mine, has := own[auth.CAName]
	switch {
	case there && has && !bytes.Equal(ca, mine):
		return fmt.Errorf("%s is another authority than that of the controllers in the database: move the directory away",
			filepath.Join(string(files), auth.CAName))
	case !there && has:
		for name, data := range own {
			if name == auth.CAName {
				continue
			}
			if err := s.Put(name, data); err != nil {
				return err
			}
		}
		if err := s.Put(auth.CAName, mine); err != nil {
			return err
		}
	}
	for name := range own {
		if err := os.Remove(filepath.Join(string(files), name)); err != nil {
			return err
		}
	}
	return nil
}

// JoinOthers makes this host one of the controllers that lead by the database of cfg: it gets their key, with a line
// that one of them has made.
func JoinOthers(ctx context.Context, cfg *config.Controller, log *slog.Logger, line string) error {
	switch {
	case cfg.Database == "":
		return &api.Error{Code: api.CodeInvalid, Message: "the configuration names no database, which controllers share",
			Hint: "set database in gangd.toml, as on the other's host"}
	case cfg.Listen == "":
		return &api.Error{Code: api.CodeInvalid, Message: "the configuration has no address for nodes",
			Hint: `set listen = ":7420" in gangd.toml`}
	}
	if err := keepSecrets(cfg.StateDir); err != nil {
		return err
	}
	st, err := pgstore.Open(ctx, pgstore.Options{URL: cfg.Database, Log: log})
	if err != nil {
		return err
	}
	defer st.Close()
	all, err := st.Sealed(ctx)
	if err != nil {
		return err
	}
	if all[auth.CAName] == nil {
		return &api.Error{Code: api.CodeConflict, Message: "no controller has put its keys into the database that this configuration names",
			Hint: "is it the database of the controller that made the line?"}
	}
	key, err := auth.JoinController(ctx, line, cfg.Name)
	if err != nil {
		return err
	}
	v, err := newSealed(st, key)
	if err != nil {
		return err
	}
	if _, err := v.Get(); err != nil {
		return &api.Error{Code: api.CodeConflict, Message: "the database that this configuration names is not that of the controller that " +
			"made the line: its keys were sealed with another key"}
	}
	return writeSealKey(cfg.StateDir, key)
}
