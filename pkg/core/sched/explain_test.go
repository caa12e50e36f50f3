package sched

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/core/sched/why"
	"gangd/pkg/lab/plantest"
)

func TestExplain(t *testing.T) {
	strange := plantest.Node("n3", 16, 4, 80)
	strange.Cards[1].StrangersBytes = 58 * plantest.GiB
	strange.Cards[2].State, strange.Cards[2].Reason = api.CardQuarantined, "Xid 79"
	drained := plantest.Node("n4", 16, 4, 80)
	drained.Ready, drained.NotReady = false, "drained: new power supply"
	small := []*cluster.Node{
		plantest.Hold(plantest.Node("n1", 16, 4, 80), 7, 0, true, 0, 1, 2, 3),
		plantest.Hold(plantest.Node("n2", 16, 4, 80), 9, 0, true, 0, 1, 2, 3),
		plantest.Hold(strange, 8, 30*plantest.GiB, false, 3),
		drained,
	}
	var large []*cluster.Node
	for i, n := range plantest.Nodes(40, 16, 8, 80) {
		large = append(large, plantest.Hold(n, int64(100+i), 0, true, 0, 1, 2, 3, 4, 5, 6, 7))
	}
	full := plantest.Nodes(1, 8, 2, 80)
	full[0] = plantest.Hold(full[0], 7, 0, true, 0)
	for _, tt := range []struct {
		name  string
		nodes []*cluster.Node
		queue []*order.Candidate
		job   int64
		word  string
		want  []string
	}{
		{"strangers, sharers and drains", small, []*order.Candidate{plantest.Candidate(20, api.Spec{Size: 4, GPUsPerRank: 1, VRAMBytes: 40 * plantest.GiB})}, 20, "Resources",
			[]string{
				"1st of 1 in the queue; room for 1 of 4 ranks now, each needs 1 card with 40G and 1 CPU",
				"n[1,3] are kept for it; when that is free is not known, for what runs there has no time limit",
				"n3: room for 1 rank: 1 of 4 cards free, needs 40G on each, card 1 has 22G free after 58G held by strangers, " +
					"card 2 quarantined (Xid 79), card 3 is shared by job 8; held by job 8",
				"n[1-2]: 0 of 4 cards free; held by jobs 7 and 9",
				"n4: out of service: drained: new power supply",
				"--size=1 would start now",
			}},
		{"a big cluster is grouped", large, []*order.Candidate{plantest.Candidate(3, api.Spec{Size: 2, GPUsPerRank: 8})}, 3, "Resources",
			[]string{
				"1st of 1 in the queue; room for 0 of 2 ranks now, each needs 8 cards and 1 CPU",
				"n[00001-00002] are kept for it; when that is free is not known, for what runs there has no time limit",
				"n[00001-00040]: 0 of 8 cards free, needs 8; held by jobs 100, 101, 102, 103, 104 and 35 more",
			}},
		{"behind a claim", full, []*order.Candidate{
			plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 2}), plantest.Candidate(2, api.Spec{Size: 1, GPUsPerRank: 1})}, 2, "Priority",
			[]string{
				"2nd of 2 in the queue; would fit, but what is free is kept for job 1",
				"job 1 is ahead and waits for the same cards",
				"n00001: kept for job 1: 1 of 2 cards free; held by job 7",
			}},
		{"behind its equal", full, []*order.Candidate{
			plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 2}), plantest.Candidate(2, api.Spec{Size: 1, GPUsPerRank: 2})}, 2, "Priority",
			[]string{
				"2nd of 2 in the queue; room for 0 of 1 rank now, each needs 2 cards and 1 CPU",
				"job 1 is ahead and waits for the same cards",
				"n00001: 1 of 2 cards free, needs 2; held by job 7",
			}},
		{"behind several", full, []*order.Candidate{
			plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 2}), plantest.Candidate(2, api.Spec{Size: 2, GPUsPerRank: 1}), plantest.Candidate(3, api.Spec{Size: 1, GPUsPerRank: 2})}, 3, "Priority",
			[]string{
				"3rd of 3 in the queue; room for 0 of 1 rank now, each needs 2 cards and 1 CPU",
				"jobs 1 and 2 are ahead and wait for the same cards",
				"n00001: 1 of 2 cards free, needs 2; held by job 7",
			}},
		{"short of CPUs and memory", []*cluster.Node{plantest.Node("n1", 16, 0, 0).Restore(cluster.Grant{MemberKey: api.MemberKey{Job: 7}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 8, cluster.Memory: 200 * plantest.GiB}})}, []*order.Candidate{
			plantest.Candidate(1, api.Spec{Size: 1, CPUsPerRank: 12, MemoryPerNode: 100 * plantest.GiB})}, 1, "Resources",
			[]string{
				"1st of 1 in the queue; room for 0 of 1 rank now, each needs 12 CPUs and 100G memory on its node",
				"n1 is kept for it; when that is free is not known, for what runs there has no time limit",
				"n1: 8 of 16 CPUs free, needs 12, 56G of 256G memory free, needs 100G; held by job 7",
			}},
		{"a card that others have shares of", []*cluster.Node{plantest.Hold(strange, 9, 2*plantest.GiB, false, 1)}, []*order.Candidate{
			plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 4, VRAMBytes: 60 * plantest.GiB, Share: true})}, 1, "ReqNodeNotAvail",
			[]string{
				"1st of 1 in the queue; does not fit without what is out of service: n3 (1 card quarantined)",
				"n3: 2 of 4 cards free, needs 4, needs 60G on each, card 1 has 20G free after 58G held by strangers and 2G reserved by job 9, " +
					"card 2 quarantined (Xid 79); held by job 9",
				"--gpus-per-rank=2 would start now",
			}},
		{"one rank a node", []*cluster.Node{full[0], plantest.Node("n1", 16, 2, 80)}, []*order.Candidate{
			plantest.Candidate(1, api.Spec{Size: 3, GPUsPerRank: 1, RanksPerNode: 1})}, 1, "Resources",
			[]string{
				"1st of 1 in the queue; room for 3 ranks now, but not on nodes with 1 rank each; each rank needs 1 card and 1 CPU",
				"n1: room for 2 ranks: 2 of 2 cards free",
				"n00001: room for 1 rank: 1 of 2 cards free; held by job 7",
				"--size=2 or the same without --ranks-per-node would start now",
			}},
		{"alternatives, most room first", []*cluster.Node{plantest.Within("b", full[0]), plantest.Within("a", drained)}, []*order.Candidate{
			plantest.Candidate(1, api.Spec{Size: 2, GPUsPerRank: 1, Constraint: "[a|b]"})}, 1, "Resources",
			[]string{
				"1st of 1 in the queue; no alternative has it all now: a has room for 0 of 2 ranks; b has room for 1 of 2 ranks; each rank needs 1 card and 1 CPU",
				"n00001 is kept for it; when that is free is not known, for what runs there has no time limit",
				"b:",
				"  n00001: room for 1 rank: 1 of 2 cards free; held by job 7",
				"a:",
				"  n4: out of service: drained: new power supply",
				"--size=1 would start now",
			}},
		{"ends that are known", []*cluster.Node{plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 90, 0, 1, 2)}, []*order.Candidate{
			plantest.Lasting(1, 4, 30), plantest.Lasting(2, 2, 100), plantest.Lasting(3, 4, 100)}, 2, "Resources",
			[]string{
				"2nd of 3 in the queue; room for 0 of 1 rank now, each needs 2 cards and 1 CPU",
				"expected to start about 02:00:00, if those ahead of it run as long as they may",
				"job 1 is ahead and waits for the same cards",
				"n1: 1 of 4 cards free, needs 2; held by job 7, free at the latest at 01:30:00",
			}},
		{"nodes with the same end", []*cluster.Node{plantest.Run(plantest.Node("n1", 16, 2, 80), 7, 90, 0, 1), plantest.Run(plantest.Node("n2", 16, 2, 80), 7, 90, 0, 1)}, []*order.Candidate{
			plantest.Lasting(1, 2, 30)}, 1, "Resources",
			[]string{
				"1st of 1 in the queue; room for 0 of 1 rank now, each needs 2 cards and 1 CPU",
				"n1 is kept for it; starts there at the latest at 01:30:00, by the time limits of what runs there, unless gangs that need less come before",
				"n[1-2]: 0 of 2 cards free, needs 2; held by job 7, free at the latest at 01:30:00",
			}},
		{"nodes of which one has no end that is known", []*cluster.Node{
			plantest.Run(plantest.Node("n1", 16, 2, 80), 7, 0, 0, 1), plantest.Run(plantest.Node("n2", 16, 2, 80), 8, 90, 0, 1), plantest.Run(plantest.Node("n3", 16, 2, 80), 9, 60, 0, 1)}, []*order.Candidate{
			plantest.Lasting(1, 2, 30)}, 1, "Resources",
			[]string{
				"1st of 1 in the queue; room for 0 of 1 rank now, each needs 2 cards and 1 CPU",
				"n3 is kept for it; starts there at the latest at 01:00:00, by the time limits of what runs there, unless gangs that need less come before",
				"n[1-3]: 0 of 2 cards free, needs 2; held by jobs 7, 8 and 9, the first of these nodes is free at the latest at 01:00:00",
			}},
		{"starts", full, []*order.Candidate{plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 1})}, 1, "None",
			[]string{"1st of 1 in the queue; starts with the next plan on n00001"}},
		{"gone", full, nil, 1, "None", []string{"job 1 is not waiting for nodes"}},
		{"out of service", small[3:], []*order.Candidate{plantest.Candidate(1, api.Spec{Size: 1, CPUsPerRank: 2})}, 1, "ReqNodeNotAvail",
			[]string{
				"1st of 1 in the queue; does not fit without what is out of service: n4 (drained: new power supply)",
				"n4: out of service: drained: new power supply",
			}},
		{"less VRAM", []*cluster.Node{small[2]}, []*order.Candidate{plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 2, VRAMBytes: 40 * plantest.GiB})}, 1, "Resources",
			[]string{
				"1st of 1 in the queue; room for 0 of 1 rank now, each needs 2 cards with 40G and 1 CPU",
				"n3 is kept for it; when that is free is not known, for what runs there has no time limit",
				"n3: 1 of 4 cards free, needs 2, needs 40G on each, card 1 has 22G free after 58G held by strangers, " +
					"card 2 quarantined (Xid 79), card 3 is shared by job 8; held by job 8",
				"--vram=22G, --share or --gpus-per-rank=1 would start now",
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := &given.View{Nodes: tt.nodes, Queue: plantest.QueueOf(tt.queue...)}
			planned(t, plantest.Epoch0, v, &order.Policy{})
			got := Explain(plantest.Epoch0, v, &order.Policy{}, tt.job)
			if got.Word != tt.word || got.Text != strings.Join(tt.want, "\n") {
				t.Errorf("%s:\n%s\nwant %s:\n%s", got.Word, got.Text, tt.word, strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestExplainAKeptBackfill: a gang whose places are kept from the plan before is told what it was told when
// they were first kept, and a table has its reason, too.
func TestExplainAKeptBackfill(t *testing.T) {
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 2}
	q := order.NewQueue(p, nil)
	for job, cpus := range []int{12, 4} {
		c := plantest.Candidate(int64(job+1), api.Spec{Size: 1, CPUsPerRank: cpus})
		c.TimeLimit = 1000 * time.Minute
		q.Insert(c)
	}
	held := cluster.Grant{MemberKey: api.MemberKey{Job: 7, Epoch: 1}, Ranks: 1, Takes: cluster.Amounts{cluster.CPUs: 8}, Until: plantest.Epoch0.Add(90 * time.Minute)}
	v := &given.View{Nodes: []*cluster.Node{plantest.Node("n1", 16, 0, 0).Restore(held)}, Queue: q}
	plan := planned(t, plantest.Epoch0, v, p)
	if got := claimed(plan); got != "[1@n1+90 2@n1+90]" {
		t.Fatal(got)
	}
	first := []string{Explain(plantest.Epoch0, v, p, 1).Text, Explain(plantest.Epoch0, v, p, 2).Text}
	if want := "n1: kept for job 1: 8 of 16 CPUs free"; !strings.Contains(first[1], want) {
		t.Errorf("%s\nlacks %s", first[1], want)
	}
	v.Backfills = plan.Backfills
	for i, text := range first {
		if again := Explain(plantest.Epoch0, v, p, int64(i+1)).Text; again != text {
			t.Errorf("with its places kept:\n%s\nbefore:\n%s", again, text)
		}
	}
	if a, b := plan.Reasons(q), planned(t, plantest.Epoch0, v, p); !slices.Equal(a, b.Reasons(q)) || len(a) != 2 {
		t.Errorf("reasons %+v, with places kept %+v", a, b.Reasons(q))
	}
}

// TestExplainABound: who is kept by a bound of the account learns who holds the cards and what may be asked for.
func TestExplainABound(t *testing.T) {
	nodes := plantest.Nodes(2, 16, 4, 80)
	holder := plantest.Ran(nodes, 7, 30, map[int][]int{0: {0, 1, 2}})
	holder.Account, holder.TimeLimit = "lab", 2*time.Hour
	c := plantest.Candidate(1, api.Spec{Size: 3, GPUsPerRank: 1})
	c.Account = "lab"
	v := &given.View{Running: []*order.Running{holder}, Nodes: nodes, Queue: plantest.QueueOf(c)}
	want := "1st of 1 in the queue; account lab has 3 cards and 3 more are asked for, at most 5 are allowed to it at a time\n" +
		"held by job 7, the first of which ends at the latest at 01:30:00\n" +
		"at most 2 cards more may be asked for until then"
	p := &order.Policy{Accounts: []order.Account{{Name: "lab", Cards: 5}}}
	planned(t, plantest.Epoch0, v, p)
	if got := Explain(plantest.Epoch0, v, p, 1); got.Text != want || got.Word != given.WordAccountCap {
		t.Errorf("%s:\n%s\nwant:\n%s", got.Word, got.Text, want)
	}
}

// TestExplainItsTurn: who waits for room learns when it comes to the front, or that it is due and others are before it.
func TestExplainItsTurn(t *testing.T) {
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1, GuardAfter: time.Hour, GuardShare: 0.5}
	for name, tt := range map[string]struct {
		submitted time.Duration // before
		want      string
	}{
		"to come": {10 * time.Minute, "comes to the front of its tier at 00:50:00, after a wait of 1 h; "},
		"due":     {time.Hour, "has waited for 1 h, and comes to the front of its tier when those who waited longer have started; "},
	} {
		q := order.NewQueue(p, nil)
		for job, size := range []int{3, 3, 2} {
			c := plantest.Lasting(int64(job+1), size, 30)
			c.Submit = plantest.Epoch0.Add(-tt.submitted - time.Duration(2-job)*time.Millisecond)
			q.Insert(c)
		}
		v := &given.View{Nodes: []*cluster.Node{plantest.Run(plantest.Node("n1", 16, 4, 80), 7, 90, 0, 1, 2)}, Queue: q}
		planned(t, plantest.Epoch0, v, p)
		if got := Explain(plantest.Epoch0, v, p, 3).Text; !strings.Contains(got, "\n"+tt.want) {
			t.Errorf("%s:\n%s\nlacks %s", name, got, tt.want)
		}
	}
}

// TestExplainPromisesOnlyWhatStarts submits each ask that was named in place of the one
// that waits, and sees it start.
func TestExplainPromisesOnlyWhatStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		p := &order.Policy{BackfillDepth: rapid.IntRange(0, 2).Draw(t, "backfills")}
		plan := Make(plantest.Epoch0, v, p)
		v.Backfills = plan.Backfills
		reasons := plan.Reasons(v.Queue)
		for _, s := range plan.Starts {
			v.Nodes = plantest.Apply(t, v.Nodes, v.Queue.Get(s.Job), 7, s.Slots)
			v.Queue.Remove(s.Job)
		}
		for _, r := range reasons {
			c := find(v.Queue, r.Job)
			got := Explain(plantest.Epoch0, v, p, r.Job)
			most := longest(c.Ask)
			// The table has one word for a whole class, from the moment of the plan; the explanation
			// looks at one gang after what the plan started. A gang for which nodes, gangs ahead and
			// nodes out of service are all short may be filed under any of the three.
			short := []string{given.WordPriority, given.WordResources, given.WordNodes}
			both := slices.Contains(short, got.Word) && slices.Contains(short, r.Word)
			if got.Word != r.Word && !both || strings.Count(got.Text, "\n") >= most {
				t.Fatalf("job %d: %s in the table, %s explained:\n%s", r.Job, r.Word, got.Word, got.Text)
			}
			lines := strings.Split(got.Text, "\n")
			options, promised := strings.CutSuffix(lines[len(lines)-1], " would start now")
			if !promised {
				continue
			}
			for _, option := range strings.Split(strings.ReplaceAll(options, " or ", ", "), ", ") {
				s := withOption(t, *c.Ask.Spec, option)
				ask := cluster.AskOf(&s, c.Ask.Partitions)
				// Its owner cancels the job and submits the other one, which gets a later time.
				other := &order.Candidate{Job: 9999, Submit: plantest.Epoch0.Add(time.Hour), Terms: &order.Terms{Priority: c.Priority, Size: s.Size, Ask: ask, Avoid: c.Avoid}}
				q := v.Queue.Clone()
				q.Remove(c.Job)
				q.Insert(other)
				backfills := slices.DeleteFunc(slices.Clone(v.Backfills), func(k given.Backfill) bool { return k.Job == c.Job })
				again := Make(plantest.Epoch0, &given.View{Nodes: v.Nodes, Queue: q, Backfills: backfills}, p)
				if !slices.ContainsFunc(again.Starts, func(s Start) bool { return s.Job == 9999 }) {
					t.Fatalf("%+v: %s would not start now", *c.Ask.Spec, option)
				}
			}
		}
	})
}

// longest is how many lines an explanation may have.
func longest(a *cluster.Ask) int {
	// Place and reason, the backfill or the forecast, those ahead that start and that wait, nearest asks.
	const around = 5
	of := func(constraint string) int {
		lines := why.MaxNodeLines + 1 // "and 3 more nodes"
		if strings.Contains(constraint, "[") {
			lines = why.MaxWayLines*(1+lines) + 1
		}
		return lines
	}
	if a.Parts == nil {
		return around + of(a.Spec.Constraint)
	}
	var each []int
	for _, part := range a.Parts {
		each = append(each, 1+of(part.Spec.Constraint))
	}
	slices.Sort(each)
	most := around
	for _, lines := range each[max(0, len(each)-why.MaxRoleLines):] {
		most += lines
	}
	return most + 1 // "and 2 more roles"
}

func withOption(t *rapid.T, s api.Spec, option string) api.Spec {
	name, value, _ := strings.Cut(option, "=")
	n, _ := strconv.Atoi(strings.TrimSuffix(value, "G"))
	switch name {
	case "--size":
		s.Size = n
	case "--vram":
		s.VRAMBytes = int64(n) * plantest.GiB
	case "--share":
		s.Share = true
	case "--gpus-per-rank":
		s.GPUsPerRank = n
	case "--gpus-per-node":
		s.GPUsPerNode = n
	case "--cpus-per-task":
		s.CPUsPerRank = n
	case "--mem-per-rank":
		s.MemoryPerRank = int64(n) * plantest.GiB
	case "--mem":
		s.MemoryPerNode = int64(n) * plantest.GiB
	case "--tmp":
		s.TmpPerNode = int64(n) * plantest.GiB
	case "the same without --exclusive":
		s.Exclusive = false
	case "the same without --exclude":
		s.Exclude = nil
	case "the same without --constraint":
		s.Constraint = ""
	case "the same without --nodes":
		s.MinNodes, s.MaxNodes = 0, 0
	case "the same without --ranks-per-node":
		s.RanksPerNode = 0
	default:
		if !strings.HasPrefix(option, "the same without the card type ") {
			t.Fatalf("unknown option %q", option)
		}
		s.GPUType = ""
	}
	return s
}

// TestElementsHaveTheirNames: a text calls jobs what the queue shows, elements of arrays too.
func TestElementsHaveTheirNames(t *testing.T) {
	names := given.Names(func(job int64) string { return "40_" + strconv.FormatInt(job-40, 10) })
	full := []*cluster.Node{plantest.Hold(plantest.Node("n1", 16, 4, 80), 41, 0, true, 0, 1, 2, 3)}
	queue := []*order.Candidate{plantest.Candidate(42, api.Spec{Size: 1, GPUsPerRank: 4}), plantest.Candidate(43, api.Spec{Size: 1, GPUsPerRank: 4})}
	v := &given.View{Nodes: full, Queue: plantest.QueueOf(queue...), Names: names}
	p := &order.Policy{BackfillDepth: 1, Order: order.OrderFIFO}
	text := Explain(time.Unix(1e9, 0), v, p, 43).Text
	plan := planned(t, time.Unix(1e9, 0), v, p)
	reason, _ := plan.Reason(43, v.Queue.JobClass(43))
	for _, want := range []string{"held by job 40_1", "job 40_2 is ahead"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if !strings.Contains(reason.Text, "behind job 40_2") {
		t.Errorf("reason %q", reason.Text)
	}
}
