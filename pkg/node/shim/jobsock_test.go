package shim

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
	"gangd/pkg/wire/jobapi"
)

// tell sends one datagram to a rank's socket.
func tell(t *testing.T, s *Spec, rank int, text string) {
	t.Helper()
	c, err := net.Dial("unixgram", filepath.Join(s.Dir, jobapi.Name(jobapi.NotifyPrefix, rank)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// untilNote reads answers up to notes of which ok says yes.
func untilNote(t *testing.T, c *Conn, ok func(api.RankNote) bool) api.RankNote {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		select {
		case a, open := <-c.Answers():
			if !open {
				t.Fatal("the connection ended")
			}
			if a.Notes == nil {
				continue
			}
			for _, n := range a.Notes.Ranks {
				if ok(n) {
					return n
				}
			}
		case <-timeout:
			t.Fatal("no such note within 30 s")
		}
	}
}

// What ranks say is passed on, at most about once a second however often they say it, and
// told again to a daemon that connects later.
func TestNotes(t *testing.T) {
	s := testSpec(t, 2)
	c := startShim(t, s, "#!/bin/sh\nexec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	const beats = 500
	for range beats {
		tell(t, s, 1, "WATCHDOG=1\nSTATUS=busy")
	}
	tell(t, s, 1, "STATUS=step 9")
	told := 0
	n := untilNote(t, c, func(n api.RankNote) bool { told++; return n.Status == "step 9" })
	if n.Rank != 1 || n.Beats != beats || n.BeatAge < 0 || n.BeatAge > 20*time.Second || n.Ready {
		t.Errorf("note %+v", n)
	}
	if told > beats/10 {
		t.Errorf("%d beats were passed on in %d lines", beats, told)
	}
	tell(t, s, 0, "READY=1")
	tell(t, s, 0, "STOPPING=1")
	untilNote(t, c, func(n api.RankNote) bool { return n.Rank == 0 && n.Ready && n.Stopping })
	again, err := Attach(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	untilNote(t, again, func(n api.RankNote) bool { return n.Status == "step 9" })
}

// BARRIER=1 brings a descriptor whose closing is what the sender waits for.
func TestNotifyBarrier(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/sh\nexec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	to := &unix.SockaddrUnix{Name: filepath.Join(s.Dir, "n0")}
	if err := unix.Sendmsg(fd, []byte("BARRIER=1"), unix.UnixRights(int(w.Fd())), to, 0); err != nil {
		t.Fatal(err)
	}
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("read %d, %v: the shim keeps the descriptor", n, err)
	}
}

// The sockets are the user's alone, and without a gnoded the rank is told so.
func TestRankSocketWithoutDaemon(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/sh\nexec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	for _, name := range []string{"n0", "g0"} {
		st, err := os.Stat(filepath.Join(s.Dir, name))
		if err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	conn, err := net.Dial("unix", filepath.Join(s.Dir, "g0"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	// More than the socket holds: the writer must not be torn off before it reads why.
	if _, err := conn.Write([]byte("PUT /v1/checkpoint HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 1000))); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil || string(b[:n]) != string(jobapi.Unavailable) {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// A rank may ask for more than the grace, up to what the job allowed and not beyond.
func TestExtendTimeout(t *testing.T) {
	s := testSpec(t, 1)
	s.GraceMax = 3 * time.Second
	c := startShim(t, s, "#!/bin/bash\ntrap '' TERM\ntouch deaf\nwhile :; do sleep 0.1; done\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	for give := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(s.WorkDir, "deaf")); err == nil {
			break
		}
		if time.Now().After(give) {
			t.Fatal("the script did not begin")
		}
	}
	_ = c.Send(Command{Stop: &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: 500 * time.Millisecond}})
	untilState(t, c, func(s *State) bool { return s.Stopping != "" })
	began := time.Now()
	tell(t, s, 0, "EXTEND_TIMEOUT_USEC=600000000")
	if st := until(t, c, api.PhaseStopped); !st.Forced {
		t.Errorf("state %+v", st)
	}
	if d := time.Since(began); d < 2*time.Second || d > 30*time.Second {
		t.Errorf("killed after %v, want about 3 s", d)
	}
}

// Where no gnoded takes a connection, a request is answered, not the connection: what comes
// before a request is nobody's answer to an HTTP client.
func TestNobodyServes(t *testing.T) {
	s := testSpec(t, 1)
	c := startShim(t, s, "#!/bin/sh\nexec sleep 600\n")
	_ = c.Send(Command{Go: &Go{}})
	until(t, c, api.PhaseRunning)
	dial := func() net.Conn {
		c, err := net.Dial("unix", filepath.Join(s.Dir, jobapi.Name(jobapi.SocketPrefix, 0)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	read := func(c net.Conn, give time.Duration) (string, error) {
		_ = c.SetReadDeadline(time.Now().Add(give))
		b, err := io.ReadAll(c)
		return string(b), err
	}
	silent := dial()
	if text, err := read(silent, 100*time.Millisecond); text != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("before a request came %q, %v", text, err)
	}
	asks := dial()
	if _, err := asks.Write([]byte("GET ")); err != nil {
		t.Fatal(err)
	}
	if text, err := read(asks, 20*time.Second); err != nil || text != string(jobapi.Unavailable) {
		t.Errorf("answered %q, %v", text, err)
	}
	if _, err := asks.Write(make([]byte, 1000)); err != nil { // the rest of a request has its time
		t.Errorf("write after the answer: %v", err)
	}
	if text, err := read(silent, 20*time.Second); text != "" || err != nil {
		t.Errorf("a connection without a request ended with %q, %v", text, err)
	}
	first, last := dial(), net.Conn(nil)
	for range lingerMost {
		last = dial()
	}
	if text, err := read(first, 20*time.Second); text != "" || err != nil {
		t.Errorf("the first of %d connections ended with %q, %v", lingerMost+1, text, err)
	}
	if _, err := read(last, 50*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the last of %d connections went with the first: %v", lingerMost+1, err)
	}
	for range 50 {
		dial().Close()
	}
	asks = dial()
	_, _ = asks.Write([]byte("GET "))
	if text, err := read(asks, 20*time.Second); err != nil || text != string(jobapi.Unavailable) {
		t.Errorf("after the others answered %q, %v", text, err)
	}
}

// Under a shim of root the sockets are the job's user's, who can speak on them.
func TestRankSocketsOfAnotherUser(t *testing.T) {
	tool.Need(t, "/usr/bin/python3")
	s := asNobody(t, 1)
	c := startShim(t, s, "#!/bin/sh\nexec /usr/bin/python3 -c '\nimport socket,time\n"+
		"socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM).sendto(b\"STATUS=as user\",\""+filepath.Join(s.Dir, "n0")+"\")\ntime.sleep(600)'\n")
	for _, name := range []string{"n0", "g0"} {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(s.Dir, name), &st); err != nil || st.Uid != s.UID || st.Mode&0o077 != 0 {
			t.Errorf("%s: user %d mode %o, %v", name, st.Uid, st.Mode, err)
		}
	}
	_ = c.Send(Command{Go: &Go{}})
	untilNote(t, c, func(n api.RankNote) bool { return n.Status == "as user" })
}
