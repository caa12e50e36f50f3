package engine

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// TestDriverTurns: a turn has something to do when something waits, and is due when a timer, a plan or a look at the history is.
func TestDriverTurns(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(o *Options) { o.Settings.HistoryKeep, o.Settings.HistoryJobs = 0, 0 })
	turn := func() {
		t.Helper()
		if full, err := r.drv.Turn(t.Context()); full || err != nil {
			t.Fatalf("full %t, %v", full, err)
		}
	}
	if !r.drv.Waiting() {
		t.Error("the first plan is owed")
	}
	for r.drv.Waiting() {
		turn()
	}
	if at, ok := r.drv.Deadline(); ok {
		t.Errorf("with nothing to do a turn is due at %s", at)
	}
	answer := r.drv.Hand(gang.Tick{})
	if !r.drv.Waiting() {
		t.Error("what was handed in does not wait")
	}
	turn()
	if out := <-answer; out.Refused != nil {
		t.Errorf("%+v", out)
	}
	s := spec(1)
	s.Begin = r.clock.now.Wall.Add(time.Hour)
	out, err := r.drv.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me)
	if err != nil {
		t.Fatal(err)
	}
	turn()
	if got := <-out; len(got.JobIDs) != 1 || r.drv.World().Job(got.JobIDs[0]) == nil {
		t.Errorf("%+v", got)
	}
	if at, ok := r.drv.Deadline(); !ok || at != r.clock.now.Mono+time.Hour {
		t.Errorf("it begins in an hour, and a turn is due at %s, %t", at-r.clock.now.Mono, ok)
	}
	r.plan.next = r.clock.now.Mono + time.Minute
	if at, ok := r.drv.Deadline(); !ok || at != r.clock.now.Mono+time.Minute {
		t.Errorf("a plan is due in a minute, and a turn at %s, %t", at-r.clock.now.Mono, ok)
	}
	r.own.Settings.HistoryKeep = time.Hour
	if at, ok := r.drv.Deadline(); !ok || at != r.past.looked+historyLook && at != r.clock.now.Mono+time.Minute {
		t.Errorf("a look is due at %s, and a turn at %s, %t", r.past.looked+historyLook, at, ok)
	}
	r.past.looked = r.clock.now.Mono - historyLook + time.Second
	if at, ok := r.drv.Deadline(); !ok || at != r.clock.now.Mono+time.Second {
		t.Errorf("a look is due in a second, and a turn at %s, %t", at-r.clock.now.Mono, ok)
	}
	for what, bad := range map[string]api.Spec{"no spec": {}, "a dependency on none": func() api.Spec { s := spec(1); s.Dependency = &api.Dependency{}; return s }()} {
		if _, err := r.drv.Submit(t.Context(), &api.SubmitRequest{Spec: bad}, me); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	hello := r.drv.Hello(&api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", CPUs: 1, Load: &api.NodeLoad{}})
	turn()
	w, err := r.drv.Welcome(<-hello)
	if err != nil || w.Version != r.opt.Version {
		t.Errorf("%+v, %v", w, err)
	}
	if r.view.node("n1").Hello.Load != nil {
		t.Error("how busy a node is, is kept with it")
	}
	if w, err := r.drv.Welcome(gang.Outcome{Refused: errLeft}); w != nil || err != error(errLeft) {
		t.Errorf("refused: %+v, %v", w, err)
	}
	r.view.setHold("HOLD")
	if at, ok := r.drv.Deadline(); ok || r.drv.OnHold() != "HOLD" {
		t.Errorf("on hold a turn is due at %s", at)
	}
}

// TestTurnsOnAFullDisk: a batch waits for room, what comes meanwhile waits behind it, and each is answered once.
func TestTurnsOnAFullDisk(t *testing.T) {
	d := disk.New(t)
	r := newPastRig(t, d.Open(t), func(*Options) {})
	r.turns()
	answer, err := r.drv.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1)}, me)
	if err != nil {
		t.Fatal(err)
	}
	failing := &failingStore{Store: r.store, err: store.ErrFull}
	r.store = failing
	for range 2 {
		if full, err := r.drv.Turn(t.Context()); !full || err != nil || r.drv.Waiting() {
			t.Fatalf("full %t, %v, something waits %t", full, err, r.drv.Waiting())
		}
	}
	other := r.drv.Hand(gang.Tick{})
	late := make(chan gang.Outcome, 1)
	r.inbox <- request{ev: gang.Submit{}, reply: late}
	if full, err := r.drv.Commit(t.Context()); !full || err != nil {
		t.Fatalf("full %t, %v", full, err)
	}
	if out := <-late; out.Refused == nil || out.Refused.Code != api.CodeDiskFull {
		t.Errorf("a submission meanwhile: %+v", out)
	}
	if len(answer)+len(other) != 0 || len(r.Engine.kept) != 1 {
		t.Errorf("answered before the commit, or %d kept", len(r.Engine.kept))
	}
	if err := r.drv.Finish(t.Context()); err != nil || len(answer) != 0 {
		t.Errorf("finished before the commit: %v", err)
	}
	failing.err = nil
	if full, err := r.drv.Turn(t.Context()); full || err != nil || len(answer) != 1 {
		t.Errorf("with room: full %t, %v, %d answers", full, err, len(answer))
	}
	if !r.drv.Waiting() {
		t.Error("what came meanwhile does not wait")
	}
	if full, err := r.drv.Turn(t.Context()); full || err != nil || len(other) != 1 {
		t.Errorf("then: full %t, %v", full, err)
	}
	failing.err = errUnread
	r.drv.Hand(gang.Cancel{Job: 1})
	if full, err := r.drv.Turn(t.Context()); full || !errors.Is(err, errUnread) {
		t.Errorf("a commit that fails: full %t, %v", full, err)
	}
}

// failingStore commits nothing while it has an error.
type failingStore struct {
	store.Store
	err error
}

func (s *failingStore) Commit(ctx context.Context, ch *gang.Changes) (uint64, error) {
	if s.err != nil {
		return 0, s.err
	}
	return s.Store.Commit(ctx, ch)
}

// TestUntilAnswered: who turns the engine itself is answered when there is an answer, is refused as others are, and hears of a full disk at once.
func TestUntilAnswered(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(*Options) {})
	if _, err := r.Do(t.Context(), gang.Cancel{Job: 9}); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("%v", err)
	}
	failing := &failingStore{Store: r.store, err: store.ErrFull}
	r.store = failing
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1)}, me); err != error(errUnanswered) {
		t.Errorf("on a full disk: %v", err)
	}
	failing.err = errUnread
	if _, err := r.Do(t.Context(), gang.Tick{}); !errors.Is(err, errUnread) {
		t.Errorf("on one that fails: %v", err)
	}
}

// TestARoundThatStoodStill: what stood still for a second is told to the core first of all that waits, so that no node is late for it.
func TestARoundThatStoodStill(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(*Options) {})
	woken := make(chan string, 9)
	r.SetHub(&rig{woke: woken})
	for _, c := range []struct {
		took time.Duration
		want int
	}{{stoodStill - 1, 0}, {stoodStill, 1}} {
		r.Engine.kept = []request{{ev: gang.Hold{Job: 1}}}
		began := r.clock.now.Mono
		r.clock.pass(c.took)
		r.finish(&openBatch{began: began, ch: gang.Changes{Hints: gang.Hints{Dirty: []string{"n1"}}}})
		if len(r.Engine.kept) != 1+c.want || c.want == 1 && r.Engine.kept[0].ev != (gang.Stalled{For: c.took}) {
			t.Errorf("%s: %+v", c.took, r.Engine.kept)
		}
		if node := <-woken; node != "n1" {
			t.Errorf("woken is %s", node)
		}
	}
	r.Engine.kept = nil
	if r.finish(&openBatch{began: r.clock.now.Mono}); len(woken) != 0 {
		t.Error("a node is woken for nothing")
	}
}

// TestWhenARoundIsDue: at once when a plan is owed or something is kept, at the core's next timer, and in time for who watches.
func TestWhenARoundIsDue(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(*Options) {})
	r.turns()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	fires := func() bool {
		r.arm(timer)
		select {
		case <-timer.C:
			return true
		case <-time.After(30 * time.Millisecond):
			return false
		}
	}
	if r.plan.again = false; fires() {
		t.Error("with nothing to do")
	}
	if r.plan.again = true; !fires() {
		t.Error("not though a plan is owed")
	}
	r.plan.again, r.Engine.kept = false, make([]request, 1)
	if !fires() {
		t.Error("not though something is kept")
	}
	r.Engine.kept, r.plan.next = nil, r.clock.now.Mono-time.Second
	if !fires() {
		t.Error("not though a plan is due")
	}
	if r.view.setHold("HOLD"); fires() {
		t.Error("on hold")
	}
}

// TestDue: of the core's next timer and the next plan the earlier one.
func TestDue(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(*Options) {})
	r.turns()
	if at, ok := r.deadline(); ok {
		t.Errorf("nothing is due at %s", at)
	}
	now := r.clock.now.Mono
	r.plan.next = now + 2
	if at, ok := r.deadline(); !ok || at != now+2 {
		t.Errorf("a plan: %s, %t", at-now, ok)
	}
	s := spec(1)
	s.Begin = r.clock.now.Wall.Add(time.Hour)
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me); err != nil {
		t.Fatal(err)
	}
	for next, want := range map[time.Duration]time.Duration{0: time.Hour, time.Minute: time.Minute, time.Hour: time.Hour, 2 * time.Hour: time.Hour} {
		if r.plan.next = 0; next > 0 {
			r.plan.next = now + next
		}
		if at, ok := r.deadline(); !ok || at != now+want {
			t.Errorf("a plan in %s: %s, %t", next, at-now, ok)
		}
	}
}

// plans counts plans.
type plans struct {
	nullRecorder
	n int
}

func (p *plans) Plan(time.Duration, time.Time) { p.n++ }

// TestWhenItIsPlanned: when something changed, when a plan is owed or due, and not on hold; one that starts as many as it may is gone on with.
func TestWhenItIsPlanned(t *testing.T) {
	count := &plans{}
	r := newPastRig(t, disk.Open(t), func(o *Options) { o.Record, o.Policy.MaxStarts = count, 1 })
	r.turns()
	planned := func() bool {
		before := count.n
		r.planStarts(r.clock.now)
		r.world.Take()
		return count.n > before
	}
	r.plan.again, r.plan.next = false, 0
	if planned() {
		t.Error("with nothing new")
	}
	if r.plan.again = true; !planned() || r.plan.again {
		t.Errorf("one that is owed, and then owed still: %t", r.plan.again)
	}
	r.plan.next = r.clock.now.Mono + 1
	if planned() {
		t.Error("one that is due later")
	}
	r.plan.next = r.clock.now.Mono
	if !planned() || r.plan.next != 0 {
		t.Errorf("one that is due, and then due at %s", r.plan.next)
	}
	for range 2 {
		if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1)}, me); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.NodeHello(t.Context(), &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", CPUs: 4, MemoryBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	state := func(id int64) api.JobState { return gang.JobState(r.world.Job(id)) }
	if a, b := state(1), state(2); a != api.JobReserved || b != api.JobPending || !r.plan.again {
		t.Errorf("after the first plan: %s and %s, another is owed %t", a, b, r.plan.again)
	}
	if _, err := r.drv.Turn(t.Context()); err != nil || state(2) != api.JobReserved {
		t.Errorf("after the second: %s, %v", state(2), err)
	}
	r.plan.again = true
	if r.view.setHold("HOLD"); planned() || r.plan.again {
		t.Error("on hold")
	}
}

// TestLearnsFromTheStore: what an order goes by is the same after a restart: of jobs that wait and of those that ended.
func TestLearnsFromTheStore(t *testing.T) {
	d := disk.New(t)
	const limit = 10 * time.Hour
	start := func() *pastRig { return newPastRig(t, d.Open(t), func(*Options) {}) }
	r := start()
	none := r.plan.ledger.Mean(limit, 0, order.Peer{})
	if _, err := r.NodeHello(t.Context(), &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", CPUs: 4, MemoryBytes: 1 << 30}); err != nil {
		t.Fatal(err)
	}
	s := spec(1)
	s.TimeLimit = limit
	for range 3 {
		reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me)
		if err != nil {
			t.Fatal(err)
		}
		k := api.MemberKey{Job: reply.JobID, Epoch: 1}
		say := func(a api.MemberActual) {
			a.MemberKey = k
			if _, err := r.Do(t.Context(), gang.NodeReport{Node: "n1", Actual: api.Actual{Members: []api.MemberActual{a}}}); err != nil {
				t.Fatal(err)
			}
		}
		say(api.MemberActual{Phase: api.PhaseReady, Port: 20000})
		say(api.MemberActual{Phase: api.PhaseRunning, Ranks: []api.RankActual{{PID: 1}}})
		r.clock.pass(time.Hour)
		ended := []api.RankActual{{PID: 1, Exited: true}}
		say(api.MemberActual{Phase: api.PhaseRunning, Ranks: ended})
		say(api.MemberActual{Phase: api.PhaseStopped, Ranks: ended})
	}
	learnt := r.plan.ledger.Mean(limit, 0, order.Peer{})
	if learnt == none {
		t.Fatalf("%s is expected, as before", learnt)
	}
	clock := r.clock
	d.Crash()
	again := newPastRig(t, d.Open(t), func(o *Options) { o.Clock = clock })
	if got := again.plan.ledger.Mean(limit, 0, order.Peer{}).Round(time.Second); got != learnt.Round(time.Second) {
		t.Errorf("after a restart %s is expected, %s before", got, learnt)
	}
}

// TestBeginRun: a run that can't be noted for want of room goes without a name.
func TestBeginRun(t *testing.T) {
	for _, c := range []struct {
		run  string
		says error
		want string
		err  error
	}{{"", nil, "", nil}, {"one", nil, "one", nil}, {"one", store.ErrFull, "", nil}, {"one", errUnread, "", errUnread}} {
		e := still()
		e.opt.Run, e.store = c.run, beginStore{err: c.says}
		if err := e.beginRun(t.Context()); err != c.err || e.run() != c.want {
			t.Errorf("%+v: %v, it is called %q", c, err, e.run())
		}
	}
}

type beginStore struct {
	store.Store
	err error
}

func (s beginStore) Begin(_ context.Context, run string) ([]store.Run, error) {
	if s.err != nil {
		return nil, s.err
	}
	return []store.Run{{Name: run}}, nil
}

// TestStepOnHold: on hold nothing is taken in, and a submission that the disk has no room for never is.
func TestStepOnHold(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(*Options) {})
	room := &roomStore{Store: r.store}
	r.store = room
	s := spec(1)
	submit := gang.Submit{Spec: &s, SpecHash: hashSpec(&s), Partition: "main", User: "ada"}
	room.err = store.ErrFull
	if out := r.step(r.clock.now, &request{}, submit); out.Refused != errDiskFull {
		t.Errorf("without room: %+v", out)
	}
	if out := r.step(r.clock.now, &request{}, gang.Tick{}); out.Refused != nil {
		t.Errorf("what is no submission: %+v", out)
	}
	room.err = nil
	if out := r.step(r.clock.now, &request{}, submit); out.Refused != nil || len(out.JobIDs) != 1 {
		t.Errorf("with room: %+v", out)
	}
	if r.view.setHold("HOLD"); r.step(r.clock.now, &request{}, gang.Tick{}).Refused != errHold {
		t.Error("on hold a tick is taken")
	}
}

type roomStore struct {
	store.Store
	err error
}

func (s *roomStore) Room() error { return s.err }

// TestTryCommit: what is empty is not written; a full disk is told once, and that there is room again.
func TestTryCommit(t *testing.T) {
	var out lines
	e := still()
	e.log = slog.New(slog.NewTextHandler(&out, nil))
	rec := &nullRecorder{}
	e.opt.Record = rec
	failing := &failingStore{err: store.ErrFull}
	e.store = failing
	if err := e.tryCommit(t.Context(), &gang.Changes{}, false); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	ch := &gang.Changes{Events: make([]api.Event, 3)}
	said := func() int { return strings.Count(out.b.String(), "level=") }
	for i, c := range []struct {
		again bool
		says  error
		err   string
		lines int
	}{{false, store.ErrFull, "commit: " + store.ErrFull.Error(), 1}, {true, store.ErrFull, "commit: " + store.ErrFull.Error(), 1}, {false, errUnread, "commit: bad page", 1}, {true, nil, "", 2}, {false, nil, "", 2}} {
		failing.err = c.says
		if c.says == nil {
			e.store = committed{}
		}
		if err := e.tryCommit(t.Context(), ch, c.again); errText(err) != c.err || said() != c.lines {
			t.Errorf("%d: %v, %d lines of log, want %s, %d", i, err, said(), c.err, c.lines)
		}
	}
	if n, _ := e.Lineage(); n != 77 || rec.commits != 2 {
		t.Errorf("commit %d, %d were recorded", n, rec.commits)
	}
}

// committed is a store whose every commit is number 77.
type committed struct{ store.Store }

func (committed) Commit(context.Context, *gang.Changes) (uint64, error) { return 77, nil }

// TestFences: a node that keeps a gang from starting is fenced until that works, or it needs none; one hook at a time for each.
func TestFences(t *testing.T) {
	asked := make(chan string, 9)
	answer := make(chan error)
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.FenceRetry = time.Millisecond
		o.Fence = func(ctx context.Context, node string) error {
			asked <- node
			select {
			case err := <-answer:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	r.node("n1", 4)
	r.running(1)
	r.NodeGone("n1")
	if _, err := r.Do(t.Context(), gang.NodeFence{Node: "n1", By: "x"}); err == nil {
		t.Error("a node that is not lost was fenced")
	}
	if r.stillFenceable(t.Context(), "n1") {
		t.Error("a node that is not lost is to be fenced")
	}
	if _, err := r.Do(t.Context(), gang.NodeDrain{Node: "n1", Reason: "dead", Down: true}); err != nil {
		t.Fatal(err)
	}
	r.fencer.start(r.Engine, "n1")
	r.fencer.start(r.Engine, "n1")
	if node := <-asked; node != "n1" {
		t.Errorf("fenced is %s", node)
	}
	select {
	case node := <-asked:
		t.Errorf("%s is fenced twice at a time", node)
	case <-time.After(20 * time.Millisecond):
	}
	answer <- nil
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if r.stillFenceable(t.Context(), "n1") {
		t.Error("after the controller's end")
	}
}

// TestLostNodeIsFenced: a node whose loss keeps a gang waiting is fenced by itself, once more after a failure, and then the gang waits for it no longer.
func TestLostNodeIsFenced(t *testing.T) {
	asked := make(chan string)
	answer := make(chan error)
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.FenceRetry, o.Settings.NodeTimeout, o.Settings.Lease, o.Settings.Grace, o.Settings.DrainSlack = time.Millisecond, time.Millisecond, time.Hour, 0, 0
		o.Fence = func(_ context.Context, node string) error { asked <- node; return <-answer }
	})
	for _, n := range []string{"n1", "n2", "n3"} {
		r.node(n, 1)
	}
	r.running(1)
	r.NodeGone("n1")
	for _, says := range []error{errLeft, nil} {
		if node := <-asked; node != "n1" {
			t.Errorf("fenced is %s", node)
		}
		if !r.stillFenceable(t.Context(), "n1") || r.stillFenceable(t.Context(), "n2") {
			t.Error("which nodes are to be fenced")
		}
		answer <- says
	}
	for end := time.Now().Add(time.Minute); len(r.view.node("n1").Left) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v may still run there", r.view.node("n1").Left)
		}
	}
	r.fencer.mu.Lock()
	defer r.fencer.mu.Unlock()
	if r.fencer.busy["n2"] {
		t.Error("another is fenced")
	}
}

// TestIdleHook: each word of an idle gang has its user, in its order; a hook that is too slow is told no more than waits, and one that fails ends nothing.
func TestIdleHook(t *testing.T) {
	var out lines
	e := still()
	e.log = slog.New(slog.NewTextHandler(&out, nil))
	e.tellIdle([]api.Event{{Type: api.EventIdleWarned}}) // the site has no hook
	told := make(chan IdleEvent)
	e.own.TellIdle = func(_ context.Context, w IdleEvent) error { told <- w; return errLeft }
	e.view.putJob(waitingJob(func(*gang.Job) {}))
	e.idleHook.words = make(chan IdleEvent, 2)
	evs := []api.Event{{Type: api.EventIdleWarned, JobID: 7, Text: "idles"}, {Type: api.EventDrainStarted, JobID: 7, Cause: api.CauseCrash}, {Type: api.EventDrainStarted, JobID: 8, Cause: api.CauseIdle}, {Type: api.EventIdleOver, JobID: 7}}
	e.tellIdle(evs)
	if n := len(e.idleHook.words); n != 2 || !strings.Contains(out.b.String(), `msg="idle hook is too slow: left out" job=7 what=over`) {
		t.Errorf("%d wait, %s", n, out.b.String())
	}
	e.idleHook.init(t.Context(), e)
	e.tellIdle(evs)
	var got []IdleEvent
	for range 3 {
		got = append(got, <-told)
	}
	e.idleHook.close()
	differs(t, "told", got, []IdleEvent{{"warn", 7, "ada", "idles"}, {"end", 8, "", ""}, {"over", 7, "ada", ""}})
	if n := strings.Count(out.b.String(), "idle hook failed"); n != 3 {
		t.Errorf("%d failures in the log", n)
	}
}

// TestAccepted: of a claim that is believed and a store that is accepted so many ids are left out as may have been given out.
func TestAccepted(t *testing.T) {
	for _, c := range []struct {
		missed uint64
		skips  int64
	}{{1, minSkip}, {1000, minSkip}, {1001, 1001 * idsPerCommit}, {maxMissed, maxMissed * idsPerCommit}, {maxMissed + 1, maxMissed * idsPerCommit}} {
		r := newPastRig(t, disk.Open(t), func(o *Options) { o.AcceptStore = true })
		have, next := r.store.Lineage(), r.world.NextID()
		hello := gang.NodeHello{Hello: api.Hello{Node: "n1", LineageSeen: have + c.missed}}
		ev, err := r.checkLineage(t.Context(), hello)
		if err != nil || ev.(gang.NodeHello).Hello.Health.Sick != "" || r.world.NextID() != next+c.skips || r.accepted != have+c.missed || r.view.onHold() != "" {
			t.Errorf("%d missed: %v, the next id is %d, %d accepted", c.missed, err, r.world.NextID(), r.accepted)
		}
		if n, _ := r.Lineage(); n < have+c.missed {
			t.Errorf("%d missed: told is %d", c.missed, n)
		}
		if ev, err := r.checkLineage(t.Context(), gang.Tick{}); err != nil || ev != (gang.Tick{}) {
			t.Errorf("what is no hello: %+v, %v", ev, err)
		}
	}
	r := newPastRig(t, disk.Open(t), func(*Options) {})
	have := r.store.Lineage()
	for over, want := range map[uint64]bool{0: false, 1: true} {
		ev, err := r.checkLineage(t.Context(), gang.NodeHello{Hello: api.Hello{Node: "n1", LineageSeen: have + over}})
		if err != nil || ev == nil || (r.view.onHold() != "") != want {
			t.Errorf("%d more than there are: %q, %v", over, r.view.onHold(), err)
		}
		r.view.setHold("")
	}
}

// TestSweep: what ranks have left is dropped of jobs that are over or gone, and of no others.
func TestSweep(t *testing.T) {
	e := still()
	st := &sweepStore{checkpoints: []int64{3, 1}, releases: []int64{2, 3}}
	e.store, e.sweepQueue = st, make(chan int64, 9)
	e.view.putJob(waitingJob(func(j *gang.Job) { j.ID = 1 }))
	e.view.putJob(waitingJob(func(j *gang.Job) { j.ID, j.Verdict = 2, &gang.Verdict{} }))
	if got := e.leftovers(t.Context()); !slices.Equal(got, []int64{1, 2, 3}) {
		t.Errorf("left is something of %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	st.cancelAfter, st.cancel = 4, cancel
	for _, id := range []int64{1, 2, 4} {
		e.forget(id)
	}
	e.sweep(ctx)
	if !slices.Equal(st.dropped, []int64{2, 3, 2, 4}) {
		t.Errorf("dropped is what is left of %v", st.dropped)
	}
}

// sweepStore notes whose checkpoints and releases are dropped.
type sweepStore struct {
	store.Store
	checkpoints, releases, dropped []int64
	cancelAfter                    int
	cancel                         func()
}

func (s *sweepStore) CheckpointJobs(context.Context) ([]int64, error) { return s.checkpoints, nil }
func (s *sweepStore) Releases(context.Context) (out []store.Release, err error) {
	for _, id := range s.releases {
		out = append(out, store.Release{SetKey: store.SetKey{MemberKey: api.MemberKey{Job: id}}})
	}
	return out, nil
}
func (s *sweepStore) DropCheckpoints(context.Context, int64) error { return errUnread }
func (s *sweepStore) DropReleases(_ context.Context, id int64) error {
	if s.dropped = append(s.dropped, id); len(s.dropped) == s.cancelAfter {
		s.cancel()
	}
	return nil
}

// verifyStore names a disagreement, or can't be read.
type verifyStore struct {
	store.Store
	err error
}

func (s verifyStore) Verify(context.Context) ([]string, error) { return []string{"row 7"}, s.err }

// TestVerify: what disagrees in the store is named, with why it could not be read whole; not when the controller has ended.
func TestVerify(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.store = verifyStore{Store: r.store, err: errUnread}
	if found, err := r.Verify(t.Context()); !slices.Equal(found, []string{"row 7"}) || err != errUnread {
		t.Errorf("%q, %v", found, err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if found, err := r.Verify(t.Context()); found != nil || err != error(errStopped) {
		t.Errorf("at its end: %q, %v", found, err)
	}
}

// TestSetAside: a submission that somebody waits for is refused; all else waits.
func TestSetAside(t *testing.T) {
	e := still()
	reply := make(chan gang.Outcome, 2)
	for _, c := range []struct {
		r    request
		kept int
	}{{request{ev: gang.Submit{}, reply: reply}, 0}, {request{ev: gang.Submit{}}, 1}, {request{ev: gang.Tick{}, reply: reply}, 2}, {request{inspect: func() {}}, 3}} {
		if e.setAside(c.r); len(e.kept) != c.kept {
			t.Errorf("%+v: %d are kept", c.r.ev, len(e.kept))
		}
	}
	if len(reply) != 1 || (<-reply).Refused != errDiskFull {
		t.Error("the submission was not refused")
	}
}

// TestRestartGoesOn: after a restart events are numbered on, partitions are as they were changed, and a plan is owed.
func TestRestartGoesOn(t *testing.T) {
	d := disk.New(t)
	r := newRig(t, d.Open(t))
	r.submit("", spec(1))
	if err := r.PutPartition(t.Context(), &api.PartitionRequest{Name: "night"}, false, me); err != nil {
		t.Fatal(err)
	}
	last, lineage := r.LastEvent(), r.store.Lineage()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	d.Crash()
	e, err := New(t.Context(), Options{Store: d.Open(t), Clock: SystemClock(), Log: slog.New(slog.DiscardHandler), Record: &nullRecorder{}, Conf: Conf{Settings: api.DefaultSettings(), Policy: r.own.Policy}})
	if err != nil {
		t.Fatal(err)
	}
	if now, _ := e.Lineage(); e.LastEvent() != last || now != lineage || !e.plan.again || e.view.next() != 2 {
		t.Errorf("the last event is %d, commit %d, the next id %d; want %d, %d", e.LastEvent(), now, e.view.next(), last, lineage)
	}
	if p := e.policy().Partitions; len(p) != 2 || p[1].Name != "night" {
		t.Errorf("partitions %+v", p)
	}
}

// checkpointStore can't keep checkpoints, or has none.
type checkpointStore struct {
	store.Store
	err error
}

func (s checkpointStore) PutCheckpoint(context.Context, store.SetKey, int, string, io.Reader) (set store.CheckpointSet, size int64, err error) {
	return set, 0, s.err
}

func (s checkpointStore) Checkpoint(context.Context, store.SetKey, int) (io.ReadCloser, int64, error) {
	return nil, 0, s.err
}

// TestCheckpointThatCantBe: where there is no room for one, or none is there, it is said so; what else fails is told as it is.
func TestCheckpointThatCantBe(t *testing.T) {
	e := still()
	j := pairRuns(func(j *gang.Job) { j.Checkpoint = &gang.Checkpoint{Epoch: 1, Complete: true} })
	e.view.putJob(j)
	k := api.MemberKey{Job: 7, Epoch: 2}
	call := func(c *api.Call) error {
		c.MemberKey = k
		_, err := e.NodeCall(t.Context(), "n1", c, strings.NewReader("x"), io.Discard)
		return err
	}
	for says, want := range map[error][2]string{
		store.ErrFull:     {"state disk full: the checkpoint could not be kept; try again when there is room on the controller", store.ErrFull.Error()},
		store.ErrNotFound: {store.ErrNotFound.Error(), "job 7 has no checkpoint of rank 1 from epoch 1"},
		errUnread:         {"bad page", "bad page"},
	} {
		e.store = checkpointStore{err: says}
		if err := call(&api.Call{Put: &api.CheckpointPut{}}); errText(err) != want[0] {
			t.Errorf("put: %v, want %s", err, want[0])
		}
		if err := call(&api.Call{Get: &api.CheckpointGet{Rank: 1}}); errText(err) != want[1] {
			t.Errorf("get: %v, want %s", err, want[1])
		}
	}
	if err := call(&api.Call{}); errText(err) != "a call that asks for nothing this controller knows" {
		t.Errorf("%v", err)
	}
	e.view.setHold("HOLD")
	if err := call(&api.Call{}); errText(err) != "the controller holds: HOLD" {
		t.Errorf("%v", err)
	}
}

// TestAwaitBack: the rest of a file is waited for as long as its node may be away, and not at all where that is lost.
func TestAwaitBack(t *testing.T) {
	r := newRig(t, disk.Open(t))
	now := time.Now()
	const gone = "the end of the output is on node n1, which is not connected"
	if err := r.awaitBack(t.Context(), "n1", r.LastEvent(), true, now); errText(err) != gone || api.CodeOf(err) != api.CodeConflict {
		t.Errorf("of one that is not known: %v", err)
	}
	r.node("n1", 1)
	since := r.LastEvent()
	for _, final := range []bool{true, false} {
		if err := r.awaitBack(t.Context(), "n1", since, final, now); err != nil {
			t.Errorf("of one that may be back without an event, final %v: %v", final, err)
		}
	}
	if err := r.awaitBack(t.Context(), "n1", since, true, now.Add(-2*r.own.Settings.NodeTimeout)); errText(err) != gone || api.CodeOf(err) != api.CodeConflict {
		t.Errorf("of one that does not come: %v", err)
	}
	if err := r.awaitBack(t.Context(), "n1", 0, true, now); err != nil {
		t.Errorf("of one that came: %v", err)
	}
	left, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	if err := r.awaitBack(left, "n1", since, false, now); err != errLeft {
		t.Errorf("while its attempt runs: %v", err)
	}
	if err := r.awaitBack(t.Context(), "n1", 0, false, now); err != nil {
		t.Errorf("of one that came, while its attempt runs: %v", err)
	}
	if since, err := r.awaitChange(left, 1, 5, true); err != errLeft || since != 5 {
		t.Errorf("soon: %d, %v", since, err)
	}
	if since, err := r.awaitChange(t.Context(), 1, 5, true); err != nil || since != 5 {
		t.Errorf("soon: %d, %v", since, err)
	}
	id := r.submit("", spec(1))
	if now, err := r.awaitChange(t.Context(), id, since, false); err != nil || now != r.LastEvent() {
		t.Errorf("an event: %d, %v, want %d", now, err, r.LastEvent())
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := r.pause(t.Context()); err != error(errStopped) {
		t.Errorf("at the controller's end: %v", err)
	}
}

// aheadStore has the end of an epoch that nobody was shown yet.
type aheadStore struct {
	store.Store
	rows []gang.EpochRow
}

func (s aheadStore) Epochs(context.Context, int64) ([]gang.EpochRow, error) { return s.rows, nil }

// TestDetailOfOneMoment: a job is not told as one that runs beside the end of its newest attempt, as it was between a commit
// and what readers see of it.
func TestDetailOfOneMoment(t *testing.T) {
	e := still()
	j := pairRuns(func(*gang.Job) {})
	e.view.putJob(j)
	e.store = aheadStore{rows: []gang.EpochRow{{Job: 7, Epoch: 2, Started: noon, Ended: noon}}}
	over := *j
	over.Verdict, over.Members, over.Ranks = &gang.Verdict{State: api.JobFailed}, nil, nil
	show := func(j *gang.Job) {
		e.view.mu.Lock()
		defer e.view.mu.Unlock()
		e.view.putJob(j)
	}
	time.AfterFunc(30*time.Millisecond, func() { show(&over) })
	if rows, now, err := e.epochsOf(t.Context(), j); err != nil || len(rows) != 1 || now.Verdict == nil {
		t.Errorf("%d rows, verdict %v, %v", len(rows), now.Verdict, err)
	}
	show(j) // nobody is ever shown: it is told as it is
	if _, now, err := e.epochsOf(t.Context(), j); err != nil || now != j {
		t.Errorf("%p, want %p, %v", now, j, err)
	}
	e.store = aheadStore{rows: []gang.EpochRow{{Job: 7, Epoch: 1, Started: noon, Ended: noon}, {Job: 7, Epoch: 2, Started: noon}}}
	began := time.Now()
	if _, _, err := e.epochsOf(t.Context(), j); err != nil || time.Since(began) > toldPoll {
		t.Errorf("one that runs takes %s, %v", time.Since(began), err)
	}
}
