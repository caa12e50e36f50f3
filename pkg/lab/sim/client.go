package sim

import (
	"cmp"
	"fmt"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/controller/engine"
	"gangd/pkg/core/gang"
)

// person is who submits all jobs.
var person = engine.Caller{UID: 1000, GID: 1000, User: "ada", Admin: true}

// clientPatience is how long a client waits for an answer before it tries again with the
// same key.
const clientPatience = 20 * time.Second

// client is one gsubmit: it asks until it is answered.
type client struct {
	r        *run
	index    int
	answered bool
	refused  bool
	deafTill time.Duration // answers are lost until then
	try      uint64
}

func key(index int) string { return fmt.Sprintf("key-%d", index) }

// submit is one try.
func (c *client) submit() {
	if c.answered || c.refused {
		return
	}
	c.try++
	n := c.try
	c.r.after(clientPatience, func() {
		if n == c.try {
			c.submit()
		}
	})
	c.r.after(upTo(c.r.dice, 2*time.Millisecond), func() { c.ask(n) })
}

// again is a submission with the same key by somebody who did not hear the answer.
func (c *client) again() {
	c.answered = false
	c.submit()
}

func (c *client) retryIn(d time.Duration) {
	c.try++
	n := c.try
	c.r.after(d, func() {
		if n == c.try {
			c.submit()
		}
	})
}

func (c *client) ask(n uint64) {
	g := c.r.gangd
	if on := c.r.sc.Jobs[c.index].AfterOK; on > 0 && c.r.clients[on-1].refused {
		c.refused = true // nobody waits for what was not taken in
		return
	}
	if j := &c.r.sc.Jobs[c.index]; g == nil || j.AfterOK > 0 && c.r.ids[j.AfterOK-1] == 0 {
		c.retryIn(500*time.Millisecond + upTo(c.r.dice, time.Second))
		return
	}
	g.do(func() {
		if n != c.try {
			// It went away; what it asked is done all the same.
			n = 0
		}
		out, err := g.drv.Submit(c.r.ctx, c.request(), person)
		if err != nil {
			c.hear(n, gang.Outcome{Refused: asError(err)})
			return
		}
		g.ask(out, func(out gang.Outcome) {
			c.r.send(g, func() {
				c.r.after(upTo(c.r.dice, 2*time.Millisecond), func() { c.hear(n, out) })
			})
		})
	})
}

func asError(err error) *api.Error {
	if a, ok := err.(*api.Error); ok {
		return a
	}
	return api.Errorf(api.CodeInternal, "%v", err)
}

// hear is an answer that arrives.
func (c *client) hear(n uint64, out gang.Outcome) {
	if n != c.try || c.r.now < c.deafTill {
		return
	}
	if c.r.disk.onOld { // what is said on a copy is lost with it
		c.retryIn(2 * time.Second)
		return
	}
	if out.Refused != nil {
		switch out.Refused.Code {
		case api.CodeDiskFull, api.CodeUnavailable, api.CodeOnHold:
			c.retryIn(2 * time.Second)
		default:
			c.refused = true
			c.try++
			c.r.log("submission %d is refused: %v", c.index, out.Refused)
		}
		return
	}
	c.answered = true
	c.try++
	c.r.truth.acknowledged(c.index, out.JobIDs)
}

// cutOff: the controller died; a client sees its connection break.
func (c *client) cutOff() {
	if !c.answered && c.try > 0 {
		c.retryIn(200*time.Millisecond + upTo(c.r.dice, time.Second))
	}
}

// request is the submission.
func (c *client) request() *api.SubmitRequest {
	j := &c.r.sc.Jobs[c.index]
	s := api.Spec{Name: fmt.Sprintf("job-%d", c.index), Size: max(j.Ranks, 1), Launch: api.LaunchRanks, CPUsPerRank: 1, GPUsPerRank: j.GPUs,
		MinNodes: j.Nodes, MaxNodes: j.Nodes, TimeLimit: j.TimeLimit, Grace: j.Grace, NoRequeue: j.NoRequeue, Hold: j.Hold, WorkDir: "/tmp",
		Ports:  j.Ports,
		Script: []byte("#!/bin/sh\n")}
	if j.Import > 0 {
		s.Container = &api.Container{Image: "/images/" + s.Name}
	}
	if j.Licences > 0 {
		s.Pools = []api.Pool{{Kind: "licence", Name: licenceName, Count: j.Licences}}
	}
	if j.Reserved {
		s.Reservation = reservationName
	}
	if j.Batch {
		s.Launch = api.LaunchBatch
	}
	if j.Lead > 0 {
		s.Notice = &api.Notice{Signal: "USR1", Lead: j.Lead, Scope: cmp.Or(j.Scope, api.ScopeRanks)}
	}
	if j.TotalTime > 0 {
		s.RequeueCauses = []api.Cause{api.CauseTimeout, api.CausePreempted, api.CauseRequeued, api.CauseNodeLost}
		s.MaxTimeTotal = j.TotalTime
	}
	if j.MaxRetries > 0 {
		n := j.MaxRetries
		s.MaxRetries = &n
	}
	if j.Priority != 0 {
		p := j.Priority
		s.Priority = &p
	}
	if j.AfterOK > 0 {
		s.Dependency = &api.Dependency{On: []api.Condition{{Kind: api.AfterOK, Job: c.r.ids[j.AfterOK-1]}}}
	}
	s.ReadyTimeout, s.StallTimeout = j.ReadyTimeout, j.StallTimeout
	if j.Deadline > 0 {
		s.Deadline = began.Add(j.At + j.Deadline)
	}
	if j.Lead0 {
		s.Roles = []api.Role{{Name: "lead", Count: 1, CPUsPerRank: 1, EndsGang: true}, {Name: "worker", Count: s.Size - 1, CPUsPerRank: 1}}
	}
	r := &api.SubmitRequest{Key: key(c.index), Spec: s}
	if j.Array > 0 {
		r.Array = &api.Array{Limit: j.Limit}
		for i := range j.Array {
			r.Array.Indices = append(r.Array.Indices, i)
		}
	}
	return r
}

// order is what a person wants of the controller, once: refused or lost it is forgotten.
func (r *run) order(ev gang.Event, done func(gang.Outcome)) {
	r.after(upTo(r.dice, 2*time.Millisecond), func() {
		g := r.gangd
		if g == nil {
			return
		}
		g.do(func() {
			g.ask(g.drv.Hand(ev), func(out gang.Outcome) {
				r.send(g, func() {
					if out.Refused == nil && done != nil {
						done(out)
					}
				})
			})
		})
	})
}
