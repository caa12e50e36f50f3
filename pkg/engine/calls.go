package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/gang"
	"gangd/pkg/store"
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
	if c.Rank < 0 || c.Rank >= len(j.Ranks) || j.Ranks[c.Rank].Slot.Node != node {
		return nil, api.Errorf(api.CodePermission, "rank %d of job %d is not on node %s", c.Rank, c.Job, node)
	}
	switch {
	case c.Put != nil:
		return e.putCheckpoint(ctx, j, c, in)
	case c.Get != nil:
		return e.getCheckpoint(ctx, j, c, out)
	case c.Barrier != nil:
		return e.meet.wait(ctx, j, c.Rank, c.Barrier)
	case c.Ready != nil:
		return e.waitReady(ctx, j, c.Ready)
	}
	return nil, api.Errorf(api.CodeInvalid, "a call that asks for nothing this controller knows")
}

// putCheckpoint makes the bytes durable, then the fact that they are there. Between the two
// the epoch may end: the second step decides, and nothing was answered before it.
func (e *Engine) putCheckpoint(ctx context.Context, j *gang.Job, c *api.Call, in io.Reader) (*api.CallResult, error) {
	if err := gang.MayCheckpoint(j, c.Epoch, c.Rank); err != nil {
		return nil, err
	}
	set, size, err := e.store.PutCheckpoint(ctx, c.MemberKey, c.Rank, c.Put.Key, in)
	switch {
	case errors.Is(err, store.ErrFull):
		return nil, &api.Error{Code: api.CodeDiskFull, Message: "state disk full: the checkpoint could not be kept", Hint: "try again when there is room on the controller"}
	case err != nil:
		return nil, err
	}
	_, err = e.Do(ctx, gang.CheckpointSaved{Job: c.Job, Epoch: c.Epoch, Rank: c.Rank, Bytes: size, SetRanks: set.Ranks, SetBytes: set.Bytes})
	now := e.view.job(c.Job)
	if err != nil {
		if now == nil || now.Verdict != nil {
			e.forget(c.Job)
		}
		return nil, err
	}
	if old, cp := j.Checkpoint, now.Checkpoint; old == nil || cp == nil || old.Epoch != cp.Epoch {
		e.pruneCheckpoints(ctx, now)
	}
	return &api.CallResult{Epoch: c.Epoch, Bytes: size, Complete: now.Checkpoint != nil && now.Checkpoint.Epoch == c.Epoch && now.Checkpoint.Complete}, nil
}

// pruneCheckpoints drops the epochs that no restart will start from any more.
func (e *Engine) pruneCheckpoints(ctx context.Context, j *gang.Job) {
	if j.Checkpoint == nil {
		return
	}
	if err := e.store.PruneCheckpoints(ctx, j.ID, []int{j.Checkpoint.Epoch, j.Checkpoint.Before}); err != nil {
		e.log.Warn("old checkpoints not removed", "job", j.ID, "err", err)
	}
}

func (e *Engine) getCheckpoint(ctx context.Context, j *gang.Job, c *api.Call, out io.Writer) (*api.CallResult, error) {
	epoch := c.Get.Epoch
	if epoch == 0 {
		epoch = gang.NewestSet(j)
	}
	if epoch == 0 {
		return nil, &api.Error{Code: api.CodeNotFound, Message: fmt.Sprintf("job %d has no complete checkpoint", j.ID),
			Hint: "one is complete when every rank has put its own in the same epoch"}
	}
	r, size, err := e.store.Checkpoint(ctx, api.MemberKey{Job: c.Job, Epoch: epoch}, c.Get.Rank)
	if errors.Is(err, store.ErrNotFound) {
		return nil, api.Errorf(api.CodeNotFound, "job %d has no checkpoint of rank %d from epoch %d", j.ID, c.Get.Rank, epoch)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := io.Copy(out, r); err != nil {
		return nil, err
	}
	return &api.CallResult{Epoch: epoch, Bytes: size}, nil
}

// forget asks the sweeper to drop what ranks of an ended job have left. What is asked for
// while it is busy beyond measure is done at the next start.
func (e *Engine) forget(job int64) {
	select {
	case e.swept <- job:
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
		case id := <-e.swept:
			e.drop(ctx, id)
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
	if err := e.store.PruneCheckpoints(ctx, job, nil); err != nil && ctx.Err() == nil {
		e.log.Warn("checkpoints of an ended job not removed", "job", job, "err", err)
	}
	if err := e.store.DropReleases(ctx, job); err != nil && ctx.Err() == nil {
		e.log.Warn("barriers of an ended job not removed", "job", job, "err", err)
	}
}
