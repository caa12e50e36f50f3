package engine

import (
	"fmt"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/disk"
)

// farm is three nodes that do what they are told when they are asked to, under a controller
// that is killed at will.
type farm struct {
	*rig
	t    *testing.T
	disk *disk.Disk
	has  map[string]*api.MemberActual
}

func newFarm(t *testing.T) *farm {
	f := &farm{t: t, disk: disk.New(t), has: map[string]*api.MemberActual{}}
	f.begin()
	return f
}

// begin starts a controller; the nodes say hello with all that they have.
func (f *farm) begin() {
	f.t.Helper()
	f.rig = newRig(f.t, f.disk.Open(f.t))
	for i := range 3 {
		h := &api.Hello{Protocol: api.SessionProtocol, Node: fmt.Sprintf("n%d", i+1), BootID: "b", Address: "127.0.0.1", CPUs: 1, MemoryBytes: 1 << 34}
		if m := f.has[h.Node]; m != nil {
			h.Members = []api.MemberActual{*m}
		}
		if _, err := f.NodeHello(f.t.Context(), h); err != nil {
			f.t.Fatal(err)
		}
	}
}

// kill ends the controller without a word; what it had not committed is lost.
func (f *farm) kill() {
	f.t.Helper()
	if err := f.end(); err != nil {
		f.t.Fatal(err)
	}
	f.disk.Crash()
}

func (f *farm) settled() {
	f.t.Helper()
	for range 2 {
		if err := f.inspect(f.t.Context(), func() {}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// obey lets one node come to what it shall have, and say so.
func (f *farm) obey(node string) {
	f.t.Helper()
	as, _ := f.Desired(node)
	m := f.has[node]
	var gone []api.MemberKey
	if m != nil && (len(as) == 0 || as[0].MemberKey != m.MemberKey) {
		gone, m = []api.MemberKey{m.MemberKey}, nil
	}
	if len(as) > 0 {
		a := as[0]
		if m == nil {
			m = &api.MemberActual{MemberKey: a.MemberKey, Phase: api.PhaseReady, Port: 7000}
		}
		rank := int(node[1] - '1')
		switch {
		case a.Stop != nil && m.Phase != api.PhaseStopped:
			m.Phase, m.Stopping = api.PhaseStopped, a.Stop.Cause
			m.Ranks = []api.RankActual{{Rank: rank, PID: 100, Exited: true, ExitCode: 143, Signal: 15}}
		case a.Gate != nil && m.Phase == api.PhaseReady:
			m.Phase = api.PhaseRunning
			m.Ranks = []api.RankActual{{Rank: rank, PID: 100}}
		}
	}
	f.has[node] = m
	actual := &api.Actual{Gone: gone}
	if m != nil {
		actual.Members = []api.MemberActual{*m}
	}
	f.NodeReport(node, actual)
	f.settled()
}

func (f *farm) all() {
	for _, n := range []string{"n1", "n2", "n3"} {
		f.obey(n)
	}
}

// Twenty preemptions charge nothing, with the controller killed in another phase of the
// drain each time: before and after the order, between two acks, after the last one, and
// while the next run is prepared.
func TestPreemptionsChargeNothing(t *testing.T) {
	f := newFarm(t)
	s := spec(3)
	s.RanksPerNode = 1
	id := f.submit("", s)
	run := func() {
		t.Helper()
		for range 4 {
			f.all()
		}
		if got := f.state(id); got != api.JobRunning {
			t.Fatalf("it is %s", got)
		}
	}
	run()
	const phases, rounds = 7, 21
	for round := range rounds {
		at := 0
		maybe := func() {
			if at == round%phases {
				f.kill()
				f.begin()
				f.settled()
			}
			at++
		}
		maybe()
		if _, err := f.Do(t.Context(), gang.Preempt{Job: id, For: "job 99"}); err != nil {
			t.Fatal(err)
		}
		maybe()
		for _, n := range []string{"n1", "n2", "n3"} {
			f.obey(n)
			maybe()
		}
		f.obey("n1")
		maybe()
		f.all()
		maybe()
		run()
	}
	j, err := f.One(t.Context(), api.JobRef{ID: id, Index: -1}, me)
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Used) != 0 || j.Restarts != rounds || j.Epoch != rounds+1 || j.Verdict != nil {
		t.Errorf("used %v, %d restarts, epoch %d, verdict %+v", j.Used, j.Restarts, j.Epoch, j.Verdict)
	}
	d, err := f.Detail(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range d.Attempts[:rounds] {
		if a.Cause != api.CausePreempted {
			t.Errorf("attempt %d ended by %s", a.Epoch, a.Cause)
		}
	}
	evs, err := f.store.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[api.EventType]int{}
	for _, ev := range evs {
		counts[ev.Type]++
	}
	if counts[api.EventDrainStarted] != rounds || counts[api.EventDrainCompleted] != rounds || counts[api.EventStarted] != rounds+1 {
		t.Errorf("events %v", counts)
	}
}

// A gang that was admitted, has not started and is stopped for another waits again at once: where
// it can run elsewhere it does so without a further event.
func TestStoppedUnstartedGangStartsElsewhere(t *testing.T) {
	r := newRigWith(t, disk.Open(t), func(o *Options) {
		o.Policy.Partitions = []api.Partition{{Name: "low", Default: true}, {Name: "high", Tier: 1}}
		o.Policy.Preempt = order.PreemptTier
	})
	r.node("n1", 1)
	low := r.submit("", spec(1))
	r.node("n2", 1)
	s := spec(1)
	s.Partition, s.NodeList = "high", []string{"n1"}
	high := r.submit("", s)
	for range 2 {
		if err := r.inspect(t.Context(), func() {}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := r.state(low), r.state(high); a != api.JobReserved || b != api.JobPending {
		t.Errorf("the lower one is %s and the higher one %s, want RESERVED on n2 and PENDING for n1", a, b)
	}
	if as, _ := r.Desired("n2"); len(as) != 1 || as[0].MemberKey != (api.MemberKey{Job: low, Epoch: 2}) {
		t.Errorf("n2 is to run %+v", as)
	}
}
