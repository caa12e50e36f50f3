package statusline

import (
	"context"
	"time"

	"gangd/pkg/api"
)

// every is how often a job is asked about, and a running one drawn.
const every = 2 * time.Second

// Asker asks about jobs; *client.Client is one.
type Asker interface {
	Jobs(ctx context.Context, q *api.JobQuery) (*api.JobsReply, error)
}

// Follow shows how a job stands until stop is called; where there is no line it asks nothing.
func (l *Line) Follow(ctx context.Context, c Asker, id int64) (stop func()) {
	if l == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			r, err := c.Jobs(ctx, &api.JobQuery{Refs: []api.JobRef{{ID: id, Index: -1}}, NoRanks: true, Start: true})
			if ctx.Err() != nil {
				return
			}
			if err == nil && len(r.Jobs) > 0 {
				l.Set(Several(r.Jobs, time.Now()))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() {
		cancel()
		<-done
		l.Clear()
	}
}

// Several says how the jobs of an array that have not ended stand.
func Several(all []api.Job, now time.Time) string {
	if len(all) == 1 {
		return Job(&all[0], now)
	}
	states := map[api.JobState]int{}
	for i := range all {
		states[all[i].State]++
	}
	text := ""
	for _, s := range api.JobStates {
		if states[s] > 0 {
			if text != "" {
				text += ", "
			}
			text += api.Count(states[s], "job") + " " + string(s)
		}
	}
	return text
}
