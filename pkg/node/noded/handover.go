package noded

import (
	"context"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"gangd/pkg/api"
	"gangd/pkg/core/rankenv"
	"gangd/pkg/node/shim"
	"gangd/pkg/wire/jobapi"
)

// fetchers bounds how many checkpoints of one member are fetched at a time: one fills the
// line already, a few hide its latency.
const fetchers = 4

// fetchedCheckpoints are the checkpoints of an earlier epoch for the ranks of a member, fetched before
// its shim is started, because their content is part of the environment.
type fetchedCheckpoints struct {
	dir   string // temporary, beside the members'; empty: nothing is handed over
	ranks map[int]rankenv.Checkpoint
}

// fetchCheckpoints gets what the member's ranks start from. A gang with a checkpoint never
// starts without it: where it can't be had in time, the member is refused.
func (d *daemon) fetchCheckpoints(ctx context.Context, k api.MemberKey, body *api.AssignmentBody, spec *api.Spec) (*fetchedCheckpoints,
	*api.Refusal) {
	h := &fetchedCheckpoints{ranks: map[int]rankenv.Checkpoint{}}
	if body.Checkpoint == 0 {
		return h, nil
	}
	h.dir = filepath.Join(d.state.path, membersDir, ".in-"+keyName(k))
	if err := os.RemoveAll(h.dir); err != nil {
		return h, nodeFault("%v", err)
	}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return h, nodeFault("%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.site().StartTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	for r, p := range body.Ranks {
		if body.Nodes[p.Node].Name != d.opts.Name || spec.Launch == api.LaunchBatch && r != 0 {
			continue
		}
		group.Go(func() error {
			return d.fetch(ctx, &api.Call{MemberKey: k, Rank: r, Get: &api.CheckpointGet{Rank: r, Epoch: body.Checkpoint}}, h.path(r))
		})
		h.ranks[r] = rankenv.Checkpoint{}
	}
	if err := group.Wait(); err != nil {
		return h, refuse(api.BlameUnknown, "checkpoint of epoch %d: %v", body.Checkpoint, err)
	}
	for r := range h.ranks {
		data, err := jobapi.ReadSmall(h.path(r))
		if err != nil {
			return h, nodeFault("%v", err)
		}
		h.ranks[r] = rankenv.Checkpoint{Data: data}
	}
	return h, nil
}

func (h *fetchedCheckpoints) path(rank int) string {
	return filepath.Join(h.dir, jobapi.Name(jobapi.CheckPrefix, rank))
}

// fetch copies one checkpoint into a file. It waits out a controller that is restarting.
func (d *daemon) fetch(ctx context.Context, c *api.Call, path string) error {
	for {
		err := d.fetchOnce(ctx, c, path)
		if err == nil || api.CodeOf(err) != api.CodeUnavailable {
			return err
		}
		if sleep(ctx, retryWait); ctx.Err() != nil {
			return err
		}
	}
}

func (d *daemon) fetchOnce(ctx context.Context, c *api.Call, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o400)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = d.client.Call(ctx, c, nil, f)
	if err != nil {
		_ = os.Remove(path) // 0400: it could not be opened again
		return err
	}
	return f.Close()
}

// env is what the ranks are told, of files in the member's directory.
func (h *fetchedCheckpoints) env(dir string) map[int]rankenv.Checkpoint {
	out := map[int]rankenv.Checkpoint{}
	for r, c := range h.ranks {
		c.File = filepath.Join(dir, jobapi.Name(jobapi.CheckPrefix, r))
		out[r] = c
	}
	return out
}

// place moves the files into the member's directory, for its user to read.
func (h *fetchedCheckpoints) place(s *shim.Spec) error {
	for r := range h.ranks {
		if s.SwitchUser {
			if err := os.Lchown(h.path(r), int(s.UID), int(s.GID)); err != nil {
				return err
			}
		}
		if err := os.Rename(h.path(r), filepath.Join(s.Dir, jobapi.Name(jobapi.CheckPrefix, r))); err != nil {
			return err
		}
	}
	return nil
}

// drop removes what was not placed.
func (h *fetchedCheckpoints) drop() {
	if h.dir != "" {
		_ = os.RemoveAll(h.dir)
	}
}
