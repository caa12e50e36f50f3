package sim

import (
	"fmt"
	"testing"
	"time"

	"gangd/pkg/api"
)

// holds plays a scenario, in which no invariant may be violated.
func holds(t *testing.T, sc *Scenario) *Result {
	t.Helper()
	res, err := Run(sc, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res.Violation != nil {
		t.Fatalf("%s: %v", sc.Name, res.Violation)
	}
	return res
}

func nodes(n, cpus int) []Node {
	var out []Node
	for i := range n {
		out = append(out, Node{Name: fmt.Sprintf("n%d", i+1), CPUs: cpus})
	}
	return out
}

// A machine stands still at any moment between the decision to start and the start, for
// longer than its lease: what it finds when it wakes must not start any more.
func TestAStartThatSleptThroughItsLease(t *testing.T) {
	for i := range 400 {
		us := 15 * i
		sc := &Scenario{Name: fmt.Sprintf("suspended %d us after the start", us), Seed: uint64(i), Nodes: nodes(3, 2),
			Jobs:   []Job{{At: time.Second, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 60 * time.Second}}},
			Faults: []Fault{{When: OnEvent(api.EventStarted, 0, 1), At: time.Duration(us) * time.Microsecond, Do: Suspend, Node: "n1", For: 90 * time.Second}},
		}
		holds(t, sc)
	}
}

// holdsAtEach plays all variants of a scenario with a fault at each commit or sending.
func holdsAtEach(t *testing.T, sc *Scenario, site Site, f Fault) {
	t.Helper()
	all, err := AtEach(sc, site, f)
	if err != nil {
		t.Fatal(err)
	}
	total, err := Sweep(len(all), *workers, 3, func(i int) *Scenario { return all[i] })
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range total.Failures {
		t.Errorf("%s: %v", f.Scenario.Name, f.Violation)
	}
	t.Logf("%d variants", len(all))
}

// A machine stands still, longer than the lease, at every point at which something is on its
// way on it: a renewal that slept must not be counted from when it is read.
func TestARenewalThatSlept(t *testing.T) {
	sc := &Scenario{Name: "a gang of two nodes", Seed: 3, Nodes: nodes(3, 2),
		Jobs: []Job{{At: time.Second, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 70 * time.Second, OnTerm: TermIgnored}}},
		Calm: 200 * time.Second}
	holdsAtEach(t, sc, AtSend, Fault{Do: Suspend, Node: "n1", For: 90 * time.Second})
}
