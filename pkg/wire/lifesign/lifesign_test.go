package lifesign

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// manager listens as a service manager does.
type manager struct {
	t *testing.T
	*net.UnixConn
}

func listen(t *testing.T, name string) manager {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return manager{t, c}
}

// said is all that has come.
func (m manager) said() string {
	m.t.Helper()
	var all []string
	buf := make([]byte, 256)
	for {
		if err := m.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			m.t.Fatal(err)
		}
		n, err := m.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return strings.Join(all, " ")
		}
		if err != nil {
			m.t.Fatal(err)
		}
		all = append(all, string(buf[:n]))
	}
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env   []string
		every time.Duration
		err   string
	}{
		{nil, 0, ""},
		{[]string{"NOTIFY_SOCKET=/run/s"}, 0, ""},
		{[]string{"NOTIFY_SOCKET=@s", "WATCHDOG_USEC=2000000"}, 2 * time.Second, ""},
		{[]string{"WATCHDOG_USEC=2000000", "WATCHDOG_PID=7"}, 2 * time.Second, ""},
		{[]string{"WATCHDOG_USEC=2000000", "WATCHDOG_PID=8"}, 0, ""},
		{[]string{"NOTIFY_SOCKET=s"}, 0, "NOTIFY_SOCKET=s: want an absolute path, or an abstract name that begins with @"},
		{[]string{"WATCHDOG_USEC=0"}, 0, "WATCHDOG_USEC=0: want microseconds, 1 to 86400000000"},
		{[]string{"WATCHDOG_USEC=9223372036854775807"}, 0, "WATCHDOG_USEC=9223372036854775807: want microseconds, 1 to 86400000000"},
		{[]string{"WATCHDOG_USEC=1s"}, 0, "WATCHDOG_USEC=1s: want microseconds, 1 to 86400000000"},
	} {
		s, err := parse(env(tt.env...), 7)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%v: %v", tt.env, err)
			}
			continue
		}
		if err != nil || s.every != tt.every {
			t.Errorf("%v: every %v, %v", tt.env, s.every, err)
		}
	}
}

// TestChildrenAreNotWatched: a child with the variables would speak in this process's name.
func TestChildrenAreNotWatched(t *testing.T) {
	m := listen(t, filepath.Join(t.TempDir(), "s"))
	t.Setenv("NOTIFY_SOCKET", m.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "1000000")
	t.Setenv("WATCHDOG_PID", "")
	s, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "NOTIFY_SOCKET=") || strings.HasPrefix(kv, "WATCHDOG_") {
			t.Errorf("left in the environment: %s", kv)
		}
	}
	s.Progress()
	s.Progress() // not again so soon
	s.Ready()
	s.Stopping()
	if got := m.said(); got != "EXTEND_TIMEOUT_USEC=60000000 READY=1 STOPPING=1" {
		t.Error(got)
	}
}

func TestAbstractName(t *testing.T) {
	m := listen(t, "@gangd-lifesign-"+filepath.Base(t.TempDir())+time.Now().Format("150405.000000"))
	s, err := parse(env("NOTIFY_SOCKET="+m.LocalAddr().String()), 7)
	if err != nil {
		t.Fatal(err)
	}
	s.Ready()
	if got := m.said(); got != "READY=1" {
		t.Error(got)
	}
}

// TestEveryLoopGoesRound: one loop that does not is enough for silence.
func TestEveryLoopGoesRound(t *testing.T) {
	m := listen(t, filepath.Join(t.TempDir(), "s"))
	s, err := parse(env("NOTIFY_SOCKET="+m.LocalAddr().String(), "WATCHDOG_USEC=4000000"), 7)
	if err != nil {
		t.Fatal(err)
	}
	a, b := s.Loop(), s.Loop()
	if a.Pace() != time.Second {
		t.Errorf("pace %v", a.Pace())
	}
	begin := time.Now()
	at := func(sec float64) time.Time { return begin.Add(time.Duration(sec * float64(time.Second))) }
	step := func(about, want string, f func()) {
		t.Helper()
		f()
		if got := m.said(); got != want {
			t.Errorf("%s: %q, want %q", about, got, want)
		}
	}
	step("one has not begun", "", func() { a.at(at(0), 0); a.at(at(1), 0) })
	step("both", "WATCHDOG=1", func() { b.at(at(1.5), 0) })
	step("b stands still", "", func() { a.at(at(2.5), 0); a.at(at(9), 0) })
	step("b goes on", "WATCHDOG=1", func() { b.at(at(9.1), 0) })
	step("not so often", "", func() { a.at(at(9.2), 0); b.at(at(9.3), 0) })
	step("b waits for somebody", "WATCHDOG=1 WATCHDOG=1 WATCHDOG=1", func() {
		b.at(at(10), 15*time.Second)
		a.at(at(11), 0)
		a.at(at(24.9), 0)
	})
	step("and is overdue", "", func() { a.at(at(25.1), 0); a.at(at(40), 0) })
}

// TestDeafManager: signs that nobody reads are lost, and nobody waits.
func TestDeafManager(t *testing.T) {
	m := listen(t, filepath.Join(t.TempDir(), "s"))
	s, err := parse(env("NOTIFY_SOCKET="+m.LocalAddr().String()), 7)
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 { // a socket holds a few hundred at most
		s.Ready()
	}
	gone := &Signs{socket: "/nowhere/s", every: time.Second}
	gone.Loop().Round()
	var none *Signs
	none.Ready()
	none.Progress()
	none.Loop().Round()
	none.Loop().Away(time.Second)
	if none.Loop().Pace() != time.Hour {
		t.Error("a loop that nobody watches has a pace")
	}
}
