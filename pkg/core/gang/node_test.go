package gang

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

func TestStrikesAreInARow(t *testing.T) {
	b := newBench(t, 1)
	turn := 0
	refuse := func() {
		turn++
		id := b.by([]string{"ada", "bob"}[turn%2])
		b.must(b.spread(id))
		b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameNode, Text: "no cgroup"}})
		b.must(Cancel{Job: id})
	}
	refuse()
	refuse()
	good := b.submit(specOf(1))
	b.start(good)
	if got := len(b.w.Node("n1").Strikes); got != 0 {
		t.Fatalf("%d strikes after a start", got)
	}
	refuse()
	refuse()
	if got := b.w.Node("n1").State; got != api.NodeUp {
		t.Fatal(got)
	}
	refuse()
	if n := b.w.Node("n1"); n.State != api.NodeDraining || n.Res.NotReady != "draining: launch failures: job 6: no cgroup" {
		t.Fatalf("%s, %q", n.State, n.Res.NotReady)
	}
	b.state(good, api.JobRunning)
	b.phase(good, "n1", api.PhaseStopped, exit(0, 0))
	if got := b.w.Node("n1").State; got != api.NodeDrained {
		t.Fatal(got)
	}
}

// A node that is away was not slow: no strike.
func TestNoStrikeForANodeWithoutASession(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.phase(id, "n1", api.PhaseReady)
	b.after(5 * time.Second)
	b.must(NodeGone{Node: "n2"})
	b.after(25 * time.Second)
	b.state(id, api.JobPending)
	if got := len(b.w.Node("n2").Strikes); got != 0 {
		t.Fatalf("%d strikes", got)
	}
}

func TestARebootIsKnownGone(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	h := helloOf("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning})
	h.Hello.BootID = "boot-2"
	b.must(h) // whatever its daemon claims from old files
	d := b.w.Job(id).Drain
	if d == nil || d.Cause != api.CauseNodeLost || d.Trigger != 1 || d.Text != "n2: the node rebooted" || d.Moved != 1 {
		t.Fatalf("%+v", d)
	}
	if len(b.w.Node("n2").Res.Grants) != 0 {
		t.Fatal("still granted")
	}
	b.ack(id)
	if b.w.Candidate(id) == nil {
		t.Fatal("not a candidate, though nothing can run any more")
	}
	if got := b.w.Job(id).Avoid; len(got) != 1 || got[0] != "n2" {
		t.Fatal(got)
	}
}

func TestMemberMissingInAHello(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.hello("n2")
	d := b.w.Job(id).Drain
	if d == nil || d.Cause != api.CauseNodeLost || d.Text != "n2: missing on the node" {
		t.Fatalf("%+v", d)
	}
}

// TestHelloBringsTemporarySpace: what a node offers, and what each of its members takes, is what it said last.
func TestHelloBringsTemporarySpace(t *testing.T) {
	b := newBench(t, 0)
	for _, x := range []struct{ offers, each, used int64 }{{100, 10, 0}, {50, 20, 20}, {50, 0, 0}} {
		h := helloOf("n1")
		h.Hello.TmpBytes, h.Hello.TmpEach = x.offers, x.each
		if j := b.w.Job(1); j != nil {
			h.Hello.Members = []api.MemberActual{{MemberKey: b.key(1), Phase: api.PhaseRunning, Ranks: []api.RankActual{{}}}}
		}
		b.must(h)
		if r := b.w.Node("n1").Res; r.Has[cluster.Tmp] != x.offers || r.Each[cluster.Tmp] != x.each || r.Used(cluster.Tmp) != x.used {
			t.Errorf("%d offered, each takes %d, %d used; want %+v", r.Has[cluster.Tmp], r.Each[cluster.Tmp], r.Used(cluster.Tmp), x)
		}
		if b.w.Job(1) == nil {
			b.start(b.submit(specOf(1)))
		}
	}
}

func TestAnExitWhileTheDaemonWasDownCountsOnce(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.start(id)
	b.must(NodeGone{Node: "n1"})
	b.after(5 * time.Second)
	stopped := api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseStopped, Ranks: []api.RankActual{exit(0, 0)}}
	b.w.Take()
	b.hello("n1", stopped)
	b.hello("n1", stopped)
	b.say("n1", stopped)
	b.state(id, api.JobCompleted)
	n := 0
	for _, ev := range b.w.Take().Events {
		if ev.Type == api.EventRankExited || ev.Type == api.EventEnded {
			n++
		}
	}
	if n != 2 {
		t.Fatalf("%d events for one exit and one end", n)
	}
}

// After a fresh contact no old lease timer may count a member gone that says it lives.
func TestHelloEndsTheLeaseTimer(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(2))
	b.start(id)
	key := b.key(id)
	b.must(NodeGone{Node: "n2"})
	b.after(30 * time.Second)
	b.ack(id)
	alive := api.MemberActual{MemberKey: key, Phase: api.PhaseRunning}
	b.hello("n2", alive)
	b.after(5 * time.Minute)
	b.must(NodeGone{Node: "n2"})
	b.after(9 * time.Minute) // past the first lease, within the second
	if b.w.Candidate(id) != nil {
		t.Fatal("counted gone by the lease from before the hello")
	}
	b.after(2 * time.Minute)
	if b.w.Candidate(id) == nil {
		t.Fatal("the second lease never ends")
	}
}

// What was counted gone by its lease and lives all the same, on a node that is back, keeps
// new work away until the node says that it is gone.
func TestAStrayKeepsItsNodeOutOfService(t *testing.T) {
	b := newBench(t, 3)
	id := b.submit(specOf(2))
	b.start(id)
	key := b.key(id)
	b.must(NodeGone{Node: "n2"})
	b.after(30 * time.Second)
	b.ack(id)
	b.after(time.Hour)
	for _, over := range []NodeReport{
		{Node: "n2", Actual: api.Actual{Gone: []api.MemberKey{key}}},
		{Node: "n2", Actual: api.Actual{Members: []api.MemberActual{{MemberKey: key, Phase: api.PhaseStopped}}}},
	} {
		b.hello("n2", api.MemberActual{MemberKey: key, Phase: api.PhaseStuck})
		n := b.w.Node("n2")
		if want := "epoch 1 of job 1, which was counted gone, still runs here"; n.State != api.NodeDraining || n.Reason != want || n.Res.Ready {
			t.Fatalf("%s %q, ready %t", n.State, n.Reason, n.Res.Ready)
		}
		b.step(over)
		if n := b.w.Node("n2"); n.State != api.NodeUp || !n.Res.Ready {
			t.Fatalf("%s %q after it is gone", n.State, n.Reason)
		}
	}
}

// TestUnreadRecordIsTold: that a node can't read its own record of a member is in the story of the
// job and of the node once, whatever is said of the member.
func TestUnreadRecordIsTold(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.w.Take()
	run := api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Found: "spec.json: damaged"}
	b.hello("n1", run)
	b.say("n1", run)
	b.hello("n1", run)
	unknown := api.MemberActual{MemberKey: api.MemberKey{Job: 77, Epoch: 3}, Phase: api.PhaseRunning, Found: "its record is missing"}
	b.hello("n1", run, unknown)
	lost := run
	lost.Phase = api.PhaseLost
	b.say("n1", lost)
	var texts []string
	for _, ev := range b.w.Take().Events {
		if ev.Type == api.EventMemberFound {
			texts = append(texts, fmt.Sprintf("%d.%d %s: %s", ev.JobID, ev.ClaimedEpoch, ev.Node, ev.Text))
		}
	}
	want := []string{"1.1 n1: running, spec.json: damaged", "0.3 n1: running, its record is missing, of job 77 which is not known"}
	if !slices.Equal(texts, want) {
		t.Errorf("%q\nwant %q", texts, want)
	}
	if d := b.w.Job(id).Drain; d == nil || d.Cause != api.CauseNodeLost || d.Text != "n1: spec.json: damaged" {
		t.Errorf("%+v", d)
	}
	b.step(NodeReport{Node: "n1", Actual: api.Actual{Gone: []api.MemberKey{b.key(id)}}})
	if n := len(b.w.nodes.byName["n1"].found); n != 1 {
		t.Errorf("%d are remembered", n)
	}
}

func TestLeaseOff(t *testing.T) {
	set := settings()
	set.Lease = 0
	b := benchWith(t, 3, set)
	id := b.submit(specOf(2))
	b.start(id)
	b.must(NodeGone{Node: "n2"})
	b.after(30 * time.Second)
	b.ack(id)
	b.after(1000 * time.Hour)
	if b.w.Candidate(id) != nil {
		t.Fatal("guessed")
	}
}

func TestLostNodeIsFlaggedOnce(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	b.must(NodeGone{Node: "n2"})
	if n := b.w.Node("n2"); n.State != api.NodeSuspect || n.Res.Ready {
		t.Fatalf("%s", n.State)
	}
	b.w.Take()
	b.after(time.Hour)
	dead := 0
	for _, ev := range b.w.Take().Events {
		if ev.Type == api.EventNodeLost {
			dead++
			if ev.Node != "n2" || len(ev.Jobs) != 1 || ev.Jobs[0] != id || !ev.LastSeen.Equal(epoch0) {
				t.Fatalf("%+v", ev)
			}
		}
	}
	if n := b.w.Node("n2"); dead != 1 || n.State != api.NodeLost || !n.LostSince.Equal(epoch0.Add(30*time.Second)) {
		t.Fatalf("%d lines, %s since %s", dead, n.State, n.LostSince)
	}
	if n := b.w.Node("n2"); !OnlySilent(n) || n.Reason != "silent for 30 s" {
		t.Fatalf("%t: %s", OnlySilent(n), n.Reason)
	}
	b.must(NodeDrain{Node: "n2", User: "ada", Reason: "fan"})
	if n := b.w.Node("n2"); OnlySilent(n) || n.Reason != "fan" || n.State != api.NodeLost {
		t.Fatalf("%t: %s", OnlySilent(n), n.Reason)
	}
	b.must(NodeResume{Node: "n2"})
	b.hello("n2")
	if n := b.w.Node("n2"); n.State != api.NodeUp || !n.LostSince.IsZero() {
		t.Fatalf("%+v", n)
	}
}

func TestFenceOnlyOfALostNode(t *testing.T) {
	b := newBench(t, 1)
	out := b.step(NodeFence{Node: "n1"})
	if out.Refused == nil || out.Refused.Error() != "node n1 is up: only a lost node can be fenced" {
		t.Fatalf("%+v", out)
	}
	if out := b.step(NodeFence{Node: "n7"}); out.Refused.Error() != `no node "n7"; nodes are n1` {
		t.Fatalf("%+v", out)
	}
}

// A member that is to stop is never told to start as well: its node may not have seen the
// open gate yet.
func TestStopShutsTheGate(t *testing.T) {
	b := newBench(t, 1)
	id := b.submit(specOf(1))
	b.must(b.spread(id))
	b.ready(id)
	b.must(Cancel{Job: id})
	if as := b.w.Desired("n1"); as[0].Stop == nil || as[0].Gate != nil {
		t.Fatalf("%+v", as[0])
	}
}

// A member that ran before its gate was opened is a node's fault, and it bars the gang.
func TestPrematureMemberBarsTheGang(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.phase(id, "n2", api.PhaseRunning, api.RankActual{Rank: 1, PID: 9})
	b.state(id, api.JobPending)
	if b.w.Candidate(id) != nil || b.w.Fenced(id)[0] != "n2" || len(b.w.Node("n2").Strikes) != 1 {
		t.Fatal("not barred")
	}
}

func TestSamples(t *testing.T) {
	b := newBench(t, 1)
	b.w.Take()
	b.must(NodeSample{Node: "n1", Cards: []api.CardSample{{UUID: "GPU-n1-2", StrangersBytes: 9 << 30, Utilization: 7}}})
	ch := b.w.Take()
	if len(ch.Nodes) != 0 || len(ch.Seen) != 1 || ch.Seen[0].Res.FreeVRAM(2) != 71<<30 {
		t.Fatalf("%+v", ch)
	}
	b.must(NodeSample{Node: "n1", Cards: []api.CardSample{{UUID: "GPU-n1-2", Unhealthy: "xid 79"}}})
	ch = b.w.Take()
	if c := ch.Nodes[0].Res.Cards[2]; len(ch.Nodes) != 1 || c.State != api.CardQuarantined || c.Reason != "xid 79" || ch.Events[0].Text != "card 2 quarantined: xid 79" {
		t.Fatalf("%+v", ch)
	}
	b.hello("n1")
	if c := b.w.Node("n1").Res.Cards[2]; c.State != api.CardQuarantined {
		t.Fatal("a hello heals no card")
	}
	b.must(NodeSample{Node: "n1", Cards: []api.CardSample{{UUID: "GPU-n1-2"}}})
	if c := b.w.Node("n1").Res.Cards[2]; c.State != api.CardOK {
		t.Fatal(c.State)
	}
}

func TestReserveIsCheckedWhole(t *testing.T) {
	b := newBench(t, 2)
	card := func(n string, u ...string) cluster.Slot { return cluster.Slot{Node: n, Cards: u} }
	s := specOf(2)
	s.GPUsPerRank = 1
	id := b.submit(s)
	other := b.submit(s)
	b.must(Admit{Job: other, Slots: []cluster.Slot{card("n2", "GPU-n2-0"), card("n2", "GPU-n2-1")}})
	b.must(NodeDrain{Node: "n2", Reason: "disk"})
	b.w.Take()
	slots := map[string][]cluster.Slot{
		"1 slots for the 2 ranks of job 1":              {card("n1", "GPU-n1-0")},
		"0 cards for rank 1 of job 1, which asks for 1": {card("n1", "GPU-n1-0"), card("n1")},
		`node "n9" is not known`:                        {card("n1", "GPU-n1-0"), card("n9", "GPU-n9-0")},
		"node n2 takes no new work: draining: disk":     {card("n1", "GPU-n1-0"), card("n2", "GPU-n2-3")},
		"node n1 has no card GPU-n2-3":                  {card("n1", "GPU-n1-0"), card("n1", "GPU-n2-3")},
	}
	for _, want := range slices.Sorted(maps.Keys(slots)) {
		out := b.step(Admit{Job: id, Slots: slots[want]})
		if out.Refused == nil || out.Refused.Error() != want {
			t.Errorf("got %v, want %q", out.Refused, want)
		}
	}
	if ch := b.w.Take(); len(ch.Jobs)+len(ch.Nodes)+len(ch.Dirty)+len(ch.Events) != 0 {
		t.Fatalf("a refused reservation changed %+v", ch)
	}
}

// Of a session that breaks and of a node that comes back as it was nothing is stored but the event.
func TestANodeThatCameBackAsItWasIsNotStored(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(b *bench)
		change func(ev *NodeHello)
		want   int // nodes stored
	}{
		{"as it was", nil, func(*NodeHello) {}, 0},
		{"has been told more", nil, func(ev *NodeHello) {
			ev.Hello.LineageSeen, ev.Hello.RunSeen, ev.Hello.LineageProof, ev.Hello.Made = 7, "run", "proof", time.Hour
		}, 0},
		{"another version", nil, func(ev *NodeHello) { ev.Hello.Version = "2" }, 1},
		{"rebooted", nil, func(ev *NodeHello) { ev.Hello.BootID = "boot-2" }, 1},
		{"a card less", nil, func(ev *NodeHello) { ev.Hello.Cards = ev.Hello.Cards[1:] }, 1},
		{"other partitions", nil, func(ev *NodeHello) { ev.Partitions = []string{"main", "more"} }, 1},
		{"other features", nil, func(ev *NodeHello) { ev.Hello.Features = []string{"fast"} }, 1},
		{"ill", nil, func(ev *NodeHello) { ev.Hello.Health.Sick = "hot" }, 1},
		{"was lost", func(b *bench) { b.after(b.w.set.NodeTimeout) }, func(*NodeHello) {}, 1},
	} {
		b := newBench(t, 2)
		b.w.Take()
		b.must(NodeGone{Node: "n1"})
		if ch := b.w.Take(); len(ch.Nodes) != 0 || len(ch.Seen) != 1 || ch.Seen[0].State != api.NodeSuspect || len(ch.Events) != 1 {
			t.Fatalf("a session broke: %d stored, shown %+v, %d events", len(ch.Nodes), ch.Seen, len(ch.Events))
		}
		if c.before != nil {
			c.before(b)
			b.w.Take()
		}
		ev := helloOf("n1")
		c.change(&ev)
		b.must(ev)
		ch := b.w.Take()
		if len(ch.Nodes) != c.want || len(ch.Seen) != 1-c.want {
			t.Errorf("%s: %d stored, %d shown, want %d stored", c.name, len(ch.Nodes), len(ch.Seen), c.want)
		}
		if n := b.w.Node("n1"); !n.Connected || n.BootID != ev.Hello.BootID || n.Hello.Version != ev.Hello.Version {
			t.Errorf("%s: %+v", c.name, n)
		}
	}
}

// The scheduler finds nodes by bisection.
func TestNodesAreListedByName(t *testing.T) {
	b := newBench(t, 0)
	for _, name := range []string{"n3", "n1", "n4", "n2"} {
		b.hello(name)
	}
	names := func() (all []string) {
		for _, n := range b.w.Nodes() {
			all = append(all, n.Name)
		}
		return all
	}
	want := []string{"n1", "n2", "n3", "n4"}
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("nodes %q, want %q", got, want)
	}
	b.reborn(time.Second)
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("nodes %q after a restart, want %q", got, want)
	}
}

// TestForgetNode: a lost node of which nothing is waited for can be dropped, and is a new one when
// it comes back.
func TestForgetNode(t *testing.T) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.start(id)
	refused := func(want string) {
		t.Helper()
		if out := b.step(NodeForget{Node: "n2"}); out.Refused == nil || !strings.HasPrefix(out.Refused.Message, want) {
			t.Fatalf("%+v, want %q", out.Refused, want)
		}
	}
	refused("node n2 is up: only a lost node, or one that is drained and cut off, can be forgotten")
	b.must(NodeGone{Node: "n2"})
	b.after(time.Minute)
	refused("node n2 may still run something of job 1")
	b.must(NodeFence{Node: "n2"})
	refused("job 1, which has not ended, has a part on node n2")
	b.ack(id)
	b.must(NodeForget{Node: "n2", By: "root"})
	if b.w.Node("n2") != nil {
		t.Fatal("it is known still")
	}
	if ch := b.w.Take(); !slices.Equal(ch.Forgot, []string{"n2"}) || slices.ContainsFunc(ch.Nodes, func(n *Node) bool { return n.Name == "n2" }) {
		t.Fatalf("to be written: forgotten %v, nodes %v", ch.Forgot, ch.Nodes)
	}
	if out := b.step(NodeForget{Node: "n2"}); out.Refused == nil || out.Refused.Code != api.CodeNotFound {
		t.Fatalf("%+v", out)
	}
	b.hello("n2")
	if n := b.w.Node("n2"); n == nil || n.State != api.NodeUp {
		t.Fatalf("after it came back: %+v", n)
	}
	b.must(NodeDrain{Node: "n2", Reason: "sold"})
	refused("node n2 is drained: only")
	b.must(NodeGone{Node: "n2"})
	b.must(NodeForget{Node: "n2"}) // need not be waited for until it is lost: nothing is there
	b.must(NodeGone{Node: "n1"})
	refused(`no node "n2"`)
}

func TestNodesThatAreNotThere(t *testing.T) {
	b := newBench(t, 2)
	for _, ev := range []Event{NodeSample{Node: "n9"}, NodeGone{Node: "n9"}, Watched{Node: "n9"}, CardDrain{Node: "n9"}, NodeForget{Node: "n9"}, NodeFence{Node: "n9"}} {
		b.refuses(ev, `no node "n9"`)
	}
	b.refuses(NodeReport{Node: "n9"}, `node "n9" is not known`)
	b.refuses(NodeHello{}, "the hello names no node")
	if got := b.w.Desired("n9"); got != nil {
		t.Errorf("%v", got)
	}
	for _, ev := range []Event{CardDrain{Node: "n1", UUID: "x"}, CardResume{Node: "n1", UUID: "x"}} {
		b.refuses(ev, "node n1 has no card x")
	}
	b.must(CardDrain{Node: "n1", UUID: "GPU-n1-2", Reason: "hot"})
	b.ignores(CardDrain{Node: "n1", UUID: "GPU-n1-2", Reason: "hot"}, "out of service already")
	b.must(CardDrain{Node: "n1", UUID: "GPU-n1-2", Reason: "cold"})
	b.must(CardResume{Node: "n1", UUID: "GPU-n1-2"})
	b.ignores(CardResume{Node: "n1", UUID: "GPU-n1-2"}, "in service already")
	b.ignores(NodeSample{Node: "n1", Cards: []api.CardSample{{UUID: "x"}}}, "nothing new")
	if e := NoNode("n9", nil); e.Hint != "there are none" || e.Reason != api.ReasonNode || e.Subject != "n9" {
		t.Errorf("%+v", e)
	}
	if e := NoNode("n9", []string{"a1", "a2"}); !strings.Contains(e.Hint, "a[1-2]") {
		t.Errorf("%+v", e)
	}
	if e := NoReservation("x", nil); e.Hint != "there are none" {
		t.Errorf("%+v", e)
	}
	if e := NoReservation("x", []string{"aaaa", "bbbb"}); !strings.Contains(e.Hint, "reservations are aaaa, bbbb") {
		t.Errorf("%+v", e)
	}
}

func TestJobsOnANode(t *testing.T) {
	h := newBench(t, 1).w.nodes.byName["n1"]
	for i := range 10 {
		h.members[memberKey(int64(20-i), 1)] = place{}
	}
	h.node.Left = []Left{{MemberKey: memberKey(15, 1)}}
	want := "job 11 12 13 14 15 16 17 18 19 20"
	if got := jobsOn(h); got != want+" and others" && got != want {
		t.Errorf("%q", got)
	}
	delete(h.members, memberKey(20, 1))
	if got := jobsOn(h); got != strings.TrimSuffix(want, " 20") {
		t.Errorf("%q", got)
	}
}

// TestOnlyLostNodesAreFenced, and only where something ran.
func TestOnlyLostNodesAreFenced(t *testing.T) {
	b := newBench(t, 3)
	b.unwritten()
	for name, c := range map[string]struct {
		state api.NodeState
		ran   bool
	}{"n1": {api.NodeLost, true}, "n2": {api.NodeUp, true}, "n3": {api.NodeLost, false}} {
		n := b.w.nodes.byName[name].node
		n.State, n.Left = c.state, []Left{{Ran: c.ran}}
	}
	if got := b.w.Fenceable(); !slices.Equal(got, []string{"n1"}) {
		t.Errorf("%v", got)
	}
}

// TestANodeIsCalledDownInWords: the event says how it was taken out.
func TestANodeIsCalledDownInWords(t *testing.T) {
	for want, ev := range map[string]NodeDrain{
		"disk": {Reason: "disk"}, "disk; down": {Reason: "disk", Down: true}, "no reason given": {}, "disk; to be empty by 2026-03-01T13:00:00Z": {Reason: "disk", By: epoch0.Add(time.Hour)},
	} {
		b := newBench(t, 1)
		b.unwritten()
		eventsSince(b)
		ev.Node = "n1"
		b.must(ev)
		if got := eventsSince(b); !slices.Equal(got, []string{string(api.EventNodeDrained) + " n1: " + want}) {
			t.Errorf("%q, want %q", got, want)
		}
		b.ignores(ev, "out of service already")
	}
}

// TestAForgottenNodeIsNotStruck: it had refused a gang that another starts.
func TestAForgottenNodeIsNotStruck(t *testing.T) {
	b := newBench(t, 3)
	id := b.by("ada")
	b.on(id, "n1")
	b.refuse(id, api.BlameFiles, "no home")
	b.must(NodeGone{Node: "n1"})
	b.after(b.w.set.NodeTimeout)
	b.must(NodeForget{Node: "n1"})
	b.on(id, "n2")
	b.ready(id)
	if j := b.w.Job(id); len(j.Refusals) != 0 || JobState(j) != api.JobRunning {
		t.Errorf("%s, refused by %+v", JobState(j), j.Refusals)
	}
}

// TestALostNodeThatWasDrained is lost, for the reason for which it was drained.
func TestALostNodeThatWasDrained(t *testing.T) {
	b := newBench(t, 2)
	b.must(NodeDrain{Node: "n1", Reason: "disk"})
	b.must(NodeGone{Node: "n1"})
	b.after(b.w.set.NodeTimeout)
	if n := b.w.Node("n1"); n.State != api.NodeLost || n.Reason != "disk" || n.Res.NotReady != "lost: disk" || n.Res.Away {
		t.Errorf("%s %q, %+v", n.State, n.Reason, n.Res)
	}
}
