package gang

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestPartitions: they are made, changed, set down and deleted at run time, what they hold back
// waits, and a configuration that was edited holds again.
func TestPartitions(t *testing.T) {
	b := newBench(t, 2)
	w := b.w
	file := []api.Partition{{Name: "main", Default: true}}
	w.SetPartitions(file)
	put := func(old bool, r api.PartitionRequest) Outcome {
		return w.Step(b.now, PutPartition{Ask: r, Old: old, By: "root"})
	}
	in := func(node string) []string { return w.Node(node).Res.Partitions }
	if got := in("n1"); !slices.Equal(got, []string{"main"}) {
		t.Fatalf("n1 is in %v", got)
	}
	if out := put(false, api.PartitionRequest{Name: "night", Nodes: &[]string{"n2"}, Tier: new(2)}); !out.Applied {
		t.Fatalf("create: %+v", out)
	}
	if got := in("n2"); !slices.Equal(got, []string{"main", "night"}) || len(in("n1")) != 1 {
		t.Fatalf("n2 is in %v, n1 in %v", got, in("n1"))
	}
	for name, out := range map[string]Outcome{
		"twice":        put(false, api.PartitionRequest{Name: "night"}),
		"unknown":      put(true, api.PartitionRequest{Name: "nacht"}),
		"unknown node": put(false, api.PartitionRequest{Name: "x", Nodes: &[]string{"n9"}}),
		"state":        put(true, api.PartitionRequest{Name: "night", State: new(api.PartitionState("up!"))}),
		"times":        put(true, api.PartitionRequest{Name: "night", MaxTime: new(time.Minute), DefaultTime: new(time.Hour)}),
	} {
		if out.Refused == nil {
			t.Errorf("%s was not refused: %+v", name, out)
		}
	}
	if err := put(false, api.PartitionRequest{Name: "x", Nodes: &[]string{"n9"}}).Refused; err.Error() != `no node "n9"; nodes are n[1-2]` {
		t.Errorf("refused: %v", err)
	}
	j := &Job{Spec: specOf(1), Partition: "main,night", Wishes: new(Wishes), Past: new(Past)}
	down := api.PartitionDown
	put(true, api.PartitionRequest{Name: "main", State: &down})
	if got := w.site.partitions.startsIn(j); inText(got) != "night" {
		t.Errorf("starts in %v with main down", got)
	}
	put(true, api.PartitionRequest{Name: "night", Default: new(true)})
	if w.site.partitions.find("main").Default || !w.site.partitions.find("night").Default {
		t.Errorf("defaults: %+v", w.Partitions())
	}
	// What a store would give back, with the same file and with one that was edited.
	var kept []*api.PartitionChange
	for _, c := range w.PartitionChanges() {
		kept = append(kept, &c)
	}
	again := Restore(b.now, w.set, &Snapshot{Partitions: kept})
	again.SetPartitions(file)
	if p := again.site.partitions.find("main"); p == nil || p.State != down || again.site.partitions.find("night") == nil {
		t.Errorf("after a restart: %+v", again.Partitions())
	}
	edited := Restore(b.now, w.set, &Snapshot{Partitions: kept})
	edited.SetPartitions([]api.Partition{{Name: "main", Default: true, Tier: 7}})
	if p := edited.site.partitions.find("main"); p.State != api.PartitionUp || p.Tier != 7 {
		t.Errorf("after an edit: %+v", p)
	}
	waits := b.must(Submit{Spec: specOf(1), SpecHash: "h", User: "bob", Partition: "night"}).JobIDs[0]
	if out := w.Step(b.now, DropPartition{Name: "night"}); api.ReasonOf(out.Refused) != api.ReasonPartitionUsed {
		t.Errorf("deleted below job %d: %+v", waits, out)
	}
	b.must(Cancel{Job: waits})
	if out := w.Step(b.now, DropPartition{Name: "night", By: "root"}); !out.Applied || w.site.partitions.find("night") != nil {
		t.Errorf("delete: %+v", out)
	}
	if out := w.Step(b.now, NodeFeatures{Node: "n1", Features: []string{"ib"}}); !out.Applied || !slices.Equal(w.Node("n1").Res.Features, []string{"ib"}) {
		t.Errorf("features: %+v", out)
	}
	w.Step(b.now, ResetPartitions{By: "root"})
	if p := w.Partitions(); len(p) != 1 || p[0].State != api.PartitionUp || len(w.PartitionChanges()) != 0 || len(w.Node("n1").Res.Features) != 0 {
		t.Errorf("reset: %+v", p)
	}
}

// TestPartitionsHoldBackWhoWaits: whatever a partition allows is judged by what it says now, however it came to say so,
// and a job that it keeps is let go when it says otherwise, or the job asks for less.
func TestPartitionsHoldBackWhoWaits(t *testing.T) {
	hour, short, none := time.Hour, 10*time.Minute, time.Duration(0)
	down, drain, inactive := api.PartitionDown, api.PartitionDrain, api.PartitionInactive
	main := api.Partition{Name: "main", Default: true}
	file := func(p api.Partition) func(*bench) {
		return func(b *bench) { p.Name, p.Default = "main", true; b.w.SetPartitions([]api.Partition{p}) }
	}
	put := func(r api.PartitionRequest) func(*bench) {
		return func(b *bench) { r.Name = "main"; b.must(PutPartition{Ask: r, Old: true, By: "root"}) }
	}
	for name, x := range map[string]struct {
		limit  time.Duration // of the job, in a partition that allows it
		change func(*bench)
		kept   string
		back   func(*bench) // nil: as it was
	}{
		"a shorter longest time":                 {hour, put(api.PartitionRequest{MaxTime: &short}), WordPartitionTime, put(api.PartitionRequest{MaxTime: &none})},
		"a longest time, of a job without one":   {0, put(api.PartitionRequest{MaxTime: &hour}), WordPartitionTime, put(api.PartitionRequest{MaxTime: &none})},
		"a shorter one, by the file":             {hour, file(api.Partition{MaxTime: short}), WordPartitionTime, file(main)},
		"the time that it has":                   {hour, put(api.PartitionRequest{MaxTime: &hour}), "", nil},
		"a default time":                         {hour, put(api.PartitionRequest{DefaultTime: &short}), "", nil},
		"it asks for less":                       {hour, put(api.PartitionRequest{MaxTime: &short}), WordPartitionTime, func(b *bench) { b.must(Update{Job: 1, TimeLimit: &short, By: "bob"}) }},
		"down":                                   {hour, put(api.PartitionRequest{State: &down}), WordPartitionDown, put(api.PartitionRequest{State: new(api.PartitionUp)})},
		"down, by the file":                      {hour, file(api.Partition{State: down}), WordPartitionDown, file(main)},
		"inactive":                               {hour, put(api.PartitionRequest{State: &inactive}), WordPartitionInactive, func(b *bench) { b.must(ResetPartitions{By: "root"}) }},
		"drain":                                  {hour, put(api.PartitionRequest{State: &drain}), "", nil},
		"a shorter one, and as configured again": {hour, put(api.PartitionRequest{MaxTime: &short}), WordPartitionTime, func(b *bench) { b.must(ResetPartitions{By: "root"}) }},
		"it asks for more than there is room for": {short, func(b *bench) {
			put(api.PartitionRequest{MaxTime: &short})(b)
			b.must(Update{Job: 1, TimeLimit: &hour, By: "root"})
		}, WordPartitionTime, put(api.PartitionRequest{MaxTime: &hour})},
	} {
		b := newBench(t, 1)
		b.w.SetPartitions([]api.Partition{main})
		s := specOf(1)
		s.TimeLimit = x.limit
		id := b.must(Submit{Spec: s, SpecHash: "h", User: "bob", Partition: "main", TimeLimit: x.limit}).JobIDs[0]
		e := b.w.jobs.byID[id]
		if !b.w.queue.eligible(e) {
			t.Fatalf("%s: it is kept from the start", name)
		}
		x.change(b)
		if got := KeptBy(b.w.site.partitions.find("main"), EntrantOf(b.w.jobs.byID[id].job, nil)); got != x.kept || b.w.queue.eligible(b.w.jobs.byID[id]) != (x.kept == "") {
			t.Errorf("%s: kept by %q, want %q", name, got, x.kept)
		}
		if x.back == nil {
			continue
		}
		x.back(b)
		if got := KeptBy(b.w.site.partitions.find("main"), EntrantOf(b.w.jobs.byID[id].job, nil)); got != "" || !b.w.queue.eligible(b.w.jobs.byID[id]) {
			t.Errorf("%s: still kept by %q", name, got)
		}
	}
	j := &Job{Spec: specOf(1), Partition: "main,night", TimeLimit: hour, Wishes: new(Wishes), Past: new(Past)}
	b := newBench(t, 1)
	b.w.SetPartitions([]api.Partition{{Name: "main", MaxTime: short}, {Name: "night", MaxTime: hour}})
	if got := b.w.site.partitions.startsIn(j); inText(got) != "night" {
		t.Errorf("of two it may be started in %v", got)
	}
}

func TestPartitionsThatAreRefused(t *testing.T) {
	b := newBench(t, 2)
	b.w.SetPartitions([]api.Partition{{Name: "main", Default: true}})
	put := func(old bool, r api.PartitionRequest) PutPartition { return PutPartition{Ask: r, Old: old, By: "root"} }
	b.refuses(put(true, api.PartitionRequest{Name: "night"}), `no partition "night"`)
	b.refuses(put(false, api.PartitionRequest{Name: "main"}), "there is a partition main already")
	b.refuses(put(false, api.PartitionRequest{Name: "night", Nodes: &[]string{"n9"}}), `no node "n9"`)
	b.refuses(put(false, api.PartitionRequest{Name: "night", State: new(api.PartitionState("odd"))}), `state "odd": want up, down, drain or inactive`)
	b.refuses(put(false, api.PartitionRequest{Name: "night", MaxTime: new(-time.Second)}), "a time may not be negative")
	b.refuses(put(false, api.PartitionRequest{Name: "night", DefaultTime: new(-time.Second)}), "a time may not be negative")
	b.refuses(put(false, api.PartitionRequest{Name: "night", DefaultTime: new(time.Hour + 1), MaxTime: new(time.Hour)}),
		"the default time 1 h of partition night is above its longest, 1 h")
	b.must(put(false, api.PartitionRequest{Name: "night", DefaultTime: new(time.Hour), MaxTime: new(time.Hour), Nodes: &[]string{"all"}}))
	b.ignores(put(true, api.PartitionRequest{Name: "night", MaxTime: new(time.Hour)}), "it is so already")
	b.refuses(DropPartition{Name: "knight"}, `no partition "knight"`)
	id := b.must(Submit{Spec: specOf(1), SpecHash: "h", Partition: "main,night"}).JobIDs[0]
	b.refuses(DropPartition{Name: "night"}, fmt.Sprintf("job %d is of partition night", id))
	b.must(Cancel{Job: id})
	b.must(DropPartition{Name: "night", By: "root"})
}

func TestPartitionsInALine(t *testing.T) {
	for want, p := range map[string]api.Partition{
		"p: every node, up, tier 0, time limit unlimited, at most unlimited": {State: api.PartitionUp},
		"p: n[1-2], down, tier 3, time limit 1 h, at most 2 h, default":      {State: api.PartitionDown, Nodes: []string{"n1", "n2"}, Tier: 3, DefaultTime: time.Hour, MaxTime: 2 * time.Hour, Default: true},
	} {
		p.Name = "p"
		if got := partitionText(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
