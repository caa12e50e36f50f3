package sched

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/core/sched/order"
	"gangd/pkg/lab/plantest"
	"gangd/pkg/lab/transcript"
)

// TestDrawnSites: what was planned for some sites that were drawn once, plan after plan: places, ends, victims and words. A
// change of the planner that moves none of the cases that were thought of moves one of these; which is right, whoever
// changes it says by reading the difference.
func TestDrawnSites(t *testing.T) {
	drawnSites(t, 40, func(*past) {}, func(*past, *transcript.Part) {})
}

// TestDrawnRichSites: the same of sites with accounts, tiers, protection and gangs that come back. The first that waits is
// explained, and so is the last.
func TestDrawnRichSites(t *testing.T) {
	drawnSites(t, 16, (*past).enrich, func(h *past, part *transcript.Part) {
		for i, c := range h.view.Queue.Slice() {
			if i == 0 || i == h.view.Queue.Len()-1 {
				part.Printf("%d explained: %s", c.Job, indented(Explain(h.now, &h.view, h.policy, c.Job).Text))
			}
		}
		expected := Forecast(h.now, &h.view, h.policy)
		for _, job := range slices.Sorted(maps.Keys(expected)) {
			part.Printf("%d expected %s", job, printer.Value(expected[job]))
		}
	})
}

// drawnSites plans five times for each of some sites; tell adds what else is said of a plan.
func drawnSites(t *testing.T, sites int, begin func(*past), tell func(*past, *transcript.Part)) {
	for site := range sites {
		t.Run(fmt.Sprint(site), func(t *testing.T) {
			rapid.Custom(func(rt *rapid.T) int {
				h := newPast(rt)
				begin(h)
				planner := new(Planner)
				tr := transcript.Of(t, *update)
				for step := range 5 {
					if h.rich {
						h.submit()
					}
					h.step()
					plan := planner.Make(h.now, &h.view, h.policy)
					part := tr.Part()
					part.Printf("# plan %d, after %v, of %d that wait on %d nodes", step, h.now.Sub(plantest.Epoch0), h.view.Queue.Len(), len(h.view.Nodes))
					tellPlan(part, &plan)
					for _, r := range plan.Reasons(h.view.Queue) {
						part.Printf("%d %s: %s", r.Job, r.Word, r.Text)
					}
					tell(h, part)
					h.take(plan)
				}
				return 0
			}).Example(site)
		})
	}
}

// TestDrawnViews: each gang that waits on some drawn nodes is explained.
func TestDrawnViews(t *testing.T) {
	for view := range 30 {
		t.Run(fmt.Sprint(view), func(t *testing.T) {
			v := rapid.Custom(genView).Example(view)
			planned(t, plantest.Epoch0, v, &order.Policy{BackfillDepth: 1 + view%3})
		})
	}
}
