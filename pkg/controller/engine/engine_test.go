package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nullRecorder counts commits.
type nullRecorder struct {
	mu      sync.Mutex
	commits int
}

func (n *nullRecorder) Events([]api.Event)            {}
func (n *nullRecorder) Plan(time.Duration, time.Time) {}
func (n *nullRecorder) Commit(time.Duration, int) {
	n.mu.Lock()
	n.commits++
	n.mu.Unlock()
}

// rig is an engine with nodes played by the test: what a node is told appears in wake.
type rig struct {
	*Engine
	t    testing.TB
	rec  *nullRecorder
	end  func() error // stops the engine and gives what Run returned
	woke chan string
	// appendLog is what a node does with a text for a file.
	appendLog func(node string, a api.LogAppend) error
	seen      map[string]*api.MemberStacks // where processes are, by node
}

func (r *rig) Wake(nodes []string) {
	for _, n := range nodes {
		select {
		case r.woke <- n:
		default:
		}
	}
}

// Stacks is what the test has a node see.
func (r *rig) Stacks(_ context.Context, node string, _ api.MemberKey) (*api.MemberStacks, error) {
	if m := r.seen[node]; m != nil {
		return m, nil
	}
	return nil, api.Errorf(api.CodeUnavailable, "node %s is not connected", node)
}

func (r *rig) AppendLog(_ context.Context, node string, a api.LogAppend) error {
	return r.appendLog(node, a)
}

func newRig(t testing.TB, st store.Store) *rig { return newRigWith(t, st, func(*Options) {}) }

func newRigWith(t testing.TB, st store.Store, edit func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, rec: &nullRecorder{}, woke: make(chan string, 10000)}
	opt := Options{Store: st, Clock: SystemClock(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Conf:   Conf{Settings: api.DefaultSettings(), Policy: order.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, BackfillDepth: 1}},
		Record: r.rec, Version: "test"}
	edit(&opt)
	e, err := New(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = e
	e.SetHub(r)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	r.end = sync.OnceValue(func() error { cancel(); return <-ran })
	t.Cleanup(func() { _ = r.end() })
	return r
}

func (r *rig) node(name string, cpus int) {
	r.t.Helper()
	h := &api.Hello{Protocol: api.SessionProtocol, Node: name, BootID: "b", Address: "127.0.0.1", CPUs: cpus, MemoryBytes: 1 << 34}
	if _, err := r.NodeHello(r.t.Context(), h); err != nil {
		r.t.Fatal(err)
	}
}

var me = Caller{UID: 1000, GID: 1000, User: "ada"}

func anyone(uint32) bool { return true }

func spec(size int) api.Spec {
	return api.Spec{Name: "job", Size: size, Launch: api.LaunchRanks, CPUsPerRank: 1, WorkDir: "/tmp", Script: []byte("#!/bin/sh\n")}
}

func (r *rig) submit(key string, s api.Spec) int64 {
	r.t.Helper()
	reply, err := r.Submit(r.t.Context(), &api.SubmitRequest{Key: key, Spec: s}, me)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply.JobID
}

func (r *rig) state(id int64) api.JobState {
	r.t.Helper()
	j, err := r.One(r.t.Context(), api.JobRef{ID: id, Index: -1}, me)
	if err != nil {
		r.t.Fatal(err)
	}
	return gang.JobState(j)
}

func TestSubmissionAndReservationAreOneCommit(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	before := r.store.Lineage()
	id := r.submit("k", spec(2))
	if got := r.state(id); got != api.JobReserved {
		t.Errorf("state %s when the id is printed, want RESERVED", got)
	}
	if n := r.store.Lineage() - before; n != 1 {
		t.Errorf("%d commits for a submission that can start at once, want 1", n)
	}
	a, ok := r.Desired("n1")
	if !ok || len(a) != 1 || a[0].Gate != nil {
		t.Fatalf("desired set %+v, want the member with a closed gate", a)
	}
	want := spec(2)
	if got, err := r.Spec(a[0].Body.SpecHash); err != nil || !bytes.Equal(got.Script, want.Script) || got.Size != 2 {
		t.Errorf("its spec for the node: %+v, %v", got, err)
	}
	if j := r.view.job(id); j.Spec.Script != nil || j.TextBytes != want.TextBytes() {
		t.Errorf("the engine holds %d of %d bytes of the script", len(j.Spec.Script), j.TextBytes)
	}
}

// What a gang gives back is given on in the same round, without a timer.
func TestEndOfOneStartsTheNext(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 1)
	first, second := r.submit("a", spec(1)), r.submit("b", spec(1))
	if got := r.state(second); got != api.JobPending {
		t.Fatalf("the second job is %s while the first has the only CPU", got)
	}
	key := api.MemberKey{Job: first, Epoch: 1}
	rank := api.RankActual{Rank: 0, PID: 7, Started: time.Now()}
	done := rank
	done.Exited, done.Ended = true, time.Now()
	for _, m := range []api.MemberActual{
		{MemberKey: key, Phase: api.PhaseReady, Port: 20000},
		{MemberKey: key, Phase: api.PhaseRunning, Ranks: []api.RankActual{rank}},
		{MemberKey: key, Phase: api.PhaseStopped, Ranks: []api.RankActual{done}},
	} {
		r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{m}})
	}
	if err := r.inspect(t.Context(), func() {}); err != nil { // after the reports
		t.Fatal(err)
	}
	if a, b := r.state(first), r.state(second); a != api.JobCompleted || b != api.JobReserved {
		t.Errorf("the first is %s and the second %s, want COMPLETED and RESERVED", a, b)
	}
}

func TestNewNodeStartsWhatWaits(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 1)
	r.submit("a", spec(1))
	waits := r.submit("b", spec(1))
	r.node("n2", 1)
	if got := r.state(waits); got != api.JobReserved {
		t.Errorf("state %s after a node with room came, want RESERVED", got)
	}
}

func TestKeyMakesARetryHarmless(t *testing.T) {
	r := newRig(t, disk.Open(t))
	a, b := r.submit("same", spec(1)), r.submit("same", spec(1))
	if a != b {
		t.Errorf("ids %d and %d for one key", a, b)
	}
	if jobs, _ := r.List(t.Context(), &api.JobQuery{}); len(jobs) != 1 {
		t.Errorf("%d jobs, want 1", len(jobs))
	}
}

func TestCallersShareCommits(t *testing.T) {
	d := disk.New(t)
	d.SlowCommits(5 * time.Millisecond)
	r := newRig(t, d.Open(t))
	const n = 200
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { r.submit(fmt.Sprint(i), spec(1)) })
	}
	wg.Wait()
	r.rec.mu.Lock()
	defer r.rec.mu.Unlock()
	if r.rec.commits > n/2 {
		t.Errorf("%d commits for %d callers at once: they should share", r.rec.commits, n)
	}
}

func TestNothingIsSeenBeforeItIsOnDisk(t *testing.T) {
	gate := &gatedStore{Store: disk.Open(t), enter: make(chan struct{}), leave: make(chan struct{})}
	r := newRig(t, gate)
	answered := make(chan int64, 1)
	go func() {
		reply, err := r.Submit(context.Background(), &api.SubmitRequest{Key: "k", Spec: spec(1)}, me)
		if err == nil {
			answered <- reply.JobID
		}
	}()
	<-gate.enter
	if jobs, _ := r.List(t.Context(), &api.JobQuery{All: true}); len(jobs) != 0 {
		t.Errorf("a job is shown while its commit is under way: %+v", jobs)
	}
	select {
	case <-answered:
		t.Error("the submission was answered before its commit")
	default:
	}
	close(gate.leave)
	<-answered
	if jobs, _ := r.List(t.Context(), &api.JobQuery{All: true}); len(jobs) != 1 {
		t.Error("the job is not shown after its commit")
	}
}

// gatedStore stops in its first commit.
type gatedStore struct {
	store.Store
	once         sync.Once
	enter, leave chan struct{}
}

func (s *gatedStore) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	s.once.Do(func() { close(s.enter); <-s.leave })
	return s.Store.Commit(ctx, ch)
}

func TestFailedCommitEndsTheEngine(t *testing.T) {
	d := disk.New(t)
	st := d.Open(t)
	r := newRig(t, st)
	d.FailCommit(errors.New("input/output error"))
	_, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "k", Spec: spec(1)}, me)
	if !errors.Is(err, errStopped) {
		t.Errorf("the caller got %v, want to hear that the controller is going down", err)
	}
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("Run returned %v, want the reason", err)
	}
}

func TestFullDiskRefusesSubmissionsAndRecovers(t *testing.T) {
	d := disk.New(t)
	st := d.Open(t)
	r := newRig(t, st)
	held := spec(1)
	held.Hold = true
	id := r.submit("first", held)
	d.SetFull(true)
	_, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "k", Spec: spec(1)}, me)
	if api.CodeOf(err) != api.CodeDiskFull {
		t.Errorf("submission on a full disk: %v, want disk_full", err)
	}
	// What ends is still recorded.
	if _, err := r.Do(t.Context(), gang.Cancel{Job: id, By: "ada"}); err != nil || r.state(id) != api.JobCancelled {
		t.Errorf("cancel on a full disk: %v, state %s", err, r.state(id))
	}
	d.SetFull(false)
	r.submit("k", spec(1))
}

func TestRestartKeepsJobsAndNeverReusesIDs(t *testing.T) {
	d := disk.New(t)
	st := d.Open(t)
	r := newRig(t, st)
	id := r.submit("k", spec(1))
	_ = r.end()
	d.Crash()
	st = d.Open(t)
	r = newRig(t, st)
	if got := r.state(id); got != api.JobPending {
		t.Errorf("after a restart job %d is %s", id, got)
	}
	if again := r.submit("k", spec(1)); again != id {
		t.Errorf("the key gave id %d before the restart and %d after", id, again)
	}
	if next := r.submit("other", spec(1)); next <= id {
		t.Errorf("id %d given out after %d", next, id)
	}
}

func TestFollowHasNoGapAndNoRepeat(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.submit("0", spec(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []int64
	done := make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Follow(ctx, 0, 0, func(evs []api.Event) error {
			if len(got) == 0 {
				close(started)
			}
			for _, ev := range evs {
				got = append(got, ev.Seq)
			}
			if len(got) >= 101 {
				cancel()
			}
			return nil
		})
	}()
	<-started
	for i := 1; i <= 100; i++ {
		r.submit(fmt.Sprint(i), spec(1))
	}
	<-done
	for i, seq := range got {
		if seq != int64(i+1) {
			t.Fatalf("event %d has number %d: %v", i, seq, got)
		}
	}
}

func TestOldStorePutBackHolds(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	h := &api.Hello{Protocol: api.SessionProtocol, Node: "n2", BootID: "b", CPUs: 4, LineageSeen: 1000}
	if _, err := r.NodeHello(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if hold := r.Ping().Hold; !strings.Contains(hold, "1000") || !strings.Contains(hold, "n2") {
		t.Errorf("hold %q, want both lineage numbers and the node", hold)
	}
	lineage := r.store.Lineage()
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "k", Spec: spec(1)}, me); api.CodeOf(err) != api.CodeOnHold {
		t.Errorf("a submission on hold: %v, want on_hold: its id may have been given out already", err)
	}
	r.NodeReport("n1", &api.Actual{})
	r.NodeGone("n1")
	if err := r.inspect(t.Context(), func() {}); err != nil || r.store.Lineage() != lineage {
		t.Errorf("the lineage grew on hold from %d to %d: a restart would not notice any more", lineage, r.store.Lineage())
	}
	if _, ok := r.Desired("n1"); ok {
		t.Error("on hold a desired set is given out: it could stop what the old store does not know")
	}
}

func TestOldStoreAccepted(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) { o.AcceptStore = true })
	first := r.submit("a", spec(1))
	h := &api.Hello{Protocol: api.SessionProtocol, Node: "n2", BootID: "b", CPUs: 4, LineageSeen: 1000}
	if _, err := r.NodeHello(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if hold := r.Ping().Hold; hold != "" || r.store.Lineage() <= 1000 {
		t.Errorf("hold %q at commit %d, want none above 1000", hold, r.store.Lineage())
	}
	if next := r.submit("b", spec(1)); next < first+minSkip {
		t.Errorf("id %d after %d: it may have been given out by the lost commits", next, first)
	}
}

func TestFindResolvesReferences(t *testing.T) {
	r := newRig(t, disk.Open(t))
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "a", Spec: spec(1), Array: &api.Array{Indices: []int{2, 5, 9}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	single := r.submit("b", spec(1))
	ref := func(s string) api.JobRef {
		v, err := api.ParseJobRef(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		ref  api.JobRef
		want int
	}{
		{api.JobRef{ID: reply.JobID, Index: -1}, 3}, {api.JobRef{ID: reply.JobID, Index: 5}, 1},
		{api.JobRef{ID: reply.JobID, Index: 3}, 0}, {api.JobRef{ID: single, Index: -1}, 1},
		{ref("@"), 1}, {ref("@~1"), 3}, {ref("@~2"), 0}, {ref("99"), 0},
	} {
		jobs, missing, _ := r.Find(t.Context(), &api.JobQuery{Refs: []api.JobRef{c.ref}}, me)
		if len(jobs) != c.want || (c.want == 0) != (len(missing) == 1) {
			t.Errorf("%s: %d jobs and %d errors, want %d jobs", c.ref, len(jobs), len(missing), c.want)
		}
	}
	if jobs, _, _ := r.Find(t.Context(), &api.JobQuery{Refs: []api.JobRef{ref("@")}}, Caller{UID: me.UID + 1}); len(jobs) != 0 {
		t.Error("@ of another user found a job")
	}
}

func TestOthersJobsAreNotTouched(t *testing.T) {
	r := newRig(t, disk.Open(t))
	id := r.submit("k", spec(1))
	nobody := func(uint32) bool { return false }
	reply, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}}}, Caller{UID: 2, User: "bob"}, nobody)
	if err != nil || len(reply.Results) != 1 || reply.Results[0].Error == nil || reply.Results[0].Error.Code != api.CodePermission {
		t.Errorf("cancel of another's job: %+v, %v", reply, err)
	}
	if got := r.state(id); got != api.JobPending {
		t.Errorf("state %s after a refused cancel", got)
	}
	if _, err := r.Cancel(t.Context(), &api.CancelRequest{}, me, anyone); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("a cancel that names nothing: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	for _, c := range []struct {
		name string
		edit func(*api.Spec)
		code api.Code
		text string
	}{
		{"size 0", func(s *api.Spec) { s.Size = 0 }, api.CodeInvalid, "size 0: want 1 to 65536 ranks"},
		{"size -5", func(s *api.Spec) { s.Size = -5 }, api.CodeInvalid, "size -5: want 1 to 65536 ranks"},
		{"partition", func(s *api.Spec) { s.Partition = "mian" }, api.CodeInvalid, `no partition "mian"; partitions here: main`},
		{"no script", func(s *api.Spec) { s.Script = nil }, api.CodeInvalid, "the script is empty"},
		{"huge script", func(s *api.Spec) { s.Script = make([]byte, api.MaxScriptBytes+1) }, api.CodeTooLarge, "the script has 4194305 bytes, at most 4194304 are accepted"},
		{"environment", func(s *api.Spec) { s.Env = []string{"novalue"} }, api.CodeInvalid, `environment entry "novalue" is not NAME=value`},
		{"priority", func(s *api.Spec) { p := int64(5); s.Priority = &p }, api.CodePermission, "only an admin may set a priority above 0; lower your own with --nice"},
		{"negative nice", func(s *api.Spec) { s.Nice = -5 }, api.CodePermission, "only an admin may raise a priority with --nice=-5; write --nice=N with N above 0 to lower your own"},
		{"too many cpus", func(s *api.Spec) { s.CPUsPerRank = 64 }, api.CodeUnsatisfiable, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := spec(1)
			c.edit(&s)
			_, err := r.Submit(t.Context(), &api.SubmitRequest{Key: c.name, Spec: s}, me)
			if api.CodeOf(err) != c.code || c.text != "" && err.Error() != c.text {
				t.Errorf("got %v (%s), want %s: %s", err, api.CodeOf(err), c.code, c.text)
			}
		})
	}
	if jobs, _ := r.List(t.Context(), &api.JobQuery{All: true}); len(jobs) != 0 {
		t.Errorf("refused submissions left %d jobs", len(jobs))
	}
	lowest := spec(1)
	lowest.Priority = new(int64)
	r.submit("priority 0", lowest)
}

// TestWaitersShare: who waits and gives up, again and again, must not fill the memory.
func TestWaitersShare(t *testing.T) {
	r := newRig(t, disk.Open(t))
	id := r.submit("k", spec(1))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		if _, err := r.Wait(gone, r.view.job(id)); err == nil {
			t.Fatal("waited for a job that has not ended")
		}
	}
	first, second := r.view.whenEnded(id), r.view.whenEnded(id)
	if first != second {
		t.Error("each waiter has a channel of its own")
	}
	if _, err := r.Do(t.Context(), gang.Cancel{Job: id}); err != nil {
		t.Fatal(err)
	}
	<-first
	if r.view.whenEnded(id) != nil {
		t.Error("the end of an ended job is waited for")
	}
}

func TestQueryOfOnePartitionFindsJobsForSeveral(t *testing.T) {
	r := newRig(t, disk.Open(t))
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "night"}, false, me); err != nil {
		t.Fatal(err)
	}
	s := spec(1)
	s.Partition = "main,night"
	id := r.submit("k", s)
	for name, want := range map[string]int{"main": 1, "night": 1, "day": 0} {
		if jobs, _, _ := r.Find(t.Context(), &api.JobQuery{Partitions: []string{name}}, me); len(jobs) != want {
			t.Errorf("partition %s: %d jobs, want %d (job %d)", name, len(jobs), want, id)
		}
	}
}

// lines is where a test's log goes.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func TestLogLinesOfTheContract(t *testing.T) {
	var out lines
	rank := 1
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := &Engine{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}))}
	e.logEvents([]api.Event{
		{Type: api.EventReserved, JobID: 12, Epoch: 1, Size: 4, Nodes: []string{"n1", "n2"}},
		{Type: api.EventDrainStarted, JobID: 12, Epoch: 1, Trigger: &rank, Cause: api.CauseCrash, Moved: 3},
		{Type: api.EventMemberStopped, JobID: 12, Epoch: 1, Node: "n1"},
		{Type: api.EventDrainCompleted, JobID: 12, Epoch: 1, Outcome: "blocked", Cause: api.CauseCrash, Seconds: 0.5},
		{Type: api.EventNodeLost, Node: "n2", Jobs: []int64{12, 14}, LastSeen: at},
		{Type: api.EventRolledBack, JobID: 12, Epoch: 2, Nodes: []string{"n1"}, Text: "n1: disk full"},
	})
	want := `msg="gang reserved" job=12 epoch=1 size=4 nodes=2
msg="gang drain started" job=12 epoch=1 trigger=1 cause=crash moved=3
msg="member stopped" job=12 epoch=1 node=n1 forced=false
msg="gang drain completed" job=12 epoch=1 outcome=blocked cause=crash seconds=0.5
msg="DEAD NODE" node=n2 jobs=12,14 last_seen=2026-01-02T03:04:05Z
msg="gang rolled back" job=12 epoch=2 why="n1: disk full"
`
	if got := out.b.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestFencedJobSaysWhy: it is no candidate, so no plan has a reason for it.
func TestFencedJobSaysWhy(t *testing.T) {
	r := newRig(t, disk.Open(t))
	left := []gang.Left{{MemberKey: api.MemberKey{Job: 7, Epoch: 2}, Ran: true}}
	r.view.putNode(&gang.Node{Name: "n2", State: api.NodeLost, Left: left})
	word, text := r.waits(&gang.Job{ID: 7, Partition: "main", Spec: &api.Spec{}, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: 2}}}, time.Now(), true)
	want := "attempt 2 may still run on n2 (lost); it runs again when that is known to be over: the node comes back, its lease ends, or an admin says so: gctl node fence n2"
	if word != "NodeDown" || text != want {
		t.Errorf("%s: %s", word, text)
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	for want, q := range map[string]api.JobQuery{
		`no partition "mian"; partitions here: main`: {Partitions: []string{"main", "mian"}},
		`no node "n9"; nodes are n1`:                 {Nodes: []string{"n1", "n9"}},
	} {
		if _, err := r.List(t.Context(), &q); err == nil || err.Error() != want || api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("list: %v, want %s", err, want)
		}
		if _, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: q}, me, anyone); err == nil || err.Error() != want {
			t.Errorf("cancel: %v, want %s", err, want)
		}
	}
}

func TestTestOnlySaysWhatComesFirst(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	begin := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for want, edit := range map[string]func(*api.SubmitRequest){
		"would start now on n1": func(*api.SubmitRequest) {},
		"would be held until gctl release; if it were not, it would start now on n1":                      func(q *api.SubmitRequest) { q.Spec.Hold = true },
		"would wait until " + begin.Format(time.RFC3339) + "; if that were now, it would start now on n1": func(q *api.SubmitRequest) { q.Spec.Begin = begin },
		"the first of its elements would start now on n1": func(q *api.SubmitRequest) {
			q.Array = &api.Array{Indices: []int{0, 1}}
		},
	} {
		q := &api.SubmitRequest{Spec: spec(1), TestOnly: true}
		edit(q)
		reply, err := r.Submit(t.Context(), q, me)
		if err != nil || reply.Why != want {
			t.Errorf("%+v, %v, want %s", reply, err, want)
		}
	}
}

func TestReasonOfTheEnd(t *testing.T) {
	for _, c := range []struct {
		state api.JobState
		cause api.Cause
		want  string
	}{
		{api.JobFailed, api.CauseCrash, "NonZeroExitCode"}, {api.JobFailed, api.CauseLaunch, "JobLaunchFailure"},
		{api.JobTimeout, api.CauseTimeout, "TimeLimit"}, {api.JobNodeFail, api.CauseNodeLost, "NodeDown"},
		{api.JobOutOfMemory, api.CauseOOM, "OutOfMemory"}, {api.JobCancelled, api.CauseCancelled, "None"},
	} {
		if got := endReason(c.state, c.cause); got != c.want {
			t.Errorf("%s by %s: %s, want %s", c.state, c.cause, got, c.want)
		}
	}
}

// A partition that is new in the configuration has its nodes at once: a job for it is taken
// before they have come back. One that is gone has none.
func TestPartitionsOfARestart(t *testing.T) {
	st := disk.Open(t)
	r := newRig(t, st)
	r.node("n1", 4)
	r.node("n2", 4)
	if err := r.end(); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r = newRigWith(t, st, func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "all", Default: true}, {Name: "night", Nodes: []string{"n2"}}}
	})
	s := spec(1)
	s.Partition = "night"
	if id := r.submit("k", s); id == 0 {
		t.Error("no job")
	}
	for name, want := range map[string][]string{"n1": {"all"}, "n2": {"all", "night"}} {
		if got := r.world.Node(name).Res.Partitions; !slices.Equal(got, want) {
			t.Errorf("%s is in %v, want %v", name, got, want)
		}
	}
	s = spec(1)
	s.Partition, s.Size = "night", 5
	_, err := r.Submit(t.Context(), &api.SubmitRequest{Key: "big", Spec: s}, me)
	if api.CodeOf(err) != api.CodeUnsatisfiable {
		t.Errorf("more than it has: %v", err)
	}
}

// Who waits is told of its place in the queue when that is asked for, and of the ranks that are prepared.
func TestHowFarAJobIs(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 2)
	r.node("n2", 1)
	first := r.submit("a", spec(3))
	for _, key := range []string{"b", "c", "d"} {
		r.submit(key, spec(1))
	}
	h := spec(1)
	h.Hold = true
	held := r.submit("e", h)
	fill, err := r.Expect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	show := func(id int64) api.Job {
		j := r.show(r.view.job(id), false)
		fill(&j)
		return j
	}
	if j := show(first + 2); j.QueuePlace != 2 || j.QueueLength != 3 {
		t.Errorf("place %d of %d", j.QueuePlace, j.QueueLength)
	}
	if j := show(held); j.QueuePlace != 0 {
		t.Errorf("what is held has place %d", j.QueuePlace)
	}
	if j := show(first); j.Prepared != 0 || j.QueuePlace != 0 {
		t.Errorf("%d ranks are prepared, place %d", j.Prepared, j.QueuePlace)
	}
	on := r.view.job(first).Members[1]
	r.NodeReport(on.Node, &api.Actual{Members: []api.MemberActual{{MemberKey: api.MemberKey{Job: first, Epoch: 1}, Phase: api.PhaseReady, Port: 20000}}})
	if err := r.inspect(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	if j := show(first); j.Prepared != len(on.Ranks) || j.State != api.JobReserved {
		t.Errorf("%d ranks are prepared of %s, want %d", j.Prepared, j.State, len(on.Ranks))
	}
}

// TestShowNodeUse: what is shown as used of a node is what its grants take.
func TestShowNodeUse(t *testing.T) {
	res := (&cluster.Node{Name: "n1", Has: cluster.Amounts{cluster.CPUs: 8, cluster.Memory: 100, cluster.Tmp: 200}, Each: cluster.Amounts{cluster.Tmp: 30}}).Counted()
	for job := range int64(2) {
		res = res.Restore(cluster.Grant{MemberKey: api.MemberKey{Job: job + 1, Epoch: 1}, Takes: cluster.Amounts{cluster.CPUs: 2, cluster.Memory: 10, cluster.Tmp: 50 * job}})
	}
	n := showNode(&gang.Node{Name: "n1", Res: res})
	if n.CPUs != 8 || n.CPUsUsed != 4 || n.MemoryBytes != 100 || n.MemoryUsed != 20 || n.TmpBytes != 200 || n.TmpUsed != 80 || len(n.Jobs) != 2 {
		t.Errorf("%+v", n)
	}
}

// TestTimersWaitBehindWhatWaits: for a while, and not for ever.
func TestTimersWaitBehindWhatWaits(t *testing.T) {
	e, full := &Engine{}, make([]request, maxBatch)
	for range 2 {
		for i := range mostPassed {
			if n := len(e.tickAfter(full)); n != maxBatch {
				t.Fatalf("full batch %d: %d requests", i, n)
			}
		}
		if got := e.tickAfter(full); len(got) != maxBatch+1 || got[maxBatch].ev != (gang.Tick{}) {
			t.Fatalf("timers wait behind %d full batches", mostPassed)
		}
	}
	if n := len(e.tickAfter(full[:maxBatch-1])); n != maxBatch {
		t.Errorf("behind a batch with room: %d requests", n)
	}
}

// TestPageThatIsFull: a page that holds all there is is the last.
func TestPageThatIsFull(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.submit("a", spec(1))
	all, more, err := r.Events(t.Context(), 0, 0, 0)
	if err != nil || more || len(all) == 0 {
		t.Fatalf("%d events, more %t, %v", len(all), more, err)
	}
	if page, more, err := r.Events(t.Context(), 0, 0, len(all)); err != nil || more || len(page) != len(all) {
		t.Errorf("a page for all: %d, more %t, %v", len(page), more, err)
	}
	r.submit("b", spec(1))
	if page, more, err := r.Events(t.Context(), 0, 0, len(all)); err != nil || !more || len(page) != len(all) {
		t.Errorf("a page for some: %d, more %t, %v", len(page), more, err)
	}
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1)}, Caller{UID: 4711}); errText(err) != "user id 4711 has no name on the controller's host" {
		t.Errorf("who has no name: %v", err)
	}
	if one, both := r.jobNames([]int64{1}), r.jobNames([]int64{1, 2}); one != "job 1" || both != "jobs 1, 2" {
		t.Errorf("%s; %s", one, both)
	}
}
