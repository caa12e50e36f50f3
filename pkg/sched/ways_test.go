package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/cluster"
)

// mayBeOn says of the constraints that genSpec draws, without the code that reads them,
// whether a gang may be on nodes with these features.
func mayBeOn(s *api.Spec, on [][]string) bool {
	return meets(s.Constraint, on) || s.Prefer != "" && meets(s.Prefer, on)
}

func meets(text string, on [][]string) bool {
	with := func(names ...string) (n int) {
		for _, features := range on {
			if !slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(features, name) }) {
				n++
			}
		}
		return n
	}
	ib, big, both := with("ib"), with("big"), with("ib", "big")
	switch text {
	case "":
		return true
	case "ib":
		return ib == len(on)
	case "ib&big", "ib&[big|none]":
		return both == len(on)
	case "big|none", "[big|none]":
		return big == len(on)
	case "[ib|big]":
		return ib == len(on) || big == len(on)
	case "ib*2":
		return ib >= 2
	case "big*1":
		return big >= 1
	case "ib&big*1":
		return ib == len(on) && big >= 1
	case "[ib*1&big*1]":
		return ib >= 1 && big >= 1 && ib+big-both >= 2
	}
	panic("no judge of " + text)
}

func checkFeaturesOf(t *rapid.T, c *Candidate, per map[string]int, nodes []*cluster.Node) {
	var on [][]string
	for _, n := range nodes {
		if per[n.Name] > 0 {
			on = append(on, n.Features)
		}
	}
	if !mayBeOn(c.Ask.Spec, on) {
		t.Fatalf("job %d, which asks for %q, rather %q, is placed on nodes with %q", c.Job, c.Ask.Spec.Constraint, c.Ask.Spec.Prefer, on)
	}
}

// TestPreferredComesFirst: a gang that can start on what it prefers does, and one that can
// not starts as if it preferred nothing.
func TestPreferredComesFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		c := genCandidate(t, 1)
		s := *c.Ask.Spec
		if s.Prefer == "" || s.Roles != nil || c.Avoid != nil {
			return
		}
		starts := func(constraint, prefer string) []Start {
			one := s
			one.Constraint, one.Prefer = constraint, prefer
			v.Queue = queueOf(&Candidate{Job: 1, Size: s.Size, Ask: cluster.AskOf(&one, c.Ask.Partitions)})
			return Make(epoch0, v, &Policy{}).Starts
		}
		both, soft, hard := starts(s.Constraint, s.Prefer), starts(s.Prefer, ""), starts(s.Constraint, "")
		if (len(both) == 1) != (len(soft)+len(hard) > 0) {
			t.Fatalf("%d starts, %d on what is preferred, %d without", len(both), len(soft), len(hard))
		}
		if len(soft) == 1 && len(hard) == 1 {
			var on [][]string
			for _, name := range cluster.NodesOf(both[0].Slots) {
				on = append(on, v.Nodes[slices.IndexFunc(v.Nodes, func(n *cluster.Node) bool { return n.Name == name })].Features)
			}
			if !meets(s.Prefer, on) {
				t.Fatalf("could be on %q, is on %q", s.Prefer, on)
			}
		}
	})
}

// TestClaimsKeepToOneWay: also the places that a gang waits for, and those it takes by a move,
// are such as its constraint allows together.
func TestClaimsKeepToOneWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genView(t)
		v.Running = runningOn(v.Nodes)
		p := &Policy{Claims: 3, Preempt: PreemptTier}
		for _, c := range v.Queue.Slice() {
			c.Priority += 5 * rapid.Int64Range(0, 1).Draw(t, "higher")
		}
		v.Queue = queueOf(v.Queue.Slice()...)
		plan := Make(epoch0, v, p)
		for _, k := range plan.Claims {
			c := find(v.Queue, k.Job)
			per := map[string]int{}
			for _, s := range k.Slots {
				per[s.Node]++
			}
			s := *c.Ask.Spec
			if s.Prefer = ""; s.Roles == nil {
				checkFeaturesOf(t, &Candidate{Job: c.Job, Ask: &cluster.Ask{Spec: &s}}, per, v.Nodes)
			}
		}
	})
}

// runningOn is a gang for each that holds something.
func runningOn(nodes []*cluster.Node) (out []*Running) {
	for _, n := range nodes {
		for _, g := range n.Grants {
			r := &Running{Job: g.Job, Epoch: g.Epoch, Size: 1, Cards: len(g.Cards), Start: epoch0.Add(-1e12)}
			if !slices.ContainsFunc(out, func(o *Running) bool { return o.Job == r.Job }) {
				out = PutRunning(out, r.Job, r)
			}
		}
	}
	return out
}
