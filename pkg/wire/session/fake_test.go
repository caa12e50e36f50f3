package session

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// beatEvery is the heartbeat of these tests: long against a busy machine's hiccups,
// short enough that three of them may be waited for.
const beatEvery = 400 * time.Millisecond

// patience bounds every wait: it is only used up by a test that fails.
const patience = 20 * time.Second

// fakeHandler records what a controller hears and answers with what the test set.
type fakeHandler struct {
	mu       sync.Mutex
	want     []api.Assignment
	specs    map[string]*api.Spec
	hold     bool
	refuse   error
	slow     bool // a hello is taken in, but not answered while the session lasts
	hellos   chan *api.Hello
	reports  chan *api.Actual
	samples  chan []api.CardSample
	loads    chan *api.NodeLoad
	settings atomic.Pointer[api.Settings]
	reboot   atomic.Pointer[api.RebootOrder]
	gone     chan string
	asked    int // calls of Desired
	notes    chan []api.MemberNote
	call     func(ctx context.Context, c *api.Call, in io.Reader, out io.Writer) (*api.CallResult, error)
}

func newFakeHandler() *fakeHandler {
	return &fakeHandler{specs: map[string]*api.Spec{}, hellos: make(chan *api.Hello, 16), reports: make(chan *api.Actual, 1024),
		samples: make(chan []api.CardSample, 1024), loads: make(chan *api.NodeLoad, 1024), gone: make(chan string, 16), notes: make(chan []api.MemberNote, 1024)}
}

func (h *fakeHandler) NodeHello(ctx context.Context, hello *api.Hello) (*api.Welcome, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return nil, h.refuse
	}
	h.hellos <- hello
	if h.slow {
		// The commit of the hello takes until the line is gone.
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	s := api.DefaultSettings()
	s.Heartbeat = beatEvery
	return &api.Welcome{Version: "test", Lineage: 7, Settings: s}, nil
}
func (h *fakeHandler) NodeReport(_ string, a *api.Actual)      { h.reports <- a }
func (h *fakeHandler) NodeSample(_ string, s []api.CardSample) { h.samples <- s }
func (h *fakeHandler) NodeLoad(_ string, l *api.NodeLoad)      { h.loads <- l }
func (h *fakeHandler) Settings() *api.Settings                 { return h.settings.Load() }
func (h *fakeHandler) Reboot(string) *api.RebootOrder          { return h.reboot.Load() }
func (h *fakeHandler) NodeGone(node string)                    { h.gone <- node }
func (h *fakeHandler) NodeNotes(_ string, n []api.MemberNote)  { h.notes <- n }
func (h *fakeHandler) NodeCall(ctx context.Context, node string, c *api.Call, in io.Reader, out io.Writer) (*api.CallResult, error) {
	return h.call(ctx, c, in, out)
}
func (h *fakeHandler) set(specs map[string]*api.Spec, want ...api.Assignment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.specs, h.want = specs, want
}

func (h *fakeHandler) Lineage() (uint64, string) { return 11, "eleven" }

func (h *fakeHandler) Desired(string) ([]api.Assignment, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.want, !h.hold
}

func (h *fakeHandler) Spec(hash string) (*api.Spec, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.specs[hash], nil
}

// fakeAgent records what a node hears.
type fakeAgent struct {
	node         string
	stateID      string
	mu           sync.Mutex
	report       *api.Actual
	samples      []api.CardSample
	load         *api.NodeLoad
	notes        []api.MemberNote
	welcome      chan *api.Welcome
	settings     chan *api.Settings
	desired      chan *api.Desired
	down         chan error
	signals      chan api.SignalOrder
	reboots      chan api.RebootOrder
	knowsReboots bool
	lineage      chan uint64
	kept         Kept
	readLog      func(ctx context.Context, q api.LogRead, w io.Writer) error
}

func newFakeAgent(node, state string) *fakeAgent {
	return &fakeAgent{node: node, stateID: state, welcome: make(chan *api.Welcome, 1024), settings: make(chan *api.Settings, 1024), desired: make(chan *api.Desired, 1024),
		down: make(chan error, 1024), signals: make(chan api.SignalOrder, 16), reboots: make(chan api.RebootOrder, 16), lineage: make(chan uint64, 1024)}
}

func (a *fakeAgent) Keep(k Kept) error { a.mu.Lock(); defer a.mu.Unlock(); a.kept = k; return nil }

func (a *fakeAgent) Hello() *api.Hello {
	return &api.Hello{Node: a.node, StateID: a.stateID, Version: "test", BootID: "b", Reboots: a.knowsReboots}
}
func (a *fakeAgent) Settings(s *api.Settings) { a.settings <- s }
func (a *fakeAgent) Welcome(w *api.Welcome)   { a.welcome <- w }
func (a *fakeAgent) Desired(d *api.Desired)   { a.desired <- d }
func (a *fakeAgent) Lineage(n uint64, _ string) {
	select {
	case a.lineage <- n:
	default: // a test that does not look
	}
}
func (a *fakeAgent) Down(err error) { a.down <- err }
func (a *fakeAgent) Report() *api.Actual {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.report
	a.report = nil
	return r
}
func (a *fakeAgent) Samples() []api.CardSample {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.samples
	a.samples = nil
	return s
}
func (a *fakeAgent) Load() *api.NodeLoad {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.load
	a.load = nil
	return l
}
func (a *fakeAgent) Reboot(o *api.RebootOrder) { a.reboots <- *o }
func (a *fakeAgent) Notes() []api.MemberNote {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.notes
	a.notes = nil
	return n
}
func (a *fakeAgent) Signal(_ context.Context, o api.SignalOrder) (int, error) {
	a.signals <- o
	if o.Signal == "NONE" {
		return 0, api.Errorf(api.CodeNotFound, "no such member")
	}
	return 3, nil
}
func (a *fakeAgent) ResumeCard(_ context.Context, uuid string) error {
	if uuid == "GPU-bad" {
		return api.Errorf(api.CodeConflict, "card 3 stays out of service: fell off the bus")
	}
	return nil
}
func (a *fakeAgent) AppendLog(_ context.Context, l api.LogAppend) error {
	return api.Errorf(api.CodeConflict, "%s behind %s", l.Text, l.Path)
}
func (a *fakeAgent) Stacks(_ context.Context, k api.MemberKey) (*api.MemberStacks, error) {
	if k.Epoch == 0 {
		return nil, api.Errorf(api.CodeNotFound, "no such member")
	}
	g := api.StackGroup{Kind: "python3", Count: 1, Processes: []api.StackProcess{{Rank: int(k.Job), PID: k.Epoch}}}
	g.Threads = []api.ThreadStack{{Does: api.DoesLock, Frames: slices.Repeat([]string{strings.Repeat("f", 150)}, 32)}}
	m := &api.MemberStacks{}
	for range 40 { // more than one piece
		m.Groups = append(m.Groups, g)
	}
	if k.Job == 13 { // a node that means ill
		m.Groups[0].Threads[0].Frames = slices.Repeat([]string{"f"}, 33)
	}
	return m, nil
}
func (a *fakeAgent) ReadLog(ctx context.Context, q api.LogRead, w io.Writer) error {
	return a.readLog(ctx, q, w)
}

// rig is a hub behind a real HTTP server on a unix socket.
type rig struct {
	t       testing.TB
	handler *fakeHandler
	hub     *Hub
	path    string
	server  *http.Server
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func newRig(t testing.TB, authenticated string) *rig {
	r := &rig{t: t, handler: newFakeHandler(), path: filepath.Join(t.TempDir(), "s")}
	r.hub = NewHub(r.handler, nil, quiet())
	l, err := net.Listen("unix", r.path)
	if err != nil {
		t.Fatal(err)
	}
	r.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.hub.Serve(w, q, authenticated) })}
	served := make(chan struct{})
	go func() { defer close(served); _ = r.server.Serve(l) }()
	t.Cleanup(func() {
		r.hub.Close(time.Second)
		_ = r.server.Close()
		<-served
	})
	return r
}

func (r *rig) dial(a *fakeAgent) *Client {
	c := dial(context.Background(), Options{Controllers: []string{"unix:" + r.path}, Agent: a, Log: quiet()})
	r.t.Cleanup(c.Close)
	return c
}

func get[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
	}
	panic("unreachable")
}

func key(job int64, epoch int) api.MemberKey { return api.MemberKey{Job: job, Epoch: epoch} }

func assign(job int64, epoch int, spec string) api.Assignment {
	return api.Assignment{MemberKey: key(job, epoch), Body: &api.AssignmentBody{SpecHash: spec, Name: "j",
		Nodes: []api.Place{{Name: "n1"}}, Ranks: []api.RankPlace{{}}}}
}

var errTest = errors.New("not today")

// dial makes a client and starts it.
func dial(ctx context.Context, opts Options) *Client {
	c := NewClient(opts)
	c.Start(ctx)
	return c
}
