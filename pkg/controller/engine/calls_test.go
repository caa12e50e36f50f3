package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
	"gangd/pkg/lab/disk"
)

// running starts a gang of size ranks on n1.
func (r *rig) running(size int) (int64, api.MemberKey) {
	r.t.Helper()
	return r.runningWith(size, func(*api.Spec) {})
}

func (r *rig) runningWith(size int, edit func(*api.Spec)) (int64, api.MemberKey) {
	r.t.Helper()
	s := spec(size)
	edit(&s)
	id := r.submit("", s)
	k := api.MemberKey{Job: id, Epoch: 1}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseReady, Port: 7000}}})
	ranks := make([]api.RankActual, size)
	for i := range ranks {
		ranks[i] = api.RankActual{Rank: i, PID: 100 + i}
	}
	r.NodeReport("n1", &api.Actual{Members: []api.MemberActual{{MemberKey: k, Phase: api.PhaseRunning, Ranks: ranks}}})
	if err := r.inspect(r.t.Context(), func() {}); err != nil {
		r.t.Fatal(err)
	}
	if s := r.state(id); s != api.JobRunning {
		r.t.Fatalf("job %d is %s", id, s)
	}
	return id, k
}

func (r *rig) put(k api.MemberKey, rank int, data string) (*api.CallResult, error) {
	return r.NodeCall(r.t.Context(), "n1", &api.Call{MemberKey: k, Rank: rank, Put: &api.CheckpointPut{}}, strings.NewReader(data), nil)
}

func (r *rig) got(k api.MemberKey, rank int) string {
	var b bytes.Buffer
	if _, err := r.NodeCall(r.t.Context(), "n1", &api.Call{MemberKey: k, Get: &api.CheckpointGet{Rank: rank}}, nil, &b); err != nil {
		return "error: " + err.Error()
	}
	return b.String()
}

func TestCheckpointCalls(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, k := r.running(2)
	if res, err := r.put(k, 0, "a"); err != nil || res.Complete {
		t.Fatalf("%+v, %v", res, err)
	}
	if got := r.got(k, 0); got != "error: job 1 has no complete checkpoint; one is complete when every rank has put its own in the same epoch" {
		t.Errorf("got %q", got)
	}
	if res, err := r.put(k, 1, "b"); err != nil || !res.Complete || res.Bytes != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if a, b := r.got(k, 0), r.got(k, 1); a != "a" || b != "b" {
		t.Errorf("got %q and %q", a, b)
	}
	for _, c := range []struct {
		node string
		k    api.MemberKey
		code api.Code
		text string
	}{
		{"n1", api.MemberKey{Job: id, Epoch: 9}, api.CodeStaleEpoch, "epoch 9 of job 1 is over; the current one is 1; what an earlier one saves must not replace it"},
		{"n1", api.MemberKey{Job: 77, Epoch: 1}, api.CodeStaleEpoch, "epoch 1 is over: the job has ended"},
		{"n2", k, api.CodePermission, "rank 0 of job 1 is not on node n2"},
	} {
		_, err := r.NodeCall(t.Context(), c.node, &api.Call{MemberKey: c.k, Put: &api.CheckpointPut{}}, strings.NewReader("stale"), nil)
		if api.CodeOf(err) != c.code || err.Error() != c.text {
			t.Errorf("%s %+v: %v", c.node, c.k, err)
		}
	}
	if a := r.got(k, 0); a != "a" {
		t.Errorf("a refused put left %q", a)
	}
}

func TestBarrierCalls(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, k := r.running(2)
	come := func(ctx context.Context, rank int, key string) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := r.NodeCall(ctx, "n1", &api.Call{MemberKey: k, Rank: rank, Barrier: &api.Barrier{Name: "x", Key: key}}, nil, nil)
			done <- err
		}()
		return done
	}
	for range 2 { // a name may be used again
		first := come(t.Context(), 0, "")
		if err := <-come(t.Context(), 1, ""); err != nil {
			t.Fatal(err)
		}
		if err := <-first; err != nil {
			t.Fatal(err)
		}
	}
	// A repeat of an arrival that was released is answered; one that left is not counted.
	a, b := come(t.Context(), 0, "k0"), come(t.Context(), 1, "k1")
	if err := <-a; err != nil {
		t.Fatal(err)
	}
	if err := <-b; err != nil {
		t.Fatal(err)
	}
	if err := <-come(t.Context(), 0, "k0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	left := come(ctx, 0, "k2")
	cancel()
	if err := <-left; err == nil {
		t.Error("a caller that went away was released")
	}
	waits := come(t.Context(), 1, "k3")
	select {
	case err := <-waits:
		t.Errorf("released with an absent rank: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := r.Cancel(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}}}, me, anyone); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err == nil || err.Error() != "barrier x: job 1 is being stopped" {
		t.Errorf("err %v", err)
	}
}

func TestNotesAreShownAndCommitNothing(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, k := r.running(2)
	before := r.store.Lineage()
	note := func(node string, k api.MemberKey, status string) {
		r.NodeNotes(node, []api.MemberNote{{MemberKey: k, Ranks: []api.RankNote{{Rank: 0, Beats: 3, BeatAge: time.Second, Status: status, Stopping: true}, {Rank: 99}}}})
	}
	note("n1", k, "step 1")
	note("n1", api.MemberKey{Job: id, Epoch: 5}, "stale")
	note("n2", k, "a stranger")
	j, err := r.One(t.Context(), api.JobRef{ID: id, Index: -1}, me)
	if err != nil {
		t.Fatal(err)
	}
	shown := r.show(j, true)
	if shown.Status != "step 1" || shown.Ranks[0].Status != "step 1" || time.Since(shown.Ranks[0].LastBeat) < time.Second || !shown.Ranks[1].LastBeat.IsZero() {
		t.Errorf("%+v", shown)
	}
	note("n1", k, strings.Repeat("x", api.MaxStatusBytes+1))
	if got := r.show(j, true).Status; len(got) != api.MaxStatusBytes {
		t.Errorf("a status of %d bytes, the most is %d", len(got), api.MaxStatusBytes)
	}
	if r.store.Lineage() != before {
		t.Error("a note was committed")
	}
}

// A release is on disk before anybody hears of it: after a restart a rank that had not heard
// is answered, though the other is long past the barrier and does not come a second time.
func TestReleaseOutlivesTheController(t *testing.T) {
	d := disk.New(t)
	st := d.Open(t)
	r := newRig(t, st)
	r.node("n1", 4)
	id, k := r.running(2)
	come := func(ctx context.Context, rank int, name, key string) <-chan error {
		done, call := make(chan error, 1), r.NodeCall // of the controller of now
		go func() {
			_, err := call(ctx, "n1", &api.Call{MemberKey: k, Rank: rank, Barrier: &api.Barrier{Name: name, Key: key}}, nil, nil)
			done <- err
		}()
		return done
	}
	a, b := come(t.Context(), 0, "x", "k0"), come(t.Context(), 1, "x", "k1")
	for _, c := range []<-chan error{a, b} {
		if err := <-c; err != nil {
			t.Fatal(err)
		}
	}
	half := come(t.Context(), 0, "y", "k2") // not released: both have to come again
	restart := func() {
		t.Helper()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		d.Crash()
		st = d.Open(t)
		r = newRig(t, st)
	}
	restart()
	_ = half
	if err := <-come(t.Context(), 1, "x", "k1"); err != nil {
		t.Errorf("the rank that had not heard: %v", err)
	}
	for _, c := range []struct {
		rank      int
		name, key string
	}{{0, "x", "k3"}, {1, "y", "k4"}, {1, "x", ""}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := <-come(ctx, c.rank, c.name, c.key); err == nil {
			t.Errorf("rank %d alone passed %s", c.rank, c.name)
		}
		cancel()
	}
	if all, err := st.Releases(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v: want one release", all, err)
	}
	// Of a job that has ended nothing is kept, not even when the controller died before it was dropped.
	over := api.MemberActual{MemberKey: k, Phase: api.PhaseStopped,
		Ranks: []api.RankActual{{Rank: 0, PID: 100, Exited: true, Own: true}, {Rank: 1, PID: 101, Exited: true, Own: true}}}
	if _, err := r.NodeHello(t.Context(), &api.Hello{Protocol: api.SessionProtocol, Node: "n1", BootID: "b", Address: "127.0.0.1",
		CPUs: 4, MemoryBytes: 1 << 34, Members: []api.MemberActual{over}}); err != nil {
		t.Fatal(err)
	}
	gone := func() {
		t.Helper()
		for give := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if all, _ := st.Releases(t.Context()); len(all) == 0 {
				return
			}
			if time.Now().After(give) {
				t.Fatalf("releases of job %d, which is %s, are still there", id, r.state(id))
			}
		}
	}
	gone()
	if err := st.PutRelease(t.Context(), store.Release{SetKey: store.SetKey{MemberKey: k, Step: store.OfRanks}, Name: "late", Keys: map[int]string{0: "k"}}); err != nil {
		t.Fatal(err)
	}
	restart()
	gone()
}

// A release that can't be kept is none; but a full disk holds no rank up.
func TestReleaseNotKept(t *testing.T) {
	for _, c := range []struct {
		fails error
		want  string
	}{
		{store.ErrFull, ""},
		{store.ErrFailed, "barrier x: its release could not be kept: store failed"},
	} {
		r := newRig(t, disk.Open(t))
		r.node("n1", 4)
		_, k := r.running(1)
		keep := r.barriers.keep
		r.barriers.keep = func(store.Release) error { return c.fails }
		come := func(key string) string {
			_, err := r.NodeCall(t.Context(), "n1", &api.Call{MemberKey: k, Barrier: &api.Barrier{Name: "x", Key: key}}, nil, nil)
			if err != nil {
				return err.Error()
			}
			return ""
		}
		if got := come("k"); got != c.want {
			t.Errorf("%v: %q, want %q", c.fails, got, c.want)
		}
		r.barriers.keep = keep
		if got := come("k"); got != "" {
			t.Errorf("%v: when there is room again: %q", c.fails, got)
		}
	}
}

func TestEventsComeInPages(t *testing.T) {
	r := newRig(t, disk.Open(t))
	for range 3 {
		r.submit("", spec(1))
	}
	since, seen := int64(0), 0
	for more := true; more; {
		evs, m, err := r.Events(t.Context(), 0, since, 2)
		if err != nil || len(evs) == 0 || len(evs) > 2 {
			t.Fatalf("%d events, %v", len(evs), err)
		}
		for _, ev := range evs {
			if ev.Seq != since+1 {
				t.Errorf("event %d after %d", ev.Seq, since)
			}
			since = ev.Seq
		}
		seen, more = seen+len(evs), m
	}
	if evs, more, err := r.Events(t.Context(), 0, 0, 0); len(evs) != seen || more || err != nil {
		t.Errorf("%d events at once, %v, %v; %d in pages", len(evs), more, err, seen)
	}
}

// TestBarrierOfAnEpochThatIsOver: who waits in it hears so as soon as the job has another.
func TestBarrierOfAnEpochThatIsOver(t *testing.T) {
	var s barriers
	b := &barrier{size: 2, arrived: map[int]string{0: "k"}, done: make(chan struct{})}
	s.meeting(7, 1).open[barrierKey{store.OfRanks, "b"}] = b
	job := func(epoch int) *gang.Job {
		return &gang.Job{ID: 7, Spec: &api.Spec{Launch: api.LaunchRanks}, Ranks: make([]gang.Rank, 2), Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Epoch: epoch}}}
	}
	if s.check(job(1), func(*gang.Job, api.TaskKey) bool { return false }); b.err != nil {
		t.Fatalf("in its epoch: %v", b.err)
	}
	if s.check(job(2), func(*gang.Job, api.TaskKey) bool { return false }); b.err == nil || b.err.Error() != "epoch 1 of job 7 is over" {
		t.Fatalf("in the next: %v", b.err)
	}
	<-b.done
}

// nodesSignalled is how many processes heard of a signal on each node; -1: it can't be reached.
type nodesSignalled map[string]int

func (n nodesSignalled) Signal(_ context.Context, node string, _ api.SignalOrder) (int, error) {
	if n[node] < 0 {
		return 0, errors.New("no session with " + node)
	}
	return n[node], nil
}

// TestSignalCountsOverNodes: the answer has the processes of all nodes, the nodes that had any, and the node that failed.
func TestSignalCountsOverNodes(t *testing.T) {
	r := newRig(t, disk.Open(t))
	j := &gang.Job{ID: 7, Wishes: new(gang.Wishes), Past: &gang.Past{Attempt: gang.Attempt{Members: []gang.Member{{Node: "a"}, {Node: "b"}, {Node: "c"}}}}}
	if got := r.signalMembers(t.Context(), j, api.SignalOrder{}, nodesSignalled{"a": 2, "b": 3, "c": 0}); got.Processes != 5 || got.Nodes != 2 || got.Error != nil {
		t.Errorf("%+v", got)
	}
	if got := r.signalMembers(t.Context(), j, api.SignalOrder{}, nodesSignalled{"a": 2, "b": -1, "c": 1}); got.Processes != 3 || got.Nodes != 2 || got.Error == nil {
		t.Errorf("%+v", got)
	}
}

// TestNodeActions: each word of a person on a node does what it says.
func TestNodeActions(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	admin := Caller{User: "root", Admin: true}
	for _, c := range []struct {
		action string
		req    api.NodeAction
		want   string // error, or what is shown of the node then
	}{
		{"drain", api.NodeAction{Reason: "fans"}, "drained fans []"},
		{"resume", api.NodeAction{}, "up  []"},
		{"features", api.NodeAction{Features: []string{"ib"}}, "up  [ib]"},
		{"features", api.NodeAction{Features: []string{"a&b"}}, `feature "a&b": want a word of letters, digits, '_', '-', '.' and ':'`},
		{"drain", api.NodeAction{Reason: "x", Deadline: time.Unix(1e9, 0).UTC()},
			"the deadline 2001-09-09T01:46:40Z has passed; give a later one: --deadline=now+10minutes, say, or none to let running work end by itself"},
		{"reboot", api.NodeAction{}, "node n1 has no program that reboots it; name one in its gnoded.toml: reboot_program"},
		{"reboot", api.NodeAction{Then: "up"}, `then "up": want resume or down, or nothing to leave it as it is`},
		{"explode", api.NodeAction{}, `no node action "explode": want drain, resume, reboot, cancel-reboot, features, fence or forget`},
	} {
		err := r.NodeAction(t.Context(), c.action, "n1", &c.req, admin)
		n := r.view.node("n1")
		if got := cmp.Or(errText(err), fmt.Sprint(n.State, " ", n.Reason, " ", n.Res.Features)); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.action, c.req, got, c.want)
		}
	}
}

// TestReleasesAreKept: of each party the newest so many, however many another has had.
func TestReleasesAreKept(t *testing.T) {
	var s barriers
	m := s.meeting(7, 1)
	key := func(step, n int) barrierKey { return barrierKey{step, fmt.Sprint(n)} }
	m.remember(key(store.OfRanks, 0), &barrier{})
	for n := range store.KeptReleases + 2 {
		m.remember(key(3, n), &barrier{})
	}
	if m.past[key(3, 1)] != nil || m.past[key(3, 2)] == nil || m.past[key(store.OfRanks, 0)] == nil || len(m.past) != store.KeptReleases+1 || len(m.order) != len(m.past) {
		t.Errorf("%d are kept: %v", len(m.past), m.order)
	}
}

// TestBarrierSaysHowManyCame, and a signal reaches who runs, by the call of a person.
func TestBarrierSaysHowManyCame(t *testing.T) {
	r := newRig(t, disk.Open(t))
	r.node("n1", 4)
	id, k := r.running(1)
	if res, err := r.NodeCall(t.Context(), "n1", &api.Call{MemberKey: k, Barrier: &api.Barrier{Name: "b"}}, nil, nil); err != nil || res.Size != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	reply, err := r.Signal(t.Context(), &api.CancelRequest{JobQuery: byID(id), Signal: "USR1"}, me, anyone, nodesSignalled{"n1": 3})
	if err != nil || len(reply.Results) != 1 || reply.Results[0].Processes != 3 || reply.Results[0].Nodes != 1 {
		t.Errorf("%+v, %v", reply, err)
	}
	one := api.JobRef{ID: 99, Index: 3}
	reply, err = r.Signal(t.Context(), &api.CancelRequest{JobQuery: api.JobQuery{Refs: []api.JobRef{one}}, Signal: "USR1"}, me, anyone, nodesSignalled{})
	if err != nil || len(reply.Results) != 1 || errText(reply.Results[0].Error) != "no job 99_3; list jobs with gqueue, ended ones with gacct" {
		t.Errorf("%+v, %v", reply, err)
	}
}
