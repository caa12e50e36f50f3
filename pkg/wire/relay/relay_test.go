package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/client/program"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/people"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is for what takes milliseconds.
const patience = 30 * time.Second

// stranger is a uid that is no admin, and on most machines nobody's.
const stranger = 40001

// site is a controller over TLS, as far as a relay sees one, with a relay before it.
type site struct {
	t       *testing.T
	mux     *http.ServeMux
	guard   *auth.Guard
	issuer  *auth.Issuer
	address string
	stop    func()
	socket  string
	ca      string // directory
	conf    *tls.Config
}

func newSite(t *testing.T, login bool) *site {
	t.Helper()
	s := &site{t: t, mux: http.NewServeMux(), ca: t.TempDir(), address: "127.0.0.1:0"}
	s.guard = auth.NewGuard(false, nil)
	s.mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		id, _ := auth.From(r.Context())
		_ = json.NewEncoder(w).Encode(map[string]any{"id": id, "upgrade": r.Header.Get("Upgrade"), "user": r.Header["Gang-User"]})
	})
	s.start()
	t.Cleanup(func() { s.stop() })
	dir := filepath.Join(t.TempDir(), "tls")
	token, err := s.issuer.Tokens.New(api.TokenRequest{Login: login})
	if err != nil {
		t.Fatal(err)
	}
	line := "gang://" + token + "@" + s.address + "/" + s.issuer.CA.Fingerprint()
	if _, err := auth.Join(t.Context(), line, "login1", dir); err != nil {
		t.Fatal(err)
	}
	conf, err := auth.NodeTLS(dir)
	if err != nil {
		t.Fatal(err)
	}
	// A directory that others may enter, and a short path.
	run, err := os.MkdirTemp("", "gr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	if err := os.Chmod(run, 0o755); err != nil {
		t.Fatal(err)
	}
	s.socket = filepath.Join(run, "g.sock")
	s.conf = conf
	s.relay(Options{Socket: s.socket, Controllers: listOf(s.address), TLS: conf})
	return s
}

// start serves the controller; the address stays the same from the first time on.
func (s *site) start() {
	s.t.Helper()
	var err error
	if s.issuer, err = auth.OpenIssuer(auth.Files(s.ca), "", slog.New(slog.DiscardHandler)); err != nil {
		s.t.Fatal(err)
	}
	s.guard.Revoked = s.issuer.Revoked
	s.issuer.Revoked.OnRevoke(s.guard.Cut)
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.address = l.Addr().String()
	top := http.NewServeMux()
	top.Handle(auth.JoinPath, s.issuer.JoinHandler())
	top.Handle("/", s.mux)
	srv := &http.Server{Handler: s.guard.Handler(top), TLSConfig: auth.ServerTLS(s.issuer.CA, s.issuer.Revoked),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	done := make(chan struct{})
	go func() { _ = srv.ServeTLS(l, "", ""); close(done) }()
	s.stop = func() { _ = srv.Close(); <-done }
}

// relay runs one until the test's end.
func (s *site) relay(o Options) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	up, done := make(chan struct{}), make(chan error, 1)
	o.Log, o.Ready = slog.New(slog.DiscardHandler), func() { close(up) }
	go func() { done <- Run(ctx, o) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("relay: %v", err)
		}
	})
	select {
	case <-up:
	case <-time.After(patience):
		s.t.Fatal("the relay is not up")
	}
}

// caller is who the test's clients are: with root someone else, since root is refused.
func caller() uint32 {
	if uid := os.Geteuid(); uid != 0 {
		return uint32(uid)
	}
	return stranger
}

// dialAs connects as uid: the kernel records who called connect(2), and on Linux the
// effective uid is a thread's own.
func dialAs(path string, uid uint32) (net.Conn, error) {
	if uid == uint32(os.Geteuid()) {
		return net.Dial("unix", path)
	}
	type dialled struct {
		conn net.Conn
		err  error
	}
	out := make(chan dialled)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		keep := ^uintptr(0)
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, keep, uintptr(uid), keep); e != 0 {
			out <- dialled{err: e}
			return
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		}
		if err != nil {
			out <- dialled{err: err}
			return
		}
		f := os.NewFile(uintptr(fd), path)
		defer f.Close()
		conn, err := net.FileConn(f)
		out <- dialled{conn, err}
	}()
	d := <-out
	return d.conn, d.err
}

func (s *site) client(uid uint32) *http.Client {
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dialAs(s.socket, uid) }}
	s.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

type whoami struct {
	ID      auth.Identity
	Upgrade string
	User    []string
}

func (s *site) whoami(uid uint32, header http.Header) whoami {
	s.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://gangd/whoami", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header = header
	res, err := s.client(uid).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var out whoami
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %v", res.Status, err)
	}
	return out
}

// here is this process as the relay knows it.
func here(t *testing.T) api.Asker {
	t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	return api.Asker{PID: os.Getpid(), Boot: strings.TrimSpace(string(boot))}
}

func TestSpeaksForItsUser(t *testing.T) {
	s := newSite(t, true)
	name, err := people.Here.Name(t.Context(), caller())
	if err != nil {
		t.Fatal(err)
	}
	want := auth.Identity{Kind: auth.KindRelay, UID: caller(), User: name, Node: "login1", Login: true, Asker: here(t)}
	for _, h := range []http.Header{
		{},
		{"Gang-User": {"0 root"}},
		{"Gang-User": {"0 root", "40002 eve"}},
		{"gang-user": {"40002 eve"}},
		{"Connection": {"Gang-User"}, "Gang-User": {"0 root"}}, // dropped on the way it would be the host's own call
		{"Connection": {"keep-alive, gang-user"}},
		{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}},
		{"Trailer": {"Gang-User"}},
		{"Gang-Asker": {"1 44759705-f4ea-405f-b002-005f907bf81f"}}, // another process than the one that calls
	} {
		got := s.whoami(caller(), h)
		if got.ID != want || got.Upgrade != "" || len(got.User) != 1 || got.User[0] != fmt.Sprintf("%d %s", caller(), name) {
			t.Errorf("%v: %+v", h, got)
		}
	}
}

// A compute node's certificate speaks for who has a job there, and for nobody else.
func TestComputeNodeAsksTheController(t *testing.T) {
	s := newSite(t, false)
	has := false
	s.guard.Vouches = func(node string, uid uint32) bool { return has && node == "login1" && uid == caller() }
	got := s.whoami(caller(), nil).ID
	if got.Kind != auth.KindNone || got.Why != "login1 is a compute node: it speaks only for users with a job on it; use a login host" {
		t.Errorf("%+v", got)
	}
	has = true
	if got := s.whoami(caller(), nil).ID; got.Kind != auth.KindRelay || got.UID != caller() {
		t.Errorf("%+v", got)
	}
}

// An admin's call through a relay is a user's: the host that speaks for them could say it of anybody.
func TestAdminsAreUsersHere(t *testing.T) {
	s := newSite(t, true)
	name, err := people.Here.Name(t.Context(), caller())
	if err != nil {
		t.Fatal(err)
	}
	s.guard.Admins = func() []string { return []string{name} }
	got := s.whoami(caller(), nil).ID
	want := auth.Identity{Kind: auth.KindRelay, UID: caller(), User: name, Node: "login1", Login: true, Asker: here(t), Why: "through a relay an admin is an ordinary user; use the controller's host"}
	if got != want {
		t.Errorf("%+v", got)
	}
}

func TestRootIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to be refused as root")
	}
	s := newSite(t, true)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { t.Error("root's call was passed on") })
	res, err := s.client(0).Get("http://gangd/v1/ping")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	const want = `{"code":"permission","message":"no relay speaks for root","hint":"run this on the controller's host, or as a user"}`
	if got := strings.TrimSpace(string(b)); got != want || res.StatusCode != http.StatusForbidden {
		t.Errorf("%s: %s", res.Status, got)
	}
}

// Each piece of an answer arrives before the next one is written, and so do the trailer
// and the news that the client has left.
func TestAnswersStream(t *testing.T) {
	s := newSite(t, true)
	next, left := make(chan string), make(chan struct{})
	s.mux.HandleFunc("/v1/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "Gang-Error")
		for piece := range next {
			_, _ = io.WriteString(w, piece)
			_ = http.NewResponseController(w).Flush()
		}
		w.Header().Set("Gang-Error", "late")
	})
	s.mux.HandleFunc("/v1/log", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(left)
	})
	c := s.client(caller())
	type answer struct {
		res *http.Response
		err error
	}
	got := make(chan answer, 1)
	go func() { res, err := c.Get("http://gangd/v1/events"); got <- answer{res, err} }()
	next <- "one\n"
	a := <-got
	if a.err != nil {
		t.Fatal(a.err)
	}
	defer a.res.Body.Close()
	r := bufio.NewReader(a.res.Body)
	for _, want := range []string{"one\n", "two\n", "three\n"} {
		if want != "one\n" {
			next <- want
		}
		if line, err := r.ReadString('\n'); line != want || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	close(next)
	if rest, err := io.ReadAll(r); len(rest) != 0 || err != nil || a.res.Trailer.Get("Gang-Error") != "late" {
		t.Errorf("%q, %v, %v", rest, err, a.res.Trailer)
	}

	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://gangd/v1/log", nil)
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	res.Body.Close()
	select {
	case <-left:
	case <-time.After(patience):
		t.Error("the controller does not hear that the client left")
	}
}

func TestRequestsStream(t *testing.T) {
	s := newSite(t, true)
	heard := make(chan string)
	s.mux.HandleFunc("/v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		for sc := bufio.NewScanner(r.Body); sc.Scan(); {
			heard <- sc.Text()
		}
	})
	pr, pw := io.Pipe()
	done := make(chan error, 1)
	go func() {
		res, err := s.client(caller()).Post("http://gangd/v1/jobs", "application/json", pr)
		if err == nil {
			res.Body.Close()
		}
		done <- err
	}()
	for _, line := range []string{"one", "two"} {
		_, _ = io.WriteString(pw, line+"\n")
		select {
		case got := <-heard:
			if got != line {
				t.Errorf("%q", got)
			}
		case <-time.After(patience):
			t.Fatal("the request's body waits for its end")
		}
	}
	pw.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A call while the controller is away says so in the way that commands understand; the
// next one after its return just works.
func TestControllerAway(t *testing.T) {
	s := newSite(t, true)
	s.mux.HandleFunc("/v1/ping", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, `{"pid": 7}`) })
	c := s.client(caller())
	s.stop()
	res, err := c.Get("http://gangd/v1/ping")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	res.Body.Close()
	e := new(api.Error)
	want := api.Error{Code: api.CodeUnavailable, Message: "can't reach the controller at " + s.address + ": connect: connection refused", Hint: "is gangd running there? (gctl ping)"}
	if json.Unmarshal(b, e) != nil || *e != want || res.StatusCode != http.StatusServiceUnavailable || program.ExitCode(e) != api.ExitUnreachable {
		t.Errorf("%s: %s", res.Status, b)
	}
	s.start()
	if os.Geteuid() == 0 {
		return // the real client would be root
	}
	real := client.NewAt(s.socket)
	if p, err := real.Ping(t.Context()); err != nil || p.PID != 7 {
		t.Errorf("%+v, %v", p, err)
	}
}

// A revocation ends the streams that the host has, not only its next calls.
func TestRevocationCutsStreams(t *testing.T) {
	s := newSite(t, true)
	s.mux.HandleFunc("/v1/events", func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	res, err := s.client(caller()).Get("http://gangd/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := s.issuer.Revoked.Revoke("login1"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream: %v", err)
	}
	// Over a connection from before it is nobody; a new one is refused in the handshake.
	again, err := s.client(caller()).Get("http://gangd/whoami")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	var who whoami
	_ = json.NewDecoder(again.Body).Decode(&who)
	if again.StatusCode == http.StatusOK && who.ID.Kind != auth.KindNone {
		t.Errorf("still %+v", who.ID)
	}
}

func TestSocketOfAnother(t *testing.T) {
	s := newSite(t, true)
	o := Options{leads: newLeads(listOf(s.address)), Socket: s.socket, Controllers: listOf(s.address), TLS: upstream(nil).TLSClientConfig, Log: slog.New(slog.DiscardHandler)}
	if err := Run(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "relay: the controller must be reached over TLS") {
		t.Errorf("without TLS: %v", err)
	}
	want := s.socket + " is in use by another gnoded, process " + strconv.Itoa(os.Getpid())
	if _, _, err := listen(t.Context(), s.socket); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	path := filepath.Join(filepath.Dir(s.socket), "of.sock")
	gangd, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer gangd.Close()
	want = path + " is in use: gangd itself, or another program, answers there; a host that runs gangd needs no relay"
	if _, _, err := listen(t.Context(), path); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	closed := filepath.Join(filepath.Dir(s.socket), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	shut := Options{TLS: s.conf, Socket: filepath.Join(closed, "g.sock"), Optional: true, Controllers: o.Controllers, Log: o.Log}
	want = "relay: socket " + shut.Socket + ": users can't pass " + closed + " (mode 0700)"
	if err := Run(t.Context(), shut); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a socket that users can't reach: %v", err)
	}
	// Who asks and is told to end has no answer.
	before, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, _, err := listen(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("told to end: %v", err)
	}
	if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
		t.Error("told to end: it took the socket of one who answers")
	}
	// A node that was not told the place goes on without.
	o.TLS, o.Optional = &tls.Config{}, true
	if err := Run(t.Context(), o); err != nil {
		t.Errorf("optional: %v", err)
	}
	// A socket whose owner was killed is taken over.
	path = filepath.Join(filepath.Dir(s.socket), "stale.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	if _, err := net.Dial("unix", path); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("not stale: %v", err)
	}
	l, lock, err := listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	lock.Close()
}

// One that stands still, so that the kernel turns callers away, keeps its socket.
func TestSocketOfOneThatStandsStill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	for full := false; !full; { // nobody accepts
		c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(c)
		full = errors.Is(unix.Connect(c, &unix.SockaddrUnix{Name: path}), unix.EAGAIN)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := take(ctx, path); err == nil {
		t.Error("the socket was taken from it")
	}
}
