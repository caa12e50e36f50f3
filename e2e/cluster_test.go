package e2e

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

const patience = trial.Patience

func rounds(usual int) int { return trial.Rounds(usual) }

// chaos skips a test whose leases and time-outs are so short that a machine which stands
// still for a second brings about by itself what the test wants to bring about.
func chaos(t *testing.T) {
	t.Helper()
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		t.Skip("leases of seconds need a quiet machine: make chaos runs this")
	}
}

// cluster is a `gangd dev` of this test alone.
type cluster struct {
	t   *testing.T
	bin string
	dir string   // GANG_DIR; short, because unix socket paths are limited
	tmp string   // for scripts and witness files
	env []string // of all that run and must start, beside the test's own
}

// start brings up a cluster and takes it down, with everything it left, at the test's end.
func start(t *testing.T, args ...string) *cluster {
	t.Helper()
	return startIn(t, trial.Bin(t), args...)
}

// unstarted is a cluster that the test begins itself, and that is taken down at its end.
func unstarted(t *testing.T, bin string) *cluster {
	t.Helper()
	if _, err := os.Stat(filepath.Join(bin, "gangd")); err != nil {
		t.Fatalf("%v: build the programs first (make e2e does)", err)
	}
	dir, err := os.MkdirTemp("", "ge")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, bin: bin, dir: dir, tmp: t.TempDir()}
	t.Cleanup(c.stop)
	return c
}

// startIn is start with the programs of another directory.
func startIn(t *testing.T, bin string, args ...string) *cluster {
	t.Helper()
	c := unstarted(t, bin)
	c.up(args...)
	return c
}

// up begins a cluster.
func (c *cluster) up(args ...string) {
	c.t.Helper()
	out, errs, code := c.run("gangd", append([]string{"dev", "--detach", "--isolate=false", "--dir=" + c.dir}, args...)...)
	if code != 0 {
		c.t.Fatalf("gangd dev: exit %d\n%s%s", code, out, errs)
	}
}

// setenv sets a variable for the programs of this cluster alone: the test's own environment is
// that of all tests that run beside it.
func (c *cluster) setenv(name, value string) {
	c.env = append(c.env, name+"="+value)
}

func (c *cluster) stop() {
	trial.Logs(c.t, c.dir+"/log/*.log")
	if out, errs, code := c.run("gangd", "dev", "--stop", "--dir="+c.dir); code != 0 {
		c.t.Errorf("gangd dev --stop: exit %d\n%s%s", code, out, errs)
	}
	os.RemoveAll(c.dir)
}

// client is the person who calls the programs of this cluster.
func (c *cluster) client() *trial.Client {
	return &trial.Client{T: c.t, Bin: c.bin, Dir: c.dir, Tmp: c.tmp, Env: c.env}
}

// run runs a program of bin/ in the test's directory.
func (c *cluster) run(name string, args ...string) (stdout, stderr string, code int) {
	return c.client().Run(name, args...)
}

func (c *cluster) runIn(dir, stdin, name string, args ...string) (stdout, stderr string, code int) {
	return c.client().RunIn(dir, stdin, name, args...)
}

// must runs a program that has to succeed.
func (c *cluster) must(name string, args ...string) string {
	c.t.Helper()
	return c.client().Must(name, args...)
}

// script writes an executable script and gives its path.
func (c *cluster) script(name, body string) string {
	c.t.Helper()
	path := filepath.Join(c.tmp, name)
	if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// submit queues a job and gives its id.
func (c *cluster) submit(args ...string) int64 {
	c.t.Helper()
	return c.client().Submit(args...)
}

// job shows one job, an ended one too.
func (c *cluster) job(id int64) api.Job {
	c.t.Helper()
	return c.client().Job(id)
}

// wait waits until a job is in one of the states.
func (c *cluster) wait(id int64, states ...api.JobState) api.Job {
	c.t.Helper()
	return c.client().Wait(id, states...)
}

// until polls a condition that something else brings about.
func (c *cluster) until(what string, ok func() bool) {
	c.t.Helper()
	c.client().Until(patience, what, ok)
}

func (c *cluster) events(id int64) []api.Event {
	c.t.Helper()
	var r api.EventsReply
	c.client().Decode(&r, "gctl", "events", strconv.FormatInt(id, 10), "--json")
	return r.Events
}

func (c *cluster) story(id int64) string { return c.client().Story(id) }

func (c *cluster) nodes() []api.Node {
	c.t.Helper()
	return c.client().Nodes()
}

// pid is a daemon's process id.
func (c *cluster) pid(name string) int {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join(c.dir, "run", name+".pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.Fields(string(b))[0])
	if err != nil {
		c.t.Fatal(err)
	}
	return pid
}

// kill ends a daemon the hard way and waits until it is gone.
func (c *cluster) kill(name string) {
	c.t.Helper()
	pid := c.pid(name)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatalf("kill %s: %v", name, err)
	}
	c.until(name+" is gone", func() bool { return !running(pid) })
}

func (c *cluster) restart(name string) {
	c.t.Helper()
	c.must("gangd", "dev", "--restart="+name, "--dir="+c.dir)
}

// running says whether a process exists and is not a zombie.
func running(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	return f[0] != "Z" && f[0] != "X"
}

// lines reads the whole lines of a witness file. One that was opened and not yet written to
// has none: between the two a reader may well come.
func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1]
	if len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// unixDial connects to a unix socket whatever address is asked for.
func unixDial(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}
