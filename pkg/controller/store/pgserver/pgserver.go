// Package pgserver runs a PostgreSQL of its own in a directory: for gangd dev and for tests. A site
// runs its database itself.
//
// It takes the newest version under /usr/lib/postgresql, Debian's place. The server is a child of
// this process and ends with it, unless it is to stay. It listens on a unix socket in its directory alone, which only
// its user and root can enter, and lets in whoever comes there. PostgreSQL refuses to run as
// root: then it runs as the user postgres, or nobody.
//
// Begin with Start. It must not know gangd's tables or who leads.
package pgserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gangd/pkg/wire/people"
)

// ErrNotInstalled names what to install.
var ErrNotInstalled = errors.New("PostgreSQL is not installed: apt-get install postgresql")

// User is the superuser of each server, and Database the database that is there.
const User, Database = "gangd", "gangd"

// Find gives the directory of the newest version's programs.
func Find() (string, error) {
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(all) == 0 {
		return "", ErrNotInstalled
	}
	version := func(initdb string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(initdb))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(all, func(a, b string) int { return cmp.Compare(version(a), version(b)) })), nil
}

// Options of a server.
type Options struct {
	Dir string // which is made, and is its own; at most 90 letters, as it holds a socket
	// Stays: the server outlives this process; StopIn ends it.
	Stays bool
	// Unsafe: nothing is synced, for tests that don't test durability.
	Unsafe bool
	// Of is the server that this one is a standby of; nil: of none.
	Of *Server
	// Settings go into postgresql.conf, as KEY = VALUE lines.
	Settings []string
}

// Server is one that runs, or has been stopped and can be started again.
type Server struct {
	bin, dir string
	cred     *syscall.Credential // nil: as we are
	stays    bool
	cmd      *exec.Cmd
	done     chan struct{}
}

// patience is how long a server may take to start or stop on a busy machine.
const patience = 2 * time.Minute

// Start makes a server in its directory, or takes the one that is there, and starts it.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := Find()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: o.Dir, stays: o.Stays}
	if s.cred, err = asWhom(); err != nil {
		return nil, err
	}
	if err := s.home(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err != nil {
		if err := s.create(ctx, o); err != nil {
			return nil, err
		}
	}
	if err := s.Restart(ctx); err != nil {
		return nil, err
	}
	if o.Of == nil {
		if out, err := s.run(ctx, "createdb", "-h", s.dir, "-U", User, Database); err != nil && !strings.Contains(out, "already exists") {
			return nil, errors.Join(err, s.Stop(syscall.SIGQUIT))
		}
	}
	return s, nil
}

// asWhom is nil where we are not root.
func asWhom() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := people.Here.ByName(context.Background(), name); err == nil {
			return &syscall.Credential{Uid: u.UID, Gid: u.GID}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// home makes the directory, the user's own.
func (s *Server) home() (err error) {
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil || s.cred == nil {
		return err
	}
	return os.Chown(s.dir, int(s.cred.Uid), int(s.cred.Gid))
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// create makes the files of a server.
func (s *Server) create(ctx context.Context, o Options) error {
	var err error
	if o.Of != nil {
		// Its settings come with it; -R makes it a standby that follows the other, by the name of its directory.
		_, err = s.run(ctx, "pg_basebackup", "-h", o.Of.dir, "-U", User, "-D", s.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync")
	} else {
		_, err = s.run(ctx, "initdb", "-D", s.data(), "-U", User, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	}
	if err != nil {
		return err
	}
	set := []string{"listen_addresses = ''", "unix_socket_directories = '" + s.dir + "'", "shared_buffers = 32MB", "max_wal_size = 256MB",
		"log_min_messages = warning"}
	if o.Of != nil {
		set = append(set, fmt.Sprintf("primary_conninfo = 'host=%s user=%s application_name=%s'", o.Of.dir, User, filepath.Base(s.dir)))
	}
	if o.Unsafe {
		set = append(set, "fsync = off", "synchronous_commit = off", "full_page_writes = off")
	}
	return s.Set(append(set, o.Settings...)...)
}

// Set adds settings, which the next start takes, or a Signal with SIGHUP where they can be changed then.
func (s *Server) Set(settings ...string) error {
	// postgresql.auto.conf is read last, and pg_basebackup -R writes there too.
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.auto.conf"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strings.Join(settings, "\n") + "\n")
	return err
}

// Command is a program, as the server's user and in its directory. It ends with this process.
func (s *Server) Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGTZ=UTC")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

// run gives what a program prints, which is in its error too.
func (s *Server) run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := s.Command(ctx, filepath.Join(s.bin, name), args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return string(out), err
}

// Restart starts a server that is stopped, and waits until it takes connections.
func (s *Server) Restart(ctx context.Context) error {
	log, err := os.OpenFile(s.logName(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.Command(context.WithoutCancel(ctx), filepath.Join(s.bin, "postgres"), "-D", s.data())
	cmd.Stdout, cmd.Stderr = log, log
	if s.stays {
		cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setsid = 0, true
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() { // ends with the server
		defer close(done)
		_ = cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !s.ready() {
		select {
		case <-done:
			return fmt.Errorf("PostgreSQL in %s ended as it started: %s", s.dir, s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL in %s did not start: %w: %s", s.dir, ctx.Err(), s.lastWords())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (s *Server) logName() string { return filepath.Join(s.dir, "log") }

// ready reads what pg_ctl reads: the server writes its state into the last line of its pid file.
func (s *Server) ready() bool {
	b, _ := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	lines := strings.Split(string(b), "\n")
	if len(lines) < 8 || lines[0] != strconv.Itoa(s.cmd.Process.Pid) { // or it is one's that was killed
		return false
	}
	state := strings.TrimSpace(lines[7])
	return state == "ready" || state == "standby"
}

func (s *Server) lastWords() string {
	b, err := os.ReadFile(s.logName())
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-2000):]))
}

// Signal sends one to the server: HUP reads settings again, TERM waits for clients, INT ends
// at once in good order, QUIT as pg_ctl's immediate. After KILL its
// processes end by themselves.
func (s *Server) Signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// Stop ends the server by a signal and waits for it.
func (s *Server) Stop(sig syscall.Signal) error {
	select {
	case <-s.done:
		return nil
	default:
	}
	if err := s.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.done:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("PostgreSQL in %s did not end: %s", s.dir, s.lastWords())
	}
}

// StopIn ends the server of a directory, of whatever process; none is no error.
func StopIn(ctx context.Context, dir string) error {
	s := &Server{dir: dir}
	if _, err := os.Stat(filepath.Join(s.data(), "postmaster.pid")); err != nil {
		return nil
	}
	var err error
	if s.bin, err = Find(); err != nil {
		return err
	}
	if s.cred, err = asWhom(); err != nil {
		return err
	}
	_, err = s.run(ctx, "pg_ctl", "stop", "-w", "-m", "fast", "-D", s.data())
	return err
}

// Promote makes a standby a server of its own, and waits until it takes writes.
func (s *Server) Promote(ctx context.Context) error {
	_, err := s.run(ctx, "pg_ctl", "promote", "-w", "-t", "60", "-D", s.data())
	return err
}

// Dir is where its socket is.
func (s *Server) Dir() string { return s.dir }

// URL is how the database of the server in a directory is reached.
func URL(dir string) string { return (&Server{dir: dir}).URL(Database) }

// URL is how a database of it is reached; further servers are tried where it isn't, and only one
// that takes writes is taken.
func (s *Server) URL(database string, more ...*Server) string {
	hosts := []string{s.dir}
	for _, m := range more {
		hosts = append(hosts, m.dir)
	}
	q := url.Values{"host": {strings.Join(hosts, ",")}}
	if len(more) > 0 {
		q.Set("target_session_attrs", "read-write")
	}
	return fmt.Sprintf("postgres://%s@/%s?%s", User, database, q.Encode())
}
