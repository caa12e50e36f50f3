package statusline

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"gangd/pkg/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// terminal is a pair of pseudo terminal ends: what is written to tty is read from master.
func terminal(t *testing.T, cols uint16) (master, tty *os.File) {
	t.Helper()
	t.Setenv("TERM", "xterm")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: cols}); err != nil {
		t.Fatal(err)
	}
	return master, tty
}

func read(t *testing.T, master *os.File) string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := master.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// What is shown is gone before anything else is written, and fits the terminal.
func TestOnATerminal(t *testing.T) {
	master, tty := terminal(t, 20)
	l := Open(tty)
	if l == nil {
		t.Fatal("no line on a terminal")
	}
	l.Set("job 12 waits (Resources)")
	if got := read(t, master); got != "\rjob 12 waits (Re...\x1b[K" {
		t.Errorf("shown: %q", got)
	}
	fmt.Fprintln(l.Over(tty), "Submitted")
	if got := read(t, master); got != "\r\x1b[KSubmitted\r\n" && got != "\r\x1b[K" {
		t.Errorf("written over: %q", got)
	}
	// A line that is not at its end stays as it is.
	fmt.Fprint(l.Over(tty), "42 %")
	l.Set("job 12 waits")
	fmt.Fprintln(l.Over(tty), " done")
	tty.Close()
	got := ""
	for b := make([]byte, 4096); ; {
		n, err := master.Read(b)
		if got += string(b[:n]); err != nil {
			break
		}
	}
	if !strings.HasSuffix(got, "42 % done\r\n") {
		t.Errorf("a line in its middle: %q", got)
	}
	_, tty = terminal(t, 20)
	t.Setenv("TERM", "dumb")
	if Open(tty) != nil {
		t.Error("a line on a terminal that can't go back in it")
	}
}

func TestNowhereElse(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	if Open(w) != nil || Open(&b) != nil {
		t.Error("a line where there is no terminal")
	}
	w.Close()
	var l *Line
	l.Set("x")
	l.Clear()
	l.Follow(t.Context(), nil, 1)()
	if l.Over(&b) != &b {
		t.Error("a writer is not what it was")
	}
}

type asked []api.Job

func (a asked) Jobs(context.Context, *api.JobQuery) (*api.JobsReply, error) {
	return &api.JobsReply{Jobs: a}, nil
}

func TestFollow(t *testing.T) {
	master, tty := terminal(t, 80)
	stop := Open(tty).Follow(t.Context(), asked{{JobID: 12, State: api.JobPending, Reason: "Priority"}}, 12)
	if got := read(t, master); !strings.Contains(got, "job 12 waits (Priority)") {
		t.Errorf("shown: %q", got)
	}
	stop()
	if got := read(t, master); got != "\r\x1b[K" {
		t.Errorf("in the end: %q", got)
	}
}

func TestWords(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)
	for _, c := range []struct {
		j    api.Job
		want string
	}{
		{api.Job{State: api.JobPending, Reason: "Resources"}, "job 7 waits (Resources)"},
		{api.Job{State: api.JobPending, Reason: "Resources", ExpectedStart: now.Add(time.Hour), QueuePlace: 3, QueueLength: 12}, "job 7 waits (Resources), 3 of 12 in the queue, starts about 13:00:00 (a guess)"},
		{api.Job{State: api.JobPending, Reason: "Resources", ExpectedStart: now.Add(25 * time.Hour), ExpectedSure: true, QueuePlace: 1, QueueLength: 12}, "job 7 waits (Resources), 1 of 12 in the queue, starts by Mar 2 13:00 (time limits)"},
		{api.Job{State: api.JobReserved, Nodes: []string{"n1", "n2"}, Prepared: 3, Size: 8, Status: "importing"}, "job 7 is being started on 2 nodes, ranks prepared 3/8: importing"},
		{api.Job{State: api.JobRunning, StartTime: now.Add(-time.Minute), TimeLimitSeconds: 120, Status: "step 3"}, "job 7 runs [##########..........] 60 s of at most 2 min: step 3"},
		{api.Job{State: api.JobRunning, StartTime: now.Add(-time.Minute)}, "job 7 runs 60 s"},
	} {
		c.j.JobID = 7
		if got := Job(&c.j, now); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := Part("copying", 30, 120) + "|" + Part("copying", 30, 0); got != "copying [#####...............] 30 of 120|copying 30" {
		t.Error(got)
	}
	if got := Several([]api.Job{{State: api.JobRunning}, {State: api.JobPending}, {State: api.JobRunning}}, now); got != "1 job PENDING, 2 jobs RUNNING" {
		t.Error(got)
	}
}

// What counts up in small pieces is drawn a few times a second, and not where there is no terminal.
func TestWork(t *testing.T) {
	master, tty := terminal(t, 80)
	l := Open(tty)
	for i := range int64(100_000) {
		l.Work("copying", i, 100_000)
	}
	if n := strings.Count(read(t, master), "copying"); n < 1 || n > 20 {
		t.Errorf("drawn %d times", n)
	}
	(*Line)(nil).Work("copying", 1, 2)
}
