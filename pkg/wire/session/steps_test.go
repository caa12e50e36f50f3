package session

import (
	"testing"

	"gangd/pkg/api"
)

// TestStepsAreADifference: a member is sent again when a step came, is being stopped, or went.
func TestStepsAreADifference(t *testing.T) {
	s := newSent()
	want := func(steps ...api.StepOrder) []api.Assignment {
		return []api.Assignment{{MemberKey: api.MemberKey{Job: 1, Epoch: 1}, Body: &api.AssignmentBody{SpecHash: "h"}, Gate: &api.Gate{}, Steps: steps}}
	}
	specs := map[string]*api.Spec{"h": {}}
	for i, c := range []struct {
		steps []api.StepOrder
		sent  bool
	}{
		{nil, true},
		{nil, false},
		{[]api.StepOrder{{ID: 0}}, true},
		{[]api.StepOrder{{ID: 0}}, false},
		{[]api.StepOrder{{ID: 0, Stop: true}}, true},
		{[]api.StepOrder{{ID: 0, Stop: true}, {ID: 1}}, true},
		{nil, true},
	} {
		out := told(t, s, want(c.steps...), specs)
		if (len(out) > 0) != c.sent {
			t.Fatalf("%d: sent %v", i, out)
		}
		if c.sent && len(out[len(out)-1].Assignments[0].Steps) != len(c.steps) {
			t.Errorf("%d: %+v", i, out[len(out)-1])
		}
	}
}
