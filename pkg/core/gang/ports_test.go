package gang

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/hostlist"
)

func fivePorts() api.Settings {
	s := settings()
	s.Ports = "12000-12004"
	return s
}

func TestStepsGetPortsOfTheirOwn(t *testing.T) {
	b := benchWith(t, 2, fivePorts())
	spec := specOf(2)
	spec.Launch, spec.Ports = api.LaunchBatch, 1
	b.must(Submit{Key: "k", Spec: spec, SpecHash: hashOf(spec), Partition: "main"})
	b.start(1)
	body := b.w.Desired("n2")
	if got := body[0].Body.Ports; got != hostlist.Ranges(b.w.Job(1).Ports) || len(b.w.Job(1).Ports) != 1 {
		t.Errorf("ports of the gang %v, told %q", b.w.Job(1).Ports, got)
	}
	first := begin(b, api.StepAsk{Name: "a", Overlap: true, Ports: 3})
	if !first.Applied || len(first.Step.Ports) != 3 {
		t.Fatalf("%+v", first)
	}
	each := begin(b, api.StepAsk{Name: "b", Overlap: true, Ports: api.PortEach})
	if !each.Applied || len(each.Step.Ports) != 1 {
		t.Fatalf("one for each task of a node: %+v", each)
	}
	if shown := ShowStep(b.w.Job(1), first.Step, b.now.Wall); shown.Ports != hostlist.Ranges(first.Step.Ports) {
		t.Errorf("shown as %q", shown.Ports)
	}
	for _, c := range []struct {
		ports int
		code  api.Code
		want  string
	}{
		{2, api.CodeBusy, "2 ports asked, 0 of 12000-12004 are free on n1,n2"},
		{6, api.CodeUnsatisfiable, "6 ports asked, 5 can be reserved (12000-12004)"},
	} {
		out := begin(b, api.StepAsk{Name: "c", Overlap: true, Ports: c.ports})
		if out.Refused == nil || out.Refused.Code != c.code || out.Refused.Message != c.want {
			t.Errorf("%d: %+v", c.ports, out.Refused)
		}
	}
	for _, node := range []string{"n1", "n2"} {
		b.say(node, api.MemberActual{MemberKey: b.key(1), Phase: api.PhaseRunning, Steps: []api.StepActual{{ID: 0, Over: true}}})
	}
	if again := begin(b, api.StepAsk{Name: "d", Overlap: true, Ports: 3}); !again.Applied {
		t.Errorf("after the end of the first: %+v", again.Refused)
	}
}

func TestGangWaitsForPorts(t *testing.T) {
	b := benchWith(t, 2, fivePorts())
	spec := specOf(2)
	spec.Ports = 3
	one, two := b.submit(spec), b.submit(spec)
	b.start(one)
	b.must(b.spread(two))
	j := b.w.Job(two)
	if !blocked(j) || !j.BackoffUntil.After(b.now.Wall) || j.Rollbacks != 1 {
		t.Fatalf("%+v", j)
	}
	if ev := b.w.record.events[len(b.w.record.events)-1]; ev.Type != api.EventRolledBack || ev.Text != "3 ports asked, 2 of 12000-12004 are free on n1,n2" {
		t.Errorf("%+v", ev)
	}
	b.must(Cancel{Job: one, By: "ada"})
	b.ack(one)
	b.after(settings().RetryBackoff)
	b.must(b.spread(two))
	if got := len(b.w.Job(two).Ports); got != 3 {
		t.Errorf("%d ports", got)
	}
}

// What a lost node may still run keeps its ports there, and there alone.
func TestPortsOfWhatIsLeft(t *testing.T) {
	b := benchWith(t, 3, fivePorts())
	spec := specOf(2)
	spec.Ports = 4
	b.submit(spec)
	b.start(1)
	b.must(NodeGone{Node: "n2"})
	b.after(settings().NodeTimeout)
	b.phase(1, "n1", api.PhaseStopped)
	b.after(settings().DrainSlack + settings().Grace)
	if n := b.w.nodes.byName["n2"]; len(n.node.Left) != 1 || len(n.node.Left[0].Ports) != 4 {
		t.Fatalf("left on n2: %+v", n.node.Left)
	}
	if _, err := b.w.nodes.takePorts([]string{"n2"}, 2, 0); err == nil {
		t.Error("ports of what may still run were given out")
	}
	if got, err := b.w.nodes.takePorts([]string{"n1", "n3"}, 5, 0); err != nil || len(got) != 5 {
		t.Errorf("elsewhere: %v %v", got, err)
	}
}

func TestTakePorts(t *testing.T) {
	for _, c := range []struct {
		used []int
		n    int
		turn int64
		want string
	}{
		{nil, 2, 0, "12000-12001"},
		{nil, 2, 1, "12001-12002"},                 // 16 further on, of 5
		{nil, 3, 4, "12000-12002"},                 // no block over the end
		{[]int{12001}, 3, 0, "12002-12004"},        // the first block
		{[]int{12001, 12003}, 2, 0, "12000,12002"}, // none: the first
		{nil, 5, 3, "12000-12004"},
	} {
		b := benchWith(t, 1, fivePorts())
		b.w.nodes.edit(b.w.nodes.byName["n1"]).Left = []Left{{Ports: c.used}}
		if got, err := b.w.nodes.takePorts([]string{"n1"}, c.n, c.turn); err != nil || hostlist.Ranges(got) != c.want {
			t.Errorf("%d of all but %v: %s %v, want %s", c.n, c.used, hostlist.Ranges(got), err, c.want)
		}
	}
}

// TestPortsThatCanBeHad: the most that can ever be reserved, and one more.
func TestPortsThatCanBeHad(t *testing.T) {
	five, none := fivePorts(), settings()
	none.Ports = ""
	for _, c := range []struct {
		set        api.Settings
		ask, ranks int
		want       string
	}{
		{five, 0, 9, ""}, {five, 5, 1, ""}, {five, 6, 1, "6 ports asked, 5 can be reserved (12000-12004)"},
		{five, api.PortEach, 5, ""}, {five, api.PortEach, 6, "6 ports asked, 5 can be reserved (12000-12004)"},
		{none, 0, 1, ""}, {none, 1, 1, "the site reserves no ports"},
	} {
		got := ""
		if err := CheckPorts(&c.set, c.ask, c.ranks); err != nil {
			if got = err.Message; err.Reason != api.ReasonPorts || err.Code != api.CodeUnsatisfiable {
				t.Errorf("%+v", err)
			}
		}
		if got != c.want {
			t.Errorf("%d ports, %d ranks: %q, want %q", c.ask, c.ranks, got, c.want)
		}
	}
}
