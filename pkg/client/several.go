package client

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gangd/pkg/api"
)

// askNext is how long a controller may be silent until the next is asked as well, where a call may be made twice.
const askNext = 300 * time.Millisecond

// sockets are whom to call: of several controllers of one gangd dev first who answered last.
func (c *Client) sockets() []string {
	if c.dir == "" {
		return []string{c.socket}
	}
	all, _ := filepath.Glob(filepath.Join(c.dir, "run", "gangd*.sock")) // the pattern is well formed
	first := c.Socket()
	i := slices.Index(all, first)
	return slices.Concat([]string{first}, all[i+1:], all[:max(i, 0)])
}

// answered is how a call at one socket went.
type answered struct {
	at  string
	res *response
	err error
}

// What an answer is worth: the first that decides is taken, else of all the one that is worth most.
const (
	decides = iota
	unasked // nobody listens there
	refused // by one that does not lead, and did nothing
	unavailable
	broken
)

func (a *answered) weight() int {
	switch {
	case errors.Is(a.err, syscall.ECONNREFUSED), errors.Is(a.err, os.ErrNotExist):
		return unasked
	case a.err != nil:
		return broken
	case a.res.status == api.CodeNotLeader.HTTPStatus():
		return refused
	case a.res.status == api.CodeUnavailable.HTTPStatus():
		return unavailable
	}
	return decides
}

func (a *answered) close() {
	if a.res != nil {
		a.res.Close()
	}
}

// ask makes a call at the controllers, one after the other until one has done it.
func (c *Client) ask(ctx context.Context, limit time.Duration, m manner, method, path string, body []byte) (*response, error) {
	call := func(ctx context.Context, at string) answered {
		var alive func(time.Duration) error
		if m == lasting && limit > 0 {
			alive = c.lives(ctx, at, limit)
		}
		res, err := exchange(ctx, at, method, path, body, limit, alive)
		return answered{at, res, err}
	}
	sockets := c.sockets()
	if len(sockets) == 1 {
		a := call(ctx, sockets[0])
		return a.res, a.err
	}
	twice := path == submitPath || api.Repeatable(method, path)
	q := question{call: call, queue: sockets, fresh: len(sockets), twice: twice, answers: make(chan answered),
		under: map[string]context.CancelFunc{},
		// A wait or a stream of which nothing comes yet is in order.
		hurry: twice && (m == brief || method == "POST")}
	a := q.ask(ctx)
	if a.err == nil && a.res.status != api.CodeNotLeader.HTTPStatus() {
		c.latest.Store(&a.at)
	}
	return a.res, a.err
}

// question is one call that is made at several controllers.
type question struct {
	call    func(ctx context.Context, at string) answered
	queue   []string // whom to ask next
	fresh   int      // how many of the queue's first were not asked yet
	twice   bool     // it may be made twice
	hurry   bool     // it is, where one is silent: who has it may stand still, and another lead, now or soon
	answers chan answered
	under   map[string]context.CancelFunc
}

// begin asks the next, and gives when to ask one more.
func (q *question) begin(ctx context.Context) <-chan time.Time {
	at := q.queue[0]
	q.queue, q.fresh = q.queue[1:], max(q.fresh-1, 0)
	ctx, end := context.WithCancel(ctx)
	q.under[at] = end
	go func() {
		a := q.call(ctx, at)
		if a.err != nil {
			end()
		} else { // its body is to be read
			stop := a.res.stop
			a.res.stop = func() bool { defer end(); return stop() }
		}
		q.answers <- a
	}()
	if !q.hurry || len(q.queue) == 0 {
		return nil
	}
	return time.After(askNext)
}

// ask gives the first answer that decides, or when nobody is left to ask the one that is worth most.
func (q *question) ask(ctx context.Context) (best answered) {
	defer func() {
		for _, end := range q.under {
			end()
		}
		for range q.under {
			a := <-q.answers
			a.close()
		}
	}()
	worth := decides
	for next := q.begin(ctx); len(q.under) > 0; {
		select {
		case <-next:
			next = q.begin(ctx)
			continue
		case a := <-q.answers:
			delete(q.under, a.at)
			w := a.weight()
			if w == decides || w > refused && !q.twice {
				best.close()
				return a
			}
			if q.hurry && !Silent(a.err) {
				q.queue = append(q.queue, a.at)
			}
			if w > worth {
				a, best, worth = best, a, w
			}
			a.close()
		}
		if q.fresh > 0 {
			next = q.begin(ctx)
		} else if len(q.queue) > 0 { // who is asked for the second time has to wait
			next = time.After(leaderPause)
		}
	}
	return best
}
