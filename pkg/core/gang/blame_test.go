package gang

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/why"
)

// on reserves a one-rank gang on a node.
func (b *bench) on(id int64, node string) {
	b.t.Helper()
	r := b.spread(id)
	r.Slots[0].Node = node
	b.must(r)
}

func (b *bench) refuse(id int64, whose api.Blame, text string) {
	b.t.Helper()
	b.say(b.w.Job(id).Members[0].Node, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: whose, Text: text}})
}

// by submits a one-rank gang of a user.
func (b *bench) by(user string) int64 {
	b.t.Helper()
	return b.must(Submit{Spec: specOf(1), SpecHash: hashOf(specOf(1)), User: user, Partition: "main"}).JobIDs[0]
}

// triedElsewhere lets n1 refuse a gang of a user and n2 start it.
func (b *bench) triedElsewhere(user string, whose api.Blame) {
	b.t.Helper()
	id := b.by(user)
	b.on(id, "n1")
	b.refuse(id, whose, "no home")
	b.on(id, "n2")
	b.ready(id)
	b.phase(id, "n2", api.PhaseStopped, exit(0, 0))
}

func TestRefusedByOneAndStartedByAnotherIsTheNodes(t *testing.T) {
	b := newBench(t, 2)
	for i, user := range []string{"ada", "bob"} {
		b.triedElsewhere(user, api.BlameSite)
		if n := b.w.Node("n1"); n.State != api.NodeUp || len(n.Strikes) != i+1 || !strings.Contains(StrikeText(n), fmt.Sprintf("job %d: no home; started by n2", i+1)) {
			t.Fatalf("%s, %q", n.State, StrikeText(n))
		}
	}
	b.triedElsewhere("ada", api.BlameSite)
	if n := b.w.Node("n1"); n.State != api.NodeDrained || n.DrainUser != Breaker || n.Reason != "launch failures: job 3: no home; started by n2" {
		t.Fatalf("%s %q", n.State, n.Reason)
	}
	if n := b.w.Node("n2"); n.State != api.NodeUp || len(n.Strikes) != 0 {
		t.Errorf("n2: %s, %v", n.State, n.Strikes)
	}
}

// A person's word clears what speaks against a node that is in service, too.
func TestResumeTakesStrikes(t *testing.T) {
	b := newBench(t, 2)
	b.triedElsewhere("ada", api.BlameSite)
	if n := b.w.Node("n1"); n.State != api.NodeUp || len(n.Strikes) != 1 {
		t.Fatalf("%s, %v", n.State, n.Strikes)
	}
	b.must(NodeResume{Node: "n1"})
	if n := b.w.Node("n1"); n.State != api.NodeUp || len(n.Strikes) != 0 {
		t.Errorf("%s, %v", n.State, n.Strikes)
	}
}

// What a user can bring about (an output that is a running program on one node alone) takes no
// node out of service, however many jobs he has; three users who meet it do.
func TestOneUserDrainsNoNode(t *testing.T) {
	for _, whose := range []api.Blame{api.BlameJob, api.BlameFiles, api.BlameUser, api.BlameUnknown, api.BlameNode, api.BlameSite, "nonsense"} {
		b := newBench(t, 2)
		for range 20 {
			id := b.by("mallory")
			b.on(id, "n1")
			b.refuse(id, whose, "text file busy")
			b.after(time.Second)
			b.on(id, "n2")
			b.ready(id)
			b.phase(id, "n2", api.PhaseStopped, exit(0, 0))
		}
		if n := b.w.Node("n1"); n.State != api.NodeUp {
			t.Errorf("%s: %s %q", whose, n.State, n.Reason)
		}
	}
	b := newBench(t, 2)
	for _, user := range []string{"ada", "bob", "eve"} {
		if n := b.w.Node("n1"); n.State != api.NodeUp {
			t.Fatalf("%s before %s", n.State, user)
		}
		b.triedElsewhere(user, api.BlameFiles)
	}
	if n := b.w.Node("n1"); n.State != api.NodeDrained {
		t.Errorf("%s after three users", n.State)
	}
}

// The tries of one job count once, and one user's jobs once, however few strikes the site allows; a second user who meets the same
// makes each job count.
func TestNobodysRetriesDrainANode(t *testing.T) {
	strikes := func(whose api.Blame, of ...string) (out []Strike) {
		for i, user := range of {
			out = append(out, Strike{Job: int64(i), User: user, Blame: whose})
		}
		return out
	}
	for _, c := range []struct {
		strikes []Strike
		weight  int
		several bool
	}{
		{strikes(api.BlameNode, "ada"), 1, false},
		{strikes(api.BlameNode, "ada", "ada", "ada", "ada"), 1, false},
		{strikes(api.BlameNode, "ada", "ada", "bob"), 3, true},
		{[]Strike{{Job: 1, User: "ada", Blame: api.BlameNode}, {Job: 1, User: "ada", Blame: api.BlameNode}, {Job: 2, User: "bob", Blame: api.BlameNode}}, 2, true},
		{append(strikes(api.BlameNode, "ada", "ada"), strikes(api.BlameUnknown, "ada", "ada")...), 1, false},
		{append(strikes(api.BlameNode, "ada"), strikes(api.BlameUnknown, "bob")...), 2, true},
		{strikes(api.BlameUnknown, "ada", "bob", "bob"), 2, true},
		{strikes(api.BlameSite, "ada", "ada", "ada"), 1, false},
		{strikes(api.BlameSite, "ada", "bob", "bob"), 3, true},
		{append(strikes(api.BlameSite, "ada", "ada"), strikes(api.BlameNode, "ada", "ada")...), 1, false},
		{append(strikes(api.BlameSite, "ada"), Strike{Job: 9, User: "bob", Blame: api.BlameNode}), 2, true},
	} {
		if got := weight(c.strikes); got != c.weight || notOneUsers(c.strikes) != c.several {
			t.Errorf("%+v weigh %d, several users' %v; want %d, %v", c.strikes, got, notOneUsers(c.strikes), c.weight, c.several)
		}
	}
	b := newBench(t, 1)
	b.w.set.LaunchStrikes = 1
	for range 5 {
		id := b.by("mallory")
		b.on(id, "n1")
		b.refuse(id, api.BlameNode, "no cgroup")
		b.must(Cancel{Job: id})
	}
	if n := b.w.Node("n1"); n.State != api.NodeUp {
		t.Errorf("%s %q", n.State, n.Reason)
	}
}

// A node that lost what it must have refuses all that is just being started there, in the report in which
// it says so: the gangs run elsewhere uncharged, the node is out of service, and back when it says so, without a
// person: a hundred refusals are no strike.
func TestANodeThatLacksSomethingFailsNobody(t *testing.T) {
	b := newBench(t, 2)
	const lacks = "nothing is mounted at /home"
	var ids []int64
	unfit := api.Actual{Health: &api.NodeHealth{Sick: lacks}}
	for range 8 {
		id := b.by("ada")
		b.on(id, "n1")
		ids = append(ids, id)
		unfit.Members = append(unfit.Members, api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameUnfit, Text: lacks}})
	}
	b.must(NodeReport{Node: "n1", Actual: unfit})
	n := b.w.Node("n1")
	if n.State != api.NodeDrained || n.Reason != "health: "+lacks || n.Admin != "" || len(n.Strikes) > 0 {
		t.Errorf("%s %q, strikes %v", n.State, n.Reason, n.Strikes)
	}
	for _, id := range ids {
		j := b.w.Job(id)
		if !blocked(j) || len(j.Used) > 0 || len(j.Refusals) > 0 || !j.BackoffUntil.IsZero() && j.BackoffUntil.After(b.now.Wall.Add(time.Second)) {
			t.Errorf("job %d: %v used, %v, waits until %v", id, j.Used, j.Refusals, j.BackoffUntil)
		}
		b.after(time.Second)
		b.on(id, "n2")
		b.ready(id)
		b.phase(id, "n2", api.PhaseStopped, exit(0, 0))
		b.state(id, api.JobCompleted)
	}
	b.must(NodeReport{Node: "n1", Actual: api.Actual{Health: &api.NodeHealth{}}})
	if n := b.w.Node("n1"); n.State != api.NodeUp || len(n.Strikes) > 0 {
		t.Errorf("%s %q, strikes %v after it is whole", n.State, n.Reason, n.Strikes)
	}
}

// While another node could hold the gang, busy as it may be, the one that refused it is not
// tried again.
func TestARefusedGangIsPlacedElsewhere(t *testing.T) {
	b := newBench(t, 2)
	id := b.by("ada")
	b.on(id, "n1")
	b.refuse(id, api.BlameFiles, "no such directory")
	if !why.CouldHold(nodesOf(b, "n2"), b.w.Candidate(id).Ask) || why.CouldHold(nodesOf(b, "n1"), b.w.Candidate(id).Ask) {
		t.Fatalf("asks for %v", b.w.Candidate(id).Ask.Spec.Exclude)
	}
	if !b.w.Job(id).BackoffUntil.IsZero() || len(b.w.Job(id).Used) != 0 {
		t.Errorf("it waits until %s, charged %v", b.w.Job(id).BackoffUntil, b.w.Job(id).Used)
	}
	// Without the other one there is nothing better, and the budget says when it is enough.
	b.must(NodeDrain{Node: "n2", Reason: "fan", User: "root"})
	if !why.CouldHold(nodesOf(b, "n1"), b.w.Candidate(id).Ask) {
		t.Error("kept off the only node in service")
	}
	b.must(NodeResume{Node: "n2"})
	if why.CouldHold(nodesOf(b, "n1"), b.w.Candidate(id).Ask) {
		t.Error("n2 is back, and n1 is tried again")
	}
	b.on(id, "n2")
	b.ready(id)
	if len(b.w.Job(id).Refusals) != 0 || b.w.Job(id).Elsewhere {
		t.Errorf("remembered after the start: %+v", b.w.Job(id).Refusals)
	}
	b.w.Take()
	if again := Restore(b.now, b.w.set, &Snapshot{Jobs: []*Job{b.w.Job(id)}, Nodes: b.w.Nodes(), NextID: 2, NextSeq: 1}); len(again.Verify()) != 0 {
		t.Error(again.Verify())
	}
}

func nodesOf(b *bench, name string) []*cluster.Node { return []*cluster.Node{b.w.Node(name).Res} }

func TestRefusedByTwoIsTheJobs(t *testing.T) {
	b := newBench(t, 3)
	id := b.by("ada")
	for i := 0; b.w.Job(id).Verdict == nil; i++ {
		b.after(time.Minute)
		node := fmt.Sprintf("n%d", i%2+1)
		r := b.spread(id)
		r.Slots[0].Node = node
		if out := b.step(r); !out.Applied {
			t.Fatal(out.Refused)
		}
		b.refuse(id, api.BlameFiles, "no such directory: /x")
	}
	v := b.w.Job(id).Verdict
	if v.State != api.JobFailed || v.Cause != api.CauseLaunch || v.Text != "n2: no such directory: /x; n1: no such directory: /x" {
		t.Errorf("%+v", v)
	}
	if used := b.w.Job(id).Used[api.CauseLaunch]; used != 4 || b.w.Job(id).Epoch != 5 {
		t.Errorf("charged %d in %d epochs", used, b.w.Job(id).Epoch)
	}
	for _, n := range b.w.Nodes() {
		if len(n.Strikes) != 0 {
			t.Errorf("%s: %v", n.Name, n.Strikes)
		}
	}
}

// A node that is late is avoided; it is struck when another one was not, for each user once.
func TestALateNodeIsStruckWhenAnotherStarts(t *testing.T) {
	b := newBench(t, 2)
	id := b.by("ada")
	b.on(id, "n1")
	b.after(30 * time.Second)
	if n := b.w.Node("n1"); len(n.Strikes) != 0 || len(b.w.Job(id).Used) != 0 {
		t.Fatalf("%v, charged %v", n.Strikes, b.w.Job(id).Used)
	}
	b.on(id, "n2")
	b.ready(id)
	if n := b.w.Node("n1"); len(n.Strikes) != 1 {
		t.Fatalf("%+v", n.Strikes)
	}
}

// A controller that stood still told nobody anything: nobody is late for that.
func TestTheControllersOwnDelayIsNobodysFault(t *testing.T) {
	b := newBench(t, 2)
	id := b.by("ada")
	b.on(id, "n1")
	b.must(Stalled{For: 40 * time.Second})
	b.after(60 * time.Second)
	b.state(id, api.JobReserved)
	b.after(10 * time.Second)
	b.state(id, api.JobPending)
}

// Our own stop, or the node's by a lease or a limit, before the gate was opened: nobody's fault.
func TestStoppedBeforeTheStartStrikesNobody(t *testing.T) {
	b := newBench(t, 1)
	for range 9 {
		id := b.by("ada")
		b.on(id, "n1")
		b.phase(id, "n1", api.PhaseStopped)
		b.must(Cancel{Job: id})
	}
	if n := b.w.Node("n1"); n.State != api.NodeUp || len(n.Strikes) != 0 {
		t.Errorf("%s, %v", n.State, n.Strikes)
	}
}
