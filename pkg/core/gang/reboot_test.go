package gang

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// rebooter is the hello of a node with a reboot_program, in this boot of it.
func rebooter(name, boot string, members ...api.MemberActual) NodeHello {
	h := helloOf(name, members...)
	h.Hello.Reboots, h.Hello.BootID = true, boot
	return h
}

func rebootBench(t *testing.T, nodes int) *bench {
	b := newBench(t, nodes)
	for _, n := range b.w.Nodes() {
		b.must(rebooter(n.Name, "boot-1"))
	}
	return b
}

func (b *bench) nodeIs(name string, state api.NodeState, reason string) {
	b.t.Helper()
	n := b.w.Node(name)
	if n.State != state || n.Reason != reason {
		b.t.Fatalf("%s is %s %q, want %s %q", name, n.State, n.Reason, state, reason)
	}
}

// What runs ends by itself, nothing new comes, the node is told when it is empty, and takes work again when it is back by
// another boot, and not by a hello of the same.
func TestARebootAsSoonAsPossible(t *testing.T) {
	b := rebootBench(t, 2)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(NodeReboot{Node: "n1", By: "ada", Reason: "kernel", Asap: true})
	b.nodeIs("n1", api.NodeDraining, "reboot asked by ada: kernel")
	if RebootOrder(b.w.Node("n1")) != nil || b.w.Node("n1").Res.Ready {
		t.Fatalf("%+v", b.w.Node("n1"))
	}
	if out := b.step(NodeReboot{Node: "n1", By: "ada", Reason: "kernel", Asap: true}); out.Ignored != "it is asked for already" {
		t.Fatalf("%+v", out)
	}
	b.state(id, api.JobRunning)
	b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
	b.state(id, api.JobCompleted)
	b.nodeIs("n1", api.NodeRebooting, "reboot asked by ada: kernel")
	if o := RebootOrder(b.w.Node("n1")); o == nil || o.Boot != "boot-1" {
		t.Fatalf("%+v", o)
	}
	b.must(NodeGone{Node: "n1"})
	b.must(rebooter("n1", "boot-1")) // its daemon alone was stopped so far
	b.nodeIs("n1", api.NodeRebooting, "reboot asked by ada: kernel")
	b.must(NodeGone{Node: "n1"})
	b.after(14 * time.Minute) // which is no silence of a node that reboots
	b.nodeIs("n1", api.NodeRebooting, "reboot asked by ada: kernel")
	b.must(rebooter("n1", "boot-2"))
	b.nodeIs("n1", api.NodeUp, "")
	if n := b.w.Node("n1"); n.Reboot != nil || !n.Res.Ready {
		t.Fatalf("%+v", n)
	}
}

// Without asap a node goes on taking work, and is told at the first moment at which it has none.
func TestARebootOfANodeThatIsIdle(t *testing.T) {
	b := rebootBench(t, 1)
	first, second := b.submit(specOf(1)), b.submit(specOf(1))
	b.start(first)
	b.must(NodeReboot{Node: "n1"})
	b.nodeIs("n1", api.NodeUp, "")
	b.start(second)
	b.phase(first, "n1", api.PhaseStopped, exit(0, 0))
	b.nodeIs("n1", api.NodeUp, "")
	b.phase(second, "n1", api.PhaseStopped, exit(0, 0))
	b.nodeIs("n1", api.NodeRebooting, "reboot")
	if out := b.step(b.spread(b.submit(specOf(1)))); out.Refused == nil {
		t.Fatalf("admitted to a node that reboots: %+v", out)
	}
	if out := b.step(NodeRebootCancel{Node: "n1"}); out.Refused == nil || !strings.Contains(out.Refused.Message, "can't be taken back") {
		t.Fatalf("%+v", out)
	}
	if out := b.step(NodeResume{Node: "n1"}); out.Refused == nil {
		t.Fatalf("%+v", out)
	}
	b.must(rebooter("n1", "boot-2"))
	b.nodeIs("n1", api.NodeUp, "")
}

// An idle node is told at once; how it is afterwards is as was asked.
func TestHowANodeIsAfterItsReboot(t *testing.T) {
	for then, want := range map[api.RebootThen][2]string{api.RebootAsBefore: {"drained", "fan"}, api.RebootResume: {"up", ""}, api.RebootDown: {"drained", "new disk"}} {
		b := rebootBench(t, 1)
		b.unwritten()
		b.must(NodeDrain{Node: "n1", Reason: "fan", User: "ada"})
		b.must(NodeReboot{Node: "n1", Reason: "new disk", Then: then})
		b.nodeIs("n1", api.NodeRebooting, "fan")
		b.must(rebooter("n1", "boot-2"))
		b.nodeIs("n1", api.NodeState(want[0]), want[1])
		if b.w.Node("n1").Down != (then == api.RebootDown) {
			t.Errorf("%q: %+v", then, b.w.Node("n1"))
		}
	}
	b := rebootBench(t, 1)
	b.unwritten()
	b.must(NodeReboot{Node: "n1", Then: api.RebootResume})
	b.must(NodeDrain{Node: "n1", Reason: "fan", User: "ada"}) // who came later
	b.must(rebooter("n1", "boot-2"))
	b.nodeIs("n1", api.NodeDrained, "fan")
	b.must(NodeResume{Node: "n1"})
	b.must(NodeReboot{Node: "n1"})
	sick := rebooter("n1", "boot-3")
	sick.Hello.Health.Sick = "no /home"
	b.must(sick) // a node that is not fit is not back
	b.nodeIs("n1", api.NodeDrained, "health: no /home")
}

// A node that can't, that does not go away, and that does not come back.
func TestARebootThatFails(t *testing.T) {
	b := rebootBench(t, 3)
	for _, n := range []string{"n1", "n2", "n3"} {
		b.must(NodeReboot{Node: n, By: "ada"})
	}
	o := *RebootOrder(b.w.Node("n1"))
	old := o
	old.Boot = "boot-0"
	b.step(NodeReport{Node: "n1", Actual: api.Actual{Reboot: &api.RebootActual{RebootOrder: old, Failed: "of another"}}})
	b.nodeIs("n1", api.NodeRebooting, "reboot asked by ada")
	b.must(NodeReport{Node: "n1", Actual: api.Actual{Reboot: &api.RebootActual{RebootOrder: o, Failed: "exit status 1"}}})
	b.nodeIs("n1", api.NodeDrained, "reboot failed: exit status 1")
	b.must(NodeGone{Node: "n3"})
	b.after(15 * time.Minute)
	b.nodeIs("n2", api.NodeDrained, "reboot failed: it runs on as before 15 min after it was told to")
	b.nodeIs("n3", api.NodeLost, "reboot asked by ada")
	b.must(rebooter("n3", "boot-2"))
	b.nodeIs("n3", api.NodeUp, "")
	b.must(NodeResume{Node: "n2"})
	b.nodeIs("n2", api.NodeUp, "")
	b.must(NodeReboot{Node: "n3"})
	b.must(NodeGone{Node: "n3"})
	b.after(16 * time.Minute)
	b.must(rebooter("n3", "boot-2")) // it was only away
	b.nodeIs("n3", api.NodeDrained, "reboot failed: it runs on as before 15 min after it was told to")
}

func TestARebootThatIsRefusedOrTakenBack(t *testing.T) {
	b := rebootBench(t, 2)
	b.hello("n2")
	for _, c := range [...]struct{ node, want string }{{"n2", "node n2 has no program that reboots it"}, {"n9", `no node "n9"`}} {
		if out := b.step(NodeReboot{Node: c.node}); out.Refused == nil || out.Refused.Message != c.want {
			t.Errorf("%s: %+v", c.node, out)
		}
	}
	if out := b.step(NodeRebootCancel{Node: "n9"}); out.Refused == nil {
		t.Errorf("%+v", out)
	}
	if out := b.step(NodeRebootCancel{Node: "n1"}); out.Ignored == "" {
		t.Errorf("%+v", out)
	}
	id := b.submit(specOf(1))
	b.start(id)
	b.must(NodeReboot{Node: "n1", Asap: true})
	if out := b.step(NodeResume{Node: "n1"}); out.Refused == nil || !strings.Contains(out.Refused.Hint, "--cancel") {
		t.Errorf("%+v", out)
	}
	b.must(NodeRebootCancel{Node: "n1", By: "ada"})
	b.nodeIs("n1", api.NodeUp, "")
	b.must(NodeGone{Node: "n1"})
	b.after(31 * time.Second)
	if out := b.step(NodeReboot{Node: "n1"}); out.Refused == nil || !strings.Contains(out.Refused.Message, "is lost") {
		t.Errorf("%+v", out)
	}
}

// Who asked, and that it was told, outlives the controller; a job that a node ran when it rebooted without having been told
// runs again, and what was asked for has happened.
func TestARebootOutlivesTheController(t *testing.T) {
	b := rebootBench(t, 2)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(NodeReboot{Node: "n1", By: "ada", Asap: true})
	b.must(NodeReboot{Node: "n2", By: "ada"})
	b.reborn(time.Minute)
	b.nodeIs("n2", api.NodeRebooting, "reboot asked by ada")
	b.must(rebooter("n1", "boot-1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: 0, PID: 100}}}))
	b.nodeIs("n1", api.NodeDraining, "reboot asked by ada")
	b.must(rebooter("n2", "boot-1"))
	if RebootOrder(b.w.Node("n2")) == nil {
		t.Fatal("not told again")
	}
	b.must(rebooter("n2", "boot-2"))
	b.nodeIs("n2", api.NodeUp, "")
	b.must(NodeGone{Node: "n1"})
	b.must(rebooter("n1", "boot-2"))
	b.nodeIs("n1", api.NodeUp, "")
	b.state(id, api.JobPending)
}
