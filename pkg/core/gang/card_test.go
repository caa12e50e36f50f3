package gang

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
)

func cardSlot(node string, cards ...string) cluster.Slot {
	s := cluster.Slot{Node: node}
	for _, c := range cards {
		s.Cards = append(s.Cards, "GPU-"+node+"-"+c)
	}
	return s
}

// onCards starts a gang whose rank i has the slot i.
func (b *bench) onCards(s *api.Spec, slots ...cluster.Slot) int64 {
	b.t.Helper()
	s.Size, s.GPUsPerRank = len(slots), len(slots[0].Cards)
	id := b.submit(s)
	b.must(Admit{Job: id, Slots: slots})
	b.ready(id)
	for _, m := range b.w.Job(id).Members {
		b.phase(id, m.Node, api.PhaseRunning)
	}
	b.state(id, api.JobRunning)
	return id
}

func (b *bench) seen(node string, s api.CardSample) {
	b.t.Helper()
	s.UUID = "GPU-" + node + "-" + s.UUID
	b.must(NodeSample{Node: node, Cards: []api.CardSample{s}})
}

// TestACardGoesBad: the gang that has it drains and is charged for lost hardware, once; the
// card alone is out of service, and gangs beside it do not notice.
func TestACardGoesBad(t *testing.T) {
	b := newBench(t, 2)
	id := b.onCards(specOf(2), cardSlot("n1", "0"), cardSlot("n2", "3"))
	beside := b.onCards(specOf(1), cardSlot("n2", "2"))
	b.seen("n2", api.CardSample{UUID: "3", Unhealthy: "Xid 79"})
	b.seen("n2", api.CardSample{UUID: "3", Unhealthy: "Xid 79", Utilization: 1})
	j := b.w.Job(id)
	if d := j.Drain; d == nil || d.Cause != api.CauseNodeLost || d.Trigger != 1 || d.Text != "card 3 of n2: Xid 79" || d.Moved != 2 {
		t.Fatalf("%+v", d)
	}
	b.state(beside, api.JobRunning)
	b.ack(id)
	b.state(id, api.JobPending)
	j = b.w.Job(id)
	if j.Used[api.CauseNodeLost] != 1 || len(j.Used) != 1 || b.w.Candidate(id) == nil || j.Avoid[0] != "n2" {
		t.Fatalf("used %v, avoids %v", j.Used, j.Avoid)
	}
	if n := b.w.Node("n2"); n.State != api.NodeUp || len(n.Strikes) != 0 || n.Res.OpenCards() != 2 {
		t.Fatalf("%s, %d strikes, %d open", n.State, len(n.Strikes), n.Res.OpenCards())
	}
	out := b.step(Admit{Job: id, Slots: []cluster.Slot{cardSlot("n1", "0"), cardSlot("n2", "3")}})
	if out.Refused == nil || out.Refused.Message != "node n2 card 3 is quarantined: Xid 79" {
		t.Fatalf("%+v", out)
	}
}

// TestABadCardExplainsAnExit: both come in one word, and the exit is not charged as a crash.
func TestABadCardExplainsAnExit(t *testing.T) {
	b := newBench(t, 1)
	id := b.onCards(specOf(2), cardSlot("n1", "0"), cardSlot("n1", "1"))
	b.must(NodeReport{Node: "n1", Actual: api.Actual{Members: []api.MemberActual{{MemberKey: b.key(id), Phase: api.PhaseRunning,
		Ranks: []api.RankActual{exit(1, 134)}, Cards: []api.CardSample{{UUID: "GPU-n1-1", Unhealthy: "fell off the bus"}}}}}})
	j := b.w.Job(id)
	if j.Drain == nil || j.Drain.Cause != api.CauseNodeLost || j.Used[api.CauseCrash] != 0 || j.Ranks[1].ExitCode != 134 {
		t.Fatalf("%+v, used %v, rank %+v", j.Drain, j.Used, j.Ranks[1])
	}
	b.phase(id, "n1", api.PhaseStopped, exit(0, 143), exit(1, 134))
	b.state(id, api.JobPending)
}

// TestABadCardBeforeTheStart: nothing ran, so nobody is charged; the grant is free when the
// node says that nothing is left.
func TestABadCardBeforeTheStart(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.GPUsPerRank = 1
	id := b.submit(s)
	b.must(Admit{Job: id, Slots: []cluster.Slot{cardSlot("n1", "0")}})
	key := b.key(id)
	b.seen("n1", api.CardSample{UUID: "0", Unhealthy: "Xid 48"})
	b.state(id, api.JobPending)
	if b.w.Job(id).Used != nil || len(b.w.Node("n1").Left) != 1 {
		t.Fatalf("used %v, left %v", b.w.Job(id).Used, b.w.Node("n1").Left)
	}
	b.must(NodeReport{Node: "n1", Actual: api.Actual{Gone: []api.MemberKey{key}}})
	if len(b.w.Node("n1").Res.Grants) != 0 {
		t.Fatal("still granted")
	}
}

// TestRefusedBecauseOfACard: the card is out of service alone, without a strike for its node.
func TestRefusedBecauseOfACard(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.GPUsPerRank = 1
	for i := range 4 {
		id := b.submit(s)
		b.must(Admit{Job: id, Slots: []cluster.Slot{cardSlot("n1", string(rune('0'+i)))}})
		b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRefused, Refusal: &api.Refusal{Blame: api.BlameCard, Text: "card holds VRAM"},
			Cards: []api.CardSample{{UUID: "GPU-n1-" + string(rune('0'+i)), Held: "30G held by pid 7 (python, ada)"}}})
		b.state(id, api.JobPending)
		if got := b.w.Job(id).Avoid; len(got) != 0 {
			t.Fatalf("avoids %v", got)
		}
	}
	n := b.w.Node("n1")
	if n.State != api.NodeUp || len(n.Strikes) != 0 || n.Res.OpenCards() != 0 || n.Res.Cards[2].Reason != "30G held by pid 7 (python, ada)" {
		t.Fatalf("%s, %d strikes, %d open, %+v", n.State, len(n.Strikes), n.Res.OpenCards(), n.Res.Cards[2])
	}
}

// TestWhatIsHeldEndsNobody: a card that an old attempt has not given back gets no new gang,
// while one that shares it goes on; a fault on top of it ends that one too.
func TestWhatIsHeldEndsNobody(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(1)
	s.Share, s.VRAMBytes = true, 20<<30
	id := b.onCards(s, cardSlot("n1", "0"))
	b.seen("n1", api.CardSample{UUID: "0", Held: "9G held by pid 7"})
	b.state(id, api.JobRunning)
	other := b.submit(s)
	if out := b.step(Admit{Job: other, Slots: []cluster.Slot{cardSlot("n1", "0")}}); out.Refused == nil ||
		out.Refused.Message != "node n1 card 0 is quarantined: 9G held by pid 7" {
		t.Fatalf("%+v", out)
	}
	b.seen("n1", api.CardSample{UUID: "0", Held: "9G held by pid 7", Unhealthy: "Xid 79"})
	b.state(id, api.JobCompleting)
	b.seen("n1", api.CardSample{UUID: "0"})
	b.must(Admit{Job: other, Slots: []cluster.Slot{cardSlot("n1", "0")}})
}

func TestCardDrainAndResume(t *testing.T) {
	b := newBench(t, 1)
	id := b.onCards(specOf(1), cardSlot("n1", "0"))
	b.w.Take()
	b.must(CardDrain{Node: "n1", UUID: "GPU-n1-0", Reason: "fan"})
	b.state(id, api.JobRunning)
	ch := b.w.Take()
	if len(ch.Nodes) != 1 || ch.Events[0].Text != "card 0 quarantined: fan" {
		t.Fatalf("%+v", ch)
	}
	b.hello("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning})
	b.seen("n1", api.CardSample{UUID: "0", Utilization: 3})
	if c := b.w.Node("n1").Res.Cards[0]; c.State != api.CardQuarantined || c.Reason != "fan" {
		t.Fatalf("%+v", c)
	}
	b.must(CardResume{Node: "n1", UUID: "GPU-n1-0"})
	if c := b.w.Node("n1").Res.Cards[0]; c.State != api.CardOK || c.Reason != "" {
		t.Fatalf("%+v", c)
	}
	if out := b.step(CardResume{Node: "n1", UUID: "GPU-n1-0"}); out.Ignored != "in service already" {
		t.Fatalf("%+v", out)
	}
	if out := b.step(CardDrain{Node: "n1", UUID: "GPU-9", Reason: "fan"}); out.Refused.Error() != "node n1 has no card GPU-9" {
		t.Fatalf("%+v", out)
	}
}

// TestHealthProgram: what it says takes the node out and in again, beside a person's drain.
func TestHealthProgram(t *testing.T) {
	b := newBench(t, 1)
	id := b.onCards(specOf(1), cardSlot("n1", "0"))
	sick := func(text string) {
		b.must(NodeReport{Node: "n1", Actual: api.Actual{Health: &api.NodeHealth{Sick: text}}})
	}
	reason := func(want string) {
		t.Helper()
		n := b.w.Node("n1")
		if got := strings.TrimSpace(string(n.State) + " " + n.Reason); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	sick("/scratch is full")
	b.state(id, api.JobRunning)
	reason("draining health: /scratch is full")
	if out := b.step(NodeResume{Node: "n1"}); out.Refused == nil || out.Refused.Error() !=
		"node n1 is out of service by its own check: /scratch is full; it comes back by itself when that is mended" {
		t.Fatalf("%+v", out)
	}
	b.must(NodeDrain{Node: "n1", Reason: "disk"})
	reason("draining disk")
	b.must(NodeResume{Node: "n1"})
	reason("draining health: /scratch is full")
	b.phase(id, "n1", api.PhaseStopped, exit(0, 0))
	reason("drained health: /scratch is full")
	h := helloOf("n1")
	h.Hello.Health.Sick = "/scratch is full"
	b.must(h)
	reason("drained health: /scratch is full")
	b.hello("n1")
	reason("up")
	sick("ib down")
	sick("")
	reason("up")
}

// TestOwnStopNamesItsRank: what a node stops by itself carries who it was about, and why.
func TestOwnStopNamesItsRank(t *testing.T) {
	b := newBench(t, 1)
	s := specOf(2)
	s.Share, s.VRAMBytes = true, 40<<30
	id := b.onCards(s, cardSlot("n1", "0"), cardSlot("n1", "1"))
	text := "rank 1 used 43.1G of 40G asked on card 1"
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Stopping: api.CauseOOM, Text: text, Trigger: intPtr(1)})
	if d := b.w.Job(id).Drain; d == nil || d.Cause != api.CauseOOM || d.Trigger != 1 || d.Text != "n1: "+text {
		t.Fatalf("%+v", d)
	}
	b.ack(id)
	if v := b.w.Job(id).Verdict; v == nil || v.State != api.JobOutOfMemory || v.Trigger != 1 || v.Text != "n1: "+text {
		t.Fatalf("%+v", v)
	}
}

func TestCUDAOutOfMemoryIsACause(t *testing.T) {
	b := newBench(t, 1)
	id := b.onCards(specOf(1), cardSlot("n1", "0"))
	ra := exit(0, 1)
	ra.CUDAOOM = true
	b.phase(id, "n1", api.PhaseStopped, ra)
	v := b.w.Job(id).Verdict
	if v == nil || v.Cause != api.CauseOOM || v.State != api.JobOutOfMemory || v.ExitCode != 1 ||
		v.Text != "rank 0 ran out of VRAM (exit code 1, and its output ends with a CUDA out of memory)" {
		t.Fatalf("%+v", v)
	}
}

// TestWhoRanOutOfMemory: above what it asked for it is the job's own failure; within it, on a
// machine that others had filled, the job has lost its node. Both figures are said.
func TestWhoRanOutOfMemory(t *testing.T) {
	for name, tt := range map[string]struct {
		ra    api.RankActual
		cause api.Cause
		text  string
	}{
		"its own limit": {api.RankActual{OOM: true, MemoryAsked: 100 << 20, MemoryUsed: 100 << 20}, api.CauseOOM,
			"rank 0 ran out of memory: used 100M of 100M asked there"},
		"the machine's, within its own": {api.RankActual{OOM: true, HostOOM: true, MemoryAsked: 100 << 20, MemoryUsed: 40 << 20}, api.CauseNodeLost,
			"rank 0 was killed because the memory of its node had run out: used 40M of 100M asked there"},
		"the machine's, with nothing asked": {api.RankActual{OOM: true, HostOOM: true, MemoryUsed: 3 << 30}, api.CauseOOM,
			"rank 0 ran out of memory: used 3G there, and had asked for no figure"},
		"figures not known": {api.RankActual{OOM: true}, api.CauseOOM, "rank 0 ran out of memory"},
		"forks refused": {api.RankActual{ForksRefused: 7, ProcessesMax: 100}, api.CauseCrash,
			"rank 0 exited with code 137 (7 forks were refused: its node allows a job 100 processes)"},
	} {
		b := newBench(t, 1)
		id := b.onCards(specOf(1), cardSlot("n1", "0"))
		ra := exit(0, 137)
		ra.OOM, ra.HostOOM, ra.MemoryAsked, ra.MemoryUsed = tt.ra.OOM, tt.ra.HostOOM, tt.ra.MemoryAsked, tt.ra.MemoryUsed
		ra.ForksRefused, ra.ProcessesMax = tt.ra.ForksRefused, tt.ra.ProcessesMax
		b.phase(id, "n1", api.PhaseRunning, ra)
		if d := b.w.Job(id).Drain; d == nil || d.Cause != tt.cause || d.Text != tt.text || d.Trigger != 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestFirstInventory: a card that a gang has, and that its node does not list when it comes back, has gone bad as any
// other: its epoch ends, charged to the loss of hardware, and nothing new is placed on it. A driver that did not answer
// says nothing.
func TestFirstInventory(t *testing.T) {
	for _, unread := range []bool{false, true} {
		b, id := fourNodes(t, time.Millisecond)
		b.must(NodeGone{Node: "n2"})
		h := helloOf("n2", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: 1, PID: 101}}})
		h.Hello.Cards = h.Hello.Cards[1:]
		if unread {
			h.Hello.Cards, h.Hello.CardsUnread = nil, true
		}
		b.w.Take()
		b.must(h)
		n := b.w.Node("n2")
		at := cardAt(n.Res, "GPU-n2-0")
		if at < 0 {
			t.Fatalf("unread %t: forgotten, %+v", unread, n.Res.Cards)
		}
		if unread {
			if b.w.Job(id).Drain != nil || n.Res.Cards[at].Fault != "" {
				t.Errorf("a driver that is silent: %+v, %+v", b.w.Job(id).Drain, n.Res.Cards[at])
			}
			continue
		}
		if d := b.w.Job(id).Drain; d == nil || d.Cause != api.CauseNodeLost || d.Trigger != 1 || d.Text != "card 0 of n2: its node does not list it any more" {
			t.Errorf("%+v", d)
		}
		if c := n.Res.Cards[at]; c.State != api.CardQuarantined {
			t.Errorf("%+v", c)
		}
		told := 0
		for _, ev := range b.w.Take().Events {
			if ev.Type == api.EventCardState {
				told++
			}
		}
		b.ack(id)
		h.Hello.Members = nil
		b.must(NodeGone{Node: "n2"})
		b.must(h)
		if told != 1 || cardAt(b.w.Node("n2").Res, "GPU-n2-0") >= 0 {
			t.Errorf("told %d times; then %+v", told, b.w.Node("n2").Res.Cards)
		}
	}
}
