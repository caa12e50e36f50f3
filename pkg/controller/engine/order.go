package engine

import (
	"context"
	"strings"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/sched"
	"gangd/pkg/core/sched/given"
)

// Order is the order of the queue, with when the first most of it are expected to start, and why the first whys of what
// waits do. Times are cut to minutes: what moves by seconds is no news.
func (e *Engine) Order(ctx context.Context, most, whys int) (*api.QueueOrder, error) {
	var v *given.View
	if err := e.inspect(ctx, func() { v = e.keptView() }); err != nil {
		return nil, err
	}
	now := e.opt.Clock.Now().Wall
	expected := sched.Forecast(now, v, e.policy())
	out := &api.QueueOrder{Starts: []api.QueueStart{}}
	all := make([]int, v.Queue.Len())
	for i, c := range v.Queue.Slice() {
		all[i] = int(c.Job)
		if x := expected[c.Job]; i < most && !x.At.IsZero() {
			at := x.At.Truncate(time.Minute)
			if !x.At.After(now) {
				at = time.Time{}
			}
			out.Starts = append(out.Starts, api.QueueStart{Job: c.Job, At: at, Sure: x.Sure})
		}
	}
	out.Order, out.Whys = hostlist.Ranges(all), e.whys(now, v, whys)
	return out, nil
}

// whys says why the first most of the queue wait, and as many of those that are not in it. Those that wait for the same are told
// together.
func (e *Engine) whys(now time.Time, v *given.View, most int) (out []api.QueueWhy) {
	var texts []string
	of := map[string][]int{}
	say := func(id int64, text string) {
		if text, _, _ = strings.Cut(text, "\n"); text == "" {
			return
		}
		if of[text] == nil {
			texts = append(texts, text)
		}
		of[text] = append(of[text], int(id))
	}
	queue := v.Queue.Slice()
	for _, c := range queue[:min(most, len(queue))] {
		say(c.Job, e.view.brief(c.Job))
	}
	for _, j := range e.view.some(most, func(j *gang.Job) bool {
		return j.Verdict == nil && len(j.Members) == 0 && v.Queue.Get(j.ID) == nil
	}) {
		_, text := e.waits(j, now, true)
		say(j.ID, text)
	}
	for _, text := range texts {
		out = append(out, api.QueueWhy{Jobs: hostlist.Ranges(of[text]), Text: text})
	}
	return out
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
