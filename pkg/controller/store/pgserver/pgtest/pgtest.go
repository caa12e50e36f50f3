// Package pgtest runs PostgreSQL servers for tests.
//
// Begin with Run. It must not know gangd's tables; Proxy and Bouncer break connections on order.
package pgtest

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/lab/tool"
)

// Dir is a directory for servers of a test, gone at its end. That of [testing.TB] is root's alone.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gangd-pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Run starts a server for a test in a directory of that name, and ends it with the test. Where PostgreSQL is
// not installed the test is skipped.
func Run(t testing.TB, dir, name string, o pgserver.Options) *pgserver.Server {
	t.Helper()
	o.Dir = filepath.Join(dir, name)
	s, err := pgserver.Start(t.Context(), o)
	if errors.Is(err, pgserver.ErrNotInstalled) {
		tool.Lack(t, "initdb")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(syscall.SIGQUIT); err != nil {
			t.Error(err)
		}
	})
	return s
}
