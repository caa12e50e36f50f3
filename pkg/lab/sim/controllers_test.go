package sim

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// lasts is one gang of two nodes that runs for so long.
func lasts(d time.Duration) []Job {
	return []Job{{At: s1, Ranks: 2, Nodes: 2, Runs: Behaviour{For: d}}}
}

// unhurt: the gang of job 0 ran to its end, once, and somebody took over at least so often.
func unhurt(takeOvers int) func(s *seen) string {
	return func(s *seen) string {
		return firstOf(s.ended(0, api.JobCompleted, 1), unless(s.TakeOvers >= takeOvers, "%d take-overs", s.TakeOvers))
	}
}

// elsewhere: the node's ranks ended with their lease, and the gang ran again without it.
func elsewhere(s *seen) string {
	return firstOf(s.ended(0, api.JobCompleted, 2), unless(s.when(api.EventNodeLost, 0, 1) > 0, "no node was lost"))
}

// controllerScenarios are what several controllers promise, and where each clause of the rule for
// renewing leases (session.contact) matters.
var controllerScenarios = []directed{
	{name: "both controllers are away for three leases", seeds: 3,
		sc:   Scenario{Controllers: 2, Nodes: nodes(2, 1), Jobs: lasts(150 * s1), Faults: []Fault{{At: 5 * s1, Do: CrashAll, For: 120 * s1}}},
		want: unhurt(2)},
	{name: "the database is away for three leases", seeds: 3,
		sc:   Scenario{Controllers: 2, Nodes: nodes(2, 1), Jobs: lasts(150 * s1), Faults: []Fault{{At: 5 * s1, Do: DatabaseDown, For: 120 * s1}}},
		want: unhurt(2)},
	{name: "the leader dies for good", seeds: 5,
		sc:   Scenario{Controllers: 2, Nodes: nodes(2, 1), Jobs: lasts(60 * s1), Faults: []Fault{{At: 5 * s1, Do: CrashController, For: 100 * s1}}},
		want: unhurt(2)},
	{name: "the leader stands still and goes on", seeds: 10,
		sc:   Scenario{Controllers: 2, Nodes: nodes(2, 1), Jobs: lasts(60 * s1), Faults: []Fault{{At: 5 * s1, Do: FreezeController, For: 30 * s1}}},
		want: unhurt(2)},
	{name: "the leader goes on after it was replaced, and reads what nodes said meanwhile that can't know", seeds: 24,
		sc: Scenario{Controllers: 2, Nodes: nodes(4, 1), Jobs: lasts(30 * s1), Faults: []Fault{{At: 5 * s1, Do: FreezeController, For: 2500 * ms},
			{At: 5 * s1, Do: CutNode, N: 1, Node: "n1", For: 6 * s1}, {At: 5 * s1, Do: CutNode, N: 1, Node: "n2", For: 6 * s1},
			{At: 5 * s1, Do: CutNode, N: 2, Node: "n3", For: 6 * s1}, {At: 5 * s1, Do: CutNode, N: 2, Node: "n4", For: 6 * s1}}},
		vary: func(i int, sc *Scenario) { // nodes wait for 3 s
			sc.Faults[0].At += time.Duration(i%12) * 90 * ms
			sc.Faults[0].For += time.Duration(i%5) * 100 * ms
		},
		want: unhurt(1)},
	{name: "the leader is cut from the database", seeds: 5,
		sc:   Scenario{Controllers: 3, Nodes: nodes(2, 1), Jobs: lasts(60 * s1), Faults: []Fault{{At: 5 * s1, Do: CutDatabase, For: 30 * s1}}},
		want: unhurt(2)},
	{name: "the leader resigns", seeds: 5,
		sc:   Scenario{Controllers: 2, Nodes: nodes(2, 1), Jobs: lasts(20 * s1), Faults: []Fault{{At: 5 * s1, Do: Term, For: s1}}},
		want: unhurt(2)},
	{name: "a node is cut from the leader alone", seeds: 3,
		sc: Scenario{Controllers: 2, Nodes: nodes(3, 1), Jobs: lasts(90 * s1), Calm: 200 * s1,
			Faults: []Fault{on(api.EventStarted, 1, 2*s1, Fault{Do: CutNode, Node: "n1", For: 180 * s1})}},
		want: elsewhere},
	{name: "one controller is dead and the other cut from a node", seeds: 3,
		sc: Scenario{Controllers: 2, Nodes: nodes(3, 1), Jobs: lasts(90 * s1), Calm: 250 * s1,
			Faults: []Fault{{At: 5 * s1, Do: CrashController, N: 2, For: 240 * s1}, {At: 5*s1 + 1, Do: CrashController, N: 1, For: 1},
				{At: 12 * s1, Do: CutNode, N: 1, Node: "n1", For: 220 * s1}}},
		want: elsewhere},
	{name: "a node that never heard of a controller is not left running by it", seeds: 6,
		sc: Scenario{Controllers: 2, Nodes: nodes(3, 1), Jobs: lasts(120 * s1), Calm: 260 * s1,
			Faults: []Fault{{At: 5 * s1, Do: CutNode, N: 1, Node: "n1", For: 4 * s1}, {At: 5 * s1, Do: CutNode, N: 2, Node: "n1", For: 4 * s1},
				{At: 5500 * ms, Do: AddController}, {At: 7500 * ms, Do: CrashController, N: 1, For: 240 * s1}, {At: 7500 * ms, Do: CrashController, N: 2, For: 240 * s1}}},
		vary: func(i int, sc *Scenario) {
			for k := 3; k < 5; k++ { // before, as and after the list is told and settled
				sc.Faults[k].At += time.Duration(i) * 700 * ms
			}
		}},
	{name: "a node goes by a controller that joined, and is cut from it", seeds: 3,
		sc: Scenario{Controllers: 2, Nodes: nodes(3, 1), Jobs: lasts(150 * s1), Calm: 300 * s1,
			Faults: []Fault{{At: 5 * s1, Do: AddController}, {At: 60 * s1, Do: CrashController, N: 1, For: 4 * s1}, {At: 60 * s1, Do: CrashController, N: 2, For: 4 * s1},
				{At: 61 * s1, Do: CutNode, N: 3, Node: "n1", For: 200 * s1}}},
		want: func(s *seen) string {
			return firstOf(elsewhere(s), unless(s.lineOf("c3 takes over", 1) < 65*s1, "c3 took over at %s", s.lineOf("c3 takes over", 1)))
		}},
	{name: "a leader that is cut from the database is replaced when it has given up", seeds: 20,
		sc:   Scenario{Controllers: 2, Nodes: nodes(4, 1), Jobs: lasts(20 * s1), Faults: []Fault{{At: 5 * s1, Do: CutDatabase, For: 8 * s1}}},
		vary: func(i int, sc *Scenario) { sc.Faults[0].At += time.Duration(i) * 50 * ms },
		want: unhurt(2)},
	{name: "a slow database gives the seat to one that does not know yet", seeds: 10,
		sc: Scenario{Controllers: 2, Nodes: nodes(4, 1), Jobs: lasts(40 * s1),
			Faults: []Fault{{At: 5 * s1, Do: CrashController, For: 20 * s1}, {At: 6 * s1, Do: DatabaseSlow, For: 15 * s1}}},
		want: unhurt(2)},
}

// A controller that joins leads when it has to: the others are gone after it was let in.
func TestJoinedControllerLeads(t *testing.T) {
	d := directed{name: "joins", sc: Scenario{Controllers: 2, Nodes: nodes(2, 1), Jobs: lasts(80 * s1), Calm: 200 * s1,
		Faults: []Fault{{At: 5 * s1, Do: AddController}, {At: 20 * s1, Do: CrashController, N: 1, For: 170 * s1}, {At: 20 * s1, Do: CrashController, N: 2, For: 170 * s1}}},
		want: func(s *seen) string {
			return firstOf(s.ended(0, api.JobCompleted, 1), unless(s.lineOf("c3 takes over", 1) < 40*s1, "c3 took over at %s", s.lineOf("c3 takes over", 1)))
		}}
	if bad, err := d.play(); err != nil || bad != "" {
		t.Error(bad, err)
	}
}
