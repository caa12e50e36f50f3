package engine

import (
	"testing"
	"time"

	"gangd/pkg/api"
)

// TestFigures: a controller's account of itself counts each end once, by how it ended, and keeps the longest plan.
func TestFigures(t *testing.T) {
	c := &figures{Recorder: &nullRecorder{}}
	end := func(s api.JobState) api.Event { return api.Event{Type: api.EventEnded, State: s} }
	c.Events([]api.Event{{Type: api.EventSubmitted}, {Type: api.EventSubmitted}, {Type: api.EventStarted}, {Type: api.EventNodeUp}})
	c.Events([]api.Event{end(api.JobCompleted), end(api.JobCancelled), end(api.JobFailed), end(api.JobTimeout), end(api.JobCompleted)})
	at := time.Unix(1e9, 0)
	for i, took := range []time.Duration{2, 5, 3} {
		c.Plan(took, at.Add(time.Duration(i)))
	}
	if got, want := c.so(), (api.Figures{Submitted: 2, Started: 1, Completed: 2, Cancelled: 1, Failed: 2,
		Plans: 3, LastPlan: 3, LongestPlan: 5, AllPlans: 10, LastPlanTime: at.Add(2)}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
