package sched

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"gangd/pkg/lab/transcript"
)

// TestDrawnSites: what was planned for some sites that were drawn once, plan after plan: places, ends, victims and words. A
// change of the planner that moves none of the cases that were thought of moves one of these; which is right, whoever
// changes it says by reading the difference.
func TestDrawnSites(t *testing.T) {
	for site := range 40 {
		t.Run(fmt.Sprint(site), func(t *testing.T) {
			rapid.Custom(func(rt *rapid.T) int {
				h := newPast(rt)
				planner := new(Planner)
				tr := transcript.Of(t, *update)
				for step := range 5 {
					h.step()
					plan := planner.Make(h.now, &h.view, h.policy)
					part := tr.Part()
					part.Printf("# plan %d, after %v, of %d that wait on %d nodes", step, h.now.Sub(epoch0), h.view.Queue.Len(), len(h.view.Nodes))
					tellPlan(part, &plan)
					for _, r := range plan.Reasons(h.view.Queue) {
						part.Printf("%d %s: %s", r.Job, r.Word, r.Text)
					}
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
			planned(t, epoch0, v, &Policy{BackfillDepth: 1 + view%3})
		})
	}
}
