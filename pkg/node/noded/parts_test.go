package noded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/api"
	"gangd/pkg/node/gpu"
	"gangd/pkg/node/proc"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/people"
	"gangd/pkg/wire/session"
)

func TestPortRange(t *testing.T) {
	cases := []struct {
		ephemeral string
		from, to  int
	}{
		{"32768\t60999\n", 20000, 32768},
		{"20500 60999", 61000, 65536}, // too few below
		{"1024 65535", 10000, 20000},
		{"1024 30000", 30001, 65536},
		{"nonsense", 20000, 32768},
		{"9 1", 20000, 32768},
	}
	for _, c := range cases {
		if from, to := portRange(c.ephemeral); from != c.from || to != c.to {
			t.Errorf("%q: %d to %d, want %d to %d", c.ephemeral, from, to, c.from, c.to)
		}
	}
}

func TestPortsAreFreeAndUnique(t *testing.T) {
	p := newPorts("/a")
	k := api.MemberKey{Job: 3, Epoch: 1}
	first, err := p.take(k)
	if err != nil || first < p.from || first >= p.to {
		t.Fatal(first, err)
	}
	p.release(k)
	// In use by a stranger now: the same member gets another one.
	l, err := net.Listen("tcp", ":"+strconv.Itoa(first))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	second, err := p.take(k)
	if err != nil || second == first {
		t.Fatalf("port %d is in use: %v", second, err)
	}
	t.Cleanup(func() {
		for k := range p.of {
			p.release(k)
		}
	})
	seen := map[int]api.MemberKey{second: k}
	for job := range int64(200) {
		k := api.MemberKey{Job: job + 10, Epoch: 1}
		port, err := p.take(k)
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[port]; twice {
			t.Fatalf("port %d for %v and %v", port, other, k)
		}
		seen[port] = k
	}
	p.release(api.MemberKey{Job: 99, Epoch: 9})
	if p.taken[second] != k {
		t.Error("released by another member")
	}
	if !p.open(k, second) {
		t.Error("it was held, and is not free")
	}
	wantLetGo(t, second)
	if p.taken[second] != k {
		t.Error("anybody's though its member lives")
	}
}

// TestPortsOfOneMachine: the first jobs of many clusters on one machine, which all have the same number, seldom begin with one
// port, though none of the ports is in use while each is chosen.
func TestPortsOfOneMachine(t *testing.T) {
	first := map[int]bool{}
	for cluster := range 20 {
		p := newPorts("/tmp/" + strconv.Itoa(cluster))
		k := api.MemberKey{Job: 1, Epoch: 1}
		port, err := p.take(k)
		if err != nil {
			t.Fatal(err)
		}
		p.release(k)
		first[port] = true
	}
	if len(first) < 19 {
		t.Errorf("20 clusters choose from %d ports", len(first))
	}
}

func TestNoPortIsFree(t *testing.T) {
	p := &ports{taken: map[int]api.MemberKey{20000: {}, 20001: {}}, from: 20000, to: 20002}
	if _, err := p.take(api.MemberKey{Job: 1, Epoch: 1}); err == nil || err.Error() != "no port from 20000 to 20001 is free for the rendezvous" {
		t.Error(err)
	}
}

// TestFreeMemory: a node that shares a machine has no more free memory than it has.
func TestFreeMemory(t *testing.T) {
	for _, c := range []struct{ memory, least, most int64 }{{1 << 20, 1 << 20, 1 << 20}, {0, 1<<20 + 1, proc.MemTotal()}} {
		d := &daemon{opts: Options{Memory: c.memory}}
		if got := d.Load().FreeBytes; got < c.least || got > c.most {
			t.Errorf("memory of %d: %d are free, want %d to %d", c.memory, got, c.least, c.most)
		}
	}
}

func TestAccounts(t *testing.T) {
	root := &accounts{minUID: 0}
	acc, refusal := root.resolve("root", 0, 0)
	if refusal != nil || acc.uid != 0 || acc.home == "" || len(acc.groups) == 0 {
		t.Errorf("%+v, %+v", acc, refusal)
	}
	cases := []struct {
		a     *accounts
		name  string
		uid   uint32
		want  string
		whose api.Blame
	}{
		{&accounts{}, "root", 7, "user root is uid 0 here and uid 7 at the controller", api.BlameUser},
		{&accounts{minUID: 1000}, "root", 0, "user root: uid 0 is below 1000, the least that runs jobs on this node", api.BlameUser},
		{&accounts{}, "no-such-user", 7, "user no-such-user is not known on this node", api.BlameSite},
		{&accounts{allow: []string{"wizards"}}, "root", 0, "user root is in none of the groups [wizards] that may use this node", api.BlameUser},
		{&accounts{single: true}, "root", 4242, fmt.Sprintf("this node runs everything as uid %d (single-user), the job is of root (uid 4242)", os.Getuid()), api.BlameUser},
	}
	for _, c := range cases {
		_, refusal := c.a.resolve(c.name, c.uid, 0)
		if refusal == nil || refusal.Text != c.want || refusal.Blame != c.whose {
			t.Errorf("%s: %+v, want %s", c.name, refusal, c.want)
		}
	}
}

// TestAnUserIsAskedForAgain: an answer from before the question counts for nobody, and those who ask while
// one is being found share the next.
func TestAnUserIsAskedForAgain(t *testing.T) {
	var finds atomic.Int32
	hold := make(chan struct{})
	here := foundUser{account: &account{uid: 7}}
	a := &accounts{find: func(string, bool) foundUser {
		if finds.Add(1) == 1 {
			<-hold
			return here
		}
		return foundUser{err: people.ErrUnknown}
	}}
	first := make(chan *api.Refusal)
	go func() { _, refusal := a.resolve("ada", 7, 7); first <- refusal }()
	for end := time.Now().Add(patience); finds.Load() == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	const many = 50
	var others sync.WaitGroup
	var known atomic.Int32
	for range many {
		others.Go(func() {
			if _, refusal := a.resolve("ada", 7, 7); refusal == nil || refusal.Blame != api.BlameSite {
				known.Add(1)
			}
		})
	}
	time.Sleep(20 * time.Millisecond) // most of them wait
	close(hold)
	others.Wait()
	if refusal := <-first; refusal != nil {
		t.Errorf("who was there is refused: %+v", refusal)
	}
	if known.Load() > 0 || finds.Load() > many/2 {
		t.Errorf("%d of %d were told of a user who had gone; the database was asked %d times", known.Load(), many, finds.Load())
	}
}

func TestBoardTellsEachChangeOnce(t *testing.T) {
	woken := 0
	b := NewBoard(func() { woken++ })
	if b.Report() != nil {
		t.Error("a report of nothing")
	}
	k, l := api.MemberKey{Job: 1, Epoch: 1}, api.MemberKey{Job: 2, Epoch: 1}
	b.Note(api.MemberActual{MemberKey: k, Phase: api.PhasePreparing})
	b.Put(api.MemberActual{MemberKey: l, Phase: api.PhaseReady})
	b.Put(api.MemberActual{MemberKey: k, Phase: api.PhaseReady})
	b.Put(api.MemberActual{MemberKey: k, Phase: api.PhaseRunning})
	b.Applied(7)
	want := &api.Actual{Revision: 7, Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseRunning}, {MemberKey: l, Phase: api.PhaseReady}}}
	if d := cmp.Diff(want, b.Report()); d != "" {
		t.Error(d)
	}
	b.Put(api.MemberActual{MemberKey: k, Phase: api.PhaseStopped})
	b.Drop(k)
	if d := cmp.Diff(&api.Actual{Revision: 7, Gone: []api.MemberKey{k}}, b.Report()); d != "" {
		t.Error(d)
	}
	if b.Report() != nil || woken != 5 {
		t.Errorf("woken %d times", woken)
	}
	// That nothing is left of a member whose end was told is no reason to wake anybody, and is said all the same. Of one that
	// ran by what was told last it is.
	b.Put(api.MemberActual{MemberKey: k, Phase: api.PhaseStopped})
	b.Report()
	if b.Drop(k); woken != 6 {
		t.Errorf("woken %d times", woken)
	}
	if d := cmp.Diff(&api.Actual{Revision: 7, Gone: []api.MemberKey{k}}, b.Report()); d != "" {
		t.Error(d)
	}
	b.Put(api.MemberActual{MemberKey: k, Phase: api.PhaseRunning})
	b.Report()
	if b.Drop(k); woken != 8 {
		t.Errorf("woken %d times", woken)
	}
	b.Report()
	// A new session hears everything, and nothing of it twice.
	b.Put(api.MemberActual{MemberKey: l, Phase: api.PhaseRunning})
	if all := b.All(); len(all) != 1 || all[0].Phase != api.PhaseRunning || b.Report() != nil {
		t.Errorf("%+v", all)
	}
}

// fakeCards is a driver that says what the test set.
type fakeCards struct {
	samples []gpu.Sample
	err     error
}

func (f *fakeCards) Inventory(context.Context) ([]api.CardInfo, error) {
	return []api.CardInfo{{Index: 0, UUID: "a"}, {Index: 1, UUID: "b"}}, f.err
}
func (f *fakeCards) Sample(context.Context) ([]gpu.Sample, error) { return f.samples, f.err }
func (f *fakeCards) Changed() <-chan struct{}                     { return nil }
func (f *fakeCards) Close() error                                 { return nil }

func TestCardsTellStrangersAndChangesOnly(t *testing.T) {
	f := &fakeCards{}
	c := newCards(f, newOwners(func(pid int) (api.MemberKey, bool) { return api.MemberKey{Job: 1, Epoch: 1}, pid == 10 }), slog.New(slog.DiscardHandler))
	c.inventory(context.Background())
	if d := cmp.Diff(map[string]int{"a": 0, "b": 1}, c.indexes()); d != "" {
		t.Error(d)
	}
	steps := []struct {
		name    string
		samples []gpu.Sample
		err     error
		want    []api.CardSample
	}{
		{"derived from processes", []gpu.Sample{{UUID: "a", UsedBytes: 100, StrangersBytes: -1, Processes: []gpu.Process{{PID: 10, VRAMBytes: 60}, {PID: 11, VRAMBytes: 40}}}, {UUID: "b"}}, nil,
			[]api.CardSample{{UUID: "a", UsedBytes: 60, StrangersBytes: 40}, {UUID: "b"}}},
		{"nothing changed", []gpu.Sample{{UUID: "a", UsedBytes: 100, StrangersBytes: -1, Processes: []gpu.Process{{PID: 10, VRAMBytes: 60}, {PID: 11, VRAMBytes: 40}}}, {UUID: "b"}}, nil, nil},
		{"an unknown share keeps the last known", []gpu.Sample{{UUID: "a", UsedBytes: 90, StrangersBytes: -1, Processes: []gpu.Process{{PID: 11, VRAMBytes: -1}}}, {UUID: "b"}}, nil,
			[]api.CardSample{{UUID: "a", UsedBytes: 50, StrangersBytes: 40}}},
		{"a driver that fails changes nothing", nil, errors.New("gone"), nil},
		{"known outright", []gpu.Sample{{UUID: "a", UsedBytes: 90, StrangersBytes: 40}, {UUID: "b", UsedBytes: 9, StrangersBytes: 4, Utilization: 50, Xid: 79}}, nil,
			[]api.CardSample{{UUID: "b", UsedBytes: 5, StrangersBytes: 4, Utilization: 50, Unhealthy: "Xid 79, fell off the bus"}}},
		{"unknown use", []gpu.Sample{{UUID: "a", UsedBytes: 90, StrangersBytes: 40}, {UUID: "b", UsedBytes: -1, StrangersBytes: 0, Utilization: -1}}, nil, []api.CardSample{{UUID: "b", UsedBytes: -1, Utilization: -1}}},
		{"one that is listed no more", []gpu.Sample{{UUID: "a", UsedBytes: 90, StrangersBytes: 40}}, nil, []api.CardSample{{UUID: "b", UsedBytes: -1, Utilization: -1, Unhealthy: "the driver does not list it any more"}}},
	}
	for _, s := range steps {
		f.samples, f.err = s.samples, s.err
		if got := c.sample(context.Background(), time.Second); got != (s.want != nil) {
			t.Errorf("%s: news %v", s.name, got)
		}
		if d := cmp.Diff(s.want, c.news()); d != "" {
			t.Errorf("%s: %s", s.name, d)
		}
	}
	c.restart()
	if n := len(c.news()); n != 2 {
		t.Errorf("a new session hears of %d cards, want 2", n)
	}
}

func TestProcessesOfOurs(t *testing.T) {
	for _, pid := range []int{os.Getpid(), 1 << 30} {
		if _, ours := hasMarker(pid, "nobody."); ours {
			t.Errorf("process %d carries a marker", pid)
		}
		if _, ours := inCgroup(pid, "gangd/nobody-"); ours {
			t.Errorf("process %d is in a member's cgroup", pid)
		}
	}
	for text, want := range map[string]api.MemberKey{"12.3.0badcafe\n": {Job: 12, Epoch: 3}, "12": {}, "a.1": {}, "": {}} {
		if k, ok := memberKey(text); k != want || ok != (want.Job != 0) {
			t.Errorf("%q: %+v", text, k)
		}
	}
}

func TestLineageIsKept(t *testing.T) {
	dir := t.TempDir()
	s, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, saw := range []lineageMark{{5, "a", "p1"}, {9, "a", "p2"}, {3, "b", "p3"}, {9, "b", "p4"}, {0, "c", ""}, {8, "c", "p5"}} {
		s.run = saw.run
		if err := s.sawLineage(saw.lineage, saw.proof); err != nil {
			t.Fatal(err)
		}
	}
	id := s.id
	s.close()
	again, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	if *again.lineage.Load() != (lineageMark{9, "b", "p4"}) || again.id != id || again.lastBoot != again.boot {
		t.Errorf("told %v, id %s, boots %s and %s", *again.lineage.Load(), again.id, again.lastBoot, again.boot)
	}
	// What a daemon wrote that did not know of runs.
	if err := again.write(lineageFile, "17"); err != nil {
		t.Fatal(err)
	}
	if err := again.load(); err != nil || *again.lineage.Load() != (lineageMark{lineage: 17}) {
		t.Errorf("told %v, %v", *again.lineage.Load(), err)
	}
}

// TestShorterLineage: each is written over the one before, also over that of the daemon before, however long it was.
func TestShorterLineage(t *testing.T) {
	dir := t.TempDir()
	for i, saw := range []lineageMark{{5, "a-long-name-of-a-run", "a-long-proof"}, {600, "b", "p"}, {7000, "c", ""}, {800000, "a-long-name-of-a-run", "p"}} {
		s, err := openState(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, kept := range []lineageMark{saw, {saw.lineage + 1, "x", ""}, {saw.lineage + 2, saw.run, saw.proof}} {
			s.run = kept.run
			if err := s.sawLineage(kept.lineage, kept.proof); err != nil {
				t.Fatal(err)
			}
			if err := s.load(); err != nil || *s.lineage.Load() != kept {
				t.Errorf("%d: kept %v, %v, want %v", i, *s.lineage.Load(), err, kept)
			}
		}
		s.close()
	}
}

// TestNoGateOutOfContact: an open gate in a frame from before a freeze must not count,
// however the thaw orders what is read first.
func TestNoGateOutOfContact(t *testing.T) {
	d := &daemon{client: session.NewClient(session.Options{}), settings: api.DefaultSettings(), jobs: map[int64][]*member{}}
	m := &member{d: d, key: api.MemberKey{Job: 1, Epoch: 1}}
	if d.mayOpen(m) {
		t.Error("a gate is opened without contact")
	}
	d.settings.Heartbeat = session.BootTime() // three of these ago there was no boot yet
	if !d.mayOpen(m) {
		t.Error("a gate stays shut in contact")
	}
}

// What was to be started in a session that is over is not started in the next one unless it
// is said again.
func TestAGateEndsWithItsSession(t *testing.T) {
	d := &daemon{jobs: map[int64][]*member{}, state: &stateDir{}}
	m := d.newMember(api.MemberKey{Job: 1, Epoch: 1})
	m.set(func(w *memberOrders) { w.Gate, w.Stop = &api.Gate{}, &api.Stop{Signal: "TERM"} })
	d.Down(nil)
	if w := m.take(); w.Gate != nil || w.Stop == nil {
		t.Errorf("after the end of the session: gate %v, stop %v", w.Gate, w.Stop)
	}
}

// What is to be told to the ranks in one moment is told whole, and waits until there is a shim to tell it to.
func TestNoWarningIsLost(t *testing.T) {
	d := &daemon{jobs: map[int64][]*member{}, state: &stateDir{}}
	m := d.newMember(api.MemberKey{Job: 1, Epoch: 1})
	m.warn(shim.Warning{Rank: 0, Text: "over"})
	m.warn(shim.Warning{Rank: 1, Text: "over"})
	m.set(func(w *memberOrders) { w.Lease, w.stacks = time.Minute, shim.TakeStacks })
	m.take()
	m.conn = &shim.Conn{}
	if w := m.take(); len(w.warn) != 2 || w.warn[0].Rank != 0 || w.warn[1].Rank != 1 || w.Lease != time.Minute || w.stacks != shim.TakeStacks {
		t.Errorf("with a shim to talk to: warnings %+v, lease until %v, stacks %q", w.warn, w.Lease, w.stacks)
	}
	if w := m.take(); len(w.warn) != 0 || w.Lease != 0 || w.stacks != "" {
		t.Errorf("told again: warnings %+v, lease until %v, stacks %q", w.warn, w.Lease, w.stacks)
	}
}
