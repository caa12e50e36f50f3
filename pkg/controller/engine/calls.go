package engine

import (
	"context"
	"errors"
	"io"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/controller/store"
	"gangd/pkg/core/gang"
)

// NodeCall serves one call of a rank. Which job it is of the node says, and is believed only
// about ranks that are placed on it now.
func (e *Engine) NodeCall(ctx context.Context, node string, c *api.Call, in io.Reader, out io.Writer) (*api.CallResult, error) {
	if why := e.view.onHold(); why != "" {
		return nil, api.Errorf(api.CodeUnavailable, "the controller holds: %s", why)
	}
	j := e.view.job(c.Job)
	if j == nil || j.Epoch != c.Epoch {
		err := gang.MayCheckpoint(j, c.Epoch, c.Rank)
		e.log.Warn("stale epoch refused", "job", c.Job, "node", node, "claimed", c.Epoch)
		return nil, err
	}
	p, refusal := partyOf(j, node, c)
	if refusal != nil {
		return nil, refusal
	}
	switch {
	case c.Put != nil:
		return e.putCheckpoint(ctx, j, p, c, in)
	case c.Get != nil:
		return e.getCheckpoint(ctx, j, p, c, out)
	case c.Barrier != nil:
		return e.barriers.wait(ctx, j, p, c.Rank, c.Barrier, e.notes.ended)
	case c.Ready != nil:
		return e.waitReady(ctx, j, p, c.Ready)
	}
	return nil, api.Errorf(api.CodeInvalid, "a call that asks for nothing this controller knows")
}

// putCheckpoint makes the bytes durable, then the fact that they are there. Between the two
// the epoch may end: the second step decides, and nothing was answered before it.
func (e *Engine) putCheckpoint(ctx context.Context, j *gang.Job, p party, c *api.Call, in io.Reader) (*api.CallResult, error) {
	if err := p.mayPut(j, c); err != nil {
		return nil, err
	}
	set, size, err := e.store.PutCheckpoint(ctx, setKey(j, c.Epoch, p.step), c.Rank, c.Put.Key, in)
	switch {
	case errors.Is(err, store.ErrFull):
		return nil, &api.Error{Code: api.CodeDiskFull, Message: "state disk full: the checkpoint could not be kept",
			Hint: "try again when there is room on the controller"}
	case err != nil:
		return nil, err
	}
	_, err = e.Do(ctx, gang.CheckpointSaved{Job: c.Job, Step: c.Step, Epoch: c.Epoch, Rank: c.Rank, Bytes: size, SetRanks: set.Ranks,
		SetBytes: set.Bytes})
	now := e.view.job(c.Job)
	if err != nil {
		if now == nil || now.Verdict != nil {
			e.forget(c.Job)
		}
		return nil, err
	}
	before, _ := p.kept(j)
	kept, complete := p.kept(now)
	if len(before) == 0 || len(kept) == 0 || before[0] != kept[0] {
		if err := e.store.PruneCheckpoints(ctx, j.ID, p.ofStep(), kept); err != nil {
			e.log.Warn("old checkpoints not removed", "job", j.ID, "err", err)
		}
	}
	return &api.CallResult{Epoch: c.Epoch, Bytes: size, Complete: complete && kept[0] == setKey(j, c.Epoch, p.step)}, nil
}

func (e *Engine) getCheckpoint(ctx context.Context, j *gang.Job, p party, c *api.Call, out io.Writer) (*api.CallResult, error) {
	set, err := p.wanted(j, c.Get)
	if err != nil {
		return nil, err
	}
	r, size, err := e.store.Checkpoint(ctx, set, c.Get.Rank)
	if errors.Is(err, store.ErrNotFound) {
		return nil, api.Errorf(api.CodeNotFound, "job %d has no checkpoint of %s %d from epoch %d", j.ID, p.word(), c.Get.Rank, set.Epoch)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := io.Copy(out, r); err != nil {
		return nil, err
	}
	return &api.CallResult{Epoch: set.Epoch, Bytes: size}, nil
}

// forget asks the sweeper to drop what ranks of an ended job have left. What is asked for
// while it is busy beyond measure is done at the next start.
func (e *Engine) forget(job int64) {
	select {
	case e.sweepQueue <- job:
	default:
	}
}

// sweep drops what ranks of ended jobs have left until ctx ends; first what a crash left.
func (e *Engine) sweep(ctx context.Context) {
	for _, id := range e.leftovers(ctx) {
		if j := e.view.job(id); j == nil || j.Verdict != nil {
			e.drop(ctx, id)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-e.sweepQueue:
			if j := e.view.job(id); j == nil || j.Verdict != nil {
				e.drop(ctx, id)
			}
		}
	}
}

// leftovers names the jobs that have checkpoints or releases.
func (e *Engine) leftovers(ctx context.Context) []int64 {
	jobs, err := e.store.CheckpointJobs(ctx)
	if err != nil {
		e.log.Warn("checkpoints of ended jobs not looked for", "err", err)
	}
	all, err := e.store.Releases(ctx)
	if err != nil {
		e.log.Warn("barriers of ended jobs not looked for", "err", err)
	}
	for i := range all {
		jobs = append(jobs, all[i].Job)
	}
	slices.Sort(jobs)
	return slices.Compact(jobs)
}

func (e *Engine) drop(ctx context.Context, job int64) {
	if err := e.store.DropCheckpoints(ctx, job); err != nil && ctx.Err() == nil {
		e.log.Warn("checkpoints of an ended job not removed", "job", job, "err", err)
	}
	if err := e.store.DropReleases(ctx, job); err != nil && ctx.Err() == nil {
		e.log.Warn("barriers of an ended job not removed", "job", job, "err", err)
	}
}
