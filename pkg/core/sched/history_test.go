package sched

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"gangd/pkg/api"
	"gangd/pkg/core/cluster"
	"gangd/pkg/core/sched/given"
	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
)

// past is a site's history as it may go: gangs come, start, end, are stopped and queued
// again; nodes go and come back; reservations are made; the order is learnt. The test that
// drives it says what is to hold of each plan.
type past struct {
	t      *rapid.T
	now    time.Time
	view   given.View
	policy *order.Policy
	ledger *order.Ledger
	known  map[int64]*order.Candidate // whoever starts
	next   int64
	rich   bool // see enrich
}

// newPast draws a site: a few unequal nodes, or more equal ones on which classes have many
// nodes and backfills stand beside each other.
func newPast(t *rapid.T) *past {
	h := &past{t: t, now: plantest.Epoch0, ledger: order.NewLedger(0), known: map[int64]*order.Candidate{}, next: 1}
	h.policy = &order.Policy{Order: rapid.SampledFrom(order.Orders).Draw(t, "order"), BackfillDepth: rapid.IntRange(1, 4).Draw(t, "backfills"),
		MaxStarts: rapid.IntRange(0, 3).Draw(t, "max"), Preempt: rapid.SampledFrom(order.Preempts).Draw(t, "preempt"),
		GuardAfter: time.Duration(rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "guard")) * time.Minute}
	if rapid.IntRange(0, 4).Draw(t, "capped") == 0 {
		h.policy.UserCards = rapid.IntRange(1, 20).Draw(t, "cap")
	}
	if rapid.Bool().Draw(t, "unequal") {
		h.view.Nodes = plantest.DrawNodes(t)
	} else {
		nodes := rapid.IntRange(3, 14).Draw(t, "nodes")
		h.view.Nodes = plantest.Nodes(nodes, 16, 4, 80)
		if rapid.IntRange(0, 3).Draw(t, "network") == 0 {
			h.policy.Switches = plantest.Fabric(nodes, 3)
		}
	}
	h.view.Queue = order.NewQueue(h.policy, h.ledger)
	return h
}

// enrich draws what few sites have: accounts with bounds, tiers, protection, and gangs that save, come back or may not run again.
func (h *past) enrich() {
	t, p := h.t, h.policy
	h.rich = true
	p.Accounts = []order.Account{{Name: "lab", Cards: rapid.SampledFrom([]int{0, 8, 20}).Draw(t, "bound"), Quota: rapid.SampledFrom([]int{0, 0, 4, 8}).Draw(t, "quota")}, {Name: "own", Share: 2}}
	p.MinRun = time.Duration(rapid.SampledFrom([]int{0, 0, 4}).Draw(t, "min run")) * time.Minute
	p.ProtectDone, p.Hysteresis = rapid.Bool().Draw(t, "protect done"), rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "hysteresis")
	p.GuardShare = rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "share")
	p.MaxSwitchWait = 5 * time.Minute
}

// enrichGang does so for one that comes.
func (h *past) enrichGang(c *order.Candidate) {
	t := h.t
	c.Tier = int64(rapid.IntRange(0, 3).Draw(t, "tier") / 3)
	c.Nice = int64(rapid.IntRange(0, 2).Draw(t, "nice") / 2)
	c.Priority -= c.Nice
	c.Name, c.Account = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"), rapid.SampledFrom([]string{"", "lab", "own"}).Draw(t, "account")
	c.Attained = time.Duration(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "attained")) * time.Minute
	c.Submit = h.now.Add(-time.Duration(rapid.SampledFrom([]int{0, 0, 50}).Draw(t, "ago")) * time.Minute)
	if rapid.IntRange(0, 3).Draw(t, "eligible") == 0 {
		c.Eligible = h.now
	}
}

// enrichRun does so for one that starts.
func (h *past) enrichRun(r *order.Running, why order.Turn) {
	t := h.t
	r.Turn, r.Final, r.Done = why, rapid.IntRange(0, 3).Draw(t, "final") == 0, rapid.IntRange(0, 5).Draw(t, "done") == 0
	r.MinRun = time.Duration(rapid.SampledFrom([]int{0, 0, 6}).Draw(t, "own min run")) * time.Minute
	r.Lead = min(r.Stop, time.Duration(rapid.IntRange(0, 60).Draw(t, "lead"))*time.Second)
}

// step lets something happen.
func (h *past) step() {
	t := h.t
	h.now = h.now.Add(time.Duration(rapid.IntRange(0, 9).Draw(t, "minutes")) * time.Minute)
	for range rapid.IntRange(0, 3).Draw(t, "come") {
		h.submit()
	}
	for _, r := range slices.Clone(h.view.Running) {
		over := r.TimeLimit > 0 && !h.now.Before(r.Start.Add(r.TimeLimit)) || r.Stopping && !h.now.Before(r.StopBy)
		if over && rapid.IntRange(0, 4).Draw(t, "overdue") > 0 || rapid.IntRange(0, 5).Draw(t, "ends") == 0 {
			h.leave(r)
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "gives up") == 0 && h.view.Queue.Len() > 0 {
		h.view.Queue.Remove(rapid.SampledFrom(h.view.Queue.Slice()).Draw(t, "who").Job)
	}
	h.change()
	if rapid.IntRange(0, 9).Draw(t, "reserve") == 0 {
		from := h.now.Add(time.Duration(rapid.IntRange(-20, 60).Draw(t, "from")) * time.Minute)
		w := given.Reservation{Name: fmt.Sprintf("w%d", len(h.view.Reservations)), Start: from, ClearBy: from.Add(-time.Minute), End: from.Add(time.Hour)}
		for _, n := range h.view.Nodes {
			if rapid.IntRange(0, 2).Draw(t, "reserved") == 0 {
				w.Nodes = append(w.Nodes, n.Name)
			}
		}
		h.view.Reservations = append(h.view.Reservations, w)
	}
	h.view.Queue.Refresh(h.now)
}

func (h *past) submit() {
	t := h.t
	c := plantest.DrawCandidate(t, h.next)
	if rapid.Bool().Draw(t, "plain") {
		s := api.Spec{Size: rapid.IntRange(1, 9).Draw(t, "ranks"), GPUsPerRank: rapid.IntRange(1, 4).Draw(t, "cards")}
		c.Ask, c.Size = cluster.AskOf(&s, []string{"gpu"}), s.Size
		if len(h.policy.Switches) > 0 && rapid.Bool().Draw(t, "near") {
			s.Switches = 1
			c.Ask = cluster.AskOf(&s, []string{"gpu"})
		}
	}
	if len(h.view.Reservations) > 0 && rapid.IntRange(0, 4).Draw(t, "in reservation") == 0 {
		s := *c.Ask.Spec
		s.Reservation = "w0"
		c.Ask = cluster.AskOf(&s, c.Ask.Partitions)
	}
	h.next++
	c.Submit, c.User = h.now, rapid.SampledFrom([]string{"lea", "max"}).Draw(t, "user")
	c.TimeLimit = time.Duration(rapid.IntRange(0, 6).Draw(t, "limit")) * 10 * time.Minute
	c.Stop = time.Duration(rapid.IntRange(0, 1).Draw(t, "stop")) * time.Minute
	c.KeepsWork = rapid.Bool().Draw(t, "keeps")
	if c.TimeLimit > 0 && rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
		c.TimeMin = 10 * time.Minute
	}
	if rapid.IntRange(0, 7).Draw(t, "deadline") == 0 {
		c.Deadline = h.now.Add(2 * time.Hour)
	}
	if h.rich {
		h.enrichGang(c)
	}
	h.view.Queue.Insert(c)
}

// change puts a node in or out of service, or into another partition, or has it offer other temporary space.
func (h *past) change() {
	at := rapid.IntRange(0, len(h.view.Nodes)*3).Draw(h.t, "node")
	if at >= len(h.view.Nodes) {
		return
	}
	n := *h.view.Nodes[at]
	if rapid.IntRange(0, 3).Draw(h.t, "moves") == 0 {
		n.Partitions = rapid.SampledFrom([][]string{{"gpu"}, {"gpu", "short"}, {"short"}}).Draw(h.t, "to")
		h.put(at, &n)
		return
	}
	if rapid.IntRange(0, 3).Draw(h.t, "says hello") == 0 {
		n.Grants = nil
		n.Has[cluster.Tmp], n.Each[cluster.Tmp] = rapid.Int64Range(0, 8).Draw(h.t, "tmp now")*plantest.GiB, rapid.Int64Range(0, 2).Draw(h.t, "tmp of each now")*plantest.GiB
		now := n.Counted()
		for _, g := range h.view.Nodes[at].Grants {
			now = now.Restore(g)
		}
		h.put(at, now)
		return
	}
	n.Ready = !n.Ready
	n.Away = !n.Ready && rapid.Bool().Draw(h.t, "away")
	h.put(at, &n)
}

// put is the change of one node: what a planner holds of the view stays as it was.
func (h *past) put(at int, n *cluster.Node) {
	h.view.Nodes = slices.Clone(h.view.Nodes)
	h.view.Nodes[at] = n
}

// take does what a plan decided; a start that the nodes refuse fails the test.
func (h *past) take(plan Plan) {
	h.view.Backfills = plan.Backfills
	for _, s := range plan.Starts {
		c := h.view.Queue.Get(s.Job)
		limit := cmp.Or(s.TimeLimit, c.TimeLimit)
		until := time.Time{}
		if limit > 0 {
			until = h.now.Add(limit + c.Stop)
		}
		r := &order.Running{Job: s.Job, Epoch: 1, Tier: c.Tier, Priority: c.Priority, User: c.User, Cards: order.CardsOf(c.Ask),
			Submit: c.Submit, Start: h.now, TimeLimit: limit, Attained: c.Attained, KeepsWork: c.KeepsWork,
			Nice: c.Nice, Account: c.Account, Name: c.Name, Ending: order.Ending{Stop: c.Stop},
		}
		if h.rich {
			h.enrichRun(r, s.Turn)
		}
		by := make(map[string][]int)
		for rank, slot := range s.Slots {
			by[slot.Node] = append(by[slot.Node], rank)
		}
		for at, n := range h.view.Nodes {
			if len(by[n.Name]) == 0 {
				continue
			}
			g := cluster.GrantOf(c.Ask, api.MemberKey{Job: s.Job, Epoch: 1}, by[n.Name], func(r int) cluster.Slot { return s.Slots[r] }, until)
			next, err := n.Take(g)
			if err != nil {
				h.t.Fatalf("job %d on %+v: %v", s.Job, s.Slots, err)
			}
			h.put(at, next)
		}
		h.known[s.Job] = c
		h.view.Running = order.PutRunning(slices.Clone(h.view.Running), s.Job, r)
		h.view.Queue.Remove(s.Job)
	}
	for _, s := range plan.Stops {
		at, _ := slices.BinarySearchFunc(h.view.Running, s.Job, func(r *order.Running, job int64) int { return cmp.Compare(r.Job, job) })
		r := *h.view.Running[at]
		r.Stopping, r.StopBy = true, h.now.Add(r.Stop)
		h.view.Running = order.PutRunning(slices.Clone(h.view.Running), s.Job, &r)
	}
}

// leave takes a gang off its nodes; who was stopped waits again.
func (h *past) leave(r *order.Running) {
	for at, n := range h.view.Nodes {
		if next := n.Release(api.MemberKey{Job: r.Job, Epoch: 1}); next != n {
			h.put(at, next)
		}
	}
	h.view.Running = order.PutRunning(slices.Clone(h.view.Running), r.Job, nil)
	ran := h.now.Sub(r.Start)
	u := order.Usage{Peer: order.Peer{User: r.User, Name: r.Name, Cards: r.Cards, Job: r.Job}, Ran: ran, Ended: h.now}
	if !r.Stopping {
		u.Whole, u.Limit = ran, r.TimeLimit
	}
	h.ledger.Add(u)
	if r.Stopping {
		again := *h.known[r.Job]
		again.Attained += ran
		h.view.Queue.Insert(&again)
	}
}
