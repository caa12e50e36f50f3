package engine

import (
	"context"
	"errors"
	"fmt"
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

// handClock is moved by the test.
type handClock struct{ now gang.Instant }

func (c *handClock) Now() gang.Instant { return c.now }

func (c *handClock) pass(d time.Duration) {
	c.now.Wall, c.now.Mono = c.now.Wall.Add(d), c.now.Mono+d
}

// past is an engine turned by hand, with jobs that are cancelled as soon as they are there.
type pastRig struct {
	*Engine
	t     *testing.T
	clock *handClock
	drv   *Driver
}

func newPastRig(t *testing.T, st store.Store, edit func(*Options)) *pastRig {
	t.Helper()
	r := &pastRig{t: t, clock: &handClock{gang.Instant{Wall: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Mono: time.Hour}}}
	opt := Options{Store: st, Clock: r.clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Record: &nullRecorder{},
		Conf: Conf{Settings: api.DefaultSettings(), Policy: order.Policy{Partitions: []api.Partition{{Name: "main", Default: true}}, BackfillDepth: 1}}}
	opt.Conf.Settings.KeepEnded = time.Second
	edit(&opt)
	var err error
	if r.Engine, err = New(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	r.SetHub(&rig{woke: make(chan string, 100)})
	r.drv = r.Drive()
	return r
}

func (r *pastRig) ended(s api.Spec) int64 {
	r.t.Helper()
	reply, err := r.Submit(r.t.Context(), &api.SubmitRequest{Spec: s}, me)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.Cancel(r.t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: reply.JobID, Index: -1}}}}, me, anyone); err != nil {
		r.t.Fatal(err)
	}
	return reply.JobID
}

// turns lets time pass so that a look is due, and turns until nothing is left to do.
func (r *pastRig) turns() {
	r.t.Helper()
	r.clock.pass(historyLook)
	for range 50 {
		if _, err := r.drv.Turn(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *pastRig) kept() []int64 {
	r.t.Helper()
	jobs, err := r.store.Jobs(r.t.Context(), store.HistoryFilter{})
	if err != nil {
		r.t.Fatal(err)
	}
	ids := []int64{}
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	slices.Sort(ids)
	return ids
}

func (r *pastRig) wantKept(what string, want ...int64) {
	r.t.Helper()
	if got := r.kept(); !slices.Equal(got, want) {
		r.t.Errorf("%s: kept %v, want %v", what, got, want)
	}
}

func TestHistoryIsBoundedByNumber(t *testing.T) {
	var past []Past
	var refuse error
	r := newPastRig(t, disk.Open(t), func(o *Options) {
		o.Settings.HistoryJobs = 3
		o.Archive = func(_ context.Context, p []Past) error {
			if refuse == nil {
				past = append(past, p...)
			}
			return refuse
		}
	})
	for range 5 {
		r.ended(spec(1))
		r.clock.pass(time.Second)
	}
	refuse = errors.New("no space")
	r.turns()
	r.wantKept("while the archive fails", 1, 2, 3, 4, 5)
	refuse = nil
	r.turns()
	r.wantKept("three are to be kept", 3, 4, 5)
	if len(past) != 2 || past[0].Job.JobID != 1 || past[1].Job.JobID != 2 || past[1].Job.State != api.JobCancelled ||
		len(past[1].Events) == 0 || past[1].Events[0].Type != api.EventSubmitted {
		t.Errorf("archived %+v", past)
	}
	if id := r.ended(spec(1)); id != 6 {
		t.Errorf("the next id is %d, want 6", id)
	}
	_, err := r.One(t.Context(), api.JobRef{ID: 2, Index: -1}, me)
	want := "no job 2 any more: the 3 jobs that ended last are kept; its line may be in the archive of the site"
	if err == nil || err.Error() != want {
		t.Errorf("a forgotten job: %v\nwant %s", err, want)
	}
}

func TestHistoryIsBoundedByAge(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(o *Options) { o.Settings.HistoryJobs, o.Settings.HistoryKeep = 0, time.Hour })
	for range 3 {
		r.ended(spec(1))
		r.clock.pass(25 * time.Minute)
	}
	r.turns()
	r.wantKept("after 76 minutes", 2, 3)
	r.clock.pass(24 * time.Hour)
	r.turns()
	r.wantKept("after a day")
	_, err := r.One(t.Context(), api.JobRef{ID: 3, Index: -1}, me)
	if want := "no job 3 any more: jobs are kept for 1 h after their end"; err == nil || err.Error() != want {
		t.Errorf("a forgotten job: %v\nwant %s", err, want)
	}
	if _, err := r.One(t.Context(), api.JobRef{ID: 4, Index: -1}, me); err == nil || err.Error() != "no job 4; list jobs with gqueue, ended ones with gacct" {
		t.Errorf("a job that never was: %v", err)
	}
}

// What a job waits for stays, however old it is.
func TestHistoryKeepsWhatIsDependedOn(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(o *Options) { o.Settings.HistoryJobs, o.Settings.HistoryKeep = 0, time.Minute })
	on, other := r.ended(spec(1)), r.ended(spec(1))
	s := spec(1)
	open, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1)}, me)
	if err != nil {
		t.Fatal(err)
	}
	s.Dependency = afterok(open.JobID)
	s.Dependency.On = append(s.Dependency.On, api.Condition{Kind: api.AfterAny, Job: on})
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me); err != nil {
		t.Fatal(err)
	}
	r.clock.pass(time.Hour)
	r.turns()
	r.turns()
	r.wantKept("one of two is waited for", on)
	_ = other
}

// A submission that read a job before it was forgotten, and whose turn comes after, names a
// job that is not there.
func TestDependencyOnWhatIsBeingForgotten(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(o *Options) { o.Settings.HistoryJobs, o.Settings.HistoryKeep = 0, time.Minute })
	on := r.ended(spec(1))
	r.clock.pass(10 * time.Second)
	if _, err := r.drv.Turn(t.Context()); err != nil { // it leaves memory
		t.Fatal(err)
	}
	s := spec(1)
	s.Dependency = afterok(on)
	ev, _, err := r.resolve(t.Context(), &api.SubmitRequest{Spec: s}, me)
	if err != nil {
		t.Fatal(err)
	}
	if ev.Recalled, err = recall(t.Context(), r.store, s.Dependency, r.view.job, 0); err != nil || len(ev.Recalled) != 1 {
		t.Fatalf("recalled %d, %v", len(ev.Recalled), err)
	}
	r.clock.pass(time.Hour)
	r.turns()
	r.wantKept("nothing is waited for yet")
	_, err = r.Do(t.Context(), *ev)
	if want := "dependency afterok:1: no job 1; gqueue and gacct list your jobs"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if bad := r.world.Verify(); len(bad) > 0 {
		t.Error(bad)
	}
}

// The daemon's own goroutine does the same as a driver's turns.
func TestHistoryGoroutine(t *testing.T) {
	d := disk.New(t)
	st := d.Open(t)
	first := newPastRig(t, st, func(o *Options) { o.Settings.HistoryJobs = 0 })
	first.clock.now.Wall = time.Now().Add(-time.Hour)
	for range 100 {
		first.ended(spec(1))
		first.clock.pass(time.Second)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	st = d.Open(t)
	r := newRigWith(t, st, func(o *Options) { o.Settings.HistoryJobs = 2 })
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		jobs, err := st.Jobs(t.Context(), store.HistoryFilter{})
		if err != nil {
			t.Fatal(err)
		}
		if len(jobs) == 2 && jobs[0].ID == 100 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d jobs are kept", len(jobs))
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

// unreadStore fails to read one thing.
type unreadStore struct {
	store.Store
	fails string
}

var errUnread = errors.New("bad page")

func (s *unreadStore) Job(ctx context.Context, id int64) (*gang.Job, error) {
	if s.fails == "job" {
		return nil, errUnread
	}
	return s.Store.Job(ctx, id)
}

func (s *unreadStore) Epochs(ctx context.Context, id int64) ([]gang.EpochRow, error) {
	if s.fails == "epochs" {
		return nil, errUnread
	}
	return s.Store.Epochs(ctx, id)
}

func (s *unreadStore) Events(ctx context.Context, job, since int64, limit int) ([]api.Event, error) {
	if s.fails == "events" {
		return nil, errUnread
	}
	return s.Store.Events(ctx, job, since, limit)
}

// TestNothingIsForgottenUnread: of a job that can't be read whole no half is handed out, and it is kept.
func TestNothingIsForgottenUnread(t *testing.T) {
	st := &unreadStore{Store: disk.Open(t)}
	handed := 0
	r := newPastRig(t, st, func(o *Options) {
		o.Archive = func(_ context.Context, p []Past) error { handed += len(p); return nil }
	})
	id := r.ended(spec(1))
	for _, st.fails = range []string{"job", "epochs", "events"} {
		if err := r.archive(t.Context(), []int64{id}); !errors.Is(err, errUnread) || handed != 0 {
			t.Errorf("%s can't be read: %v, %d handed out", st.fails, err, handed)
		}
	}
	st.fails = ""
	if err := r.archive(t.Context(), []int64{id}); err != nil || handed != 1 {
		t.Errorf("%v, %d handed out", err, handed)
	}
}

// TestHistoryWithoutBounds: where everything is kept nobody looks again, and what can't be handed out stops a piece.
func TestHistoryWithoutBounds(t *testing.T) {
	r := newPastRig(t, disk.Open(t), func(o *Options) { o.Settings.HistoryKeep, o.Settings.HistoryJobs = 0, 0 })
	r.turns()
	if at, ok := r.nextLook(); ok {
		t.Errorf("looks again at %v", at)
	}
	full := errors.New("no space")
	r = newPastRig(t, disk.Open(t), func(o *Options) {
		o.Settings.HistoryJobs, o.Settings.HistoryKeep = 0, time.Minute
		o.Archive = func(context.Context, []Past) error { return full }
	})
	r.ended(spec(1))
	r.clock.pass(time.Hour)
	for range 10 { // it leaves memory
		if _, err := r.drv.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r.look(t.Context())
	if did, err := r.forgetPiece(t.Context()); !did || err != nil {
		t.Errorf("its texts: %t, %v", did, err)
	}
	if did, err := r.forgetPiece(t.Context()); did || !errors.Is(err, full) {
		t.Errorf("%t, %v", did, err)
	}
	if _, ok := r.nextLook(); !ok {
		t.Error("with a bound nobody looks again")
	}
}

// TestHistoryOfWhatCantBeRead: one of several that can't be read is an error, not an answer with the others.
func TestHistoryOfWhatCantBeRead(t *testing.T) {
	st := &unreadStore{Store: disk.Open(t)}
	r := newRig(t, st)
	id := r.submit("", spec(1))
	st.fails = "job"
	r.view.nextID = 100
	q := &api.HistoryQuery{Refs: []api.JobRef{{ID: 99, Index: -1}, {ID: id, Index: -1}}}
	if jobs, err := r.recorded(t.Context(), q, me); !errors.Is(err, errUnread) {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
}

// TestTextsOfWhoNeverRan: the script of a job that ended without having started is there while the job is in memory, and goes some
// time after it has left; who asks for it then is told so, and it is not queued again without it.
func TestTextsOfWhoNeverRan(t *testing.T) {
	st := disk.Open(t)
	r := newPastRig(t, st, func(*Options) {})
	one, other := spec(1), spec(1)
	other.Comment = "other"
	id, last := r.ended(one), r.ended(other)
	script := func(id int64) string {
		t.Helper()
		j, err := st.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.Script(t.Context(), j)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	for range 10 { // less than it takes
		if _, err := r.drv.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := script(id); got != string(one.Script) {
		t.Errorf("while it is in memory: %q", got)
	}
	r.turns() // out of memory
	r.turns()
	r.turns()
	gone := fmt.Sprintf("the script of job %d is not kept any more: it ended without having started", id)
	if got := script(id); got != gone {
		t.Errorf("later: %q, want %q", got, gone)
	}
	if got := script(last); !strings.HasSuffix(got, "it ended without having started") {
		t.Errorf("of the last: %q", got)
	}
	if r.view.job(id) != nil {
		t.Fatal("it is still in memory")
	}
	s := spec(1)
	s.Dependency = &api.Dependency{On: []api.Condition{{Kind: api.AfterAny, Job: id}}}
	s.Hold = true
	if _, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: s}, me); err != nil { // brings it back to memory
		t.Fatal(err)
	}
	if r.view.job(id) != nil {
		reply, err := r.Act(t.Context(), "requeue", &api.ActionRequest{JobQuery: byID(id), Ended: true}, me, anyone)
		if err != nil || len(reply.Results) != 1 || reply.Results[0].Error == nil || reply.Results[0].Error.Message != gone {
			t.Errorf("queued again: %+v, %v", reply, err)
		}
	}
	if found, err := st.Verify(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}
