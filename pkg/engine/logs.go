package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/outpath"
)

// LogReader reads a file on a node as a user; the session hub is one.
type LogReader interface {
	ReadLog(ctx context.Context, node string, q api.LogRead, w io.Writer) error
}

// Log copies the output of one rank to w. With follow it starts before the job does and
// goes on across requeues until the job has ended.
func (e *Engine) Log(ctx context.Context, j *gang.Job, q *api.LogQuery, r LogReader, w io.Writer) error {
	rank := max(0, q.Rank)
	if rank >= len(j.Ranks) {
		return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %d has no rank %d", j.ID, rank),
			Hint: fmt.Sprintf("its ranks are 0 to %d", len(j.Ranks)-1)}
	}
	if !q.Follow || q.Attempt > 0 {
		at, err := e.logPlace(ctx, j, rank, q)
		if err != nil {
			return err
		}
		return r.ReadLog(ctx, at.node, at.read(j, q.Tail), w)
	}
	return e.followLog(ctx, j, rank, q, r, w)
}

// place is one log file: where it is and what it is called there.
type place struct {
	node, path string
	epoch      int
}

func (p place) read(j *gang.Job, tail int64) api.LogRead {
	return api.LogRead{Path: p.path, UID: j.UID, GID: j.GID, User: j.User, Offset: -tail}
}

// logPlace finds the file of a rank in an attempt (0: the newest that started).
func (e *Engine) logPlace(ctx context.Context, j *gang.Job, rank int, q *api.LogQuery) (place, error) {
	rows, err := e.store.Epochs(ctx, j.ID)
	if err != nil {
		return place{}, err
	}
	started := rows[:0]
	for _, r := range rows {
		if !r.Started.IsZero() {
			started = append(started, r)
		}
	}
	for i, r := range started {
		if r.Epoch == q.Attempt || q.Attempt == 0 && i == len(started)-1 {
			return place{node: r.Slots[rank].Node, epoch: r.Epoch,
				path: e.logPath(j, rank, r.Slots[rank].Node, nodeIndex(&r, rank), i, q.Stderr)}, nil
		}
	}
	if q.Attempt > 0 {
		return place{}, api.Errorf(api.CodeNotFound, "job %d has no attempt %d that started", j.ID, q.Attempt)
	}
	return place{}, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %d has not started yet: it has no output", j.ID),
		Hint: fmt.Sprintf("wait for it with glog -f %d, or see why with gqueue --why %d", j.ID, j.ID)}
}

func nodeIndex(r *gang.EpochRow, rank int) int {
	seen := map[string]int{}
	for i := range r.Slots {
		if _, ok := seen[r.Slots[i].Node]; !ok {
			seen[r.Slots[i].Node] = len(seen)
		}
	}
	return seen[r.Slots[rank].Node]
}

// logPath is the name the node gave the file: the same rule, the same package.
func (e *Engine) logPath(j *gang.Job, rank int, node string, nodeIdx, restarts int, stderr bool) string {
	v := outpath.Vars{Job: j.ID, ArrayJob: j.ArrayID, Name: j.Name, User: j.User,
		Node: node, NodeIndex: nodeIdx, Rank: rank, Restarts: restarts}
	if j.ArrayIndex >= 0 {
		v.ArrayIndex = &j.ArrayIndex
	}
	if path := outpath.Error(j.Spec, v); stderr && path != "" {
		return path
	}
	return outpath.Output(j.Spec, v)
}

// followLog follows the job's file from one attempt to the next. Each file's read ends
// when its attempt has; what is appended by a later attempt to the same file is read on
// from where the last one stopped.
func (e *Engine) followLog(ctx context.Context, j *gang.Job, rank int, q *api.LogQuery, r LogReader, w io.Writer) error {
	done := map[string]int64{} // bytes of a file already copied
	first := true
	for epoch := 0; ; {
		j, at, err := e.nextAttempt(ctx, j.ID, epoch, rank, q)
		if err != nil || at.path == "" {
			return err
		}
		epoch = at.epoch
		read := at.read(j, 0)
		if first {
			read.Offset, first = -q.Tail, false
		}
		key := at.node + ":" + at.path
		if n, again := done[key]; again && j.Spec.OpenMode != "truncate" {
			read.Offset = n
		}
		n, err := e.copyAttempt(ctx, j.ID, epoch, at.node, read, r, w)
		if err != nil {
			return err
		}
		done[key] = max(0, read.Offset) + n
	}
}

// nextAttempt waits for an attempt after epoch to start; an empty place when the job ended
// without one.
func (e *Engine) nextAttempt(ctx context.Context, id int64, epoch, rank int, q *api.LogQuery) (*gang.Job, place, error) {
	since := e.bus.lastSeq()
	for {
		j, err := e.One(ctx, api.JobRef{ID: id, Index: -1}, 0)
		if err != nil {
			return nil, place{}, err
		}
		at, err := e.logPlace(ctx, j, rank, &api.LogQuery{Stderr: q.Stderr})
		if err == nil && at.epoch > epoch {
			return j, at, nil
		}
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return nil, place{}, err
		}
		if j.Verdict != nil {
			return j, place{}, nil
		}
		if since, err = e.awaitEvent(ctx, id, since); err != nil {
			return nil, place{}, err
		}
	}
}

// awaitEvent returns at the first event of a job behind since.
func (e *Engine) awaitEvent(ctx context.Context, id, since int64) (int64, error) {
	stop := api.Errorf(api.CodeInternal, "seen")
	err := e.Follow(ctx, id, since, func(evs []api.Event) error {
		since = evs[len(evs)-1].Seq
		return stop
	})
	if err == error(stop) {
		return since, nil
	}
	return since, err
}

// awaitNode returns when a node has opened a session after since.
func (e *Engine) awaitNode(ctx context.Context, node string, since int64) error {
	stop := api.Errorf(api.CodeInternal, "seen")
	err := e.Follow(ctx, 0, since, func(evs []api.Event) error {
		if slices.ContainsFunc(evs, func(ev api.Event) bool { return ev.Type == api.EventNodeUp && ev.Node == node }) {
			return stop
		}
		return nil
	})
	if err == error(stop) {
		return nil
	}
	return err
}

// logSettle is how long a follower reads on after its attempt has ended, for the last
// bytes to cross the session; the ranks have written them before their end was reported.
const logSettle = 300 * time.Millisecond

// copyAttempt follows one file until its attempt is over.
func (e *Engine) copyAttempt(ctx context.Context, id int64, epoch int, node string, read api.LogRead, r LogReader, w io.Writer) (int64, error) {
	over, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := api.Errorf(api.CodeInternal, "attempt ended")
	go func() {
		since := e.bus.lastSeq()
		for e.running(id, epoch) {
			var err error
			if since, err = e.awaitEvent(over, id, since); err != nil {
				return
			}
		}
		select {
		case <-time.After(logSettle):
		case <-over.Done():
		}
		cancel(ended)
	}()
	read.Follow = true
	count := &counter{w: w}
	from := read.Offset
	for context.Cause(over) != error(ended) {
		since := e.bus.lastSeq()
		err := r.ReadLog(over, node, read, count)
		if context.Cause(over) == error(ended) {
			break
		}
		if from < 0 || ctx.Err() != nil || api.CodeOf(err) != api.CodeUnavailable {
			return count.n, err
		}
		// The node's daemon restarts, or its line was cut: the ranks write on meanwhile.
		if err := e.awaitNode(over, node, since); err != nil && context.Cause(over) != error(ended) {
			return count.n, err
		}
		read.Offset = from + count.n
	}
	read.Offset = from
	if read.Offset < 0 {
		return count.n, nil // where a tail began is not known here: logSettle has to do
	}
	read.Follow, read.Offset = false, read.Offset+count.n
	before := count.n
	err := r.ReadLog(ctx, node, read, count)
	if count.n > before || err == nil {
		return count.n, err
	}
	return count.n, nil // the file went after it was read: nothing is missing
}

func (e *Engine) running(id int64, epoch int) bool {
	j := e.view.job(id)
	return j != nil && j.Epoch == epoch && j.Verdict == nil && len(j.Members) > 0
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
