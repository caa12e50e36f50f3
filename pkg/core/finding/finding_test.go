package finding

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/api/bound"
)

var update = flag.Bool("update", false, "write docs/doctor.md")

var t0 = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// healthy is a cluster of three nodes of which nothing is wrong.
func healthy() *Facts {
	node := func(i int) api.Node {
		return api.Node{Name: fmt.Sprintf("n%d", i), State: api.NodeUp, Address: fmt.Sprintf("10.0.0.%d", i), BootID: fmt.Sprint("boot", i),
			Containment: "cgroup2", Devices: api.LimitEnforced, Version: "v1", Partitions: []string{"main"}, CPUs: 64, MemoryBytes: 1 << 40,
			LastSeen: t0, Load: &api.NodeLoad{}, Cards: []api.Card{{Index: 0, Model: "H100", VRAMBytes: 80 << 30, State: api.CardOK},
				{Index: 1, Model: "H100", VRAMBytes: 80 << 30, State: api.CardOK}}}
	}
	return &Facts{Now: t0, Time: t0, Version: "v1", Ping: &api.PingReply{Version: "v1", Site: &api.Site{StartTimeout: 30 * time.Second},
		Controllers: []api.ControllerState{{Name: "a", State: api.ControllerLeads}, {Name: "b", State: api.ControllerStandsBy}}},
		Nodes: &api.NodesReply{Nodes: []api.Node{node(1), node(2), node(3)},
			Partitions: []api.Partition{{Name: "main", Default: true, Nodes: []string{"n1", "n2", "n3"}}}},
		Jobs: []api.Job{{JobID: 1, State: api.JobPending, Reason: "Resources", SubmitTime: t0}, {JobID: 2, State: api.JobRunning,
			StartTime: t0.Add(-time.Hour), TimeLimitSeconds: 3600}, {JobID: 3, State: api.JobPending, Held: api.HoldUser, SubmitTime: t0.Add(-1000 * time.Hour)}},
		Reservations: []api.Reservation{{Name: "r", Active: true, Nodes: []string{"n1"}}}, Outbox: &api.OutboxReply{Lines: []api.OutboxLine{
			{User: "ada", Waiting: 1, Oldest: t0.Add(-time.Minute)}}}, Verify: &api.VerifyReply{}}
}

// TestNothingOfAHealthyCluster, also where little is known of it.
func TestNothingOfAHealthyCluster(t *testing.T) {
	for name, f := range map[string]*Facts{"all": healthy(), "nothing": {}, "one controller, old ones": {Now: t0, Version: "v1",
		Ping: &api.PingReply{Version: "v1"}, Nodes: healthy().Nodes}} {
		if got := Cluster(f); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// seeds are faults, each of one kind.
var seeds = map[string]func(f *Facts){
	"controller-hold":    func(f *Facts) { f.Ping.Hold = "an old copy was put back" },
	"controller-version": func(f *Facts) { f.Version = "v2" },
	"controller-silent":  func(f *Facts) { f.Ping.Controllers[1].State = api.ControllerSilent },
	"controller-joins":   func(f *Facts) { f.Ping.Controllers[1].State = api.ControllerJoins },
	"controller-behind":  func(f *Facts) { f.Ping.Controllers[1].BehindSeconds = 31 },
	"controller-alone":   func(f *Facts) { f.Ping.Controllers = f.Ping.Controllers[:1] },
	"clock-differs":      func(f *Facts) { f.Time = t0.Add(61 * time.Second) },
	"notices-given-up":   func(f *Facts) { f.Outbox.GivenUp = []api.Letter{{User: "ada"}} },
	"notices-late": func(f *Facts) {
		f.Outbox.Lines[0].Oldest, f.Outbox.Lines[0].Tries = t0.Add(-2*time.Hour), 3
	},
	"nodes-none":   func(f *Facts) { f.Nodes.Nodes, f.Nodes.Partitions[0].Nodes, f.Reservations = nil, nil, nil },
	"node-lost":    func(f *Facts) { f.Nodes.Nodes[1].State = api.NodeLost },
	"node-suspect": func(f *Facts) { f.Nodes.Nodes[1].State = api.NodeSuspect },
	"node-unknown": func(f *Facts) { f.Nodes.Nodes[1].State, f.Nodes.Nodes[1].BootID = api.NodeUnknown, "" },
	"node-unfit":   func(f *Facts) { f.Nodes.Nodes[1].State, f.Nodes.Nodes[1].Reason = api.NodeDrained, "health: full" },
	"node-strikes": func(f *Facts) { f.Nodes.Nodes[1].State, f.Nodes.Nodes[1].DrainUser = api.NodeDrained, "gangd" },
	"node-drained": func(f *Facts) { f.Nodes.Nodes[1].State, f.Nodes.Nodes[1].DrainUser = api.NodeDraining, "ada" },
	"node-strike":  func(f *Facts) { f.Nodes.Nodes[1].Strikes = 1 },
	"node-version": func(f *Facts) { f.Nodes.Nodes[1].Version = "v0" },
	"node-containment": func(f *Facts) {
		f.Nodes.Nodes[1].Containment = "group"
	},
	"node-limits":       func(f *Facts) { f.Nodes.Nodes[1].Limits.Reason = "no memory controller" },
	"node-devices":      func(f *Facts) { f.Nodes.Nodes[1].Devices = "not root" },
	"node-address":      func(f *Facts) { f.Nodes.Nodes[1].Address = "10.0.0.1" },
	"node-odd":          func(f *Facts) { f.Nodes.Nodes[1].Cards = f.Nodes.Nodes[1].Cards[:1] },
	"card-unhealthy":    func(f *Facts) { f.Nodes.Nodes[1].Cards[1].State = api.CardQuarantined },
	"card-strangers":    func(f *Facts) { f.Nodes.Nodes[1].Cards[1].StrangersBytes = 1 << 30 },
	"partition-default": func(f *Facts) { f.Nodes.Partitions[0].Default = false },
	"partition-left":    func(f *Facts) { f.Jobs[0].Partition = "old,older" },
	"partition-empty":   func(f *Facts) { f.Nodes.Partitions = append(f.Nodes.Partitions, api.Partition{Name: "x"}) },
	"partition-closed":  func(f *Facts) { f.Nodes.Partitions[0].State = api.PartitionDrain },
	"partition-nodes":   func(f *Facts) { f.Nodes.Partitions[0].Nodes = []string{"n1", "n9"} },
	"partition-changed": func(f *Facts) { f.Nodes.Changes = []api.PartitionChange{{Name: "main"}} },
	"reservation-lost":  func(f *Facts) { f.Reservations[0].Nodes, f.Nodes.Nodes[0].State = []string{"n1"}, api.NodeLost },
	"job-never":         func(f *Facts) { f.Jobs[0].Reason = "DependencyNeverSatisfied" },
	"job-held":          func(f *Facts) { f.Jobs[2].Held = api.HoldAdmin },
	"job-starting":      func(f *Facts) { f.Jobs[1].State, f.Jobs[1].StartTime = api.JobReserved, t0.Add(-2*time.Hour) },
	"job-stopping":      func(f *Facts) { f.Jobs[1].StartTime = t0.Add(-80 * time.Minute) },
	"job-restarts":      func(f *Facts) { f.Jobs[1].RestartCount = 11 },
	"epilog-runs":       func(f *Facts) { f.Jobs[1].Epilog, f.Jobs[1].EndTime = []string{"n1"}, t0.Add(-11*time.Minute) },
	"store-disagrees":   func(f *Facts) { f.Verify.Findings = []string{"job 3 is counted twice"} },
	"certificate-expires": func(f *Facts) {
		var l List
		l.Add("certificate-expires", "x", "y")
		f.Nodes.Nodes[1].Load.Findings = l
	},
}

// follow are kinds that are found beside others because one thing brings both about.
var follow = map[string][]string{"reservation-lost": {"node-lost"}, "nodes-none": {}}

// TestEachSeededFault: each is found by its id, and nothing else is; of one node alone what is of nodes.
func TestEachSeededFault(t *testing.T) {
	for id, seed := range seeds {
		f := healthy()
		seed(f)
		var got []string
		for _, x := range Cluster(f) {
			got = append(got, x.ID)
			if x.Evidence == "" || x.Remedy == "" || x.Subject == "" || strings.HasPrefix(id, "node-") && x.Node == "" {
				t.Errorf("%s: %+v", id, x)
			}
			if err := bound.Check(&x); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		want := append([]string{id}, follow[id]...)
		if got = slices.Compact(slices.Sorted(slices.Values(got))); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: found %v", id, got)
		}
		f = healthy()
		seed(f)
		f.Only = []string{"n3"}
		if got := Cluster(f); len(got) > 0 && id != "nodes-none" && id != "controller-version" {
			t.Errorf("%s, of n3 alone: %+v", id, got)
		}
	}
	for i := range Kinds {
		k := &Kinds[i]
		if k.Of == OfCluster && seeds[k.ID] == nil && k.ID != "controller-unreachable" {
			t.Errorf("no test seeds %s", k.ID)
		}
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(k.ID) || k.What == "" || k.Remedy == "" ||
			slices.IndexFunc(Kinds, func(o Kind) bool { return o.ID == k.ID }) != i {
			t.Errorf("%+v", k)
		}
	}
	if len(Kinds) < 40 {
		t.Errorf("%d kinds", len(Kinds))
	}
}

// TestWritten: the worst first, each on its line, and nothing of others' reaches a terminal.
func TestWritten(t *testing.T) {
	var l List
	l.Add("node-drained", "n1", "by ada")
	l.Add("node-lost", "n2", "silent\n\x1b[31m").Node = "n2"
	l.Add("disk-low", "state_dir", "%s", strings.Repeat("x\x00", 3000)).Node = "n3"
	var b strings.Builder
	if err := l[:2].Sorted().Write(&b); err != nil || b.String() != "n2: silent  [31m [error node-lost]\n    "+KindOf("node-lost").Remedy+
		"\nn1: by ada [note node-drained]\n    "+KindOf("node-drained").Remedy+"\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
	if err := bound.Check(&l[2]); err != nil {
		t.Error(err)
	}
	if l[:1].Bad() || !l.Bad() {
		t.Error("a note is no reason to fail, an error is")
	}
}

// TestPage: docs/doctor.md has every kind.
func TestPage(t *testing.T) {
	const path = "../../../docs/doctor.md"
	var b strings.Builder
	b.WriteString("# What can be found wrong\n\n`gctl doctor` looks at a cluster, from any host; `gangd check FILE` and `gnoded check FILE` at a " +
		"configuration and what it names on its host, with the line of each; `gangd verify` at the store. A gnoded\nthat runs checks its own every five minutes, " +
		"and `gctl doctor` shows what it finds. All have one list, this one, and one form: what it is about, what was seen, severity and id, and what to do; `--json` has the same " +
		"as\n`findings[]`: `id` `severity` `node` `subject` `evidence` `remedy`. Exit status 1 when something was found that is worse than a note. An id never changes its meaning.\n" +
		"\nThis page is made of `pkg/core/finding` (`go test ./pkg/core/finding -update`).\n")
	for _, of := range []string{OfConfig, OfHost, OfCluster, OfStore} {
		fmt.Fprintf(&b, "\n## %s\n| id | severity | what is wrong | what to do |\n|---|---|---|---|\n", strings.ToUpper(of[:1])+of[1:])
		for i := range Kinds {
			if k := &Kinds[i]; k.Of == of {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.ID, k.Severity, k.What, k.Remedy)
			}
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != b.String() {
		t.Errorf("%s is not current: go test ./pkg/core/finding -update (%v)", path, err)
	}
}
