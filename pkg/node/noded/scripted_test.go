package noded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"gangd/pkg/api"
	"gangd/pkg/client/cli"
	"gangd/pkg/controller/engine"
	"gangd/pkg/controller/metrics"
	"gangd/pkg/controller/rpc"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	queueorder "gangd/pkg/core/sched/order"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/proc"
	"gangd/pkg/wire/auth"
	"gangd/pkg/wire/session"
)

// site is a controller with its store and its calls, and nodes, on one clock that a test moves on. Nothing
// runs on the nodes: what processes and cards do is a script, and all from its readings on is real.
type site struct {
	t      *testing.T
	engine *engine.Engine
	nodes  []*scriptedNode
	load   func(k api.MemberKey, b *api.AssignmentBody) play
	pids   map[int]api.MemberKey

	beat time.Duration // between two looks

	mu  sync.Mutex
	now time.Duration
}

var siteBegan = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func (s *site) Now() gang.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return gang.Instant{Wall: siteBegan.Add(s.now), Mono: s.now}
}

// play is what a member does, and with what it exits.
type play struct {
	phases []phase
	blind  bool // nothing of its processes can be read
	exit   int
}

// phase is a part of a run.
type phase struct {
	span   time.Duration
	cpus   float64 // busy
	memory int64
	card   gpu.Sample // each of its cards by Utilization, UsedBytes and PowerWatts
}

// at is the phase at a time since the start, and the CPU time and the most memory up to then.
func (s *play) at(t time.Duration) (now phase, cpu time.Duration, peak int64) {
	for _, p := range s.phases {
		part := min(t, p.span)
		cpu += time.Duration(p.cpus * float64(part))
		peak, now = max(peak, p.memory), p
		if t -= part; t <= 0 {
			break
		}
	}
	return now, cpu, peak
}

func (s *play) length() (d time.Duration) {
	for _, p := range s.phases {
		d += p.span
	}
	return d
}

// cut ends it after so long.
func (s *play) cut(t time.Duration) {
	var left []phase
	for _, p := range s.phases {
		if p.span = min(p.span, t); p.span > 0 {
			left = append(left, p)
		}
		t -= p.span
	}
	s.phases = left
}

// scriptedNode is a node of the site: a daemon without processes.
type scriptedNode struct {
	s       *site
	d       *daemon
	name    string
	infos   []api.CardInfo
	members map[api.MemberKey]*scriptedMember
}

type scriptedMember struct {
	*member
	play
	pid     int
	body    *api.AssignmentBody
	started time.Duration // -1: not yet
	ended   bool
}

func (n *scriptedNode) Inventory(context.Context) ([]api.CardInfo, error) { return n.infos, nil }
func (n *scriptedNode) Changed() <-chan struct{}                          { return nil }
func (n *scriptedNode) Close() error                                      { return nil }

// Sample sums up what members do on each card. On one of several the driver says whose work it is.
func (n *scriptedNode) Sample(context.Context) ([]gpu.Sample, error) {
	out := make([]gpu.Sample, len(n.infos))
	for i, c := range n.infos {
		out[i] = gpu.Sample{UUID: c.UUID, PowerWatts: 70, StrangersBytes: -1, UsersKnown: true}
		for _, m := range n.members {
			if m.started < 0 || m.ended || !slices.Contains(m.spec.CardUUIDs(), c.UUID) {
				continue
			}
			now, _, _ := m.at(n.s.now - m.started)
			if now.card.Utilization < 0 {
				out[i].Utilization, out[i].UsersKnown, out[i].PowerWatts = -1, false, -1
			} else {
				out[i].Utilization += now.card.Utilization
				out[i].PowerWatts = now.card.PowerWatts
				out[i].Users = append(out[i].Users, gpu.User{PID: m.pid, Utilization: now.card.Utilization})
			}
			out[i].UsedBytes += now.card.UsedBytes
			out[i].Processes = append(out[i].Processes, gpu.Process{PID: m.pid, VRAMBytes: now.card.UsedBytes})
		}
		if !out[i].UsersKnown {
			out[i].Users = nil
		}
	}
	return out, nil
}

func (n *scriptedNode) usage(k api.MemberKey) proc.Usage {
	m := n.members[k]
	if m.blind {
		return proc.UnknownUsage
	}
	now, cpu, peak := m.at(n.s.now - m.started)
	return proc.Usage{MemoryBytes: now.memory, Peak: peak, CPU: cpu, IOBytes: int64(n.s.now - m.started)}
}

// open starts the node's daemon, anew where there was one.
func (n *scriptedNode) open() {
	dir := filepath.Join(n.s.t.TempDir(), n.name)
	if n.d != nil {
		dir = n.d.opts.StateDir
		n.d.state.close()
	}
	state, err := openState(dir)
	if err != nil {
		n.s.t.Fatal(err)
	}
	n.d = newDaemon(Options{Name: n.name, StateDir: dir, SingleUser: true, Memory: 512 << 30, CPUs: 64, GPU: n, Log: slog.New(slog.DiscardHandler)}, state)
	n.d.client = session.NewClient(session.Options{Agent: n.d, Log: n.d.log})
	n.d.cards = newCards(n, newOwners(func(pid int) (api.MemberKey, bool) { k, ours := n.s.pids[pid]; return k, ours }), n.d.log)
	n.d.cards.inventory(n.s.t.Context())
	n.d.meters.now = func() time.Duration { return n.s.now }
	n.d.meters.usage = n.usage
	for k, m := range n.members {
		if m.ended {
			continue
		}
		m.d = n.d
		n.d.cards.found(k, m.spec.Cards, false)
		n.d.beginMeasure(m.member)
	}
}

func newScriptedSite(t *testing.T, st store.Store, nodes, cards int) *site {
	t.Helper()
	s := &site{t: t, pids: map[int]api.MemberKey{}, beat: 970 * time.Millisecond} // no look falls together with a script
	quiet, m := slog.New(slog.DiscardHandler), metrics.New("test")
	var err error
	s.engine, err = engine.New(t.Context(), engine.Options{Store: st, Clock: s, Log: quiet, Record: m, Version: "test",
		Conf: engine.Conf{Settings: api.DefaultSettings(),
			Policy: queueorder.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, BackfillDepth: 1, MaxStarts: 1000}}})
	if err != nil {
		t.Fatal(err)
	}
	s.engine.SetHub(nobody{})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.engine.Run(ctx) }()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "run", "gangd.sock"))
	if err != nil {
		t.Fatal(err)
	}
	calls := (&rpc.Server{Engine: s.engine, Sessions: nobody{}, Log: quiet, Version: "test", Started: time.Now(), Metrics: m.Handler()}).Handler()
	me := auth.Identity{Kind: auth.KindUser, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), User: "ada"}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.ServeHTTP(w, r.WithContext(auth.With(r.Context(), me)))
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(l) }()
	t.Cleanup(func() {
		_ = srv.Close()
		<-served
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("GANG_DIR", dir)
	for i := range nodes {
		n := &scriptedNode{s: s, name: fmt.Sprintf("n%d", i+1), members: map[api.MemberKey]*scriptedMember{}}
		for c := range cards {
			n.infos = append(n.infos, api.CardInfo{Index: c, UUID: fmt.Sprintf("GPU-%s-%d", n.name, c), Model: "H200", VRAMBytes: 80 << 30, NUMA: -1})
		}
		n.open()
		t.Cleanup(func() { n.d.state.close() })
		s.nodes = append(s.nodes, n)
		h := &api.Hello{Protocol: api.SessionProtocol, Node: n.name, BootID: "b", Address: "127.0.0.1", CPUs: 64, MemoryBytes: 512 << 30, Cards: n.infos}
		if _, err := s.engine.NodeHello(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// nobody are sessions in which nobody is.
type nobody struct{}

func (nobody) Wake([]string) {}
func (nobody) Stacks(context.Context, string, api.MemberKey) (*api.MemberStacks, error) {
	return &api.MemberStacks{}, nil
}
func (nobody) AppendLog(context.Context, string, api.LogAppend) error { return nil }
func (nobody) ResumeCard(context.Context, string, string) error       { return nil }
func (nobody) Signal(context.Context, string, api.SignalOrder) (int, error) {
	return 0, api.Errorf(api.CodeUnavailable, "no session")
}
func (nobody) ReadLog(context.Context, string, api.LogRead, io.Writer) error {
	return api.Errorf(api.CodeUnavailable, "no session")
}
func (nobody) Serve(http.ResponseWriter, *http.Request, string)   {}
func (nobody) Witness(http.ResponseWriter, *http.Request, string) {}

func (s *site) submit(spec api.Spec, elements int) int64 {
	s.t.Helper()
	spec.Launch, spec.WorkDir, spec.Output, spec.Script = api.LaunchRanks, "/", "/dev/null", []byte("#!/bin/sh\n")
	req := &api.SubmitRequest{Spec: spec}
	if elements > 0 {
		req.Array = &api.Array{}
		for i := range elements {
			req.Array.Indices = append(req.Array.Indices, i)
		}
	}
	reply, err := s.engine.Submit(s.t.Context(), req, engine.Caller{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), User: "ada"})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply.JobID
}

func (s *site) cancel(id int64) {
	s.t.Helper()
	if _, err := s.engine.Cancel(s.t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}}}, engine.Caller{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), User: "ada"}, func(uint32) bool { return true }); err != nil {
		s.t.Fatal(err)
	}
}

// say is a node's word, as it comes over its session.
func (n *scriptedNode) say(a api.MemberActual) {
	n.s.t.Helper()
	n.tell(api.Actual{Members: []api.MemberActual{a}})
}

func (n *scriptedNode) tell(a api.Actual) {
	n.s.t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		n.s.t.Fatal(err)
	}
	var heard api.Actual
	if err := json.Unmarshal(text, &heard); err != nil {
		n.s.t.Fatal(err)
	}
	if _, err := n.s.engine.Do(n.s.t.Context(), gang.NodeReport{Node: n.name, Actual: heard}); err != nil {
		n.s.t.Fatal(err)
	}
}

// serve does what the controller wants of the node, and reports whether there was anything.
func (n *scriptedNode) serve() (worked bool) {
	n.s.t.Helper()
	want, _ := n.s.engine.Desired(n.name)
	listed := map[api.MemberKey]bool{}
	for _, a := range slices.Clone(want) {
		k := a.MemberKey
		listed[k] = true
		m := n.members[k]
		switch {
		case m == nil && a.Body == nil: // it was forgotten here before that was heard
			worked = true
			n.tell(api.Actual{Gone: []api.MemberKey{k}})
		case m == nil:
			worked = true
			spec, err := n.s.engine.Spec(a.Body.SpecHash)
			if err != nil {
				n.s.t.Fatal(err)
			}
			m = &scriptedMember{member: &member{d: n.d, key: k, dir: n.s.t.TempDir()}, body: a.Body, started: -1, pid: 1<<30 + len(n.s.pids), play: n.s.load(k, a.Body)}
			var refusal *api.Refusal
			if m.spec, refusal = n.d.shimSpec(k, m.dir, a.Body, spec, &fetchedCheckpoints{}, &image{}); refusal != nil {
				n.s.t.Fatal(refusal.Text)
			}
			if spec.Share { // of what is not there nobody knows whose it is
				m.pid = process(n.s.t, api.MemberKey{}, 0).Process.Pid
			}
			n.s.pids[m.pid] = k
			if _, refusal = n.d.cards.give(n.s.t.Context(), k, m.spec.Cards); refusal != nil {
				n.s.t.Fatal(refusal.Text)
			}
			n.members[k] = m
			n.say(api.MemberActual{MemberKey: k, Phase: api.PhaseReady, Port: m.spec.Port})
		case m != nil && a.Gate != nil && m.started < 0:
			worked = true
			m.started = n.s.now
			n.d.beginMeasure(m.member)
			n.say(api.MemberActual{MemberKey: k, Phase: api.PhaseRunning, Ranks: m.ranks()})
		case m != nil && a.Stop != nil && m.started >= 0 && !m.ended:
			worked = true
			m.cut(n.s.now - m.started)
			n.end(k, m)
		case m != nil && a.Stop != nil && !m.ended:
			worked, m.ended = true, true
			n.d.cards.drop(k, m.spec.Cards)
			n.say(api.MemberActual{MemberKey: k, Phase: api.PhaseStopped})
		}
	}
	for k, m := range n.members {
		if m.ended && !listed[k] {
			worked = true
			delete(n.members, k)
			n.tell(api.Actual{Gone: []api.MemberKey{k}})
		}
	}
	return worked
}

// ranks are those of the member, with what the kernel says of each that has ended.
func (m *scriptedMember) ranks() (out []api.RankActual) {
	_, cpu, peak := m.at(m.length())
	for _, r := range m.spec.Ranks {
		a := api.RankActual{Rank: r.Rank, PID: m.pid, Started: siteBegan.Add(m.started)}
		if m.ended {
			a.Exited, a.ExitCode, a.Own, a.Ended = true, m.exit, true, a.Started.Add(m.length())
			if !m.blind {
				each := len(m.spec.Ranks)
				a.Used = &api.RankUsed{CPU: cpu / time.Duration(each), MaxRSS: peak / int64(each)}
			}
		}
		out = append(out, a)
	}
	return out
}

// end is that of a member, with what was measured of it.
func (n *scriptedNode) end(k api.MemberKey, m *scriptedMember) {
	n.s.t.Helper()
	m.ended = true
	a := api.MemberActual{MemberKey: k, Phase: api.PhaseStopped, Ranks: m.ranks()}
	if !m.blind {
		_, cpu, peak := m.at(m.length())
		a.Used = &api.MemberUsed{CPU: cpu, MemoryPeak: peak}
	}
	a.Measure = n.d.endMeasure(m.member, &a)
	n.d.cards.takeBack(n.s.t.Context(), k, m.spec.Cards, 0)
	n.say(a)
}

// step moves the clock on, and reports whether anything runs.
func (s *site) step() (running bool) {
	s.t.Helper()
	for worked := true; worked; {
		worked = false
		for _, n := range s.nodes {
			worked = n.serve() || worked
		}
	}
	s.mu.Lock()
	s.now += s.beat
	s.mu.Unlock()
	for _, n := range s.nodes {
		if err := n.d.cards.read(s.t.Context(), patience); err != nil {
			s.t.Fatal(err)
		}
		over := map[api.MemberKey]*scriptedMember{}
		for k, m := range n.members {
			if m.started >= 0 && !m.ended {
				running = true
				if s.now-m.started >= m.length() {
					over[k] = m
				}
			}
		}
		for k, m := range over {
			n.end(k, m)
		}
		n.d.measure()
	}
	return running
}

// until steps until nothing has run for a while: longer than a back-off.
func (s *site) until() {
	s.t.Helper()
	for still := 0; still < 100; still++ {
		if s.step() {
			still = 0
		}
		if still%20 == 19 {
			s.nodes[0].tell(api.Actual{}) // so that timers are looked at
		}
	}
}

// command gives what one writes.
func (s *site) command(cmd *cobra.Command, args ...string) []byte {
	s.t.Helper()
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(s.t.Context()); err != nil {
		s.t.Fatalf("%s %v: %v: %s", cmd.Name(), args, err, &errs)
	}
	return out.Bytes()
}

type attempts struct {
	Attempts []api.Attempt `json:"attempts"`
	Jobs     []api.Job     `json:"jobs"`
}

func (s *site) attempts(ids ...int64) (a attempts) {
	s.t.Helper()
	args := []string{"-e", "--json"}
	for _, id := range ids {
		args = append(args, fmt.Sprint(id))
	}
	if err := json.Unmarshal(s.command(cli.NewGacct(), args...), &a); err != nil {
		s.t.Fatal(err)
	}
	return a
}
