package noded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/auth"
	"gangd/pkg/cli"
	"gangd/pkg/engine"
	"gangd/pkg/gang"
	"gangd/pkg/gpu"
	"gangd/pkg/lab/disk"
	"gangd/pkg/metrics"
	"gangd/pkg/proc"
	"gangd/pkg/rpc"
	"gangd/pkg/sched"
	"gangd/pkg/session"
	"gangd/pkg/store"
	"gangd/pkg/store/sqlitestore"
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
	d       *Daemon
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
		out[i] = gpu.Sample{UUID: c.UUID, PowerWatts: 70, Temperature: -1, ECCErrors: -1, StrangersBytes: -1, UsersKnown: true}
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
	n.d.hosts, n.d.client = newHostReader(), session.NewClient(session.Options{Agent: n.d, Log: n.d.log})
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
	s.engine, err = engine.New(t.Context(), engine.Options{Store: st, Clock: s, Log: quiet, Settings: api.DefaultSettings(), Record: m, Version: "test",
		Policy: sched.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, BackfillDepth: 1, MaxStarts: 1000}})
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

func (nobody) Wake([]string)                                          {}
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

// truth is what an attempt used, by its scripts alone.
type truth struct {
	limit time.Duration
	asked int64 // memory on a node
	vram  int64 // of a card, for it
	cpus  int   // on a node
	cards int   // on a node
	nodes []play
}

func (w *truth) of() *api.Efficiency {
	var cpu, held, cards, busy, idle, joules, seconds float64
	var peak, vram int64
	for _, s := range w.nodes {
		long := s.length()
		_, used, most := s.at(long)
		seconds, cpu, held, peak = max(seconds, long.Seconds()), cpu+used.Seconds(), held+long.Seconds()*float64(w.cpus), max(peak, most)
		for _, p := range s.phases {
			at := p.span.Seconds() * float64(w.cards)
			cards, busy, joules, vram = cards+at, busy+at*float64(p.card.Utilization), joules+at*float64(p.card.PowerWatts), max(vram, p.card.UsedBytes)
			if p.card.Utilization == 0 {
				idle += at
			}
		}
	}
	is := func(v float64) *float64 { return &v }
	e := &api.Efficiency{Seconds: seconds, CPUSeconds: is(cpu), CPUPercent: is(100 * cpu / held), MemoryPeak: &peak, MemoryPercent: is(100 * float64(peak) / float64(w.asked)),
		TimePercent: is(100 * seconds / w.limit.Seconds())}
	if w.cards > 0 {
		e.GPUPercent, e.GPUIdle, e.Joules, e.VRAMPeak, e.VRAMPercent = is(busy/cards), is(100*idle/cards), is(joules), &vram, is(100*float64(vram)/float64(w.vram))
	}
	return e
}

// near holds each figure to its truth within a hundredth of it, and unknown to unknown.
func near(t *testing.T, what string, got, want *api.Efficiency) {
	t.Helper()
	if got == nil {
		t.Errorf("%s: nothing is known", what)
		return
	}
	type figure struct {
		name      string
		got, want *float64
	}
	of := func(v *int64) *float64 {
		if v == nil {
			return nil
		}
		f := float64(*v)
		return &f
	}
	for _, f := range []figure{{"seconds", &got.Seconds, &want.Seconds}, {"CPU seconds", got.CPUSeconds, want.CPUSeconds}, {"CPU", got.CPUPercent, want.CPUPercent},
		{"memory", of(got.MemoryPeak), of(want.MemoryPeak)}, {"memory percent", got.MemoryPercent, want.MemoryPercent}, {"GPU", got.GPUPercent, want.GPUPercent}, {"GPU idle", got.GPUIdle, want.GPUIdle},
		{"VRAM", of(got.VRAMPeak), of(want.VRAMPeak)}, {"VRAM percent", got.VRAMPercent, want.VRAMPercent}, {"time", got.TimePercent, want.TimePercent}, {"joules", got.Joules, want.Joules}} {
		switch {
		case f.got == nil && f.want == nil:
		case f.got == nil || f.want == nil:
			t.Errorf("%s: %s is known: %v, to be known: %v", what, f.name, f.got != nil, f.want != nil)
		case math.Abs(*f.got-*f.want) > math.Abs(*f.want)/100:
			t.Errorf("%s: %s is %g, and was %g", what, f.name, *f.got, *f.want)
		}
	}
}

// What gacct -e says is what scripts did, within a hundredth: of one node, of four, of a shared card, of a job that
// was restarted under a daemon that was, of an array. What could not be seen is unknown.
func TestUseIsAsScripted(t *testing.T) {
	const gib = int64(1) << 30
	card := func(use int, vram int64, watts int) gpu.Sample {
		return gpu.Sample{Utilization: use, UsedBytes: vram * gib, PowerWatts: watts}
	}
	train := play{phases: []phase{{120 * time.Second, 1, 4 * gib, card(0, 2, 70)}, {400 * time.Second, 6.5, 21 * gib, card(93, 61, 640)},
		{300 * time.Millisecond, 8, 29 * gib, card(93, 61, 640)}, {139700 * time.Millisecond, 2, 20 * gib, card(35, 61, 300)}}}
	slow := play{phases: []phase{{200 * time.Second, 0.5, 2 * gib, card(0, 1, 70)}, {400 * time.Second, 3, 8 * gib, card(50, 10, 350)}}}
	short := play{phases: []phase{{45 * time.Second, 2, gib, card(80, 4, 500)}}, exit: 3}
	element := func(i int) play {
		p := phase{120 * time.Second, 2 + float64(i%3)/50, 3 * gib, card(70+i%4, 30, 500)}
		switch i {
		case 7:
			p.cpus = 0.1
		case 50:
			p.memory = 15 * gib
		case 99:
			p.card = card(2, 30, 90)
		}
		return play{phases: []phase{p}}
	}
	st, err := sqlitestore.Open(t.Context(), filepath.Join(t.TempDir(), "gangd.db"), sqlitestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := newScriptedSite(t, st, 4, 8)
	s.load = func(k api.MemberKey, b *api.AssignmentBody) play {
		switch {
		case b.Name == "four" && b.Nodes[0].Name != "":
			return slow
		case b.Name == "restarted" && k.Epoch == 1:
			return short
		case b.Name == "array":
			return element(*b.ArrayIndex)
		case b.Name == "blind":
			return play{phases: []phase{{100 * time.Second, 1, gib, card(-1, 5, 0)}}, blind: true}
		case b.Name == "silent":
			return play{phases: []phase{{100 * time.Second, 1, gib, card(-1, 5, 0)}}}
		case strings.HasPrefix(b.Name, "share"):
			return play{phases: []phase{{300 * time.Second, 1, gib, card(5*len(b.Name), int64(len(b.Name)), 400)}}}
		}
		return train
	}
	ask := func(name string, size int, edit func(*api.Spec)) int64 {
		sp := api.Spec{Name: name, Size: size, CPUsPerRank: 8, MemoryPerRank: 32 * gib, GPUsPerRank: 1, TimeLimit: time.Hour}
		edit(&sp)
		return s.submit(sp, 0)
	}
	nothing := func(*api.Spec) {}
	retries := 1
	one := ask("one", 2, func(sp *api.Spec) { sp.MinNodes, sp.MaxNodes = 1, 1 })
	four := ask("four", 4, func(sp *api.Spec) { sp.RanksPerNode = 1 })
	restarted := ask("restarted", 1, func(sp *api.Spec) { sp.MaxRetries = &retries })
	shared := func(sp *api.Spec) { sp.Share, sp.VRAMBytes, sp.NodeList = true, 20*gib, []string{"n4"} }
	first, second := ask("share", 1, shared), ask("shared", 1, shared)
	blind, silent := ask("blind", 1, nothing), ask("silent", 1, nothing)
	none := ask("none", 1, func(sp *api.Spec) { sp.GPUsPerRank = 0 })
	for n := range 800 { // to beyond all that there is but the array
		if n == 300 {
			for _, node := range s.nodes {
				for _, x := range node.d.meters.members {
					x.keep() // as each minute
				}
				node.open()
			}
		}
		s.step()
		if n%20 == 0 {
			s.nodes[0].tell(api.Actual{}) // so that timers are looked at
		}
	}
	array := s.submit(api.Spec{Name: "array", Size: 1, CPUsPerRank: 4, MemoryPerRank: 16 * gib, GPUsPerRank: 1, TimeLimit: 10 * time.Minute}, 100)
	s.until()

	got := s.attempts(one, four, restarted, first, second, blind, silent, none)
	of := func(id int64, attempt int) *api.Efficiency {
		for i := range got.Attempts {
			if a := &got.Attempts[i]; a.JobID == id && a.Attempt == attempt {
				return a.Efficiency
			}
		}
		t.Errorf("no attempt %d of job %d", attempt, id)
		return nil
	}
	near(t, "one node", of(one, 1), (&truth{limit: time.Hour, asked: 64 * gib, vram: 80 * gib, cpus: 16, cards: 2, nodes: []play{train}}).of())
	near(t, "four nodes", of(four, 1), (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{slow, slow, slow, slow}}).of())
	near(t, "its first attempt", of(restarted, 1), (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{short}}).of())
	near(t, "its second attempt", of(restarted, 2), (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{train}}).of())
	for id, name := range map[int64]string{first: "share", second: "shared"} {
		want := (&truth{limit: time.Hour, asked: 32 * gib, vram: 20 * gib, cpus: 8, cards: 1, nodes: []play{s.load(api.MemberKey{}, &api.AssignmentBody{Name: name})}}).of()
		want.Joules = nil // whose power it was nobody can say
		near(t, name, of(id, 1), want)
	}
	want := (&truth{limit: time.Hour, asked: 32 * gib, vram: 80 * gib, cpus: 8, cards: 1, nodes: []play{s.load(api.MemberKey{}, &api.AssignmentBody{Name: "silent"})}}).of()
	want.GPUPercent, want.GPUIdle, want.Joules = nil, nil, nil
	near(t, "a driver that says little", of(silent, 1), want)
	want.CPUSeconds, want.CPUPercent, want.MemoryPeak, want.MemoryPercent = nil, nil, nil, nil
	near(t, "nothing of its processes", of(blind, 1), want)
	near(t, "no cards", of(none, 1), (&truth{limit: time.Hour, asked: 32 * gib, cpus: 8, nodes: []play{train}}).of())

	all := s.attempts(array)
	if len(all.Attempts) != 100 {
		t.Fatalf("%d attempts of an array of 100", len(all.Attempts))
	}
	for i := range all.Attempts {
		a := &all.Attempts[i]
		at := slices.IndexFunc(all.Jobs, func(j api.Job) bool { return j.JobID == a.JobID })
		index := *all.Jobs[at].ArrayIndex
		near(t, fmt.Sprint("element ", index), a.Efficiency, (&truth{limit: 10 * time.Minute, asked: 16 * gib, vram: 80 * gib, cpus: 4, cards: 1, nodes: []play{element(index)}}).of())
	}
	text := string(s.command(cli.NewGacct(), "-e", fmt.Sprint(array), fmt.Sprint(none)))
	for _, line := range []string{fmt.Sprintf("but of %d_7 (2%%)\n", array), fmt.Sprintf("but of %d_50 (94%%)\n", array), fmt.Sprintf("but of %d_99 (2%%)\n", array)} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
}

// What greport says is what the ledger says, and that is the sum over the attempts that gacct says there were: by day and
// cause, over midnights, whatever was measured of them. Each job has an account of its own.
func TestReportIsTheSumOfAttempts(t *testing.T) {
	s := newScriptedSite(t, disk.Open(t), 3, 4)
	s.beat = 9 * time.Second
	plays := map[string][]play{} // by the name of a job, one an epoch
	s.load = func(k api.MemberKey, b *api.AssignmentBody) play {
		p := plays[b.Name][min(k.Epoch, len(plays[b.Name]))-1]
		p.phases = slices.Clone(p.phases)
		return p
	}
	round := 0
	var whole api.LedgerFigures
	rapid.Check(t, func(rt *rapid.T) {
		round++
		if rapid.Bool().Draw(rt, "late") {
			s.sleepUntilLate()
		}
		var ids []int64
		var accounts []string
		cancel := map[int64]time.Duration{}
		for i := range rapid.IntRange(1, 3).Draw(rt, "jobs") {
			name := fmt.Sprintf("r%d-%d", round, i)
			for range rapid.IntRange(1, 3).Draw(rt, "epochs") {
				p := play{exit: rapid.IntRange(0, 1).Draw(rt, "exit"), blind: rapid.IntRange(0, 5).Draw(rt, "blind") == 0}
				for range rapid.IntRange(1, 3).Draw(rt, "phases") {
					p.phases = append(p.phases, phase{time.Duration(rapid.IntRange(1, 1_500_000).Draw(rt, "ms")) * time.Millisecond, float64(rapid.IntRange(0, 40).Draw(rt, "cpus")) / 10, 1 << 30,
						gpu.Sample{Utilization: rapid.IntRange(-1, 100).Draw(rt, "use"), UsedBytes: 1 << 30, PowerWatts: rapid.IntRange(0, 700).Draw(rt, "watts")}})
				}
				plays[name] = append(plays[name], p)
			}
			retries := rapid.IntRange(0, 2).Draw(rt, "retries")
			sp := api.Spec{Name: name, Account: name, Size: rapid.IntRange(1, 3).Draw(rt, "size"), CPUsPerRank: rapid.IntRange(1, 4).Draw(rt, "asked"), GPUsPerRank: rapid.IntRange(0, 2).Draw(rt, "cards"),
				MaxRetries: &retries}
			id := s.submit(sp, 0)
			ids, accounts = append(ids, id), append(accounts, name)
			if rapid.IntRange(0, 3).Draw(rt, "cancel") == 0 {
				cancel[id] = s.now + time.Duration(rapid.IntRange(0, 2000).Draw(rt, "after"))*time.Second
			}
		}
		for over, steps := false, 0; !over; steps++ {
			if steps > 10_000 { // more than a day
				rt.Fatalf("the jobs do not end")
			}
			for id, at := range cancel {
				if s.now >= at {
					delete(cancel, id)
					s.cancel(id)
				}
			}
			if s.step() {
				if steps%100 == 0 {
					s.runningIsBookedAsRunning(rt, ids, accounts)
				}
				continue
			}
			s.nodes[0].tell(api.Actual{})
			over = !slices.ContainsFunc(ids, func(id int64) bool {
				j, err := s.engine.One(t.Context(), api.JobRef{ID: id, Index: -1}, 0)
				if err != nil {
					rt.Fatal(err)
				}
				return !gang.JobState(j).Ended()
			})
		}
		got := s.attempts(ids...)
		for i := range got.Jobs {
			s.reportIsSum(rt, &got.Jobs[i], got.Attempts, &whole)
		}
	})
	table := strings.Split(strings.TrimSpace(string(s.command(cli.NewGreport(), "usage", "--from=2026-03-01", "--to=2030-01-01", "--by=user", "--format=csv"))), "\n")
	line := strings.Split(table[len(table)-1], ",")
	const hour = 3600_000.0
	if len(table) != 2 || line[1] != strconv.FormatFloat(float64(whole.CardMS)/hour, 'f', -1, 64) || line[2] != strconv.FormatFloat(float64(whole.CPUMS)/hour, 'f', -1, 64) || line[6] != fmt.Sprint(whole.Attempts) {
		t.Errorf("%q, want %g card-hours, %g CPU-hours, %d attempts", table, float64(whole.CardMS)/hour, float64(whole.CPUMS)/hour, whole.Attempts)
	}
	if found, err := s.engine.Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%q, %v", found, err)
	}
}

// sleepUntilLate goes on to ten minutes before a midnight.
func (s *site) sleepUntilLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	const day = 24 * time.Hour
	now := siteBegan.Add(s.now)
	late := now.Truncate(day).Add(day - 10*time.Minute)
	if late.Before(now) {
		late = late.Add(day)
	}
	s.now += late.Sub(now)
}

// runningIsBookedAsRunning: no cause is in the ledger of which no attempt has ended.
func (s *site) runningIsBookedAsRunning(rt *rapid.T, ids []int64, accounts []string) {
	ledger, err := s.engine.Ledger(s.t.Context(), &api.LedgerQuery{By: []string{"cause"}, Accounts: accounts})
	if err != nil {
		rt.Fatal(err)
	}
	causes := map[api.Cause]bool{"": true}
	got := s.attempts(ids...)
	for i := range got.Attempts {
		causes[got.Attempts[i].Cause] = true
	}
	for _, r := range ledger.Rows {
		if !causes[r.Cause] {
			rt.Errorf("%s is in the ledger, and no attempt has ended so: %+v", r.Cause, r)
		}
	}
}

// booked is by what attempts of a job are counted.
type booked struct {
	day   string
	cause api.Cause
}

// bookedOf counts the attempts of a job anew. What was measured is of the day of the end alone here: sums over days are compared.
func bookedOf(rt *rapid.T, j *api.Job, all []api.Attempt) (days map[booked]*api.LedgerFigures, sum api.LedgerFigures, cards int64) {
	days = map[booked]*api.LedgerFigures{}
	for i := range all {
		a := &all[i]
		if a.JobID != j.JobID {
			continue
		}
		if a.EndTime.IsZero() {
			rt.Fatalf("attempt %d of job %d has not ended", a.Attempt, a.JobID)
		}
		lost := a.Cause != api.CauseCompleted && a.Cause != api.CauseCancelled
		for from := a.StartTime; ; {
			to := from.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
			last := !to.Before(a.EndTime)
			if last {
				to = a.EndTime
			}
			k := booked{from.UTC().Format(time.DateOnly), a.Cause}
			if days[k] == nil {
				days[k] = &api.LedgerFigures{}
			}
			f := api.LedgerFigures{}
			ms := to.Sub(a.StartTime).Milliseconds() - from.Sub(a.StartTime).Milliseconds()
			f.CardMS, f.CPUMS = ms*int64(j.Size*j.GPUsPerRank), ms*int64(j.Size*j.CPUsPerRank)
			if lost {
				f.LostCardMS, f.LostCPUMS = f.CardMS, f.CPUMS
			}
			if from.Equal(a.StartTime) {
				f.Starts = 1
			}
			if last {
				f.Attempts = 1
			}
			days[k].Add(f)
			sum.Add(f)
			if last {
				break
			}
			from = to
		}
		for _, m := range a.Measures {
			if m.CPUSeconds != nil {
				sum.UsedCPUMS += int64(math.Round(*m.CPUSeconds * 1000))
			}
			for _, c := range m.Cards {
				cards++
				if c.Joules != nil {
					sum.Joules += int64(*c.Joules)
				}
				if u := c.Utilization; u != nil && c.IdleSeconds != nil {
					sum.SeenCardMS += int64(u.Seconds * 1000)
					sum.BusyCardMS += int64(u.Seconds * u.Mean * 10)
					sum.IdleCardMS += int64(*c.IdleSeconds * 1000)
				}
			}
		}
	}
	return days, sum, cards
}

// reportIsSum compares greport and the ledger with the attempts of one job.
func (s *site) reportIsSum(rt *rapid.T, j *api.Job, all []api.Attempt, whole *api.LedgerFigures) {
	days, want, cards := bookedOf(rt, j, all)
	whole.Add(want)
	options := []string{"--from=2026-03-01", "--to=2030-01-01", "-A", j.Account}
	var said api.LedgerFigures
	for _, by := range []string{"day,cause,user,account,partition", "month,card_type,cause"} {
		var report api.LedgerReply
		if err := json.Unmarshal(s.command(cli.NewGreport(), append(options, "usage", "--format=json", "--by="+by)...), &report); err != nil {
			rt.Fatal(err)
		}
		said = api.LedgerFigures{}
		for _, r := range report.Rows {
			said.Add(r.LedgerFigures)
			if by[0] == 'm' {
				continue
			}
			if r.User != j.User || r.Account != j.Account || r.Partition != j.Partition {
				rt.Errorf("job %d of %s, %s in %s is in the ledger as %+v", j.JobID, j.User, j.Account, j.Partition, r.LedgerKey)
			}
			k := booked{r.Day, r.Cause}
			w := days[k]
			if w == nil {
				rt.Errorf("job %d: %+v is in the ledger, and no attempt: %+v", j.JobID, k, r)
				continue
			}
			delete(days, k)
			got := api.LedgerFigures{Attempts: r.Attempts, Starts: r.Starts, CardMS: r.CardMS, CPUMS: r.CPUMS, LostCardMS: r.LostCardMS, LostCPUMS: r.LostCPUMS}
			if got != *w {
				rt.Errorf("job %d, %+v: greport says %+v, the attempts %+v", j.JobID, k, got, *w)
			}
		}
		ledger, err := s.engine.Ledger(s.t.Context(), &api.LedgerQuery{By: []string{"account"}, Accounts: []string{j.Account}})
		if err != nil {
			rt.Fatal(err)
		}
		if none := (api.LedgerFigures{}); len(ledger.Rows) > 1 || len(ledger.Rows) == 0 && said != none || len(ledger.Rows) == 1 && ledger.Rows[0].LedgerFigures != said {
			rt.Errorf("job %d by %s: greport says %+v, the ledger %+v", j.JobID, by, said, ledger.Rows)
		}
	}
	if len(days) > 0 {
		rt.Errorf("job %d: not in the ledger: %v", j.JobID, days)
	}
	for _, x := range []struct {
		name      string
		got, want int64
		off       int64 // each attempt and card is cut to whole milliseconds and joules
	}{{"used CPUs", said.UsedCPUMS, want.UsedCPUMS, want.Attempts * 3}, {"joules", said.Joules, want.Joules, cards}, {"cards seen", said.SeenCardMS, want.SeenCardMS, 2 * cards},
		{"cards busy", said.BusyCardMS, want.BusyCardMS, 2 * cards}, {"cards idle", said.IdleCardMS, want.IdleCardMS, 2 * cards}} {
		if max(x.got-x.want, x.want-x.got) > x.off {
			rt.Errorf("job %d: %s: the ledger says %d, the attempts %d", j.JobID, x.name, x.got, x.want)
		}
	}
	completed := int64(0)
	for i := range all {
		if all[i].JobID == j.JobID && all[i].Cause == api.CauseCompleted {
			completed++
		}
	}
	// Of a job that was to run again that is when it was next.
	if want.Attempts == 1 && !j.EligibleTime.After(j.StartTime) && said.WaitMS != j.StartTime.Sub(j.EligibleTime).Milliseconds() {
		rt.Errorf("job %d waited %v, and greport says %d ms", j.JobID, j.StartTime.Sub(j.EligibleTime), said.WaitMS)
	}
	if want.Attempts > 0 {
		health := strings.Split(strings.TrimSpace(string(s.command(cli.NewGreport(), append(options, "health", "--format=csv", "--by=account")...))), "\n")
		if line := strings.Split(health[len(health)-1], ","); len(health) != 2 || line[1] != fmt.Sprint(want.Attempts) || line[2] != fmt.Sprint(completed) {
			rt.Errorf("job %d with %d attempts, %d completed, is %q in greport health", j.JobID, want.Attempts, completed, health)
		}
	}
}

func (s *site) cancel(id int64) {
	s.t.Helper()
	if _, err := s.engine.Cancel(s.t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}}}, engine.Caller{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), User: "ada"}, func(uint32) bool { return true }); err != nil {
		s.t.Fatal(err)
	}
}
