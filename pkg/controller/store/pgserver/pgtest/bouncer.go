package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/controller/store/pgserver"
	"gangd/pkg/lab/tool"
)

// Bouncer is a PgBouncer in transaction mode.
type Bouncer struct {
	dir string
	cmd *exec.Cmd
}

// NewBouncer starts one in front of a server, and ends it with the test. Where PgBouncer is not installed the
// test is skipped.
func NewBouncer(t testing.TB, s *pgserver.Server) *Bouncer {
	t.Helper()
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		if path = "/usr/sbin/pgbouncer"; exec.Command(path, "--version").Run() != nil {
			tool.Need(t, "pgbouncer")
		}
	}
	b := &Bouncer{dir: s.Dir()}
	b.write(t, s)
	if err := os.WriteFile(filepath.Join(b.dir, "users"), fmt.Appendf(nil, "%q \"\"\n", pgserver.User), 0o644); err != nil {
		t.Fatal(err)
	}
	b.cmd = s.Command(t.Context(), path, filepath.Join(b.dir, "pgbouncer.ini"))
	log, err := os.Create(filepath.Join(b.dir, "pgbouncer.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	b.cmd.Stdout, b.cmd.Stderr = log, log
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = b.cmd.Process.Kill()
		_ = b.cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("unix", filepath.Join(b.dir, ".s.PGSQL.6432"))
		if err == nil {
			c.Close()
			return b
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("PgBouncer did not start: %v: %s", err, text)
		}
	}
}

func (b *Bouncer) write(t testing.TB, s *pgserver.Server) {
	t.Helper()
	text := fmt.Sprintf("[databases]\n* = host=%s\n[pgbouncer]\nlisten_port = 6432\nunix_socket_dir = %s\nauth_type = trust\nauth_file = "+
		"%s/users\n"+
		"pool_mode = transaction\ndefault_pool_size = 6\nserver_login_retry = 0.2\n", s.Dir(), b.dir, b.dir)
	if err := os.WriteFile(filepath.Join(b.dir, "pgbouncer.ini"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// To makes it stand in front of another server, as a site does after a promotion.
func (b *Bouncer) To(t testing.TB, s *pgserver.Server) {
	t.Helper()
	b.write(t, s)
	if err := b.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// URL is how a database is reached through it.
func (b *Bouncer) URL(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s&port=6432", pgserver.User, database, b.dir)
}
