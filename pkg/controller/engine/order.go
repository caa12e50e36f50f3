package engine

import (
	"context"
	"strconv"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/given"
)

// Order is the order of the queue, with when the first most of it are expected to start. Times are cut to minutes: what
// moves by seconds is no news.
func (e *Engine) Order(ctx context.Context, most int) (*api.QueueOrder, error) {
	var v *given.View
	if err := e.inspect(ctx, func() { v = e.keptView() }); err != nil {
		return nil, err
	}
	now := e.opt.Clock.Now().Wall
	expected := sched.Forecast(now, v, e.policy())
	out := &api.QueueOrder{Starts: []api.QueueStart{}}
	var b strings.Builder
	var first, last int64
	end := func() {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(first, 10))
		if last > first {
			b.WriteString("-" + strconv.FormatInt(last, 10))
		}
	}
	for i, c := range v.Queue.Slice() {
		switch {
		case i > 0 && c.Job == last+1:
			last++
		default:
			if i > 0 {
				end()
			}
			first, last = c.Job, c.Job
		}
		if x := expected[c.Job]; i < most && !x.At.IsZero() {
			at := x.At.Truncate(time.Minute)
			if !x.At.After(now) {
				at = time.Time{}
			}
			out.Starts = append(out.Starts, api.QueueStart{Job: c.Job, At: at, Sure: x.Sure})
		}
	}
	if v.Queue.Len() > 0 {
		end()
	}
	out.Order = b.String()
	return out, nil
}

// Standing counts what the cards of the cluster do, and what is waited for, of each node too.
func (e *Engine) Standing() (all api.Standing, nodes map[string]api.Standing) {
	nodes = map[string]api.Standing{}
	for _, n := range e.view.allNodes() {
		var s api.Standing
		for i := range n.Res.Cards {
			c := showCard(n.Res, &n.Res.Cards[i])
			usable := n.State == api.NodeUp && c.State == api.CardOK
			if usable || len(c.Jobs) > 0 {
				s.Usable++
			}
			if len(c.Jobs) == 0 {
				continue
			}
			s.Given++
			if c.Utilization >= 0 {
				s.Seen++
				s.Busy += float64(c.Utilization) / 100
			}
		}
		nodes[n.Name] = s
		all.Add(s)
	}
	e.view.mu.RLock()
	defer e.view.mu.RUnlock()
	for j := range e.view.from(0) {
		if j.Verdict == nil && len(j.Members) == 0 {
			all.Asked += cardsOf(j.Spec, 0)
		}
	}
	return all, nodes
}
