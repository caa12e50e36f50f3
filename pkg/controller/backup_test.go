package controller

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/controller/store/sqlitestore"
	"gangd/pkg/wire/auth"
)

func TestBackupHoldsStoreAndAuthority(t *testing.T) {
	ctx, state := context.Background(), t.TempDir()
	log := slog.New(slog.DiscardHandler)
	st, err := sqlitestore.Open(ctx, state, sqlitestore.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	issuer, err := auth.OpenIssuer(auth.Files(filepath.Join(state, pkiDir)), "h:1", log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issuer.Tokens.New(api.TokenRequest{Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	// What a replacement that was cut short left is not part of the state.
	if err := os.WriteFile(filepath.Join(state, pkiDir, ".tokens.json-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "b")
	got, err := backup(ctx, st, auth.Files(filepath.Join(state, pkiDir)), to)
	if err != nil {
		t.Fatal(err)
	}
	if got.Path != to || got.Bytes == 0 {
		t.Errorf("%+v", got)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, name := range []string{"ca.pem", "tokens.json"} {
		want, _ := os.ReadFile(filepath.Join(state, pkiDir, name))
		have, err := os.ReadFile(filepath.Join(to, pkiDir, name))
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s differs: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(to, pkiDir, ".tokens.json-1")); err == nil {
		t.Error("a torn file was copied")
	}
	// It opens as a state directory.
	again, err := sqlitestore.Open(ctx, to, sqlitestore.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestBackupRefusals(t *testing.T) {
	ctx, state := context.Background(), t.TempDir()
	st, err := sqlitestore.Open(ctx, state, sqlitestore.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	there := t.TempDir()
	const hint = "; name a directory that the user gangd runs as may write to"
	for to, want := range map[string]string{
		"b":                   `backup to "b": want an absolute path on the controller's host`,
		there:                 "backup to " + there + ": it exists; a backup is written to a new directory",
		state + "/state.db/b": "backup: lstat " + state + "/state.db/b: not a directory" + hint,
	} {
		if _, err := backup(ctx, st, auth.Files(filepath.Join(state, pkiDir)), to); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", to, err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(there), ".*")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}
