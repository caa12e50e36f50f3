package noded

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/wire/session"
)

// patience bounds every wait; only a test that fails uses it up.
const patience = 20 * time.Second

// controller is the least of an engine: it desires what the test says, opens the gate of what is ready
// when told so, and remembers every word of the node.
type controller struct {
	t    testing.TB
	hub  *session.Hub
	path string

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	want     map[api.MemberKey]*api.Assignment
	specs    map[string]*api.Spec
	settings api.Settings
	reboot   atomic.Pointer[api.RebootOrder]
	autoGo   bool // open gates of what is ready
	autoEnd  bool // forget what is stopped
	hellos   []*api.Hello
	latest   map[api.MemberKey]api.MemberActual
	phases   map[api.MemberKey][]api.MemberPhase
	gone     map[api.MemberKey]int
	samples  map[string]api.CardSample
	cut      int
	notes    []api.MemberNote
	blob     []byte
	frames   int
	health   *api.NodeHealth // as reported last
}

func newController(t testing.TB) *controller {
	c := &controller{t: t, changed: make(chan struct{}), want: map[api.MemberKey]*api.Assignment{}, specs: map[string]*api.Spec{},
		settings: api.DefaultSettings(), autoGo: true, latest: map[api.MemberKey]api.MemberActual{}, phases: map[api.MemberKey][]api.MemberPhase{},
		gone: map[api.MemberKey]int{}, samples: map[string]api.CardSample{}}
	c.settings.Heartbeat = 200 * time.Millisecond
	c.hub = session.NewHub(c, nil, slog.New(slog.DiscardHandler))
	c.path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", c.path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.hub.Serve(w, r, "") })}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(l) }()
	t.Cleanup(func() {
		c.hub.Close(time.Second)
		_ = srv.Close()
		<-served
	})
	return c
}

// update changes the controller under its lock and wakes the node and the test.
func (c *controller) update(f func()) {
	c.mu.Lock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	c.hub.Wake([]string{"n1"})
}

func (c *controller) NodeHello(_ context.Context, h *api.Hello) (*api.Welcome, error) {
	c.update(func() {
		c.hellos = append(c.hellos, h)
		for _, m := range h.Members {
			c.hear(m)
		}
	})
	return &api.Welcome{Version: "test", Lineage: 1, Settings: c.settings}, nil
}

func (c *controller) NodeReport(_ string, a *api.Actual) {
	c.update(func() {
		c.frames++
		if a.Health != nil {
			c.health = a.Health
		}
		for _, m := range a.Members {
			c.hear(m)
		}
		for _, k := range a.Gone {
			c.gone[k]++
			delete(c.want, k)
		}
	})
}

func (c *controller) hear(m api.MemberActual) {
	k := m.MemberKey
	c.latest[k] = m
	if p := c.phases[k]; len(p) == 0 || p[len(p)-1] != m.Phase {
		c.phases[k] = append(c.phases[k], m.Phase)
	}
	a := c.want[k]
	if a == nil {
		return
	}
	if c.autoGo && m.Phase == api.PhaseReady && a.Gate == nil {
		next := *a
		next.Gate = &api.Gate{MasterPort: m.Port}
		c.want[k] = &next
	}
	if c.autoEnd && m.Phase == api.PhaseStopped {
		delete(c.want, k)
	}
}

func (c *controller) NodeLoad(string, *api.NodeLoad) {}

func (c *controller) Reboot(string) *api.RebootOrder { return c.reboot.Load() }

func (c *controller) Settings() *api.Settings { return nil }

func (c *controller) NodeSample(_ string, s []api.CardSample) {
	c.update(func() {
		for _, x := range s {
			c.samples[x.UUID] = x
		}
	})
}

func (c *controller) NodeNotes(_ string, n []api.MemberNote) {
	c.update(func() { c.notes = append(c.notes, n...) })
}

// NodeCall keeps what is put, in memory, and gives it back.
func (c *controller) NodeCall(_ context.Context, _ string, call *api.Call, in io.Reader, out io.Writer) (*api.CallResult, error) {
	if call.Put != nil {
		b, err := io.ReadAll(in)
		c.update(func() { c.blob = b })
		return &api.CallResult{Epoch: call.Epoch, Bytes: int64(len(b))}, err
	}
	c.mu.Lock()
	b := c.blob
	c.mu.Unlock()
	_, err := out.Write(b)
	return &api.CallResult{}, err
}

func (c *controller) NodeGone(string) { c.update(func() { c.cut++ }) }

func (c *controller) Lineage() (uint64, string) { return 0, "" }

func (c *controller) Desired(string) ([]api.Assignment, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []api.Assignment
	for _, a := range c.want {
		out = append(out, *a)
	}
	return out, true
}

func (c *controller) Spec(hash string) (*api.Spec, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.specs[hash], nil
}

// until waits until ok, which sees the controller under its lock.
func (c *controller) until(what string, ok func() bool) {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		done, changed := ok(), c.changed
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			c.mu.Lock()
			defer c.mu.Unlock()
			for k, p := range c.phases {
				if c.gone[k] == 0 {
					c.t.Logf("job %d epoch %d: %v, refused %+v", k.Job, k.Epoch, p, c.latest[k].Refusal)
				}
			}
			c.t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

func (c *controller) untilPhase(k api.MemberKey, p api.MemberPhase) api.MemberActual {
	c.t.Helper()
	c.until(fmt.Sprintf("job %d epoch %d to be %s", k.Job, k.Epoch, p), func() bool { return c.latest[k].Phase == p })
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest[k]
}

// last is the newest word on k, and how often it was said to be gone.
func (c *controller) last(k api.MemberKey) (api.MemberActual, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest[k], c.gone[k]
}

func (c *controller) untilGone(k api.MemberKey) {
	c.t.Helper()
	c.until(fmt.Sprintf("job %d epoch %d to be gone", k.Job, k.Epoch), func() bool { return c.gone[k] > 0 })
}

// desire adds a member with n ranks of a script on n1.
func (c *controller) desire(job int64, epoch, n int, script string, change ...func(*api.Assignment, *api.Spec)) api.MemberKey {
	c.t.Helper()
	k := api.MemberKey{Job: job, Epoch: epoch}
	spec := &api.Spec{Name: "test", Size: n, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: c.t.TempDir(), Umask: 0o022,
		Env: []string{"PATH=" + os.Getenv("PATH")}, Script: []byte(script)}
	a := &api.Assignment{MemberKey: k, Body: &api.AssignmentBody{SpecHash: fmt.Sprint("spec", job, ".", epoch), Name: "test", User: "someone",
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Grace: 10 * time.Second, Nodes: []api.Place{{Name: "n1", Address: "127.0.0.1"}}}}
	for range n {
		a.Body.Ranks = append(a.Body.Ranks, api.RankPlace{})
	}
	for _, f := range change {
		f(a, spec)
	}
	c.update(func() { c.specs[a.Body.SpecHash], c.want[k] = spec, a })
	return k
}

// order changes the assignment of k.
func (c *controller) order(k api.MemberKey, f func(*api.Assignment)) {
	c.update(func() {
		next := *c.want[k]
		f(&next)
		c.want[k] = &next
	})
}

func (c *controller) stop(k api.MemberKey, grace time.Duration) {
	c.order(k, func(a *api.Assignment) { a.Stop = &api.Stop{Cause: api.CauseCancelled, Signal: "TERM", Grace: grace} })
}

func (c *controller) forget(k api.MemberKey) { c.update(func() { delete(c.want, k) }) }

// options of the daemon n1.
func (c *controller) options(dir string) Options {
	return Options{Name: "n1", StateDir: dir, Address: "127.0.0.1", Version: "test", Controllers: []string{"unix:" + c.path},
		SingleUser: true, Shim: program, BinDir: filepath.Dir(program), Log: slog.New(slog.DiscardHandler)}
}

// run starts a daemon inside the test. It is stopped, with every member, at the test's end.
func (c *controller) run(o Options) {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, o) }()
	c.t.Cleanup(func() {
		c.empty(o.StateDir)
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	})
}

// empty desires nothing and waits until nothing is left.
func (c *controller) empty(dir string) {
	c.update(func() { clear(c.want) })
	deadline := time.Now().Add(patience)
	for {
		left, err := os.ReadDir(filepath.Join(dir, membersDir))
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Errorf("left behind: %v, %v", left, err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// spawn starts the daemon as a process of its own.
func (c *controller) spawn(o Options) *exec.Cmd {
	c.t.Helper()
	return c.spawnBy(o)
}

// spawnBy is spawn through programs that change how it starts.
func (c *controller) spawnBy(o Options, by ...string) *exec.Cmd {
	c.t.Helper()
	o.Log = nil
	text, err := json.Marshal(o) //lint:ignore SA1026 these tests have no TLS: the field is nil
	if err != nil {
		c.t.Fatal(err)
	}
	by = append(by, os.Args[0])
	cmd := exec.Command(by[0], by[1:]...)
	cmd.Env = append(os.Environ(), daemonEnv+"="+string(text))
	if testing.Verbose() {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd
}

func pids(a api.MemberActual) []int {
	var out []int
	for _, r := range a.Ranks {
		out = append(out, r.PID)
	}
	slices.Sort(out)
	return out
}
