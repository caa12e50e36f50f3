package sched

import (
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// Who waits under an account that is not there any more, or not open to him any more, waits on, and is told so.
func TestAccountsThatWereClosed(t *testing.T) {
	for name, x := range map[string]struct {
		accounts []order.Account
		want     string // empty: it starts
	}{
		"no accounts":             {nil, ""},
		"open to everybody":       {[]order.Account{{Name: "proj"}}, ""},
		"open to the user":        {[]order.Account{{Name: "proj", Users: []string{"bob", "ada"}}}, ""},
		"not open any more":       {[]order.Account{{Name: "proj", Users: []string{"bob"}}}, "1st of 1 in the queue; account proj is not open to ada any more; submit it again under another"},
		"not there any more":      {[]order.Account{{Name: "rest"}}, "1st of 1 in the queue; account proj is not there any more; submit it again under another"},
		"closed, with room in it": {[]order.Account{{Name: "proj", Cards: 8, Users: []string{"bob"}}}, "1st of 1 in the queue; account proj is not open to ada any more; submit it again under another"},
	} {
		c := plantest.Candidate(1, api.Spec{Size: 1, GPUsPerRank: 1})
		terms := *c.Terms
		terms.User, terms.Account = "ada", "proj"
		c.Terms = &terms
		p := &order.Policy{BackfillDepth: 1, Accounts: x.accounts}
		v := &given.View{Nodes: plantest.Nodes(1, 8, 2, 80), Queue: order.NewQueue(p, nil)}
		v.Queue.Insert(c)
		plan := planned(t, plantest.Epoch0, v, p)
		if got := len(plan.Starts) == 1; got != (x.want == "") {
			t.Errorf("%s: it starts: %t", name, got)
		}
		if x.want == "" {
			continue
		}
		if r, _ := plan.Reason(1, v.Queue.JobClass(1)); r.Word != given.WordNoAccount {
			t.Errorf("%s: %s %q", name, r.Word, r.Text)
		}
		if r := Explain(plantest.Epoch0, v, p, 1); r.Word != given.WordNoAccount || r.Text != x.want {
			t.Errorf("%s: %s %q", name, r.Word, r.Text)
		}
	}
}

// TestABoundHoldsItsAccountAlone: a gang that is kept by its account's bound does not speak for gangs of others that ask for the same.
func TestABoundHoldsItsAccountAlone(t *testing.T) {
	p := &order.Policy{Order: order.OrderFIFO, BackfillDepth: 1, Accounts: []order.Account{{Name: "lab", Cards: 1}, {Name: "group"}}}
	q := order.NewQueue(p, nil)
	for job, account := range []string{"lab", "group"} {
		c := plantest.Lasting(int64(job+1), 2, 10)
		c.Account = account
		q.Insert(c)
	}
	if got := started(planned(t, plantest.Epoch0, &given.View{Nodes: plantest.Nodes(1, 8, 4, 80), Queue: q}, p)); got != "[2@n00001]" {
		t.Errorf("started %s", got)
	}
}
