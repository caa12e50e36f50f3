package gang

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// cutOff lets nodes fall silent until they are lost.
func (b *bench) cutOff(nodes ...string) {
	b.t.Helper()
	for _, n := range nodes {
		b.must(NodeGone{Node: n})
	}
	b.after(b.w.set.NodeTimeout)
}

// ended is the word of a node that comes back with members that came to their end meanwhile.
func (b *bench) ended(id int64, node string, ranks ...api.RankActual) {
	b.t.Helper()
	b.hello(node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Ranks: ranks})
}

func TestALateResultIsTaken(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(1))
	b.start(id)
	b.cutOff("n1")
	b.state(id, api.JobPending)
	b.ended(id, "n1", exit(0, 0))
	b.state(id, api.JobCompleted)
	if j := b.w.Job(id); j.Epoch != 1 || j.Verdict.ExitCode != 0 || j.Verdict.Text != lateText {
		t.Errorf("epoch %d, %+v", j.Epoch, j.Verdict)
	}
	if len(b.w.Node("n1").Res.Grants) != 0 {
		t.Error("its grant is left")
	}
	if row := b.w.Take().Epochs; len(row) != 1 || row[0].Cause != api.CauseCompleted || row[0].ExitCodes[0] != 0 {
		t.Errorf("attempt %+v", row)
	}
}

// An element that waits when its result comes gives no place back: it has none.
func TestALateResultOfAnElement(t *testing.T) {
	b := newBench(t, 3)
	id := b.array(2, nil)
	b.start(id)
	b.cutOff("n1")
	b.state(id, api.JobPending)
	b.ended(id, "n1", exit(0, 0))
	b.state(id, api.JobCompleted)
	if j := b.w.Job(id); j.Ranks[0].State != api.RankDone {
		t.Errorf("its rank is %s", j.Ranks[0].State)
	}
}

// Somebody said meanwhile that nothing runs there: until another place is taken the result
// counts all the same.
func TestALateResultOfAFencedNode(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(1))
	b.start(id)
	b.cutOff("n1")
	b.must(NodeFence{Node: "n1"})
	b.ended(id, "n1", exit(0, 0))
	b.state(id, api.JobCompleted)
}

// A gang whose nodes were all cut off is complete with the last of its results, whatever the
// controller went through in between.
func TestLateResultsOfAGangAddUp(t *testing.T) {
	b := newBench(t, 5)
	id := b.submit(specOf(2))
	b.start(id)
	b.cutOff("n1", "n2")
	b.ended(id, "n1", exit(0, 0))
	b.state(id, api.JobPending)
	b.ended(id, "n2", exit(1, 0))
	b.state(id, api.JobCompleted)
}

// What its peers were stopped for may be why a rank failed: that is no result of the gang.
func TestALateFailureBesideStoppedPeersIsNone(t *testing.T) {
	b := newBench(t, 5)
	id := b.submit(specOf(2))
	b.start(id)
	b.cutOff("n2")
	b.ack(id) // n1 was stopped
	b.ended(id, "n2", exit(1, 1))
	b.state(id, api.JobPending)
	if b.w.Candidate(id) == nil || b.w.Job(id).Used[api.CauseCrash] != 0 {
		t.Errorf("not to be run again: %+v", b.w.Job(id))
	}
}

func TestALateFailureIsAFailure(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(1))
	b.start(id)
	b.cutOff("n1")
	b.ended(id, "n1", exit(0, 3))
	b.state(id, api.JobFailed)
	if v := b.w.Job(id).Verdict; v.ExitCode != 3 || v.Cause != api.CauseCrash || !strings.HasPrefix(v.Text, "rank 0 exited with code 3") {
		t.Errorf("%+v", v)
	}
}

// Once the gang was placed again the result of the epoch before is late for good, and what was
// stopped is no result.
func TestWhatIsNoLateResult(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(1))
	b.start(id)
	old := b.key(id)
	b.cutOff("n1")
	b.must(NodeFence{Node: "n1"})
	r := b.spread(id)
	r.Slots[0].Node = "n2"
	b.must(r)
	b.hello("n1", api.MemberActual{MemberKey: old, Phase: api.PhaseStopped, Ranks: []api.RankActual{exit(0, 0)}})
	b.state(id, api.JobReserved)

	stopped := b.submit(specOf(1))
	b.start(stopped)
	b.cutOff("n1")
	b.hello("n1", api.MemberActual{MemberKey: b.key(stopped), Phase: api.PhaseStopped, Stopping: api.CauseNodeLost, Ranks: []api.RankActual{exit(0, 0)}})
	b.after(time.Minute)
	b.state(stopped, api.JobPending)
}
