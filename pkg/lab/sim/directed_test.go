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

// withEpilogs gives nodes an epilog that takes so long.
func withEpilogs(all []Node, d time.Duration) []Node {
	for i := range all {
		all[i].Epilog = d
	}
	return all
}

// A machine stands still at any moment between the decision to start and the start, for
// longer than its lease: what it finds when it wakes must not start any more.
func TestAStartThatSleptThroughItsLease(t *testing.T) {
	for i := range share(400) {
		us := 15 * i
		sc := &Scenario{Name: fmt.Sprintf("suspended %d us after the start", us), Seed: uint64(i), Nodes: nodes(3, 2),
			Jobs:   []Job{{At: time.Second, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 60 * time.Second}}},
			Faults: []Fault{{When: OnEvent(api.EventStarted, 0, 1), At: time.Duration(us) * time.Microsecond, Do: Suspend, Node: "n1", For: 90 * time.Second}},
		}
		holds(t, sc)
	}
}

// share is how many of so many variants are played where it has to be quick.
func share(n int) int {
	if *full {
		return n
	}
	return min(n, 40)
}

// holdsAtEach plays all variants of a scenario with a fault at each commit or sending.
func holdsAtEach(t *testing.T, sc *Scenario, site Site, f Fault) {
	t.Helper()
	all, err := AtEach(sc, site, f)
	if err != nil {
		t.Fatal(err)
	}
	n := share(len(all))
	total, err := Sweep(n, *workers, 3, func(i int) *Scenario { return all[i*len(all)/n] })
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range total.Failures {
		t.Errorf("%s: %v", f.Scenario.Name, f.Violation)
	}
	t.Logf("%d of %d variants", total.Runs, len(all))
}

// A machine stands still, longer than the lease, at every point at which something is on its
// way on it: a renewal that slept must not be counted from when it is read.
func TestARenewalThatSlept(t *testing.T) {
	sc := &Scenario{Name: "a gang of two nodes", Seed: 3, Nodes: nodes(3, 2),
		Jobs: []Job{{At: time.Second, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 70 * time.Second, OnTerm: TermIgnored}}},
		Calm: 200 * time.Second}
	holdsAtEach(t, sc, AtSend, Fault{Do: Suspend, Node: "n1", For: 90 * time.Second})
}

// A daemon is frozen between the order to start and the start; the gang is given up; the
// controller is down when the daemon goes on, and "nobody listens" counts as contact. Contact
// alone must not make it carry out what it was told before.
func TestAStartOrderedBeforeAFreeze(t *testing.T) {
	for i := range share(200) {
		holds(t, &Scenario{Name: fmt.Sprintf("frozen, %d", i), Seed: uint64(i), Nodes: nodes(3, 2),
			Jobs: []Job{{At: time.Second, Ranks: 2, Nodes: 2, NoRequeue: true, Runs: Behaviour{For: 4 * time.Second}}},
			Faults: []Fault{
				{When: OnEvent(api.EventStarted, 0, 1), At: time.Duration(i) * 20 * time.Microsecond, Do: FreezeNoded, Node: "n1", For: 24 * time.Second},
				{When: OnEvent(api.EventEnded, 0, 1), At: 5 * time.Second, Do: CrashGangd, For: 20 * time.Second},
			}})
	}
}

// A gang is reserved and rolled back before its nodes were told of it (its commit waited for
// room on the disk): they are asked, and what it held is given on.
func TestSeed1711(t *testing.T) {
	holds(t, &Scenario{Name: "random 1711, reduced", Seed: 1711, Nodes: []Node{
		{Name: "n1", CPUs: 4, Cards: 2}, {Name: "n2", CPUs: 4, Cards: 2}, {Name: "n3", CPUs: 4, Cards: 2}, {Name: "n4", CPUs: 4, Cards: 2}},
		Jobs: []Job{
			{At: 12398 * time.Millisecond, Ranks: 6, GPUs: 1, Runs: Behaviour{For: 17993 * time.Millisecond}},
			{At: 54500 * time.Millisecond, Ranks: 3, GPUs: 1, Runs: Behaviour{For: 16512 * time.Millisecond}},
			{At: 17610 * time.Millisecond, Ranks: 1, Runs: Behaviour{For: 24104 * time.Millisecond}},
		},
		Faults: []Fault{
			{At: 12831 * time.Millisecond, Do: CutUp, Node: "n3", For: 25330 * time.Millisecond},
			{At: 55326 * time.Millisecond, Do: DiskFull, For: 14633 * time.Millisecond, N: 1},
		},
		Calm: 104314 * time.Millisecond,
	})
}

// A daemon is frozen with the answer to a beat unread, and cut off meanwhile. What it reads
// when it goes on is as old as the beat was, and renews no lease beyond that.
func TestALeaseCountsFromWhatWasSent(t *testing.T) {
	for i := range share(200) {
		holds(t, &Scenario{Name: fmt.Sprintf("frozen and cut off, %d", i), Seed: uint64(i), Nodes: nodes(3, 2),
			Jobs: []Job{{At: time.Second, Ranks: 2, Nodes: 2, Runs: Behaviour{For: 100 * time.Second, OnTerm: TermIgnored}}},
			Faults: []Fault{
				{At: 5*time.Second + time.Duration(i)*5*time.Millisecond, Do: FreezeNoded, Node: "n1", For: 32 * time.Second},
				{At: 8 * time.Second, Do: Cut, Node: "n1", For: 120 * time.Second},
			}})
	}
}

// The controller dies between the commit of an order and its sending, and the other way
// round nothing is sent that is not on disk: at each commit.
func TestTheControllerDiesAtEachCommit(t *testing.T) {
	sc := &Scenario{Name: "three gangs", Seed: 5, Nodes: nodes(3, 2), Jobs: []Job{
		{At: time.Second, Ranks: 4, Runs: Behaviour{For: 3 * time.Second}},
		{At: time.Second, Ranks: 3, MaxRetries: 2, Runs: Behaviour{For: 4 * time.Second, FailEpochs: 1, FailCode: 3, Checkpoints: true}},
		{At: 1500 * time.Millisecond, Ranks: 2, Lead: time.Second, Runs: Behaviour{For: 20 * time.Second, OnTerm: TermSaves}},
	}, Faults: []Fault{{At: 12 * time.Second, Do: Preempt, Job: 2}, {At: 16 * time.Second, Do: Cancel, Job: 2}}}
	holdsAtEach(t, sc, AtCommit, Fault{Do: CrashGangd, For: time.Second})
}

// Whoever sends dies at each sending.
func TestASenderDiesAtEachSending(t *testing.T) {
	sc := &Scenario{Name: "a gang that fails once", Seed: 6, Nodes: nodes(2, 2), Jobs: []Job{
		{At: time.Second, Ranks: 3, MaxRetries: 1, Runs: Behaviour{For: 2 * time.Second, FailEpochs: 1, FailCode: 3}},
	}}
	holdsAtEach(t, sc, AtSend, Fault{Do: CrashSender, For: 500 * time.Millisecond})
}

// Ended jobs are forgotten while gangd is killed again and again: each is there whole or not at
// all, and what is to go is gone in the end.
func TestForgettingIsBrokenOff(t *testing.T) {
	forgotten, n := 0, share(200)
	if !*full {
		n /= 3 // each begins a controller forty times
	}
	for seed := range uint64(n) {
		sc := &Scenario{Name: "forgetting is broken off", Seed: seed, Nodes: nodes(4, 8), History: History{Memory: 10 * time.Second, Jobs: 3}}
		if seed%3 == 0 {
			sc.History = History{Memory: 5 * time.Second, Keep: 20 * time.Second}
		}
		for i := range 20 {
			j := Job{At: time.Duration(i) * time.Second, Ranks: 1 + i%3, Runs: Behaviour{For: 2 * time.Second, Checkpoints: i%4 == 0}}
			if i%5 == 0 {
				j.Array = 3
			}
			sc.Jobs = append(sc.Jobs, j)
		}
		for i := range 40 {
			sc.Faults = append(sc.Faults, Fault{At: 15*time.Second + time.Duration(i)*(1500+time.Duration(seed))*time.Millisecond, Do: CrashGangd, For: 50 * time.Millisecond})
		}
		forgotten += holds(t, sc).Forgotten
	}
	if forgotten < 10*n {
		t.Errorf("only %d jobs were forgotten", forgotten)
	}
}

// A copy of the store that lacks few commits is put back: as soon as a node comes that was told
// of one which it lacks, the controller holds, however many commits it has made itself.
func TestAnOldCopyThatLacksFew(t *testing.T) {
	held, n := 0, share(200)
	for seed := range uint64(n) {
		sc := &Scenario{Name: "a copy that lacks few", Seed: seed, Nodes: nodes(4, 8)}
		for i := range 30 {
			sc.Jobs = append(sc.Jobs, Job{At: time.Duration(i) * 700 * time.Millisecond, Ranks: 1 + i%3, Runs: Behaviour{For: 3 * time.Second}})
		}
		at := 5*time.Second + time.Duration(seed)*17*time.Millisecond
		sc.Faults = []Fault{{At: at, Do: OldStore, For: 1500*time.Millisecond + time.Duration(seed%7)*300*time.Millisecond}}
		held += holds(t, sc).Holds
	}
	if held < n*9/10 {
		t.Errorf("the controller held in %d of %d", held, n)
	}
}
