package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// directed is a scenario for a rule that random schedules reach too rarely, with what has to
// come of it beside the invariants.
type directed struct {
	name  string
	seeds int // play it so often, with another seed each time; 0: once
	sc    Scenario
	vary  func(i int, sc *Scenario) // makes the i-th time differ by more than its seed
	act   func(r *run)              // plans what a scenario can't say
	want  func(s *seen) string      // empty: as it should be
}

// play gives what is wrong, empty when nothing is.
func (d *directed) play() (string, error) {
	for i := range max(d.seeds, 1) {
		sc := d.sc.clone()
		sc.Name = d.name
		sc.Seed += uint64(i)
		if d.vary != nil {
			d.vary(i, sc)
		}
		s, err := observe(sc, d.act)
		if err != nil {
			return "", err
		}
		bad := ""
		switch {
		case s.Violation != nil:
			bad = s.Violation.Error()
		default:
			bad = s.once()
			if bad == "" && d.want != nil {
				bad = d.want(s)
			}
		}
		if bad != "" {
			for _, l := range s.lines {
				if *trace {
					fmt.Printf("%9.3f  %s\n", l.at.Seconds(), l.text)
				}
			}
			return fmt.Sprintf("seed %d: %s", sc.Seed, bad), nil
		}
	}
	return "", nil
}

func TestDirected(t *testing.T) {
	for i := range scenarios {
		d := &scenarios[i]
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if bad, err := d.play(); err != nil || bad != "" {
				t.Error(bad, err)
			}
		})
	}
}

const (
	ms = time.Millisecond
	s1 = time.Second
)

// on is a fault at an event of job 0.
func on(t api.EventType, n int, later time.Duration, f Fault) Fault {
	f.When, f.At = OnEvent(t, 0, n), later
	return f
}

// cancels are one scenario for each moment of a drain at which a cancel can come.
func cancels() []directed {
	var out []directed
	for _, m := range []struct {
		name  string
		event api.EventType
		later time.Duration
		epoch int // in which it ends, 0: either
	}{
		{"as it begins", api.EventDrainStarted, 0, 1},
		{"before the stop signal", api.EventDrainStarted, s1, 1},
		{"in the grace", api.EventDrainStarted, 3 * s1, 1},
		{"at KILL", api.EventDrainStarted, 6 * s1, 0},
		{"after the first member stopped", api.EventMemberStopped, 0, 0},
		{"after the last word", api.EventDrainCompleted, 0, 0},
		{"just after it", api.EventDrainCompleted, 300 * ms, 0},
	} {
		out = append(out, directed{name: "a cancel during a drain, " + m.name, seeds: 3,
			sc: Scenario{Nodes: nodes(2, 2), Calm: 30 * s1,
				Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Lead: 2 * s1, MaxRetries: 3, Runs: Behaviour{For: 40 * s1, OnTerm: TermIgnored, FailEpochs: 9, FailCode: 3}},
					{At: 12 * s1, Ranks: 4, Runs: Behaviour{For: 15 * s1}}},
				Faults: []Fault{{At: 5 * s1, Do: Preempt}, on(m.event, 1, m.later, Fault{Do: Cancel})}},
			want: func(s *seen) string { return s.ended(0, api.JobCancelled, m.epoch) }})
	}
	return out
}

// reserveTaken hands in a plan that was made before its slots were taken.
func reserveTaken(r *run) {
	r.after(5*s1, func() {
		w := r.world()
		var ev gang.Admit
		ev.Job = r.ids[1]
		ev.Slots = append(ev.Slots, w.Job(r.ids[0]).Ranks[0].Slot)
		r.order(ev, func(gang.Outcome) { r.fail("I5", "a reservation of what is taken was accepted") })
	})
}

// putLate is a rank of epoch 1 that saves when epoch 2 runs.
func putLate(r *run) {
	r.after(12*s1, func() {
		j := r.world().Job(r.ids[0])
		m := r.byName[j.Ranks[0].Slot.Node]
		c := &api.Call{MemberKey: api.MemberKey{Job: j.ID, Epoch: j.Epoch - 1}, Rank: 0, Put: &api.CheckpointPut{Key: "late"}}
		m.call(c, "late", func(_ string, err error) {
			if e, ok := err.(*api.Error); !ok || e == nil || e.Code != api.CodeStaleEpoch {
				r.fail("I6", "a put of epoch %d was answered with %v in epoch %d", c.Epoch, err, j.Epoch)
			}
		})
	})
}

// most is how many elements of the array of job 0 were admitted at the same time.
func most(s *seen) int {
	n, top := map[int64]bool{}, 0
	for i := range s.events {
		switch ev := &s.events[i]; ev.Type {
		case api.EventReserved:
			n[ev.JobID] = true
		case api.EventEnded, api.EventRolledBack:
			delete(n, ev.JobID)
		}
		top = max(top, len(n))
	}
	return top
}

// placedOn says whether a job was admitted on a node before a time.
func placedOn(s *seen, node string, before time.Duration) bool {
	for i := range s.events {
		ev := &s.events[i]
		if ev.Type != api.EventReserved || ev.Time.Sub(began) > before {
			continue
		}
		for _, n := range ev.Nodes {
			if n == node {
				return true
			}
		}
	}
	return false
}

func short(n int, from, gap time.Duration) []Job {
	var out []Job
	for i := range n {
		out = append(out, Job{At: from + time.Duration(i)*gap, Runs: Behaviour{For: s1}})
	}
	return out
}

// startedWithout is a gang that is being started when one of its nodes, which is prepared, is cut off for so long. The
// other is prepared after that.
func startedWithout(off time.Duration) Scenario {
	return Scenario{Nodes: nodes(3, 1), Calm: 40 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 3 * s1}}},
		Faults: []Fault{{At: 500 * ms, Do: DrainNode, Node: "n3", For: 5 * s1}, on(api.EventReserved, 1, 0, Fault{Do: FreezeNoded, Node: "n1", For: 2500 * ms}),
			on(api.EventReserved, 1, s1, Fault{Do: Reset, Node: "n2"}), on(api.EventReserved, 1, s1, Fault{Do: Cut, Node: "n2", For: off})}}
}

var scenarios = slices.Concat([]directed{
	{name: "work that was done behind a cut is not done again", seeds: 5,
		sc: Scenario{Nodes: nodes(1, 2), Calm: 60 * s1, Jobs: []Job{{At: s1, Ranks: 2, Runs: Behaviour{For: 15 * s1}}},
			Faults: []Fault{on(api.EventStarted, 1, 2*s1, Fault{Do: Cut, Node: "n1", For: 40 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 1), unless(s.when(api.EventNodeLost, 0, 1) > 0, "no node was lost"))
		}},
	{name: "a crash is charged once, however many ranks it stops",
		sc: Scenario{Nodes: nodes(3, 1), Jobs: []Job{{At: s1, Ranks: 3, MaxRetries: 1, Runs: Behaviour{For: 4 * s1, FailEpochs: 1, FailCode: 3}}}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 2), unless(s.jobs[0].Used[api.CauseCrash] == 1, "charged %v", s.jobs[0].Used))
		}},
	{name: "a preemption is charged to nobody",
		sc: Scenario{Nodes: nodes(2, 1), Jobs: []Job{{At: s1, Ranks: 2, MaxRetries: 1, Runs: Behaviour{For: 10 * s1, FailEpochs: 2, FailCode: 3}}},
			Faults: []Fault{on(api.EventStarted, 1, 2*s1, Fault{Do: Preempt})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 3), unless(s.jobs[0].Used[api.CauseCrash] == 1, "charged %v", s.jobs[0].Used))
		}},
	{name: "a second cause takes no charge back",
		sc: Scenario{Nodes: nodes(2, 1), Calm: 60 * s1,
			Jobs:   []Job{{At: s1, Ranks: 2, MaxRetries: 1, Grace: 25 * s1, Runs: Behaviour{For: 4 * s1, Skew: 40 * s1, FailEpochs: 3, FailCode: 3, OnTerm: TermIgnored}}},
			Faults: []Fault{on(api.EventDrainStarted, 1, s1, Fault{Do: Cut, Node: "n2", For: 20 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobFailed, 2), unless(s.when(api.EventNodeLost, 0, 1) > 0, "no node was lost"))
		}},
	{name: "a machine dies, and the peers of its rank leave first", seeds: 4,
		sc: Scenario{Nodes: nodes(4, 1), Calm: 60 * s1,
			Jobs:   []Job{{At: s1, Ranks: 4, Runs: Behaviour{For: 10 * s1, Peers: true}}},
			Faults: []Fault{{At: 500 * time.Millisecond, Do: Reboot, Node: "n2", For: 100 * time.Millisecond}, on(api.EventStarted, 1, 2*s1, Fault{Do: Reboot, Node: "n2", For: 20 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 2), unless(s.jobs[0].Used[api.CauseNodeLost] == 1 && s.jobs[0].Used[api.CauseCrash] == 0, "charged %v", s.jobs[0].Used),
				unless(s.when(api.EventDrainStarted, 0, 1) > 0, "nothing was stopped"))
		}},
	{name: "a rank fails, and its peers leave within two milliseconds", seeds: 8,
		sc: Scenario{Nodes: nodes(4, 1),
			Jobs: []Job{{At: 3 * s1, Ranks: 4, Runs: Behaviour{For: 4 * s1, FailEpochs: 1, FailRank: 3, FailCode: 3, Peers: true}}}},
		want: func(s *seen) string { return s.ended(0, api.JobFailed, 1) }},
	{name: "an end is told before the site's epilog, and what it had is given on after it, however often the daemon dies in it", seeds: 16,
		sc: Scenario{Nodes: withEpilogs(nodes(2, 1), 10*s1), Calm: 30 * s1,
			Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 4 * s1, Skew: 40 * s1, FailEpochs: 1, FailCode: 3}}, {At: 2 * s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: s1}}}},
		vary: func(i int, sc *Scenario) {
			for n := range min(i, 3) { // none the first time
				f := Fault{Do: CrashNoded, Node: sc.Nodes[n%2].Name, For: 300 * ms}
				sc.Faults = append(sc.Faults, on(api.EventRankExited, 1, time.Duration(i*(n+1))*400*ms, f))
			}
		},
		want: func(s *seen) string {
			exited, ended, next := s.when(api.EventRankExited, 0, 1), s.when(api.EventEnded, 0, 1), s.when(api.EventStarted, 1, 1)
			return firstOf(s.ended(0, api.JobFailed, 1), s.ended(1, api.JobCompleted, 1),
				unless(ended-exited < s1, "ended %v after a rank did", ended-exited), unless(next-exited >= 10*s1, "the next one started %v after the end", next-exited))
		}},
	{name: "who is queued again waits for the epilogs of its last run, but for that of a node that is lost", seeds: 2,
		sc: Scenario{Nodes: withEpilogs(nodes(3, 1), 10*s1), Calm: 90 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 20 * s1}}},
			Faults: []Fault{on(api.EventStarted, 1, 2*s1, Fault{Do: Requeue, N: 1})}},
		vary: func(i int, sc *Scenario) {
			if i > 0 {
				sc.Nodes[0].Epilog, sc.Nodes[1].Epilog = 300*s1, 0
				sc.Faults = append(sc.Faults, on(api.EventDrainCompleted, 1, s1, Fault{Do: Cut, Node: "n1", For: 60 * s1}))
			}
		},
		want: func(s *seen) string {
			again := s.when(api.EventReserved, 0, 2) - s.when(api.EventDrainCompleted, 0, 1)
			return firstOf(s.ended(0, api.JobCompleted, 2), unless(again > 7*s1 && again < 20*s1, "placed again after %v", again))
		}},
	{name: "a gang of which a rank is done does not run again", seeds: 2,
		sc: Scenario{Nodes: nodes(2, 1), Jobs: []Job{{At: s1, Ranks: 2, MaxRetries: 2, Runs: Behaviour{For: 3 * s1, Skew: 10 * s1, FailEpochs: 1, FailRank: 1, FailCode: 3}}},
			Faults: []Fault{on(api.EventRankExited, 1, s1, Fault{Do: Requeue})}},
		want: func(s *seen) string { return s.ended(0, api.JobFailed, 1) }},
	{name: "a gang that may not run again is preempted like any other", seeds: 2,
		sc: Scenario{Nodes: nodes(2, 1), Jobs: []Job{{At: s1, Ranks: 2, NoRequeue: true, Lead: 2 * s1, Runs: Behaviour{For: 30 * s1, OnTerm: TermSaves}}},
			Faults: []Fault{on(api.EventStarted, 1, 2*s1, Fault{Do: Preempt})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobPreempted, 1), unless(len(s.jobs[0].Used) == 0, "charged %v", s.jobs[0].Used),
				unless(s.count(api.EventNotice, 0) == 1, "%d notices", s.count(api.EventNotice, 0)))
		}},
	{name: "a gang of which a rank is done is preempted like any other", seeds: 2,
		sc: Scenario{Nodes: nodes(2, 1), Jobs: []Job{{At: s1, Ranks: 2, MaxRetries: 2, Runs: Behaviour{For: 3 * s1, Skew: 30 * s1}}},
			Faults: []Fault{on(api.EventRankExited, 1, s1, Fault{Do: Preempt})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobPreempted, 1), unless(len(s.jobs[0].Used) == 0, "charged %v", s.jobs[0].Used))
		}},
	{name: "a failed gang waits, longer each time",
		sc: Scenario{Nodes: nodes(2, 1), Jobs: []Job{{At: s1, Ranks: 2, MaxRetries: 2, Runs: Behaviour{For: 4 * s1, FailEpochs: 2, FailCode: 3}}}},
		want: func(s *seen) string {
			a := s.when(api.EventReserved, 0, 2) - s.when(api.EventDrainCompleted, 0, 1)
			b := s.when(api.EventReserved, 0, 3) - s.when(api.EventDrainCompleted, 0, 2)
			return unless(a >= s1 && b >= 2*s1, "it waited %s and %s", a, b)
		}},
	{name: "no more elements than the limit of their array", seeds: 3,
		sc:   Scenario{Nodes: nodes(2, 4), Jobs: []Job{{At: s1, Array: 5, Limit: 2, Runs: Behaviour{For: 3 * s1}}}},
		want: func(s *seen) string { return unless(most(s) == 2, "%d elements at the same time", most(s)) }},
	{name: "a job that waits for a success ends with the failure",
		sc: Scenario{Nodes: nodes(2, 4), Jobs: []Job{{At: s1, Runs: Behaviour{For: 2 * s1, Exit: 3}}, {At: 2 * s1, AfterOK: 1}}},
		want: func(s *seen) string {
			return firstOf(s.ended(1, api.JobCancelled, 0), unless(s.jobs[1].Epoch == 0, "it was admitted"))
		}},
	{name: "a held job waits until it is released",
		sc: Scenario{Nodes: nodes(2, 4), Calm: 15 * s1, Jobs: []Job{{At: s1, Hold: true}}},
		want: func(s *seen) string {
			out := s.when(api.EventReleased, 0, 1)
			return unless(out > 0 && s.when(api.EventReserved, 0, 1) >= out, "it was admitted before")
		}},
	{name: "a node that is out of service gets nothing new",
		sc:   Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: short(4, 2*s1, 100*ms), Faults: []Fault{{At: s1, Do: DrainNode, Node: "n1"}}},
		want: func(s *seen) string { return unless(!placedOn(s, "n1", 19*s1), "n1 was used") }},
	{name: "a node reboots when it is empty, and gets nothing before it is back by another boot",
		sc: Scenario{Nodes: nodes(2, 1), Seed: 3, Calm: 60 * s1, Jobs: short(6, 3*s1, 500*ms),
			Faults: []Fault{{At: 2 * s1, Do: AskReboot, Node: "n1", N: 1}, on(api.EventNodeRebooting, 1, 0, Fault{Do: CrashGangd, For: 2 * s1})}},
		want: func(s *seen) string {
			off, on := s.lineOf("n1 reboots as told", 1), s.lineOf("n1 boots, boot-n1-2", 1)
			return firstOf(unless(off > 0 && on > off, "it rebooted at %s and was back at %s", off, on),
				unless(!placedOn(s, "n1", on), "a job was placed on n1 meanwhile"),
				unless(s.when(api.EventRolledBack, 0, 1) < 0, "a job was moved"), s.ended(5, api.JobCompleted, 1))
		}},
	{name: "a stop that is sent again does not restart the grace",
		sc: Scenario{Nodes: nodes(1, 1), Calm: 30 * s1, Jobs: []Job{{At: s1, Grace: 8 * s1, Runs: Behaviour{For: 40 * s1, OnTerm: TermIgnored}}},
			Faults: []Fault{on(api.EventStarted, 1, 2*s1, Fault{Do: Cancel}), on(api.EventDrainStarted, 1, 2*s1, Fault{Do: CrashNoded, Node: "n1", For: 100 * ms}),
				on(api.EventDrainStarted, 1, 5*s1, Fault{Do: CrashNoded, Node: "n1", For: 100 * ms})}},
		want: func(s *seen) string {
			took := s.lineOf("ends with 137", 1) - s.when(api.EventDrainStarted, 0, 1)
			return unless(took >= 7900*ms && took < 8800*ms, "KILL came after %s, the grace is 8 s", took)
		}},
	{name: "a later stop gives no longer grace",
		sc: Scenario{Nodes: nodes(1, 1), Calm: 30 * s1, Jobs: []Job{{At: s1, TimeLimit: 5 * s1, Lead: 2 * s1, Runs: Behaviour{For: 40 * s1, OnTerm: TermIgnored}}},
			Faults: []Fault{on(api.EventStarted, 1, 4500*ms, Fault{Do: CutUp, Node: "n1", For: 12 * s1}), on(api.EventStarted, 1, 6200*ms, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			took := s.lineOf("ends with 137", 1) - s.when(api.EventStarted, 0, 1)
			return unless(took >= 8900*ms && took < 9800*ms, "KILL came %s after the start, limit and grace are 9 s", took)
		}},
	{name: "ranks get one notice",
		sc: Scenario{Nodes: nodes(1, 2), Jobs: []Job{{At: s1, Ranks: 2, TimeLimit: 10 * s1, Lead: 3 * s1, Runs: Behaviour{For: 40 * s1}}},
			Faults: []Fault{on(api.EventStarted, 1, 8*s1, Fault{Do: Cancel})}},
		want: func(s *seen) string {
			return unless(s.lineOf("gets its notice", 1) > 0 && s.lineOf("gets its notice", 2) < 0, "not one notice")
		}},
	{name: "the time limit stands still with its machine",
		sc: Scenario{Nodes: nodes(1, 1), Calm: 40 * s1, Jobs: []Job{{At: s1, TimeLimit: 8 * s1, Runs: Behaviour{For: 60 * s1}}},
			Faults: []Fault{on(api.EventStarted, 1, 5*s1, Fault{Do: Suspend, Node: "n1", For: 6 * s1})}},
		want: func(s *seen) string {
			took := s.lineOf("rank 0 pid", 1) - s.when(api.EventStarted, 0, 1)
			return firstOf(s.ended(0, api.JobTimeout, 1), unless(took >= 13500*ms, "it was ended %s after the start, of which 6 s were slept", took))
		}},
	{name: "the lease runs while its machine stands still", seeds: 10,
		sc: Scenario{Nodes: nodes(3, 1), Calm: 130 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 70 * s1, OnTerm: TermIgnored}}},
			Faults: []Fault{on(api.EventStarted, 1, 5*s1, Fault{Do: Suspend, Node: "n1", For: 75 * s1})}}},
	{name: "the lease counts from when a beat was sent", seeds: 10,
		sc: Scenario{Nodes: nodes(3, 1), Calm: 140 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 120 * s1, OnTerm: TermIgnored}}},
			Faults: []Fault{on(api.EventStarted, 1, s1, Fault{Do: Slow, Node: "n1", For: 6 * s1}), on(api.EventStarted, 1, 5*s1, Fault{Do: FreezeNoded, Node: "n1", For: 30 * s1}),
				on(api.EventStarted, 1, 34*s1, Fault{Do: Cut, Node: "n1", For: 80 * s1})}}},
	{name: "a member counts as gone when the stop that its lease brings is over", seeds: 5,
		sc: Scenario{Nodes: nodes(3, 1), Calm: 120 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Grace: 8 * s1, Runs: Behaviour{For: 90 * s1, OnTerm: TermIgnored}}},
			Faults: []Fault{on(api.EventStarted, 1, 5*s1, Fault{Do: Cut, Node: "n1", For: 90 * s1})}},
		want: func(s *seen) string {
			return unless(s.when(api.EventReserved, 0, 2) > 0 && s.when(api.EventReserved, 0, 2) < 90*s1, "it was not admitted again while n1 was away")
		}},
	{name: "a controller that lost most nodes gives none of them up",
		sc: Scenario{Nodes: nodes(4, 1), Calm: 100 * s1, Jobs: []Job{{At: s1, Ranks: 4, Runs: Behaviour{For: 30 * s1}}},
			Faults: []Fault{{At: 5 * s1, Do: Cut, Node: "n1", For: 80 * s1}, {At: 5 * s1, Do: Cut, Node: "n2", For: 80 * s1}, {At: 5 * s1, Do: Cut, Node: "n3", For: 80 * s1}}},
		want: func(s *seen) string {
			at := s.when(api.EventNodeFenced, 0, 1) // when they are back what ran out meanwhile counts
			return unless(s.when(api.EventNodeLost, 0, 3) > 0 && (at < 0 || at >= 85*s1), "a lease was believed at %s", at)
		}},
	{name: "a dead shim's last words are not the truth", seeds: 3,
		sc:   Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, Runs: Behaviour{For: 8 * s1}}}, Faults: []Fault{{At: 4 * s1, Do: CrashShim}}},
		want: func(s *seen) string { return s.ended(0, api.JobCompleted, 2) }},
	{name: "an exit that is said again is recorded once", seeds: 3,
		sc: Scenario{Nodes: nodes(1, 2), Jobs: []Job{{At: s1, Ranks: 2, Runs: Behaviour{For: 3 * s1, Skew: 8 * s1}}},
			Faults: []Fault{on(api.EventRankExited, 1, s1, Fault{Do: CrashNoded, Node: "n1", For: 300 * ms}), on(api.EventRankExited, 1, 3*s1, Fault{Do: CrashGangd, For: s1})}},
		want: func(s *seen) string { return s.ended(0, api.JobCompleted, 1) }},
	{name: "two causes at once: the time limit brought the exits about",
		sc: Scenario{Nodes: nodes(1, 2), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, TimeLimit: 5 * s1, Runs: Behaviour{For: 40 * s1}}},
			Faults: []Fault{on(api.EventStarted, 1, 4*s1, Fault{Do: CrashNoded, Node: "n1", For: 4 * s1})}},
		want: func(s *seen) string { return s.ended(0, api.JobTimeout, 1) }},
	{name: "two causes at once: the first failure is the trigger",
		sc: Scenario{Nodes: nodes(1, 2), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, Runs: Behaviour{For: 4 * s1, Skew: 500 * ms, Exit: 3}}},
			Faults: []Fault{on(api.EventStarted, 1, 3*s1, Fault{Do: CrashNoded, Node: "n1", For: 4 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobFailed, 1), unless(s.jobs[0].Verdict.Trigger == 0, "the trigger is rank %d", s.jobs[0].Verdict.Trigger))
		}},
	{name: "a node that comes back has rebooted, and says so",
		sc: Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, Runs: Behaviour{For: 8 * s1}}},
			Faults: []Fault{{At: 4 * s1, Do: Reboot, Node: "n1", For: 2 * s1}}},
		want: func(s *seen) string {
			text := map[api.EventType]string{}
			for i := range s.events {
				text[s.events[i].Type] += s.events[i].Text + ";"
			}
			return firstOf(unless(strings.Contains(text[api.EventNodeUp], "rebooted"), "no reboot is on record"),
				unless(strings.Contains(text[api.EventDrainStarted], "the node rebooted"), "the gang was stopped for %q", text[api.EventDrainStarted]),
				s.ended(0, api.JobCompleted, 2))
		}},
	{name: "a member that can't be prepared holds nothing", seeds: 3,
		sc: Scenario{Nodes: nodes(3, 1), Jobs: []Job{{At: 2 * s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 2 * s1}}}, Faults: []Fault{{At: s1, Do: Refuse, Node: "n1", For: 5 * s1}}}},
	{name: "a gang waits for its last member, but not for ever", seeds: 12,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 60 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 2 * s1}}},
			Faults: []Fault{{At: s1, Do: SlowLaunch, Node: "n1", For: 20 * s1}}},
		want: func(s *seen) string {
			first := s.when(api.EventRolledBack, 0, 1)
			if first < 0 {
				first = s.when(api.EventPrepared, 0, 1)
			}
			took := first - s.when(api.EventReserved, 0, 1)
			return unless(took <= 10500*ms, "the reservation lasted %s", took)
		}},
	{name: "an image may take longer than a start", seeds: 6,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 90 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Import: 45 * s1, Runs: Behaviour{For: 2 * s1}}}},
		vary: func(i int, sc *Scenario) { // a new controller knows of it too
			if i%2 == 1 {
				sc.Faults = []Fault{{At: 20 * s1, Do: CrashGangd, For: time.Duration(i) * s1}}
			}
		},
		want: func(s *seen) string {
			return firstOf(unless(s.when(api.EventRolledBack, 0, 1) < 0, "it was given up"), s.ended(0, api.JobCompleted, 1))
		}},
	{name: "an import that stops is given up", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 120 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Import: 20 * s1, Stalls: true, Runs: Behaviour{For: 2 * s1}}}},
		want: func(s *seen) string {
			took := s.when(api.EventRolledBack, 0, 1) - s.when(api.EventReserved, 0, 1)
			return firstOf(unless(took > 28*s1 && took < 32*s1, "given up after %s", took), s.ended(0, api.JobCompleted, 2))
		}},
	{name: "an import ends with its job", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 30 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Import: 60 * s1, Runs: Behaviour{For: s1}}, {At: 12 * s1, Ranks: 2, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 10 * s1, Do: Cancel}}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCancelled, 1), s.ended(1, api.JobCompleted, 1), unless(s.when(api.EventStarted, 1, 1) < 16*s1, "its nodes were kept"))
		}},
	{name: "a plan that is out of date is refused", act: reserveTaken,
		sc: Scenario{Nodes: nodes(1, 1), Jobs: []Job{{At: s1, Runs: Behaviour{For: 10 * s1}}, {At: 2 * s1}}}},
	{name: "what does not end holds its place until it is gone", seeds: 3,
		sc: Scenario{Nodes: nodes(1, 1), Calm: 60 * s1, Jobs: []Job{{At: s1, Runs: Behaviour{For: 50 * s1, OnTerm: TermIgnored}}, {At: 2 * s1, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 4 * s1, Do: Unkillable, Node: "n1", For: 40 * s1}, {At: 5 * s1, Do: Cancel}}},
		want: func(s *seen) string {
			took := s.when(api.EventDrainCompleted, 0, 1) - s.when(api.EventDrainStarted, 0, 1)
			return firstOf(unless(took <= 10500*ms, "the drain lasted %s, grace and slack are 10 s", took),
				unless(s.when(api.EventReserved, 1, 1) >= 43*s1, "its place was given on"))
		}},
	{name: "a job that has ended can't be ended again",
		sc: Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Runs: Behaviour{For: s1, Exit: 3}}, {At: s1, Runs: Behaviour{For: s1}}},
			Faults: []Fault{on(api.EventEnded, 1, s1, Fault{Do: Cancel}), on(api.EventEnded, 1, s1, Fault{Do: Cancel, Job: 1}), on(api.EventEnded, 1, 2*s1, Fault{Do: Requeue})}},
		want: func(s *seen) string { return firstOf(s.ended(0, api.JobFailed, 1), s.ended(1, api.JobCompleted, 1)) }},
	{name: "a job that has ended is queued again when that is asked for",
		sc: Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, Runs: Behaviour{For: s1}}},
			Faults: []Fault{on(api.EventEnded, 1, s1, Fault{Do: Requeue, N: 2}), on(api.EventRequeued, 1, 100*ms, Fault{Do: CrashGangd, For: s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 0), unless(s.when(api.EventEnded, 0, 2) > s.when(api.EventStarted, 0, 2), "it did not run twice"))
		}},
	{name: "a cancel whose commit waits for room is not answered",
		sc: Scenario{Nodes: nodes(1, 1), Calm: 40 * s1, Jobs: []Job{{At: s1, Runs: Behaviour{For: 12 * s1}}, {At: 2 * s1, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 3 * s1, Do: DiskFull, N: 1, For: 8 * s1}, {At: 4 * s1, Do: Cancel, Job: 1}, {At: 6 * s1, Do: CrashGangd, For: s1}}}},
	{name: "after a failed fsync nothing is believed", seeds: 4,
		sc: Scenario{Nodes: nodes(2, 2), Calm: 40 * s1, Jobs: short(6, s1, 700*ms), Faults: []Fault{{At: 900 * ms, Do: DiskBroken}, {At: 3 * s1, Do: DiskBroken}, {At: 5 * s1, Do: CrashGangd, For: s1}}}},
	{name: "a submission whose fsync failed is not answered",
		sc: Scenario{Nodes: nodes(1, 1), Calm: 40 * s1, Jobs: []Job{{At: s1, Runs: Behaviour{For: 10 * s1}}, {At: 4 * s1, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 3900 * ms, Do: DiskBroken}, {At: 7 * s1, Do: CrashGangd, For: s1}}}},
	{name: "the disk is full at the last ack", seeds: 4,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 40 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 3 * s1, Skew: 2 * s1}}},
			Faults: []Fault{on(api.EventRankExited, 1, s1, Fault{Do: DiskFull, N: 1, For: 5 * s1}), on(api.EventRankExited, 1, 3*s1, Fault{Do: CrashGangd, For: s1})}},
		want: func(s *seen) string { return s.ended(0, api.JobCompleted, 1) }},
	{name: "a store that went back is noticed",
		sc:   Scenario{Nodes: nodes(3, 2), Calm: 70 * s1, Jobs: short(24, 2*s1, 400*ms), Faults: []Fault{{At: 2 * s1, Do: OldStore, For: 12 * s1}}},
		want: func(s *seen) string { return unless(s.lineOf("is replaced by a copy", 1) > 0, "no copy was put back") }},
	// Only n2 knows what the copy lacks, and it comes when the copy has more commits than that.
	{name: "a store that lacks few commits is noticed", seeds: 4,
		sc: Scenario{Nodes: nodes(2, 8), Calm: 60 * s1, Jobs: []Job{{At: 5500 * ms, Runs: Behaviour{For: s1}}},
			Faults: append([]Fault{{At: 4900 * ms, Do: CrashNoded, Node: "n1", For: 6500 * ms}, {At: 5 * s1, Do: OldStore, N: 1, For: 6 * s1}, {At: 9 * s1, Do: CrashNoded, Node: "n2", For: 6 * s1}}, drains(12500*ms)...)},
		want: func(s *seen) string { return unless(s.lineOf("is replaced by a copy", 1) > 0, "no copy was put back") }},
	// No beat comes between the start and the copy: what the node was told to run says it all.
	{name: "what a node was told to run is proof of a commit", seeds: 10,
		sc: Scenario{Nodes: nodes(1, 1), Calm: 60 * s1, Jobs: []Job{{At: 5500 * ms, Runs: Behaviour{For: 30 * s1}}},
			Faults: []Fault{{At: 5450 * ms, Do: OldStore, N: 1, For: 250 * ms}}},
		want: func(s *seen) string {
			return firstOf(unless(s.lineOf("is replaced by a copy", 1) > 0, "no copy was put back"), s.ended(0, api.JobCompleted, 1))
		}},
	{name: "an id is never given out again",
		sc: Scenario{Nodes: nodes(1, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Runs: Behaviour{For: s1}}, {At: 7 * s1, Runs: Behaviour{For: s1}}}, Faults: []Fault{{At: 5 * s1, Do: CrashGangd, For: 500 * ms}}}},
	{name: "a key outlives the controller",
		sc: Scenario{Nodes: nodes(1, 1), Calm: 60 * s1, Jobs: []Job{{At: s1, Runs: Behaviour{For: 2 * s1}}},
			Faults: []Fault{{At: 500 * ms, Do: LoseAnswer, For: 5 * s1}, {At: 6 * s1, Do: CrashGangd, For: 500 * ms}, {At: 30 * s1, Do: Resubmit}}}},
	{name: "a set of checkpoints is whole or none", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 9 * s1, Skew: 12 * s1, Checkpoints: true}}},
			Faults: []Fault{on(api.EventCheckpoint, 1, s1, Fault{Do: Reboot, Node: "n2", For: 2 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 2), unless(s.count(api.EventRolledBack, 0) == 0, "it was rolled back"))
		}},
	{name: "a late checkpoint is refused by its epoch", act: putLate,
		sc:   Scenario{Nodes: nodes(1, 1), Jobs: []Job{{At: s1, MaxRetries: 1, Runs: Behaviour{For: 14 * s1, FailEpochs: 1, FailCode: 3}}}},
		want: func(s *seen) string { return s.ended(0, api.JobCompleted, 2) }},
	{name: "a late word of an epoch before changes nothing", seeds: 20,
		sc: Scenario{Nodes: nodes(1, 1), Calm: 30 * s1, Jobs: []Job{{At: s1, MaxRetries: 2, Runs: Behaviour{For: 3 * s1, FailEpochs: 1, FailCode: 3}}},
			Faults: []Fault{{At: 500 * ms, Do: Twice, Node: "n1", For: 20 * s1}}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 2), unless(s.count(api.EventRolledBack, 0) == 0, "it was rolled back"))
		}},
	{name: "a node is lost while a gang is being prepared", seeds: 5,
		sc: Scenario{Nodes: nodes(3, 1), Calm: 60 * s1, Jobs: []Job{{At: 2 * s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 3 * s1}}},
			Faults: []Fault{{At: s1, Do: SlowLaunch, Node: "n1", For: 2 * s1}, on(api.EventReserved, 1, 0, Fault{Do: Cut, Node: "n1", For: 50 * s1})}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 0), unless(s.when(api.EventEnded, 0, 1) < 40*s1, "it waited for the node"))
		}},
	{name: "a session that breaks, or its daemon, while a gang is being started costs it nothing", seeds: 60,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 3 * s1}}}},
		vary: func(i int, sc *Scenario) { // from the order to prepare to the start
			f := []Fault{{Do: Reset, Node: "n2"}, {Do: CrashNoded, Node: "n2", For: 500 * ms}, {Do: CrashGangd, For: 500 * ms}}[i%3]
			sc.Faults = []Fault{on(api.EventReserved, 1, time.Duration(i/3)*2*ms, f)}
		},
		want: func(s *seen) string {
			return firstOf(unless(s.count(api.EventRolledBack, 0) == 0, "it was rolled back"), s.ended(0, api.JobCompleted, 1))
		}},
	// n1 says that it is prepared when n2, which has said so, is away.
	{name: "a gate waits for who was prepared and went away", seeds: 5, sc: startedWithout(5 * s1),
		want: func(s *seen) string {
			took := s.when(api.EventPrepared, 0, 1) - s.when(api.EventReserved, 0, 1)
			return firstOf(unless(took > 6*s1 && took < 10*s1, "it was opened after %s", took), s.ended(0, api.JobCompleted, 1))
		}},
	{name: "a gate waits for who was prepared and went away, but not for ever", seeds: 5, sc: startedWithout(20 * s1),
		want: func(s *seen) string {
			took := s.when(api.EventRolledBack, 0, 1) - s.when(api.EventReserved, 0, 1)
			return firstOf(unless(took > 9*s1 && took < 11*s1, "it was given up after %s", took), s.ended(0, api.JobCompleted, 2))
		}},
	{name: "who was prepared and has rebooted is prepared no more", seeds: 5,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 20 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 3 * s1}}},
			Faults: []Fault{on(api.EventReserved, 1, 0, Fault{Do: FreezeNoded, Node: "n1", For: 2500 * ms}), on(api.EventReserved, 1, s1, Fault{Do: Reboot, Node: "n2", For: s1})}},
		want: func(s *seen) string {
			return firstOf(unless(s.count(api.EventRolledBack, 0) == 1, "it was not rolled back"), s.ended(0, api.JobCompleted, 2))
		}},
	{name: "nodes thaw after their gang was admitted again", seeds: 5,
		sc: Scenario{Nodes: nodes(4, 1), Calm: 120 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 60 * s1, OnTerm: TermIgnored}}},
			Faults: []Fault{on(api.EventStarted, 1, s1, Fault{Do: FreezeNoded, Node: "n1", For: 70 * s1}), on(api.EventStarted, 1, 2*s1, Fault{Do: FreezeNoded, Node: "n2", For: 72 * s1})}}},
	{name: "who ends well in the lead of its limit goes on, behind others, until its time is used up", seeds: 3,
		sc: Scenario{Nodes: nodes(1, 2), Calm: 60 * s1, Jobs: []Job{{At: s1, Ranks: 2, TimeLimit: 10 * s1, Lead: 3 * s1, TotalTime: 25 * s1, Runs: Behaviour{For: 8 * s1}},
			{At: 4 * s1, Ranks: 2, TimeLimit: 60 * s1, Runs: Behaviour{For: 3 * s1}}}},
		want: func(s *seen) string {
			between := s.when(api.EventReserved, 1, 1)
			return firstOf(s.ended(0, api.JobTimeout, 3), unless(len(s.jobs[0].Used) == 0, "charged %v", s.jobs[0].Used),
				unless(s.count(api.EventNotice, 0) == 3, "%d notices", s.count(api.EventNotice, 0)),
				unless(between > 0 && between < s.when(api.EventReserved, 0, 2), "who waited did not go first"))
		}},
	{name: "who is stopped by its limit goes on, who is done before its notice is done",
		sc: Scenario{Nodes: nodes(1, 2), Calm: 60 * s1, Jobs: []Job{{At: s1, TimeLimit: 6 * s1, Lead: 2 * s1, TotalTime: 14 * s1, Runs: Behaviour{For: 60 * s1}},
			{At: s1, TimeLimit: 10 * s1, Lead: 2 * s1, TotalTime: 40 * s1, Runs: Behaviour{For: 5 * s1}}}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobTimeout, 2), unless(len(s.jobs[0].Used) == 0, "charged %v", s.jobs[0].Used), s.ended(1, api.JobCompleted, 1))
		}},
	{name: "a lead that nobody can hear of is not waited for, but before a preemption", seeds: 6,
		sc: Scenario{Nodes: nodes(2, 1), Calm: 60 * s1, Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Lead: 20 * s1, Runs: Behaviour{For: 90 * s1}}}},
		vary: func(i int, sc *Scenario) {
			sc.Faults = []Fault{on(api.EventStarted, 1, 3*s1, []Fault{{Do: Cancel}, {Do: Requeue}, {Do: Preempt}}[i%3])}
		},
		want: func(s *seen) string {
			at := slices.IndexFunc(s.events, func(ev api.Event) bool { return ev.Type == api.EventDrainStarted })
			if at < 0 {
				return "it was not stopped"
			}
			cause := s.events[at].Cause
			lead, unheard := s.when(api.EventDrainCompleted, 0, 1)-s.when(api.EventDrainStarted, 0, 1), s.count(api.EventUnheard, 0)
			if cause == api.CausePreempted {
				return unless(lead > 19*s1 && unheard == 0, "%s: the stop took %s, %d times nobody listened", cause, lead, unheard)
			}
			return unless(lead < s1 && unheard == 1, "%s: the stop took %s, %d times nobody listened", cause, lead, unheard)
		}},
	{name: "the leading role ends the gang",
		sc:   Scenario{Nodes: nodes(2, 2), Jobs: []Job{{At: s1, Ranks: 3, Lead0: true, Runs: Behaviour{For: 3 * s1, Skew: 20 * s1, OnTerm: TermSaves}}}},
		want: func(s *seen) string { return s.ended(0, api.JobCompleted, 1) }},
	{name: "what was counted gone and lives keeps its node out of service", seeds: 3,
		sc: Scenario{Nodes: nodes(1, 1), Calm: 120 * s1, Jobs: []Job{{At: s1, Runs: Behaviour{For: 30 * s1, OnTerm: TermIgnored}}},
			Faults: []Fault{{At: 5 * s1, Do: Suspend, Node: "n1", For: 75 * s1}, {At: 6 * s1, Do: Unkillable, Node: "n1", For: 100 * s1}}},
		want: func(s *seen) string {
			return unless(s.when(api.EventReserved, 0, 2) >= 105*s1, "it was admitted again at %s", s.when(api.EventReserved, 0, 2))
		}},
	{name: "a start that slept through its lease is none", seeds: 60, vary: slept,
		sc: Scenario{Nodes: nodes(3, 2), Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 60 * s1}}}}},
	{name: "a start that was ordered before a freeze is none", seeds: 200, vary: frozenStart,
		sc: Scenario{Nodes: nodes(3, 2), Jobs: []Job{{At: s1, Ranks: 2, Nodes: 2, NoRequeue: true, Runs: Behaviour{For: 4 * s1}}}}},
	// The second finds two of four ports free while the first still drains; the third wants all.
	{name: "ports are given on when nobody can listen on them", seeds: 3,
		sc: Scenario{Nodes: nodes(1, 4), Calm: 30 * s1,
			Jobs: []Job{{At: s1, Ports: 2, NoRequeue: true, Runs: Behaviour{For: 40 * s1, OnTerm: TermIgnored}}, {At: 6 * s1, Ports: 2, Runs: Behaviour{For: 8 * s1}},
				{At: 7 * s1, Ports: 4, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 5 * s1, Do: Cancel}}},
		want: func(s *seen) string {
			second, third := s.when(api.EventStarted, 1, 1), s.when(api.EventStarted, 2, 1)
			if second < 6*s1 || second > 8*s1 || third < 14*s1 || third > 30*s1 {
				return fmt.Sprintf("started at %s and %s", second, third)
			}
			return s.ended(2, api.JobCompleted, 1)
		}},
	// The second has a node to itself, and one of two licences that the first still holds.
	{name: "licences are given on when nobody can use them, on whichever node", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 1), Licences: 2, Calm: 30 * s1,
			Jobs:   []Job{{At: s1, Licences: 2, NoRequeue: true, Runs: Behaviour{For: 40 * s1, OnTerm: TermIgnored}}, {At: 6 * s1, Licences: 1, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 5 * s1, Do: Cancel}}},
		want: func(s *seen) string {
			if second := s.when(api.EventStarted, 1, 1); second < 9*s1 || second > 16*s1 {
				return fmt.Sprintf("started at %s", second)
			}
			return s.ended(1, api.JobCompleted, 1)
		}},
	{name: "the licences of a gang that is over are given on, though its node is out of reach", seeds: 3,
		sc: Scenario{Nodes: nodes(2, 1), Licences: 1, Calm: 200 * s1,
			Jobs:   []Job{{At: s1, Licences: 1, NoRequeue: true, Runs: Behaviour{For: 300 * s1}}, {At: 6 * s1, Licences: 1, Runs: Behaviour{For: s1}}},
			Faults: []Fault{{At: 5 * s1, Do: Cut, Node: "n1", For: 150 * s1}}},
		want: func(s *seen) string {
			if second := s.when(api.EventStarted, 1, 1); second < 12*s1 || second > 20*s1 {
				return fmt.Sprintf("started at %s", second)
			}
			return s.ended(0, api.JobNodeFail, 1)
		}},
	// One that will have ended starts before the reservation, one that would not waits for its
	// end on the only node; the reservation's own starts with it.
	{name: "a reservation is kept", seeds: 5,
		sc: Scenario{Nodes: nodes(1, 2), Calm: 80 * s1,
			Faults: []Fault{{At: s1, Do: ReserveNode, Node: "n1", For: 40 * s1}},
			Jobs: []Job{{At: 3 * s1, TimeLimit: 2 * s1, Grace: s1 / 2, Runs: Behaviour{For: s1}}, {At: 3 * s1, TimeLimit: 20 * s1, Runs: Behaviour{For: 10 * s1}},
				{At: 5 * s1, Reserved: true, Runs: Behaviour{For: 5 * s1}}}},
		want: func(s *seen) string {
			first, other, own := s.when(api.EventStarted, 0, 1), s.when(api.EventStarted, 1, 1), s.when(api.EventStarted, 2, 1)
			if first < 0 || first > 10*s1 || own < 16*s1 || own > 20*s1 || other < 56*s1 {
				return fmt.Sprintf("started at %s, %s and, its own, %s; reserved from 16 s to 56 s", first, other, own)
			}
			return ""
		}},
}, allocationScenarios, cancels(), controllerScenarios)

// slept suspends a machine at some moment between the decision to start and the start.
func slept(i int, sc *Scenario) {
	sc.Faults = []Fault{on(api.EventStarted, 1, time.Duration(i)*100*time.Microsecond, Fault{Do: Suspend, Node: "n1", For: 90 * s1})}
}

// frozenStart freezes a daemon there; the gang is given up, and the controller is down when
// the daemon goes on: that nobody listens is contact too.
func frozenStart(i int, sc *Scenario) {
	sc.Faults = []Fault{on(api.EventStarted, 1, time.Duration(i)*20*time.Microsecond, Fault{Do: FreezeNoded, Node: "n1", For: 24 * s1}),
		on(api.EventEnded, 1, 5*s1, Fault{Do: CrashGangd, For: 20 * s1})}
}

// drains are ten commits of people, who drain n1 and take it back.
func drains(from time.Duration) (out []Fault) {
	for i := range 10 {
		f := Fault{At: from + time.Duration(i)*100*time.Millisecond, Do: DrainNode, Node: "n1"}
		if i%2 == 1 {
			f.Do = ResumeNode
		}
		out = append(out, f)
	}
	return out
}
