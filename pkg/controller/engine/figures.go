package engine

import (
	"sync"
	"time"

	"gangd/pkg/api"
)

// figures counts for a controller's own account of itself what goes to its recorder.
type figures struct {
	Recorder
	mu sync.Mutex
	f  api.Figures
}

// Events counts committed events.
func (c *figures) Events(evs []api.Event) {
	c.Recorder.Events(evs)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range evs {
		switch ev := &evs[i]; ev.Type {
		case api.EventSubmitted:
			c.f.Submitted++
		case api.EventStarted:
			c.f.Started++
		case api.EventEnded:
			switch ev.State {
			case api.JobCompleted:
				c.f.Completed++
			case api.JobCancelled:
				c.f.Cancelled++
			default:
				c.f.Failed++
			}
		}
	}
}

// Plan counts a plan.
func (c *figures) Plan(d time.Duration, at time.Time) {
	c.Recorder.Plan(d, at)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.f.Plans++
	c.f.LastPlan, c.f.AllPlans, c.f.LongestPlan = d, c.f.AllPlans+d, max(c.f.LongestPlan, d)
	c.f.LastPlanTime = at
}

// so is what was counted so far.
func (c *figures) so() api.Figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.f
}
