package attack

import (
	"fmt"
	"time"

	"gangd/pkg/api"
)

// crowd is jobs of eve's, a few of which are open at a time.
type crowd struct {
	s       *site
	open    []int64
	states  map[api.JobState]int // of those that have ended
	refused int
}

func newCrowd(s *site) *crowd { return &crowd{s: s, states: map[api.JobState]int{}} }

// submit has eve submit one, which is taken, or refused with a sentence.
func (c *crowd) submit(change map[string]any) {
	c.s.t.Helper()
	a := c.s.eve.ask(change)
	var r api.SubmitReply
	switch {
	case a.decode(&r) == nil:
		c.open = append(c.open, r.JobID)
	case a.refused() == nil:
		c.refused++
	default:
		c.s.t.Errorf("eve's submission: %v", a.refused())
	}
}

// settle waits until no more than so many are open.
func (c *crowd) settle(most int) {
	c.s.t.Helper()
	if len(c.open) <= most {
		return
	}
	c.s.until("eve's jobs end", func() bool {
		refs := make([]string, len(c.open))
		for i, id := range c.open {
			refs[i] = fmt.Sprint(id)
		}
		var r api.JobsReply
		if c.s.root.call("POST", "/v1/query", map[string]any{"refs": refs, "all": true}).decode(&r) != nil {
			return false
		}
		still := c.open[:0:0]
		for i := range r.Jobs {
			if j := &r.Jobs[i]; j.State.Ended() {
				c.states[j.State]++
			} else {
				still = append(still, j.JobID)
			}
		}
		if len(r.Jobs) == len(refs) {
			c.open = still
		}
		if len(c.open) > most {
			time.Sleep(20 * time.Millisecond)
		}
		return len(c.open) <= most
	})
}
