package controller

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/controller/config"
	"gangd/pkg/controller/store"
	"gangd/pkg/wire/auth"
)

// shares is the part of a database that controllers keep their keys in.
type shares struct {
	store.Shared
	rows map[string][]byte
	away bool
}

func (s *shares) Sealed(context.Context) (map[string][]byte, error) {
	if s.away {
		return nil, store.ErrAway
	}
	return maps.Clone(s.rows), nil
}

func (s *shares) PutSealed(_ context.Context, name string, old, sealed []byte) error {
	if have, ok := s.rows[name]; ok != (old != nil) || !bytes.Equal(have, old) {
		return store.ErrConflict
	}
	s.rows[name] = sealed
	return nil
}

func newShares() *shares { return &shares{rows: map[string][]byte{}} }

// host is the configuration of a controller's host with nothing on it.
func host(t *testing.T) *config.Controller { return &config.Controller{StateDir: t.TempDir()} }

func files(c *config.Controller) auth.Files { return auth.Files(filepath.Join(c.StateDir, pkiDir)) }

// What one controller kept in files is the cluster's, and only there, once it leads by a database.
func TestKeysMoveIntoTheDatabase(t *testing.T) {
	cfg, st, log := host(t), newShares(), slog.New(slog.DiscardHandler)
	before, err := auth.OpenIssuer(files(cfg), "h:1", log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Tokens.New(api.TokenRequest{Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	if err := before.Revoked.Revoke("a-node-that-was-revoked"); err != nil {
		t.Fatal(err)
	}
	want, _ := files(cfg).Get()
	v, key, err := openVault(t.Context(), st, cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Get()
	if err != nil || len(got) != 3 || !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("the database has %d, want %d the same: %v", len(got), len(want), err)
	}
	if left, _ := os.ReadDir(string(files(cfg))); len(left) != 1 || left[0].Name() != sealKeyName {
		t.Errorf("on the host there are %v", left)
	}
	info, err := os.Stat(sealKeyPath(cfg.StateDir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	block, _ := pem.Decode(want[auth.CAName])
	if _, err := x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		t.Fatal(err)
	}
	for name, row := range st.rows {
		if bytes.Contains(row, key) || bytes.Contains(row, []byte("PRIVATE KEY")) || bytes.Contains(row, block.Bytes[40:72]) || bytes.Contains(row, []byte("a-node-that-was-revoked")) {
			t.Errorf("%s can be read in the database", name)
		}
	}
	// And as a backup has them.
	to := filepath.Join(t.TempDir(), "pki")
	if err := copyVault(v, to); err != nil {
		t.Fatal(err)
	}
	if back, _ := auth.Files(to).Get(); !maps.EqualFunc(back, want, bytes.Equal) {
		t.Error("a backup has something else")
	}
	again, same, err := openVault(t.Context(), st, cfg)
	if err != nil || !bytes.Equal(same, key) {
		t.Fatalf("the next start: %v", err)
	}
	if got, err := again.Get(); err != nil || !maps.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("the next start has something else: %v", err)
	}
}

// The key is replaced as docs/two-controllers.md has it: the cluster's authority stays where a backup has it, and is another where
// nobody has. Hosts with the old key have to join again.
func TestNewSealKey(t *testing.T) {
	first, second, st := host(t), host(t), newShares()
	v, old, err := openVault(t.Context(), st, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeSealKey(second.StateDir, old); err != nil {
		t.Fatal(err)
	}
	before, err := v.Get()
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(t.TempDir(), "pki")
	if err := copyVault(v, saved); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{true, false} {
		clear(st.rows) // DELETE FROM sealed
		if err := os.RemoveAll(string(files(first))); err != nil {
			t.Fatal(err)
		}
		if keep {
			if err := os.Rename(saved, string(files(first))); err != nil {
				t.Fatal(err)
			}
		}
		v, key, err := openVault(t.Context(), st, first)
		if err != nil {
			t.Fatal(err)
		}
		after, err := v.Get()
		if err != nil || bytes.Equal(key, old) || bytes.Equal(after[auth.CAName], before[auth.CAName]) != keep {
			t.Errorf("with a backup: %t; %v, the same key: %t, the same authority: %t", keep, err, bytes.Equal(key, old), bytes.Equal(after[auth.CAName], before[auth.CAName]))
		}
		if _, _, err := openVault(t.Context(), st, second); !errors.Is(err, errSealed) || !strings.Contains(err.Error(), "join them again: gangd controller new") {
			t.Errorf("with the old key: %v", err)
		}
	}
}

// Who can write to the database can put nothing there that is believed.
func TestSealedIsBoundToItsName(t *testing.T) {
	cfg, st := host(t), newShares()
	v, _, err := openVault(t.Context(), st, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Put("revoked.json", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	st.rows["tokens.json"] = st.rows["revoked.json"]
	if _, err := v.Get(); !errors.Is(err, errSealed) {
		t.Errorf("revocations are taken for tokens: %v", err)
	}
	delete(st.rows, "tokens.json")
	st.rows["revoked.json"][20] ^= 1
	if _, err := v.Get(); !errors.Is(err, errSealed) {
		t.Errorf("a changed row is taken: %v", err)
	}
}

func TestVaultThatIsNotOpened(t *testing.T) {
	cfg, st := host(t), newShares()
	if _, _, err := openVault(t.Context(), st, cfg); err != nil {
		t.Fatal(err)
	}
	opened := func(st *shares, c *config.Controller) error {
		_, _, err := openVault(t.Context(), st, c)
		return err
	}
	wants := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	other := host(t)
	wants(opened(st, other), "this host has not joined them; on the host of one of them: gangd controller new; and here: gangd controller join LINE")
	if _, err := os.Stat(sealKeyPath(other.StateDir)); err == nil {
		t.Error("who has not joined has made a key")
	}
	if err := opened(newShares(), other); err != nil { // of another cluster
		t.Fatal(err)
	}
	wants(opened(st, other), "sealed with another key than this host has ("+sealKeyPath(other.StateDir)+"); join them again")
	wants(opened(newShares(), cfg), "the database has no keys of a cluster, and "+sealKeyPath(cfg.StateDir)+" was made for one that had")
	if _, err := auth.OpenCA(files(cfg)); err != nil { // files of another authority
		t.Fatal(err)
	}
	wants(opened(st, cfg), "ca.pem is another authority than that of the controllers in the database")
	if all, _ := files(cfg).Get(); all[auth.CAName] == nil {
		t.Error("the other authority was removed")
	}
	st.away = true
	if err := opened(st, host(t)); !errors.Is(err, store.ErrAway) {
		t.Errorf("a database that is away: %v", err)
	}
}

// Of two first controllers that start at once one is the first, and the other has made nothing.
func TestTwoFirstControllers(t *testing.T) {
	a, b, st := host(t), host(t), newShares()
	late := &shares{rows: map[string][]byte{}} // has not seen what the first did
	if _, _, err := openVault(t.Context(), st, a); err != nil {
		t.Fatal(err)
	}
	_, _, err := openVault(t.Context(), &racing{shares: late, then: st}, b)
	if !errors.Is(err, auth.ErrChanged) {
		t.Errorf("both were the first: %v", err)
	}
	if _, err := os.Stat(sealKeyPath(b.StateDir)); err == nil {
		t.Error("the second keeps a key that opens nothing")
	}
}

// racing reads from before, and writes to now.
type racing struct {
	*shares
	then *shares
}

func (r *racing) PutSealed(ctx context.Context, name string, old, sealed []byte) error {
	return r.then.PutSealed(ctx, name, old, sealed)
}
