package sched

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// TestPlansRememberNothingThatMatters: a planner that has made many plans decides as one
// that has made none, whatever came and went between them, and gives the same reasons.
func TestPlansRememberNothingThatMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newPast(t)
		var old Planner
		for step := range rapid.IntRange(1, 16).Draw(t, "steps") {
			h.step()
			plan, fresh := old.Make(h.now, &h.view, h.policy), Make(h.now, &h.view, h.policy)
			had, want := wholeOf(&plan, h), wholeOf(&fresh, h)
			if !reflect.DeepEqual(had, want) {
				t.Fatalf("step %d: with a memory\n%+v\nwithout\n%+v", step, had, want)
			}
			h.take(plan)
		}
	})
}

// TestHopelessIsWhatAVisitFinds: a planner that visits also those that it could tell to be hopeless, and looks at each end
// for a backfill, decides the same and gives the same reasons.
func TestHopelessIsWhatAVisitFinds(t *testing.T) {
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		h := newPast(t)
		h.policy.Preempt, h.policy.UserCards, h.policy.Switches, h.policy.GuardAfter = "", 0, nil, 0
		h.policy.BackfillDepth = rapid.IntRange(1, 2).Draw(t, "depth")
		for step := range rapid.IntRange(4, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 6).Draw(t, "more") {
				h.submit()
			}
			h.step()
			h.view.Reservations = nil
			fast, all := new(Planner), &Planner{visitsAll: true}
			plan, slow := fast.Make(h.now, &h.view, h.policy), all.Make(h.now, &h.view, h.policy)
			if had, want := wholeOf(&plan, h), wholeOf(&slow, h); !reflect.DeepEqual(had, want) {
				t.Fatalf("step %d: %+v\nall visited: %+v", step, had, want)
			}
			told += fast.told
			h.take(plan)
		}
	})
	if told < 50 {
		t.Errorf("only %d gangs were told to be hopeless", told)
	}
}

// whole is all of a plan that anybody sees.
type whole struct {
	Plan    Plan
	Reasons []Reason
}

func wholeOf(p *Plan, h *past) whole {
	seen := *p
	seen.verdicts = nil
	return whole{seen, p.Reasons(h.view.Queue)}
}
