package gang

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/watchdog"
)

// watchBench is a gang of two ranks on two nodes, a card each, that runs.
func watchBench(t testing.TB, edit func(*api.Settings, *api.Spec)) *bench {
	t.Helper()
	set, s := settings(), specOf(2)
	s.GPUsPerRank = 1
	if edit != nil {
		edit(&set, s)
	}
	b := benchWith(t, 2, set)
	b.submit(s)
	b.startWithCards(1)
	b.w.Take()
	return b
}

func (b *bench) startWithCards(id int64) {
	b.t.Helper()
	r := Admit{Job: id, Slots: []cluster.Slot{{Node: "n1", Cards: []string{"GPU-n1-0"}}, {Node: "n2", Cards: []string{"GPU-n2-0"}}}}
	b.must(r)
	b.ready(id)
	for _, m := range b.w.Job(id).Members {
		b.phase(id, m.Node, api.PhaseRunning, api.RankActual{Rank: m.Ranks[0], PID: 100 + m.Ranks[0], Started: b.now.Wall})
	}
}

// silent says that rank i of node n(i+1) is.
func (b *bench) silent(ranks ...int) Watched {
	w := Watched{Job: 1, Epoch: b.w.Job(1).Epoch, Node: "n1"}
	if len(ranks) > 0 {
		w.Node, w.Silent = fmt.Sprintf("n%d", ranks[0]+1), ranks
	}
	return w
}

// round is the number of the check that a node is asked for, 0: none.
func (b *bench) round(node string) int64 {
	a := b.w.Desired(node)
	if len(a) != 1 || a[0].Check == nil {
		return 0
	}
	return a[0].Check.Round
}

// answer is what a node says to the check under way.
func (b *bench) answer(node string, silent []int, s api.CardsState) Watched {
	f := &api.Finding{State: s, Count: 1, Readings: 3, Cards: []api.CardFinding{{UUID: "GPU-" + node + "-0", State: s, Utilization: 1, MovedBytes: 1 << 29}}}
	return Watched{Job: 1, Epoch: b.w.Job(1).Epoch, Node: node, Silent: silent, Watch: api.WatchNote{Round: b.round(node), Finding: f}}
}

// took gives the events of a type since the last look.
func (b *bench) took(kind api.EventType) []api.Event {
	return slices.DeleteFunc(b.w.Take().Events, func(ev api.Event) bool { return ev.Type != kind })
}

// A silent rank is a question to every member with cards; the answers of all of them, and
// all quiet, are one drain.
func TestStallIsConfirmedByAll(t *testing.T) {
	b := watchBench(t, nil)
	b.must(b.silent(1))
	evs := b.took(api.EventStallSuspected)
	if len(evs) != 1 || *evs[0].Rank != 1 || evs[0].Node != "n2" || evs[0].Text != "rank 1 has not beaten for 2 min" || len(evs[0].Samples) != 2 {
		t.Fatalf("suspected: %+v", evs)
	}
	a := b.w.Desired("n1")
	if c := a[0].Check; c == nil || *c != (api.Check{Round: b.round("n2"), Readings: 3, Interval: time.Second}) || a[0].Stop != nil {
		t.Fatalf("n1 is asked %+v", c)
	}
	b.must(b.answer("n2", []int{1}, api.CardsQuiet))
	b.state(1, api.JobRunning)
	b.must(b.answer("n1", nil, api.CardsQuiet))
	b.state(1, api.JobCompleting)
	d := b.w.Job(1).Drain
	want := "rank 1 was silent for 2 min; 2 cards in 3 readings idle, used at most at 1%, memory moved by at most 0.5G"
	if d.Cause != api.CauseStalled || d.Trigger != 1 || d.Text != want {
		t.Errorf("drain %+v", d)
	}
	a = b.w.Desired("n1")
	if s := a[0].Stop; s == nil || s.Cause != api.CauseStalled || s.Dump != 300*time.Millisecond || a[0].Check != nil {
		t.Errorf("n1 shall %+v", a[0])
	}
	b.ack(1)
	b.state(1, api.JobPending)
	if used := b.w.Job(1).Used[api.CauseStalled]; used != 1 {
		t.Errorf("%d charged", used)
	}
	if b.w.Step(b.now, b.silent(1)).Applied {
		t.Error("a gang that waits is not judged")
	}
}

// One member that is not quiet is enough, whatever the others say and in whatever order.
func TestStallIsDismissed(t *testing.T) {
	for _, c := range []struct {
		name string
		say  func(b *bench)
		want string
	}{
		{"busy", func(b *bench) { b.must(b.answer("n1", nil, api.CardsBusy)) }, "not idle: n1 GPU-n1-0 was used at 1% (1 card in 3 readings)"},
		{"moving", func(b *bench) {
			b.must(b.answer("n2", []int{1}, api.CardsQuiet))
			b.must(b.answer("n1", nil, api.CardsMoving))
		}, "not still: the memory of n1 GPU-n1-0 moved by 0.5G (2 cards in 3 readings)"},
		{"unknown", func(b *bench) { b.must(b.answer("n2", []int{1}, api.CardsUnknown)) }, "not known: n2 GPU-n2-0 could not be read (1 card in 3 readings)"},
		{"it beats again", func(b *bench) {
			w := b.silent(1)
			w.Silent = nil
			b.must(w)
		}, "rank 1 beats again"},
		{"no answer", func(b *bench) {
			b.must(b.answer("n2", []int{1}, api.CardsQuiet))
			b.after(10 * time.Second)
		}, "no answer from n1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := watchBench(t, nil)
			b.must(b.silent(1))
			c.say(b)
			evs := b.took(api.EventStallDismissed)
			if len(evs) != 1 || evs[0].Text != c.want || *evs[0].Rank != 1 {
				t.Errorf("dismissed: %+v", evs)
			}
			b.state(1, api.JobRunning)
			if b.round("n1") != 0 || b.round("n2") != 0 {
				t.Error("the question is still asked")
			}
		})
	}
}

// What was dismissed is asked again after the time-out, under another number, as long as the rank is silent.
func TestDismissedRearms(t *testing.T) {
	b := watchBench(t, nil)
	b.must(b.silent(1))
	first := b.round("n1")
	late := b.answer("n1", nil, api.CardsQuiet)
	b.must(b.answer("n1", nil, api.CardsBusy))
	b.must(b.silent(0)) // another one: what was seen of the cards holds for it too
	b.after(119 * time.Second)
	if b.round("n1") != 0 {
		t.Fatal("asked again too soon")
	}
	b.after(time.Second)
	second := b.round("n1")
	if second == 0 || second == first {
		t.Fatalf("round %d after %d", second, first)
	}
	b.must(late) // of the first round: it says nothing about now
	b.must(b.answer("n2", []int{1}, api.CardsQuiet))
	b.state(1, api.JobRunning)
	b.must(b.answer("n1", []int{0}, api.CardsQuiet))
	b.state(1, api.JobCompleting)
	if d := b.w.Job(1).Drain; d.Trigger != 0 {
		t.Errorf("trigger %d", d.Trigger)
	}
}

// Four runs with three re-runs, each as first of its class when its back-off has passed.
func TestStallBudget(t *testing.T) {
	b := watchBench(t, nil)
	other := b.submit(specOf(2))
	for run := 1; ; run++ {
		b.must(b.silent(0))
		b.must(b.answer("n1", []int{0}, api.CardsQuiet))
		b.must(b.answer("n2", nil, api.CardsQuiet))
		b.ack(1)
		if run == 4 {
			break
		}
		b.state(1, api.JobPending)
		b.after(4 * time.Second)
		if c, o := b.w.Candidate(1), b.w.Candidate(other); c == nil || o == nil || !order.Less(c, o) {
			t.Fatalf("run %d: not the first of its class: %+v, %+v", run, c, o)
		}
		b.startWithCards(1)
	}
	b.state(1, api.JobFailed)
	v := b.w.Job(1).Verdict
	if v.Cause != api.CauseStalled || v.ExitCode != 76 || !strings.HasSuffix(v.Text, "stalled for the 4th time, of 3 re-runs none is left") {
		t.Errorf("verdict %+v", v)
	}
	ended := b.took(api.EventEnded)
	if len(ended) != 1 || ended[0].Cause != api.CauseStalled || *ended[0].ExitCode != 76 {
		t.Errorf("dependents are told %+v", ended)
	}
}

func TestWatchOf(t *testing.T) {
	set := settings()
	set.IdleLimit, set.IdleEnd, set.IdleExempt = time.Hour, time.Minute, []string{"grace"}
	for _, c := range []struct {
		name string
		user string
		spec api.Spec
		want api.Watch
	}{
		{"the site's", "ada", api.Spec{}, api.Watch{StallTimeout: 2 * time.Minute, IdleLimit: time.Hour, IdleEnd: time.Minute}},
		{"its own", "ada", api.Spec{StallTimeout: time.Minute, GPUWatch: true, IdleLimit: 2 * time.Hour},
			api.Watch{StallTimeout: time.Minute, HangWindow: 5 * time.Minute, HangGrace: 10 * time.Minute, IdleLimit: 2 * time.Hour, IdleEnd: time.Minute}},
		{"off", "ada", api.Spec{StallTimeout: api.WatchdogOff, IdleLimit: api.WatchdogOff}, api.Watch{}},
		{"exempt", "grace", api.Spec{IdleLimit: time.Hour}, api.Watch{StallTimeout: 2 * time.Minute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := WatchOf(&set, &Job{User: c.user, Spec: &c.spec, Wishes: new(Wishes), Past: noPast}); got != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// gpu-hang wants every member; what a node said before its session broke does not count.
func TestHangIsJoined(t *testing.T) {
	b := watchBench(t, func(_ *api.Settings, s *api.Spec) { s.GPUWatch = true })
	hung := func(node string, yes bool) Watched {
		w := Watched{Job: 1, Epoch: 1, Node: node, Watch: api.WatchNote{Hung: yes}}
		if yes {
			w.Watch.Window = &api.Finding{State: api.CardsQuiet, Count: 1, Readings: 300}
		}
		return w
	}
	b.must(hung("n1", true))
	b.must(NodeGone{Node: "n1"})
	b.must(hung("n2", true))
	b.state(1, api.JobRunning)
	b.hello("n1", api.MemberActual{MemberKey: b.key(1), Phase: api.PhaseRunning, Ranks: []api.RankActual{{Rank: 0, PID: 100}}})
	b.must(hung("n2", false))
	b.must(hung("n1", true))
	b.state(1, api.JobRunning)
	b.must(hung("n2", true))
	b.state(1, api.JobCompleting)
	if d := b.w.Job(1).Drain; d.Cause != api.CauseGPUHang || d.Text != "the cards did nothing for 5 min; 2 cards in 300 readings" {
		t.Errorf("%+v", d)
	}
	b.ack(1)
	if u := b.w.Job(1).Used; u[api.CauseGPUHang] != 1 || u[api.CauseStalled] != 0 {
		t.Errorf("charged %v", u)
	}
}

func TestIdleIsWarnedAndEnded(t *testing.T) {
	b := watchBench(t, func(set *api.Settings, _ *api.Spec) { set.IdleLimit, set.IdleEnd = time.Hour, 10*time.Minute })
	idle := func(node string, stage int) Watched {
		return Watched{Job: 1, Epoch: 1, Node: node, Watch: api.WatchNote{Idle: stage}}
	}
	b.must(idle("n1", 1))
	if evs := b.took(api.EventIdleWarned); len(evs) != 0 {
		t.Fatal("warned though n2 works")
	}
	b.must(idle("n2", 1))
	evs := b.took(api.EventIdleWarned)
	if len(evs) != 1 || evs[0].Text != "its cards have been idle for 1 h; it is ended when they stay so for 10 min more" {
		t.Fatalf("%+v", evs)
	}
	b.must(idle("n2", 0))
	if evs := b.took(api.EventIdleOver); len(evs) != 1 {
		t.Fatalf("%+v", evs)
	}
	b.must(idle("n1", 2))
	b.must(idle("n2", 1))
	b.must(idle("n2", 2))
	b.ack(1)
	b.state(1, api.JobFailed)
	if v := b.w.Job(1).Verdict; v.Cause != api.CauseIdle || v.ExitCode != 77 || v.Text != "its cards were idle for 1 h 10 min, the site's limit of 1 h and 10 min more" {
		t.Errorf("%+v", v)
	}
}

// Ten dismissals in a row of one that stays silent are told of once, with what was seen last;
// a beat in between begins the row anew, whoever else is silent.
func TestSparedInARow(t *testing.T) {
	b := watchBench(t, nil)
	window := func() {
		t.Helper()
		b.must(b.answer("n2", b.mute("n2"), api.CardsBusy))
		b.after(WatchOf(&b.w.set, b.w.Job(1)).StallTimeout)
	}
	blind := func() []api.Event { return b.took(api.EventWatchBlind) }
	b.must(b.silent(1))
	for range 9 {
		window()
	}
	w := b.silent(1)
	w.Silent = nil
	b.must(w) // the tenth is asked for, and it beats
	b.must(b.silent(1))
	b.after(2 * time.Minute)
	for range 9 {
		window()
	}
	if evs := blind(); len(evs) != 0 {
		t.Fatalf("its row was broken: %+v", evs)
	}
	window()
	evs := blind()
	want := "rank 1: silent, and spared 10 times in a row: not idle: n2 GPU-n2-0 was used at 1% (1 card in 3 readings)"
	if len(evs) != 1 || evs[0].Text != want || *evs[0].Rank != 1 || evs[0].Node != "n2" || len(evs[0].Samples) != 1 {
		t.Fatalf("told %+v", evs)
	}
	for range 15 {
		window()
	}
	if evs := blind(); len(evs) != 0 {
		t.Errorf("told again: %+v", evs)
	}
	b.must(b.silent(0)) // its row is its own
	for range 10 {
		window()
	}
	if evs := blind(); len(evs) != 1 || *evs[0].Rank != 0 {
		t.Errorf("of the other rank: %+v", evs)
	}
	b.state(1, api.JobRunning)
}

// mute are the ranks that a node has said are silent.
func (b *bench) mute(node string) []int {
	if s := b.w.jobs.byID[1].guard.seen[node]; s != nil {
		return s.Silent
	}
	return nil
}

// Whatever it is that spares a silent rank, the row is counted, and a row of several is one event.
func TestWhatBlinds(t *testing.T) {
	others := api.Finding{State: api.CardsUnknown, Count: 1, Readings: 1, Cards: []api.CardFinding{
		{UUID: "GPU-n1-0", State: api.CardsUnknown, Utilization: -1, AtMost: 60, Others: "python, user bob (pid 77)"}}}
	moving := api.Finding{State: api.CardsMoving, Count: 1, Readings: 2, Cards: []api.CardFinding{{UUID: "GPU-n1-0", State: api.CardsQuiet}},
		Hosts: []api.HostFinding{{State: api.CardsMoving, MemoryBytes: 100 << 20, IOBytes: 3 << 30}}}
	unread := api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Cards: []api.CardFinding{{UUID: "GPU-n1-0", State: api.CardsQuiet}},
		Hosts: []api.HostFinding{{State: api.CardsUnknown, MemoryBytes: 1, IOBytes: -1}}}
	say := func(f api.Finding) func(*bench) {
		return func(b *bench) {
			w := b.answer("n1", b.mute("n1"), f.State)
			w.Watch.Finding = &f
			b.must(w)
			b.after(2 * time.Minute)
		}
	}
	for _, c := range []struct {
		name   string
		silent []int
		window func(b *bench)
		want   string
	}{
		{"others on the card", []int{1}, say(others), "rank 1: silent, and spared 10 times in a row: not known: n1 GPU-n1-0 was used at up to 60%, " +
			"how much of it by this gang the driver does not say; also there is python, user bob (pid 77) (1 card in 1 reading)"},
		{"processes that move", []int{1}, say(moving), "rank 1: silent, and spared 10 times in a row: not still: the processes on n1 moved 100.0M of memory, " +
			"and read and wrote 3.0G (1 card in 2 readings)"},
		{"processes that can't be read", []int{0, 1}, say(unread), "rank 0 and 1 more: silent, and spared 10 times in a row: not known: what the processes on n1 move " +
			"could not be read (1 card in 2 readings)"},
		{"a node that does not answer", []int{1}, func(b *bench) { b.after(2*time.Minute + 8*time.Second) }, "rank 1: silent, and spared 10 times in a row: no answer from n1, n2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := watchBench(t, nil)
			for _, r := range c.silent {
				b.must(b.silent(r))
			}
			for range 10 {
				if evs := b.took(api.EventWatchBlind); len(evs) != 0 {
					t.Fatalf("too soon: %+v", evs)
				}
				c.window(b)
			}
			if evs := b.took(api.EventWatchBlind); len(evs) != 1 || evs[0].Text != c.want {
				t.Errorf("told %+v", evs)
			}
		})
	}
}

func TestBlindIsToldOnce(t *testing.T) {
	b := watchBench(t, nil)
	blind := Watched{Job: 1, Epoch: 1, Node: "n2", Watch: api.WatchNote{Blind: 20 * time.Minute}}
	b.must(blind)
	b.must(blind)
	evs := b.took(api.EventWatchBlind)
	if len(evs) != 1 || evs[0].Text != "n2: the cards could not be read for 20 min: no watchdog can act there" {
		t.Errorf("%+v", evs)
	}
	blind.Node, blind.Watch.Unseen = "n1", &api.Finding{Cards: []api.CardFinding{{UUID: "a", State: api.CardsBusy, Utilization: 9},
		{UUID: "b", State: api.CardsUnknown, Utilization: -1, AtMost: 60, Others: "python, user bob (pid 77)"}}}
	b.must(blind)
	evs = b.took(api.EventWatchBlind)
	want := "n1: it can't be told what the gang does on its cards, b was used at up to 60%, how much of it by this gang the driver does not say; " +
		"also there is python, user bob (pid 77), for 20 min: no watchdog can act there"
	if len(evs) != 1 || evs[0].Text != want {
		t.Errorf("%+v", evs)
	}
}

// A gang without cards has nothing that could confirm: its silence is on record, and that is all.
func TestStallWithoutCards(t *testing.T) {
	b := newBench(t, 2)
	b.submit(specOf(2))
	b.start(1)
	b.must(b.silent(1))
	evs := b.took(api.EventStallDismissed)
	if len(evs) != 1 || evs[0].Text != "the gang has no cards that could show whether it works" {
		t.Fatalf("%+v", evs)
	}
	b.state(1, api.JobRunning)
}

// What a tripped gang's cards were last seen doing is gone at once.
func TestNoBusyGhost(t *testing.T) {
	b := watchBench(t, nil)
	for _, n := range []string{"n1", "n2"} {
		b.must(NodeSample{Node: n, Cards: []api.CardSample{{UUID: "GPU-" + n + "-0", UsedBytes: 40 << 30, Utilization: 99}, {UUID: "GPU-" + n + "-1", UsedBytes: 1 << 30, Utilization: 50}}})
	}
	b.must(b.silent(1))
	b.must(b.answer("n1", nil, api.CardsQuiet))
	b.must(b.answer("n2", []int{1}, api.CardsQuiet))
	for _, n := range b.w.Nodes() {
		if c := n.Res.Cards[0]; c.UsedBytes != 0 || c.Utilization != 0 {
			t.Errorf("%s card 0: %+v", n.Name, c)
		}
		if c := n.Res.Cards[1]; c.UsedBytes != 1<<30 || c.Utilization != 50 {
			t.Errorf("%s card 1, which is not its: %+v", n.Name, c)
		}
	}
}

// Whatever nodes say, and in whatever order, a gang is stopped as stalled only when one of
// its ranks is silent and every member answered the newest question with quiet cards.
func TestStallNeedsEveryAnswer(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := watchBench(t, nil)
		b.unwritten()
		silent := map[string]bool{}
		quiet := map[string]int64{} // by node, the round that it answered with quiet cards
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			node := rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "node")
			rank := int(node[1] - '1')
			asked := b.round(node)
			w := Watched{Job: 1, Epoch: 1, Node: node}
			switch rapid.IntRange(0, 4).Draw(rt, "what") {
			case 0:
				silent[node] = true
			case 1:
				silent[node] = false
			case 2:
				b.after(time.Duration(rapid.IntRange(1, 200).Draw(rt, "seconds")) * time.Second)
				continue
			case 3:
				w.Watch = api.WatchNote{Round: asked, Finding: &api.Finding{State: rapid.SampledFrom([]api.CardsState{api.CardsBusy, api.CardsUnknown, api.CardsMoving}).Draw(rt, "state"), Count: 1}}
				if asked != 0 {
					quiet[node] = 0
				}
			default:
				w.Watch = api.WatchNote{Round: asked, Finding: &api.Finding{State: api.CardsQuiet, Count: 1, Readings: 3}}
				quiet[node] = asked
			}
			if silent[node] {
				w.Silent = []int{rank}
			}
			b.must(w)
			if b.w.Job(1).Drain == nil {
				continue
			}
			if !silent["n1"] && !silent["n2"] || asked == 0 || quiet["n1"] != asked || quiet["n2"] != asked {
				rt.Fatalf("stopped: silent %v, quiet %v, asked %d", silent, quiet, asked)
			}
			return
		}
	})
}

// TestFindings: what a watchdog measured is said by the card or process that speaks most against the suspicion.
func TestFindings(t *testing.T) {
	const gib = 1 << 30
	card := func(c api.CardFinding) []api.CardFinding { c.Node, c.UUID = "n1", "GPU-1"; return []api.CardFinding{c} }
	for _, c := range []struct {
		f    api.Finding
		want string
	}{
		{api.Finding{State: api.CardsQuiet, Count: 2, Readings: 3, Cards: []api.CardFinding{{Utilization: 4, MovedBytes: gib}, {MovedBytes: 2 * gib}},
			Hosts: []api.HostFinding{{MemoryBytes: 3 * gib, IOBytes: gib}, {MemoryBytes: gib, IOBytes: 5 * gib}}},
			"2 cards in 3 readings idle, used at most at 4%, memory moved by at most 2.0G; processes moved at most 3.0G of memory, and read and wrote 5.0G"},
		{api.Finding{State: api.CardsQuiet, Count: 1, Readings: 1, Cards: card(api.CardFinding{})}, "1 card in 1 reading idle, used at most at 0%, memory moved by at most 0.0G"},
		{api.Finding{State: api.CardsQuiet, Count: 1, Readings: 1}, "1 card in 1 reading"},
		{api.Finding{State: api.CardsBusy, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsBusy, Utilization: 55})}, "not idle: n1 GPU-1 was used at 55% (1 card in 2 readings)"},
		{api.Finding{State: api.CardsMoving, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsMoving, MovedBytes: gib / 4})},
			"not still: the memory of n1 GPU-1 moved by 256.0M (1 card in 2 readings)"},
		{api.Finding{State: api.CardsMoving, Count: 1, Readings: 2, Hosts: []api.HostFinding{{Node: "n2", State: api.CardsMoving, MemoryBytes: gib, IOBytes: 1 << 20}}},
			"not still: the processes on n2 moved 1.0G of memory, and read and wrote 1.0M (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsUnknown})}, "not known: n1 GPU-1 could not be read (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Cards: card(api.CardFinding{State: api.CardsUnknown, AtMost: 1})},
			"not known: n1 GPU-1 was used at up to 1%, how much of it by this gang the driver does not say; also there is a process that the driver does not name (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Hosts: []api.HostFinding{{Node: "n2", State: api.CardsUnknown}}},
			"not known: what the processes on n2 move could not be read (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2, Hosts: []api.HostFinding{{Node: "n2", State: api.CardsQuiet}}}, "not known: no word of the cards (1 card in 2 readings)"},
		{api.Finding{State: api.CardsUnknown, Count: 1, Readings: 2}, "not known: no word of the cards (1 card in 2 readings)"},
	} {
		if got := findingText(&c.f); got != c.want {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
	if got := unseenText(&api.Finding{Cards: []api.CardFinding{{State: api.CardsBusy, AtMost: 3}, {UUID: "GPU-2", State: api.CardsUnknown, AtMost: 3, Others: "Xorg"}}}); got !=
		"it can't be told what the gang does on its cards, GPU-2 was used at up to 3%, how much of it by this gang the driver does not say; also there is Xorg," {
		t.Errorf("%q", got)
	}
	for _, f := range []*api.Finding{nil, {}, {Cards: []api.CardFinding{{State: api.CardsUnknown}}}} {
		if got := unseenText(f); got != "the cards could not be read" {
			t.Errorf("%+v: %q", f, got)
		}
	}
	for n, want := range map[int64]string{-1: "an unknown size", 0: "0.0G", 1: "0.0M", 1<<29 - 1: "512.0M", 1 << 29: "0.5G", gib: "1.0G"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := lastFigure(&cluster.Node{}, "x"); got != watchdog.Unknown {
		t.Errorf("a card that is not there: %+v", got)
	}
}

// TestARestartForgetsSuspicion: what a new controller has not heard of is unknown to it.
func TestARestartForgetsSuspicion(t *testing.T) {
	b := newBench(t, 2)
	b.must(NodeGone{Node: "n1"})
	if n := b.w.Node("n1"); n.State != api.NodeSuspect || n.Res.NotReady != "suspect" || !n.Res.Away {
		t.Errorf("%s, %+v", n.State, n.Res)
	}
	b.reborn(time.Second)
	for _, name := range []string{"n1", "n2"} {
		if n := b.w.Node(name); n.State != api.NodeUnknown || n.Res.NotReady != "unknown" || !n.Res.Away || n.Res.Ready {
			t.Errorf("%s is %s, %+v", name, n.State, n.Res)
		}
	}
}
