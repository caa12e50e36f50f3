package gang

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

// placed is a gang of two nodes of which n2 is prepared and n1 is not yet.
func placed(t *testing.T) (*bench, int64) {
	b := newBench(t, 2)
	id := b.submit(specOf(2))
	b.must(b.spread(id))
	b.phase(id, "n2", api.PhaseReady)
	return b, id
}

// back opens a new session of a node that has the gang in a phase.
func (b *bench) back(id int64, node string, p api.MemberPhase) {
	b.t.Helper()
	b.hello(node, api.MemberActual{MemberKey: b.key(id), Phase: p, Port: 4000})
}

// A session that breaks while a gang is being started ends nothing. The gate waits for the word of its node.
func TestASessionBreaksDuringAStart(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(b *bench, id int64)
		want api.JobState
		// rolledBack is a part of why, empty: it was not.
		rolledBack string
	}{
		{"prepared since", func(b *bench, id int64) {
			b.must(NodeGone{Node: "n1"})
			b.after(20 * time.Second)
			b.back(id, "n1", api.PhaseReady)
		}, api.JobRunning, ""},
		{"prepared before, and the others since", func(b *bench, id int64) {
			b.must(NodeGone{Node: "n2"})
			b.phase(id, "n1", api.PhaseReady)
			b.state(id, api.JobReserved)
			b.after(20 * time.Second)
			b.back(id, "n2", api.PhaseReady)
		}, api.JobRunning, ""},
		{"not told yet", func(b *bench, id int64) {
			b.must(NodeGone{Node: "n1"})
			b.hello("n1")
			b.state(id, api.JobReserved)
			b.phase(id, "n1", api.PhaseReady)
		}, api.JobRunning, ""},
		{"prepared before, and begins anew", func(b *bench, id int64) {
			b.must(NodeGone{Node: "n2"})
			b.back(id, "n2", api.PhasePreparing)
			b.phase(id, "n1", api.PhaseReady)
			b.state(id, api.JobReserved)
			b.phase(id, "n2", api.PhaseReady)
		}, api.JobRunning, ""},
		{"prepared before, and has nothing", func(b *bench, id int64) {
			b.must(NodeGone{Node: "n2"})
			b.hello("n2")
		}, api.JobPending, "n2: missing on the node"},
		{"prepared before, and silent", func(b *bench, id int64) {
			b.must(NodeGone{Node: "n2"})
			b.phase(id, "n1", api.PhaseReady)
			b.after(29 * time.Second)
			b.state(id, api.JobReserved)
			b.after(time.Second)
		}, api.JobPending, "not ready within 30 s: n2 (went silent)"},
		{"both are away, the first is back", func(b *bench, id int64) {
			b.phase(id, "n1", api.PhaseReady)
			b.state(id, api.JobRunning) // it had begun: nothing takes that back
			b.must(NodeGone{Node: "n1"})
			b.must(NodeGone{Node: "n2"})
			b.back(id, "n1", api.PhaseReady)
		}, api.JobRunning, ""},
	} {
		b, id := placed(t)
		c.do(b, id)
		if got := JobState(b.w.Job(id)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		text := ""
		for _, ev := range b.w.Take().Events {
			if ev.Type == api.EventRolledBack {
				text += ev.Text + ";"
			}
		}
		if c.rolledBack == "" && text != "" || !strings.Contains(text, c.rolledBack) {
			t.Errorf("%s: rolled back for %q, want %q", c.name, text, c.rolledBack)
		}
	}
}

// A node that had no session for a part of the time was not slow all of it.
func TestNoBlameForANodeThatCameBackLate(t *testing.T) {
	for _, away := range []bool{false, true} {
		b, id := placed(t)
		if away {
			b.must(NodeGone{Node: "n1"})
			b.after(10 * time.Second)
			b.hello("n1")
		}
		b.after(30 * time.Second)
		b.state(id, api.JobPending)
		if blamed := len(b.w.Job(id).Refusals) > 0; blamed == away {
			t.Errorf("away %t, blamed %t", away, blamed)
		}
	}
}

// Who is prepared is not stored. A new controller opens the gate when all have said so again.
func TestANewControllerAsksWhoIsPrepared(t *testing.T) {
	b, id := placed(t)
	b.w.Take()
	b.phase(id, "n2", api.PhaseReady)
	if ch := b.w.Take(); ch.Rows() != 0 {
		t.Errorf("%d rows for a word that was known", ch.Rows())
	}
	b.reborn(time.Second)
	b.back(id, "n1", api.PhaseReady)
	if ch := b.w.Take(); ch.Prepared[id] != 1 || len(ch.Jobs) != 0 {
		t.Errorf("%d ranks prepared, %d jobs to be stored", ch.Prepared[id], len(ch.Jobs))
	}
	b.say("n1", api.MemberActual{MemberKey: b.key(id), Phase: api.PhaseReady, Port: 4001}) // its daemon had to pick another one
	if ch := b.w.Take(); ch.Prepared[id] != 1 {
		t.Errorf("%d ranks prepared of one that says so twice", ch.Prepared[id])
	}
	b.state(id, api.JobReserved)
	b.back(id, "n2", api.PhaseReady)
	b.state(id, api.JobRunning)
}
