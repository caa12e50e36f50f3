package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
	"gangd/pkg/core/outpath"
)

// LogReader reads a file on a node as a user; the session hub is one.
type LogReader interface {
	ReadLog(ctx context.Context, node string, q api.LogRead, w io.Writer) error
}

// Log copies the output of one rank to w. With follow it starts before the job does and
// goes on across requeues until the job has ended. A w that is a [PositionWriter] is told where
// its bytes are from, so that a follow which broke off can go on there.
func (e *Engine) Log(ctx context.Context, j *gang.Job, q *api.LogQuery, r LogReader, w io.Writer) error {
	rank := max(0, q.Rank)
	if rank >= len(j.Ranks) {
		return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %s has no rank %d", j.Ref(), rank),
			Hint: fmt.Sprintf("its ranks are 0 to %d", len(j.Ranks)-1)}
	}
	if q.Follow && q.Attempt == 0 && j.Verdict == nil {
		return e.followLog(ctx, j, rank, q, r, w)
	}
	places, err := e.logPlaces(ctx, j, rank, q.Stderr)
	if err != nil {
		return err
	}
	if q.Follow && q.Attempt == 0 {
		return e.followLog(ctx, j, rank, q, r, w)
	}
	if q.Attempt > len(places) {
		return &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %s has no attempt %d: it has started %s", j.Ref(), q.Attempt,
			times(len(places))),
			Hint: fmt.Sprintf("gctl show job %s lists them", j.Ref())}
	}
	if q.Attempt == 0 {
		at := places[len(places)-1]
		return r.ReadLog(ctx, at.node, at.read(j, -q.Tail), w)
	}
	return attemptLog(ctx, j, places, q.Attempt, q, r, w)
}

// LogRanks is the ranks of a job whose output is a file of its own: of several that write to one
// the first, of a batch job the one that runs its script.
func (e *Engine) LogRanks(j *gang.Job, stderr bool) []int {
	if j.Spec.Launch == api.LaunchBatch {
		return []int{0}
	}
	var out []int
	seen := map[string]bool{}
	nodes := map[string]int{}
	on := map[int]string{}
	for i := range j.Members {
		for _, rank := range j.Members[i].Ranks {
			on[rank] = j.Members[i].Node
		}
	}
	for rank := range j.Ranks {
		node := cmp.Or(on[rank], fmt.Sprintf("node of %d", rank)) // not known before it has one
		if _, ok := nodes[node]; !ok {
			nodes[node] = len(nodes)
		}
		path := e.logPath(j, rank, node, nodes[node], 0, stderr)
		if !seen[path] {
			seen[path] = true
			out = append(out, rank)
		}
	}
	return out
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// attemptLog copies what the nth attempt has written, which ends where the next one to the same
// file begins.
func attemptLog(ctx context.Context, j *gang.Job, places []place, n int, q *api.LogQuery, r LogReader, w io.Writer) error {
	at := places[n-1]
	next := slices.IndexFunc(places[n:], func(p place) bool { return p.goesOn(at, j.Spec.OpenMode) })
	if next < 0 || q.Tail > 0 {
		from := at.start
		if q.Tail > 0 {
			from = -q.Tail
		}
		return r.ReadLog(ctx, at.node, at.read(j, from), w)
	}
	part := &limitedWriter{w: w, left: places[n+next].start - at.start}
	err := r.ReadLog(ctx, at.node, at.read(j, at.start), part)
	if part.left == 0 {
		return nil
	}
	return err
}

// limitedWriter takes so many bytes and refuses the rest.
type limitedWriter struct {
	w    io.Writer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	n, err := l.w.Write(p[:min(int64(len(p)), l.left)])
	if l.left -= int64(n); err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, err
}

// place is the output of a rank in one attempt: where the file is, what it is called there,
// and how much others had written to it before.
type place struct {
	node, path string
	epoch      int
	start      int64
	known      bool // the node has told start
	apart      bool // some attempt found nothing in a name that was used on another node: disks are not shared
}

func (p place) read(j *gang.Job, offset int64) api.LogRead {
	return api.LogRead{Path: p.path, UID: j.UID, GID: j.GID, User: j.User, Offset: offset}
}

// logPlaces finds the output of a rank in each attempt that started, oldest first.
func (e *Engine) logPlaces(ctx context.Context, j *gang.Job, rank int, stderr bool) ([]place, error) {
	rows, err := e.store.Epochs(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	var out []place
	for i := range rows {
		r := &rows[i]
		if r.Started.IsZero() {
			continue
		}
		at := place{node: r.Slots[rank].Node, epoch: r.Epoch, known: true,
			path: e.logPath(j, rank, r.Slots[rank].Node, nodeIndex(r, rank), len(out), stderr)}
		apart := stderr && at.path != e.logPath(j, rank, at.node, nodeIndex(r, rank), len(out), false)
		starts := r.OutStarts
		if apart {
			starts = r.ErrStarts
		}
		if rank < len(starts) {
			at.start = starts[rank]
		}
		if now := &j.Ranks[rank]; r.Epoch == j.Epoch { // the row may be from before it was told
			at.known = now.PID != 0 || now.Exited || j.Verdict != nil || j.Drain != nil
			if at.start = now.OutStart; apart {
				at.start = now.ErrStart
			}
		}
		at.apart = slices.ContainsFunc(out, func(p place) bool {
			return p.path == at.path && (p.apart || at.start == 0 && p.node != at.node)
		})
		out = append(out, at)
	}
	if len(out) == 0 && j.Verdict != nil {
		err := &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %s ended before it started, and has no output: %s", j.Ref(),
			j.Verdict.State), Hint: fmt.Sprintf("gqueue --why %s says more", j.Ref())}
		if j.Verdict.Text != "" {
			err.Message += ": " + j.Verdict.Text
		}
		return nil, err
	}
	if len(out) == 0 {
		return nil, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %s has not started yet: it has no output", j.Ref()),
			Hint: fmt.Sprintf("wait for it with glog -f %[1]s, or see why with gqueue --why %[1]s", j.Ref())}
	}
	return out, nil
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

// followLog follows the job's output from one attempt to the next. The first is read from its
// file's beginning, each later one from where its own part begins: what an earlier one
// appended to the same file was read there. Each read ends when its attempt has.
func (e *Engine) followLog(ctx context.Context, j *gang.Job, rank int, q *api.LogQuery, r LogReader, w io.Writer) error {
	var missed error // of the newest attempt
	var before place // whose file was read up to end
	var end int64
	for epoch, first := q.From.Epoch-1, true; ; first = false {
		j, at, err := e.nextAttempt(ctx, j.ID, epoch, first && q.From.Epoch == 0, rank, q.Stderr)
		if err != nil {
			return err
		}
		if at.path == "" {
			return missed
		}
		offset := at.start
		switch {
		case at.epoch == q.From.Epoch:
			offset = q.From.Offset
		case first && q.From.Epoch == 0:
			offset = -q.Tail
		case at.goesOn(before, j.Spec.OpenMode):
			offset = max(offset, end) // the last read may have seen the first of this attempt
		}
		end, missed, err = e.copyAttempt(ctx, j.ID, at, at.read(j, offset), r, w)
		if err != nil {
			return err
		}
		epoch, before = at.epoch, at
	}
}

// goesOn says whether an attempt appends to the file of the one before. Of the same name on
// another node it is the same file where disks are shared: there it is never found shorter.
func (p place) goesOn(before place, mode string) bool {
	return mode != "truncate" && p.path == before.path && (p.node == before.node || p.start > 0 && p.start >= before.start && !p.apart)
}

// nextAttempt waits for the first attempt after epoch to start, or takes the newest of those
// that have; an empty place when the job ended without one.
func (e *Engine) nextAttempt(ctx context.Context, id int64, epoch int, newest bool, rank int, stderr bool) (*gang.Job, place, error) {
	since := e.bus.lastSeq()
	for {
		j, err := e.One(ctx, api.JobRef{ID: id, Index: -1}, Caller{})
		if err != nil {
			return nil, place{}, err
		}
		places, err := e.logPlaces(ctx, j, rank, stderr)
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return nil, place{}, err
		}
		if newest && len(places) > 0 {
			return j, places[len(places)-1], nil
		}
		i := slices.IndexFunc(places, func(p place) bool { return p.epoch > epoch })
		if i >= 0 && places[i].known {
			return j, places[i], nil
		}
		if i < 0 && j.Verdict != nil {
			return j, place{}, nil
		}
		if since, err = e.awaitChange(ctx, id, since, i >= 0); err != nil {
			return nil, place{}, err
		}
	}
}

// toldPoll is how often it is looked whether the node of an attempt has told where its
// output begins: that its processes exist is no event. It takes milliseconds.
const toldPoll = 20 * time.Millisecond

// awaitChange returns at the first event of a job behind since, or soon.
func (e *Engine) awaitChange(ctx context.Context, id, since int64, soon bool) (int64, error) {
	if !soon {
		return e.awaitEvent(ctx, id, since)
	}
	return since, e.pause(ctx)
}

func (e *Engine) pause(ctx context.Context) error {
	select {
	case <-time.After(toldPoll):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.done:
		return errStopped
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

// copyAttempt follows one file until its attempt is over, and then reads what is left of it: the
// ranks have written that before their end was reported. end is up to where it was read;
// missed says that the rest could not be, because its node is gone.
func (e *Engine) copyAttempt(ctx context.Context, id int64, at place, read api.LogRead, r LogReader, w io.Writer) (end int64, missed,
	err error) {
	over, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := api.Errorf(api.CodeInternal, "attempt ended")
	go func() {
		since := e.bus.lastSeq()
		for e.running(id, at.epoch) {
			var err error
			if since, err = e.awaitEvent(over, id, since); err != nil {
				return
			}
		}
		cancel(ended)
	}()
	c := newCopyCounter(w, at.epoch, read.Offset)
	var away time.Time // since when its node is not connected
	for {
		since := e.bus.lastSeq()
		// A read that begins when the attempt is over gives all there is.
		final, reading := context.Cause(over) == error(ended), over
		if final {
			reading = ctx
		}
		read.Follow, read.Offset = !final, c.next
		err := r.ReadLog(reading, at.node, read, c)
		if api.CodeOf(err) != api.CodeUnavailable {
			away = time.Time{}
		} else if away.IsZero() {
			away = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return c.next, nil, context.Cause(ctx)
		case !final && context.Cause(over) == error(ended):
			if c.next < 0 && c.n > 0 {
				return 0, nil, nil // where the tail began was not told
			}
		case api.CodeOf(err) == api.CodeUnavailable:
			// The node's daemon restarts, or its line was cut: the ranks write on meanwhile.
			err := e.awaitBack(reading, at.node, since, final, away)
			switch {
			case err == nil || ctx.Err() != nil || !final && context.Cause(over) == error(ended):
			case api.CodeOf(err) == api.CodeUnavailable:
				return c.next, nil, err
			default:
				return c.next, err, nil
			}
		case final && c.n > 0:
			return c.next, nil, nil // a file that went after it was read: nothing is missing
		case err == nil && !final: // the node's daemon has put an end to it, and will say so
			if err := e.pause(over); err != nil && context.Cause(over) != error(ended) {
				return c.next, nil, err
			}
		default:
			return c.next, nil, err
		}
	}
}

// backPoll is how often a node that is away is asked again without an event of it: it is up a moment before it can be asked.
const backPoll = 500 * time.Millisecond

// awaitBack waits for a node that is away for a while, and a little; not for one that is lost when only the rest of a file is missing.
func (e *Engine) awaitBack(ctx context.Context, node string, since int64, final bool, away time.Time) error {
	again := api.Errorf(api.CodeUnavailable, "try again")
	wait := func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, backPoll, again)
		defer cancel()
		if err := e.awaitNode(ctx, node, since); err != error(again) {
			return err
		}
		return nil
	}
	if !final {
		return wait()
	}
	gone := api.Errorf(api.CodeConflict, "the end of the output is on node %s, which is not connected", node)
	if n := e.view.node(node); n == nil || n.State == api.NodeLost {
		return gone
	}
	if time.Since(away) > e.conf().Settings.NodeTimeout || wait() != nil {
		return gone
	}
	return nil
}

func (e *Engine) running(id int64, epoch int) bool {
	j := e.view.job(id)
	return j != nil && runs(j, epoch)
}

func runs(j *gang.Job, epoch int) bool {
	return j.Epoch == epoch && j.Verdict == nil && len(j.Members) > 0
}

// PositionWriter wants to know where the bytes of a followed log are from.
type PositionWriter interface {
	io.Writer
	// At is told the position of the next byte.
	At(api.LogPosition)
}

// copyCounter counts what was copied of an attempt's file.
type copyCounter struct {
	w     io.Writer
	epoch int
	n     int64
	next  int64 // offset of the next byte; from the end when negative and not told yet
}

func newCopyCounter(w io.Writer, epoch int, offset int64) *copyCounter {
	c := &copyCounter{w: w, epoch: epoch, next: offset}
	if offset >= 0 {
		c.Began(offset)
	}
	return c
}

// Began is told by the node where its answer begins; see session.LogWriter.
func (c *copyCounter) Began(offset int64) {
	c.next = offset
	if p, ok := c.w.(PositionWriter); ok {
		p.At(api.LogPosition{Epoch: c.epoch, Offset: offset})
	}
}

func (c *copyCounter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if c.next >= 0 {
		c.next += int64(n)
	}
	return n, err
}
