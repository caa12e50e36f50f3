package pgserver_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/controller/store/pgserver/pgtest"
)

func TestServer(t *testing.T) {
	s := pgtest.Run(t, pgtest.Dir(t), "a", pgserver.Options{Unsafe: true})
	ask := func(sql string) string {
		t.Helper()
		bin, err := pgserver.Find()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), bin+"/psql", "-AtX", "-d", s.URL(pgserver.Database), "-c", sql).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := ask("CREATE TABLE a (n int); INSERT INTO a VALUES (7)"); got != "CREATE TABLE\nINSERT 0 1" {
		t.Errorf("psql says %q", got)
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if err := s.Stop(sig); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := ask("SELECT n FROM a"); got != "7" {
			t.Errorf("after %v: %q", sig, got)
		}
	}
	if info, err := os.Stat(s.Dir()); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its directory: %v, %v", info, err)
	}
}
