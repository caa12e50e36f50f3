package trial

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gangd/pkg/api"
)

// Patience bounds every wait for something that should take milliseconds: a hundred
// times the expected value and more, because the machine is shared.
const Patience = 60 * time.Second

// Bin is the directory of the programs of this tree, which make build fills.
func Bin(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == "/" {
			t.Fatal("this test is in no module")
		}
	}
	bin := filepath.Join(dir, "bin")
	if _, err := os.Stat(filepath.Join(bin, "gangd")); err != nil {
		t.Fatalf("%v: build the programs first (make build)", err)
	}
	return bin
}

// Programs is a directory with the programs of this tree that every user of the machine can run: bin itself, or a copy where
// others can't pass to it, as below root's home directory.
func Programs(t *testing.T) string {
	t.Helper()
	bin := Bin(t)
	if passable(bin) {
		return bin
	}
	copied, err := os.MkdirTemp("", "gp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(copied) })
	programs, err := filepath.Glob(filepath.Join(bin, "g*"))
	if err == nil {
		err = os.Chmod(copied, 0o755)
	}
	if err == nil {
		err = exec.Command("cp", append(programs, copied)...).Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

// passable reports that everybody may enter a directory.
func passable(dir string) bool {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err != nil || st.Mode()&1 == 0 {
			return false
		}
	}
	return true
}

// Rounds is how often a long test repeats: few in CI, as many as asked for elsewhere.
func Rounds(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("GANG_E2E_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return usual
}

// Logs shows the ends of the files of a pattern where the test has failed.
func Logs(t *testing.T, pattern string) {
	if !t.Failed() {
		return
	}
	const most = 6000
	logs, _ := filepath.Glob(pattern)
	for _, l := range logs {
		b, _ := os.ReadFile(l)
		t.Logf("== %s\n%s", filepath.Base(l), b[max(0, len(b)-most):])
	}
}

// Account finds a user of this machine.
func Account(t *testing.T, name string) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Skip(err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// Home makes a directory that only its owner can enter.
func Home(t *testing.T, path string, owner *syscall.Credential) string {
	t.Helper()
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, int(owner.Uid), int(owner.Gid))); err != nil {
		t.Fatal(err)
	}
	return path
}

// FreeAddress is one on this machine at which nobody listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Client is a person at a shell.
type Client struct {
	T   *testing.T
	Bin string   // of the programs
	Dir string   // GANG_DIR, which says who is asked
	Tmp string   // where the person is
	Env []string // of the programs, beside the test's own: NAME=VALUE
	// How long something may take, and between two looks for it, which start programs; 0: Patience, and
	// a moment.
	Patience, Pause time.Duration
}

// Run runs a program; the code is -1 where it could not be started.
func (c *Client) Run(name string, args ...string) (stdout, stderr string, code int) {
	return c.RunIn(c.Tmp, "", name, args...)
}

// RunIn is Run in another directory, with something to read.
func (c *Client) RunIn(dir, stdin, name string, args ...string) (stdout, stderr string, code int) {
	cmd := exec.Command(filepath.Join(c.Bin, name), args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), c.Env...), "GANG_DIR="+c.Dir)
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return out.String(), err.Error(), -1
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Must runs a program that has to succeed.
func (c *Client) Must(name string, args ...string) string {
	c.T.Helper()
	out, errs, code := c.Run(name, args...)
	if code != 0 {
		c.T.Fatalf("%s %s: exit %d\n%s%s", name, strings.Join(args, " "), code, out, errs)
	}
	return out
}

// Decode runs a program that prints JSON.
func (c *Client) Decode(v any, name string, args ...string) {
	c.T.Helper()
	out := c.Must(name, args...)
	if err := json.Unmarshal([]byte(out), v); err != nil {
		c.T.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// Submit queues a job and gives its id.
func (c *Client) Submit(args ...string) int64 {
	c.T.Helper()
	out := strings.TrimSpace(c.Must("gsubmit", append([]string{"--parsable"}, args...)...))
	id, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		c.T.Fatalf("gsubmit --parsable printed %q", out)
	}
	return id
}

// Job shows one job, an ended one too.
func (c *Client) Job(id int64) api.Job {
	c.T.Helper()
	var r api.JobsReply
	c.Decode(&r, "gqueue", "--json", "-t", "all", "-j", strconv.FormatInt(id, 10))
	if len(r.Jobs) != 1 {
		c.T.Fatalf("%d jobs have the id %d", len(r.Jobs), id)
	}
	return r.Jobs[0]
}

// Wait waits until a job is in one of the states.
func (c *Client) Wait(id int64, states ...api.JobState) api.Job {
	c.T.Helper()
	var j api.Job
	c.Until(cmp.Or(c.Patience, Patience), fmt.Sprintf("job %d is %v", id, states), func() bool {
		j = c.Job(id)
		if j.State.Ended() && !slices.Contains(states, j.State) {
			c.T.Fatalf("job %d ended %s (%s: %s), want %v\n%s", id, j.State, j.Cause, j.Verdict, states, c.Story(id))
		}
		return slices.Contains(states, j.State)
	})
	return j
}

// Until polls a condition that something else brings about.
func (c *Client) Until(limit time.Duration, what string, ok func() bool) {
	c.T.Helper()
	for give := time.Now().Add(limit); !ok(); time.Sleep(cmp.Or(c.Pause, 20*time.Millisecond)) {
		if time.Now().After(give) {
			out, _, _ := c.Run("gqueue", "-t", "all")
			c.T.Fatalf("after %s still not: %s\n%s", limit, what, out)
		}
	}
}

// Story is what the controller tells of a job, for people.
func (c *Client) Story(id int64) string {
	out, _, _ := c.Run("gctl", "events", strconv.FormatInt(id, 10))
	return out
}

// Nodes are all that the controller knows.
func (c *Client) Nodes() []api.Node {
	c.T.Helper()
	var r api.NodesReply
	c.Decode(&r, "ginfo", "--json")
	return r.Nodes
}
