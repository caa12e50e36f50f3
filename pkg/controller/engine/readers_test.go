package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// TestEveryLineOfTheLog: each kind of event that the log tells has its words and figures; others have none.
func TestEveryLineOfTheLog(t *testing.T) {
	var out lines
	e := still()
	e.log = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	of := func(kind api.EventType, edit func(*api.Event)) api.Event {
		ev := api.Event{Type: kind, JobID: 12, Epoch: 3, Node: "n1", Text: "because"}
		edit(&ev)
		return ev
	}
	plain := func(*api.Event) {}
	e.logEvents([]api.Event{
		of(api.EventSubmitted, plain), of(api.EventStarted, plain), of(api.EventRolledBack, plain), of(api.EventDrainStarted, func(ev *api.Event) { ev.Cause = api.CauseCancelled }),
		of(api.EventMemberStopped, func(ev *api.Event) { ev.Forced = true }), of(api.EventStaleRefused, func(ev *api.Event) { ev.ClaimedEpoch = 2 }), of(api.EventMemberFound, func(ev *api.Event) { ev.ClaimedEpoch = 2 }),
		of(api.EventAcknowledged, func(ev *api.Event) { ev.Acknowledged, ev.Size = 4, 8 }), of(api.EventStallSuspected, plain), of(api.EventStallDismissed, plain), of(api.EventIdleWarned, plain), of(api.EventIdleOver, plain),
		of(api.EventWatchBlind, plain), of(api.EventNodeDrained, plain), of(api.EventNodeLost, func(ev *api.Event) { ev.LastSeen = noon }), of(api.EventEnded, func(ev *api.Event) { ev.State, ev.Cause = api.JobFailed, api.CauseCrash }),
	})
	want := `level=INFO msg="gang started" job=12 epoch=3
level=WARN msg="gang rolled back" job=12 epoch=3 why=because
level=INFO msg="gang drain started" job=12 epoch=3 trigger=-1 cause=cancelled moved=0
level=INFO msg="member stopped" job=12 epoch=3 node=n1 forced=true
level=WARN msg="stale epoch refused" job=12 epoch=3 node=n1 claimed=2
level=WARN msg="record of a member not whole" job=12 epoch=2 node=n1 why=because
level=INFO msg="notice acknowledged" job=12 epoch=3 ranks=4 of=8
level=INFO msg="stall suspected" job=12 epoch=3 node=n1 why=because
level=INFO msg="stall dismissed" job=12 epoch=3 why=because
level=WARN msg="gang idles" job=12 epoch=3 text=because
level=INFO msg="gang works again" job=12 epoch=3
level=WARN msg="watchdog is blind" job=12 epoch=3 node=n1 text=because
level=WARN msg="node drained" node=n1 reason=because
level=ERROR msg="DEAD NODE" node=n1 jobs="" last_seen=2026-03-01T12:00:00Z
level=INFO msg="job ended" job=12 epoch=3 state=FAILED cause=crash
`
	differs(t, "the log", out.b.String(), want)
}

// TestBus: what is kept is the newest, who is further behind is told so, and who waits is woken by what comes.
func TestBus(t *testing.T) {
	var b bus
	if b.init(-1); b.lastSeq() != 0 {
		t.Errorf("it begins at %d", b.lastSeq())
	}
	b.init(4)
	if evs, wake, complete := b.after(3); complete || evs != nil || wake == nil {
		t.Error("what came before is complete, or nobody is woken by what comes")
	}
	evs, wake, complete := b.after(4)
	if !complete || evs != nil {
		t.Errorf("nothing has come: %v, %t", evs, complete)
	}
	next := int64(4)
	publish := func(n int) {
		var evs []api.Event
		for range n {
			next++
			evs = append(evs, api.Event{Seq: next})
		}
		b.publish(evs)
	}
	publish(2)
	<-wake
	for since, want := range map[int64][]int64{4: {5, 6}, 5: {6}, 6: nil, 7: nil} {
		evs, _, complete := b.after(since)
		var got []int64
		for _, ev := range evs {
			got = append(got, ev.Seq)
		}
		if !complete || !slices.Equal(got, want) {
			t.Errorf("after %d: %v, %t, want %v", since, got, complete, want)
		}
	}
	publish(2*busKeep - 3)
	publish(1) // as many as there may be
	if len(b.recent) != 2*busKeep {
		t.Errorf("%d are kept", len(b.recent))
	}
	if evs, _, complete := b.after(4); !complete || len(evs) != followPage || evs[0].Seq != 5 {
		t.Errorf("the oldest: %d, %t", len(evs), complete)
	}
	publish(1)
	if len(b.recent) != busKeep+1 || b.recent[0].Seq != next-busKeep || b.lastSeq() != next {
		t.Errorf("%d are kept from %d on, the last is %d", len(b.recent), b.recent[0].Seq, b.lastSeq())
	}
	for back, want := range map[int64]bool{busKeep + 1: true, busKeep + 2: false} {
		if _, _, complete := b.after(next - back); complete != want {
			t.Errorf("%d back it is complete: %t", back, complete)
		}
	}
	if got := ids([]int64{12, 14}); got != "12,14" {
		t.Error(got)
	}
}

// TestFollow: of one job its events, of all from now on those that come; its end is that of who follows, or the controller's.
func TestFollow(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.submit("", spec(1))
	second := r.submit("", spec(1))
	enough := errors.New("enough")
	follow := func(ctx context.Context, job, since int64, n int) (got []string, err error) {
		err = r.Follow(ctx, job, since, func(evs []api.Event) error {
			for _, ev := range evs {
				got = append(got, fmt.Sprint(ev.JobID, " ", ev.Type))
			}
			if len(got) >= n {
				return enough
			}
			return nil
		})
		return got, err
	}
	if got, err := follow(t.Context(), second, 0, 1); !errors.Is(err, enough) || !slices.Equal(got, []string{"2 submitted"}) {
		t.Errorf("%q, %v", got, err)
	}
	if r.LastEvent() != 2 {
		t.Errorf("the last event is %d", r.LastEvent())
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	for since, job := range map[int64]int64{-1: 0, 0: 99} {
		if got, err := follow(gone, job, since, 1); err != errLeft || got != nil {
			t.Errorf("who left, after %d: %q, %v", since, got, err)
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if _, err := follow(t.Context(), 99, r.LastEvent(), 1); err != error(errStopped) {
		t.Errorf("at the controller's end: %v", err)
	}
	r.oldReads <- struct{}{}
	r.oldReads <- struct{}{}
	if _, err := r.oldEvents(gone, 0, 1); err != errLeft {
		t.Errorf("who left while others read: %v", err)
	}
}

// pageStore notes which page of events it is asked for.
type pageStore struct {
	store.Store
	job, since int64
	limit      int
}

func (s *pageStore) Events(_ context.Context, job, since int64, limit int) ([]api.Event, error) {
	s.job, s.since, s.limit = job, since, limit
	return nil, errUnread
}

// TestPagesOfEvents: a page is no longer than one may be, and who follows one job reads past more of the others' at a time.
func TestPagesOfEvents(t *testing.T) {
	e := still()
	st := &pageStore{}
	e.store, e.oldReads = st, make(chan struct{}, 1)
	for limit, want := range map[int]int{0: api.EventsPage, -1: api.EventsPage, 1: 1, api.EventsPage: api.EventsPage, api.EventsPage + 1: api.EventsPage} {
		if _, _, err := e.Events(t.Context(), 3, 4, limit); err != errUnread || st.job != 3 || st.since != 4 || st.limit != want+1 {
			t.Errorf("a page of %d: %+v", limit, st)
		}
	}
	e.bus.init(9)
	for job, want := range map[int64]int{0: followPage, 3: api.EventsPage} {
		if err := e.Follow(t.Context(), job, 4, nil); err != errUnread || st.job != 0 || st.since != 4 || st.limit != want {
			t.Errorf("who follows job %d: %+v, %v", job, st, err)
		}
	}
}

// TestPing: what a controller says of itself.
func TestPing(t *testing.T) {
	e := still()
	e.figures = &figures{f: api.Figures{Submitted: 3}}
	e.own.Operator, e.own.Policy.Preempt = "root@x", order.PreemptService
	e.view.hold, e.view.lineage, e.view.nextID = "HOLD", 42, 77
	for name, s := range map[string]api.NodeState{"n1": api.NodeUp, "n2": api.NodeLost, "n3": api.NodeUp} {
		e.view.putNode(&gang.Node{Name: name, State: s})
	}
	set := e.own.Settings
	want := &api.PingReply{SchemaVersion: api.SchemaVersion, Hold: "HOLD", Nodes: 3, NodesUp: 2, Lineage: 42, NextJobID: 77, Figures: &api.Figures{Submitted: 3}, Site: &api.Site{Preempt: "service", PreemptMinRun: set.PreemptMinRun, Grace: set.Grace,
		DrainSlack: set.DrainSlack, NodeTimeout: set.NodeTimeout, StartTimeout: set.StartTimeout, KeepEnded: set.KeepEnded, InvalidDependency: set.InvalidDependency, SlurmVersion: set.SlurmVersion, Operator: "root@x", MaxJobs: set.MaxJobs}}
	differs(t, "ping", e.Ping(), want)
	if got := e.NodeNames(); !slices.Equal(got, []string{"n1", "n2", "n3"}) {
		t.Errorf("%v", got)
	}
}

// TestVouches: a node speaks for a user who has a gang on it that is not over.
func TestVouches(t *testing.T) {
	e := still()
	e.view.putJob(pairRuns(func(j *gang.Job) { j.UID = 5 }))
	e.view.putJob(pairRuns(func(j *gang.Job) { j.ID, j.UID, j.Verdict = 8, 6, &gang.Verdict{} }))
	for _, c := range []struct {
		node string
		uid  uint32
		want bool
	}{{"n1", 5, true}, {"n2", 5, true}, {"n3", 5, false}, {"n1", 6, false}, {"n1", 7, false}} {
		if got := e.Vouches(c.node, c.uid); got != c.want {
			t.Errorf("%s for %d: %t", c.node, c.uid, got)
		}
	}
}

// TestNotFound: of a job that was, which bounds of the history it fell to; of one that never was, no more than that.
func TestNotFound(t *testing.T) {
	e := still()
	e.view.nextID = 10
	at := func(id int64) api.JobRef { return api.JobRef{ID: id, Index: -1} }
	const never = "; list jobs with gqueue, ended ones with gacct"
	for _, c := range []struct {
		ref     api.JobRef
		keep    time.Duration
		jobs    int
		archive bool
		want    string
	}{
		{at(9), time.Hour, 0, false, "no job 9 any more: jobs are kept for 1 h after their end"},
		{at(1), 0, 3, false, "no job 1 any more: the 3 jobs that ended last are kept"},
		{at(1), time.Hour, 3, true, "no job 1 any more: jobs are kept for 1 h after their end, and of all the 3 jobs that ended last are kept; its line may be in the archive of the site"},
		{at(10), time.Hour, 3, true, "no job 10" + never}, {at(0), time.Hour, 3, true, "no job 0" + never}, {at(5), 0, 0, false, "no job 5" + never},
	} {
		e.own.Settings.HistoryKeep, e.own.Settings.HistoryJobs, e.own.Archive = c.keep, c.jobs, nil
		if c.archive {
			e.own.Archive = func(context.Context, []Past) error { return nil }
		}
		if err := e.noJob(&named{ref: c.ref}, true); err.Error() != c.want || err.Code != api.CodeNotFound {
			t.Errorf("got %v\nwant %s", err, c.want)
		}
	}
}

// TestOne: the job that a reference names, from memory or from the store; of an array one element.
func TestOne(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Settings.KeepEnded, o.Settings.HistoryKeep, o.Settings.HistoryJobs = 0, time.Hour, 0
	})
	reply, err := r.Submit(t.Context(), &api.SubmitRequest{Spec: spec(1), Array: &api.Array{Indices: []int{2, 5}}}, me)
	if err != nil {
		t.Fatal(err)
	}
	array := reply.JobID
	single, live := r.submit("", spec(1)), r.submit("", spec(1))
	for _, id := range []int64{array, array + 1, single} {
		if _, err := r.Do(t.Context(), gang.Cancel{Job: id}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []int64{array, array + 1, single} {
		r.forgotten(id)
	}
	for _, c := range []struct {
		ref  api.JobRef
		want int64
		err  string
	}{
		{api.JobRef{ID: live, Index: -1}, live, ""}, {api.JobRef{ID: single, Index: -1}, single, ""}, {api.JobRef{ID: array, Index: 5}, array + 1, ""}, {api.JobRef{ID: array, Index: 2}, array, ""}, {api.JobRef{Index: -1, Last: 1}, live, ""},
		{api.JobRef{ID: array, Index: 0}, 0, "no job 1_0; list jobs with gqueue, ended ones with gacct"},
		{api.JobRef{ID: array, Index: 3}, 0, "no job 1_3; list jobs with gqueue, ended ones with gacct"},
		{api.JobRef{ID: live, Index: 3}, 0, "no job 4_3; list jobs with gqueue, ended ones with gacct"},
		{api.JobRef{ID: 2, Index: 0}, 0, "no job 2_0 any more: jobs are kept for 1 h after their end"},
		{api.JobRef{ID: 99, Index: -1}, 0, "no job 99; list jobs with gqueue, ended ones with gacct"},
		{api.JobRef{Index: -1, Last: 9}, 0, "no job @~8: not so many that you have submitted are known here; list yours with gqueue --me, ended ones with gacct"},
	} {
		j, err := r.One(t.Context(), c.ref, me)
		if errText(err) != c.err || err == nil && j.ID != c.want {
			t.Errorf("%+v: %+v, %v, want %d, %s", c.ref, j, err, c.want, c.err)
		}
	}
	j, err := r.Wait(t.Context(), &gang.Job{ID: single})
	if err != nil || j.ID != single || j.Verdict == nil {
		t.Errorf("a job that has left memory is waited for: %+v, %v", j, err)
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	if _, err := r.Wait(gone, r.view.job(live)); err != errLeft {
		t.Errorf("who left: %v", err)
	}
	running := r.view.job(live)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Wait(t.Context(), running); err != error(errStopped) {
		t.Errorf("at the controller's end: %v", err)
	}
}

// TestLists: a query in each of its forms, and what names nothing that is there.
func TestLists(t *testing.T) {
	r := newRig(t, disk.Open(t))
	a, b := r.submit("", spec(1)), r.submit("", spec(2))
	if _, err := r.Do(t.Context(), gang.Cancel{Job: a}); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		q    api.JobQuery
		want []int64
		err  string
	}{
		{api.JobQuery{}, []int64{b}, ""}, {api.JobQuery{All: true}, []int64{a, b}, ""}, {api.JobQuery{States: []api.JobState{api.JobCancelled}}, []int64{a}, ""},
		{byID(b, a, a), []int64{a, b}, ""}, {api.JobQuery{Refs: byID(a, b).Refs, States: []api.JobState{api.JobPending}}, []int64{b}, ""}, {api.JobQuery{Refs: byID(a, b).Refs, Users: []string{"bob"}}, nil, ""},
		{byID(a, 99), []int64{a}, ""}, {byID(99), nil, "no job 99; list jobs with gqueue, ended ones with gacct"}, {byID(98, 99), nil, "no job 98; list jobs with gqueue, ended ones with gacct"}, {api.JobQuery{Users: []string{"bob"}}, nil, ""}, {api.JobQuery{Accounts: []string{"x"}}, nil, ""},
		{api.JobQuery{Names: []string{"job", "x"}}, []int64{b}, ""}, {api.JobQuery{Names: []string{"x"}}, nil, ""},
	} {
		jobs, err := r.List(t.Context(), &c.q)
		var got []int64
		for i := range jobs {
			got = append(got, jobs[i].JobID)
		}
		if errText(err) != c.err || !slices.Equal(got, c.want) {
			t.Errorf("%d: %v, %v, want %v, %s", i, got, err, c.want, c.err)
		}
		text, err := r.Lines(t.Context(), &c.q, me)
		if errText(err) != c.err || err == nil && string(text) != string(r.LinesOf(c.want)) {
			t.Errorf("%d: lines %q, %v", i, text, err)
		}
	}
	if one, all, none := r.LinesOf([]int64{b}), r.LinesOf([]int64{99, b}), r.LinesOf(nil); string(one) != string(all) || len(one) <= len(none) || len(none) == 0 {
		t.Errorf("%q, %q and %q", one, all, none)
	}
	if jobs, _ := r.List(t.Context(), &api.JobQuery{}); len(jobs[0].Ranks) != 2 {
		t.Errorf("with ranks %+v", jobs[0].Ranks)
	}
	if jobs, _ := r.List(t.Context(), &api.JobQuery{NoRanks: true}); len(jobs[0].Ranks) != 0 {
		t.Errorf("without ranks %+v", jobs[0].Ranks)
	}
	stop := errors.New("enough")
	seen := 0
	if err := r.EachListed(t.Context(), &api.JobQuery{All: true}, me, func(*api.Job) error { seen++; return stop }); err != stop || seen != 1 {
		t.Errorf("%d seen, %v", seen, err)
	}
}

// TestMeasuresOf: of each member the last that is known first, in their order, of that epoch.
func TestMeasuresOf(t *testing.T) {
	row := func(epoch, member int, seconds float64) gang.MeasureRow {
		return gang.MeasureRow{Epoch: epoch, Member: member, Measure: &api.Measure{Seconds: seconds}}
	}
	got := measuresOf([]gang.MeasureRow{row(2, 1, 1), row(1, 0, 2), row(2, 0, 3), row(2, 1, 4)}, 2)
	differs(t, "measures", got, []api.Measure{{Seconds: 3}, {Seconds: 1}})
}

// TestViewOfChanges: what a commit changed is what readers see, and what it took away they do not.
func TestViewOfChanges(t *testing.T) {
	e := still()
	e.opt.Record = &nullRecorder{}
	e.world = gang.Restore(e.opt.Clock.Now(), e.own.Settings, &gang.Snapshot{NextID: 1, NextSeq: 1})
	e.view.prepared, e.view.crontabs = map[int64]int{}, map[string]*api.Crontab{}
	ended := make(chan struct{})
	e.view.ended[7] = ended
	reserved := waitingJob(func(j *gang.Job) { j.Ranks[0].State = api.RankReserved })
	e.plan.last = sched.Plan{Backfills: []given.Backfill{{Job: 1}}}
	e.publish(&gang.Changes{Jobs: []*gang.Job{reserved}, Nodes: []*gang.Node{{Name: "n2"}}, NextID: 9, Events: []api.Event{{Seq: 1}}, Hints: gang.Hints{Prepared: map[int64]int{7: 3}, Seen: []*gang.Node{{Name: "n1"}}, Dirty: []string{"n1"}}, SiteChanges: gang.SiteChanges{Reservations: []gang.ReservationRow{{Name: "talk", R: &api.Reservation{Name: "talk"}}}, Crontabs: []gang.CrontabRow{{User: "ada", T: &api.Crontab{User: "ada"}}}}})
	v := &e.view
	if v.preparedRanks(7) != 3 || !slices.Equal(v.names, []string{"n1", "n2"}) || v.next() != 9 || v.reservations["talk"] == nil || v.crontabs["ada"] == nil || len(v.plan.Backfills) != 1 || e.bus.lastSeq() != 1 {
		t.Errorf("%+v", v)
	}
	if _, ok := v.desired["n1"]; !ok {
		t.Error("n1 has no desired set")
	}
	over := reserved.Copy()
	over.Verdict = &gang.Verdict{}
	e.publish(&gang.Changes{Jobs: []*gang.Job{over}, Forgot: []string{"n1", "n9"}, NextID: 5, SiteChanges: gang.SiteChanges{Reservations: []gang.ReservationRow{{Name: "talk"}}, Crontabs: []gang.CrontabRow{{User: "ada"}}}})
	<-ended
	if v.preparedRanks(7) != 0 || !slices.Equal(v.names, []string{"n2"}) || v.node("n1") != nil || v.next() != 9 || len(v.reservations)+len(v.crontabs)+len(v.desired)+len(v.ended) != 0 || e.bus.lastSeq() != 1 {
		t.Errorf("%+v", v)
	}
	e.publish(&gang.Changes{Nodes: []*gang.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}, Purged: []int64{7}})
	if !slices.Equal(v.names, []string{"n1", "n2", "n3"}) || v.job(7) != nil || v.known != 0 {
		t.Errorf("%v, %d jobs", v.names, v.known)
	}
}

// TestDesiredAndLineage: on hold a node is given neither orders nor a commit, and keeps its session.
func TestDesiredAndLineage(t *testing.T) {
	e := still()
	e.opt.Version, e.opt.Run, e.runs = "v", "one", []store.Run{{Name: "one"}}
	e.opt.LineageKey = []byte("key")
	e.view.desired["n1"] = make([]api.Assignment, 2)
	e.setLineage(42)
	proof := e.prove("one", 42)
	if len(proof) != 32 || proof == e.prove("one", 43) || proof == e.prove("two", 42) {
		t.Errorf("the proof is %q", proof)
	}
	refused := errors.New("no")
	if a, ok := e.Desired("n1"); !ok || len(a) != 2 {
		t.Errorf("%v, %t", a, ok)
	}
	if n, p := e.Lineage(); n != 42 || p != proof {
		t.Errorf("%d, %q", n, p)
	}
	w, err := e.welcome(nil)
	differs(t, "welcome", w, &api.Welcome{Version: "v", Settings: e.own.Settings, Lineage: 42, LineageProof: proof, Run: "one"})
	if w, err2 := e.welcome(refused); err != nil || w != nil || err2 != refused {
		t.Errorf("%v; refused: %+v, %v", err, w, err2)
	}
	e.view.setHold("HOLD")
	if _, ok := e.Desired("n1"); ok {
		t.Error("on hold there are orders")
	}
	if n, p := e.Lineage(); n != 0 || p != "" {
		t.Errorf("on hold: %d, %q", n, p)
	}
	w, err = e.welcome(refused)
	differs(t, "welcome on hold", w, &api.Welcome{Version: "v", Settings: e.own.Settings})
	if err != nil {
		t.Error(err)
	}
	e.opt.LineageKey, e.runs = nil, nil
	if e.prove("one", 42) != "" || e.run() != "" {
		t.Errorf("without a key %q, of a run that was not noted %q", e.prove("one", 42), e.run())
	}
}

// lineageStore is at a commit.
type lineageStore struct {
	store.Store
	at uint64
}

func (s lineageStore) Lineage() uint64 { return s.at }

// TestLastOf: the newest commit that the store has of a run, as far as it knows the run.
func TestLastOf(t *testing.T) {
	e := still()
	e.store = lineageStore{at: 50}
	if got := e.lastOf("one"); got != 50 {
		t.Errorf("of a store without runs: %d", got)
	}
	e.runs = []store.Run{{Name: "one", Began: 10}, {Name: "two", Began: 20}, {Name: "three", Began: 30}}
	for accepted, want := range map[uint64]map[string]uint64{0: {"": 50, "one": 20, "two": 30, "three": 50, "other": 30}, 25: {"": 50, "one": 25, "two": 30, "three": 50, "other": 30}, 40: {"one": 40, "two": 40, "three": 50, "other": 40}} {
		e.accepted = accepted
		for run, n := range want {
			if got := e.lastOf(run); got != n {
				t.Errorf("%d accepted, run %q: %d, want %d", accepted, run, got, n)
			}
		}
	}
}

// TestWaitLines: who a job waits for, five of them by name, and what lets it go.
func TestWaitLines(t *testing.T) {
	e := still()
	for id := int64(1); id <= 7; id++ {
		e.view.putJob(waitingJob(func(j *gang.Job) { j.ID = id }))
	}
	on := func(ids ...int64) func(*gang.Job) {
		return func(j *gang.Job) { j.ID, j.Waits, j.Dependency = 9, "x", afterok(ids...) }
	}
	element := func(id int64, index int, edit func(*gang.Job)) *gang.Job {
		return waitingJob(func(j *gang.Job) {
			j.ID, j.ArrayID, j.ArrayIndex, j.Array = id, 20, index, &gang.ArrayInfo{Count: 3, Limit: 2}
			edit(j)
		})
	}
	e.view.putJob(element(20, 0, func(j *gang.Job) { j.Members, j.Ranks[0].State, j.Start = []gang.Member{{}}, api.RankRunning, noon }))
	e.view.putJob(element(21, 1, func(j *gang.Job) { j.Members, j.Verdict = []gang.Member{{}}, &gang.Verdict{} }))
	e.view.putJob(element(22, 4, func(j *gang.Job) {
		j.Members, j.Ranks[0].State, j.Start, j.TimeLimit = []gang.Member{{}}, api.RankRunning, noon, time.Hour
	}))
	e.view.putJob(element(23, 5, func(*gang.Job) {}))
	for i, c := range []struct {
		j    *gang.Job
		want []string
	}{
		{waitingJob(func(*gang.Job) {}), nil},
		{waitingJob(func(j *gang.Job) { j.Waits = "x" }), nil},
		{waitingJob(on(2, 99, 2, 1)), []string{"job 2 is PENDING", "job 1 is PENDING", "gctl update 9 --dependency=none lets it go at once"}},
		{waitingJob(on(1, 2, 3, 4, 5)), []string{"job 1 is PENDING", "job 2 is PENDING", "job 3 is PENDING", "job 4 is PENDING", "job 5 is PENDING", "gctl update 9 --dependency=none lets it go at once"}},
		{waitingJob(on(1, 2, 3, 4, 5, 6, 7)), []string{"job 1 is PENDING", "job 2 is PENDING", "job 3 is PENDING", "job 4 is PENDING", "job 5 is PENDING", "and 2 more", "gctl update 9 --dependency=none lets it go at once"}},
		{waitingJob(func(j *gang.Job) { j.Eligible = noon.Add(90 * time.Second) }), []string{"that is in 90 s; gctl update 7 --begin=now lets it go at once"}},
		{waitingJob(func(j *gang.Job) { j.Eligible = noon }), nil},
		{waitingJob(func(j *gang.Job) { j.Eligible, j.Epoch = noon.Add(time.Hour), 1 }), nil},
		{waitingJob(func(j *gang.Job) { j.Eligible, j.Epoch, j.Spec.Cron = noon.Add(time.Hour), 1, &api.Cron{} }), []string{"that is in 1 h; gctl requeue 7 leaves that time out, gcron -e changes it"}},
		{waitingJob(func(j *gang.Job) { j.Eligible, j.Spec.Cron = noon, &api.Cron{} }), nil},
		{element(24, 9, func(j *gang.Job) { j.Array = &gang.ArrayInfo{} }), nil},
		{element(24, 9, func(*gang.Job) {}), []string{"element 0 of job 20 is RUNNING; it has no time limit", "job 20_4 is RUNNING; it ends at the latest at 2026-03-01T13:00:00Z", "gctl update 20 --array-limit=3 lets one more run"}},
	} {
		if got := e.waitLines(c.j); !slices.Equal(got, c.want) {
			t.Errorf("%d: %q\nwant %q", i, got, c.want)
		}
	}
	for want, j := range map[string]*gang.Job{"job 7 is COMPLETED": waitingJob(func(j *gang.Job) {
		j.Start, j.Members, j.Verdict = noon, []gang.Member{{}}, &gang.Verdict{State: api.JobCompleted}
	}), "job 7 is PENDING": waitingJob(func(j *gang.Job) { j.Start = noon })} {
		if got := standing(j); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLastAndElements: the newest submissions of a user, an array once; and its elements, which may have left memory.
func TestLastAndElements(t *testing.T) {
	e := still()
	put := func(id, array int64, index int, uid uint32) {
		e.view.putJob(waitingJob(func(j *gang.Job) { j.ID, j.ArrayID, j.ArrayIndex, j.UID = id, array, index, uid }))
	}
	put(1, 0, -1, 5)
	put(2, 2, 0, 5)
	put(3, 2, 1, 5)
	put(4, 0, -1, 6)
	for n, want := range map[int]int64{1: 2, 2: 1, 3: 0} {
		if ids := e.view.newest(n, 5); len(ids) == n != (want != 0) || len(ids) == n && ids[n-1] != want {
			t.Errorf("the last %d are %v, want %d as the last of them", n, ids, want)
		}
	}
	ids := func(jobs []*gang.Job) (out []int64) {
		for _, j := range jobs {
			out = append(out, j.ID)
		}
		return out
	}
	last := func(n int, uid uint32) []*gang.Job {
		found, err := e.lookUp(t.Context(), []api.JobRef{{Last: n, Index: -1}}, Caller{UID: uid}, false)
		if err != nil {
			t.Fatal(err)
		}
		return found[0].jobs
	}
	if got := ids(last(1, 5)); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("@ is %v", got)
	}
	if got := ids(last(3, 5)); got != nil {
		t.Errorf("@~2 is %v", got)
	}
	if got := ids(last(1, 6)); !slices.Equal(got, []int64{4}) {
		t.Errorf("@ of another is %v", got)
	}
}

// TestMatches: each filter of a query by itself.
func TestMatches(t *testing.T) {
	j := pairRuns(func(j *gang.Job) {
		j.Partition, j.Spec.Account = "main,night", "vision"
		j.Spec.Roles = []api.Role{{Component: &api.Component{JobName: "lead"}}, {Component: &api.Component{JobName: "side"}}}
	})
	for i, c := range []struct {
		q    api.JobQuery
		want bool
	}{
		{api.JobQuery{}, true}, {api.JobQuery{Users: []string{"ada"}}, true}, {api.JobQuery{Users: []string{"bob"}}, false}, {api.JobQuery{Names: []string{"job"}}, true}, {api.JobQuery{Names: []string{"side"}}, true}, {api.JobQuery{Names: []string{"x"}}, false},
		{api.JobQuery{Accounts: []string{"vision"}}, true}, {api.JobQuery{Accounts: []string{"speech"}}, false}, {api.JobQuery{Partitions: []string{"night"}}, true}, {api.JobQuery{Partitions: []string{"day"}}, false},
		{api.JobQuery{Nodes: []string{"n2"}}, true}, {api.JobQuery{Nodes: []string{"n3"}}, false}, {api.JobQuery{States: []api.JobState{api.JobRunning}}, true}, {api.JobQuery{States: []api.JobState{api.JobPending}}, false},
	} {
		if got := selectionOf(&c.q).matches(j); got != c.want {
			t.Errorf("%d: %t", i, got)
		}
	}
	over := j.Copy()
	over.Verdict = &gang.Verdict{State: api.JobFailed}
	for all, want := range map[bool]bool{false: false, true: true} {
		if got := selectionOf(&api.JobQuery{All: all}).matches(over); got != want {
			t.Errorf("one that is over, all %t: %t", all, got)
		}
	}
}

// TestCheckImagesOfNodes: a step is refused where no node of the allocation can run its image, and not where one can or is not known.
func TestCheckImagesOfNodes(t *testing.T) {
	e := still()
	j := pairRuns(func(*gang.Job) {})
	image := &api.Container{Image: "docker://docker.io/library/alpine:latest"}
	node := func(name string, features ...string) {
		e.view.putNode(&gang.Node{Name: name, Res: &cluster.Node{Features: features}})
	}
	if err := e.checkImages(j, image); err != nil {
		t.Errorf("where nodes are not known: %v", err)
	}
	node("n1")
	node("n2")
	err := e.checkImages(j, image)
	if api.CodeOf(err) != api.CodeUnsatisfiable || !strings.HasPrefix(errText(err), "n[1-2] of job 7 can't run the image docker://docker.io/library/alpine:latest: it needs a node with container-podman or ") {
		t.Errorf("%v", err)
	}
	node("n2", "x", "container-enroot")
	if err := e.checkImages(j, image); err != nil {
		t.Errorf("where one can: %v", err)
	}
}
