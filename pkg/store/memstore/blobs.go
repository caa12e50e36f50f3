package memstore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"gangd/pkg/api"
	"gangd/pkg/store"
)

// checkpoint is one put of a rank.
type checkpoint struct {
	Put  int64
	Key  string
	Data []byte
}

// checkpoints are by epoch and rank, the newest two of each, oldest first.
type checkpoints map[int]map[int][]checkpoint

// usable is why the store can't be used; the disk's mu is held.
func (s *Store) usable() error {
	return s.dead
}

// PutCheckpoint keeps one.
func (s *Store) PutCheckpoint(ctx context.Context, k api.MemberKey, rank int, key string, r io.Reader) (store.CheckpointSet, int64, error) {
	var set store.CheckpointSet
	if err := s.Room(); err != nil {
		return set, 0, err
	}
	b, err := io.ReadAll(io.LimitReader(r, api.MaxCheckpointBytes+1))
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return set, 0, err
	}
	if len(b) > api.MaxCheckpointBytes {
		return set, 0, api.TooLarge()
	}
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.usable(); err != nil {
		return set, 0, err
	}
	all := d.d.Checkpoints[k.Job]
	if all == nil {
		all = checkpoints{}
		d.d.Checkpoints[k.Job] = all
	}
	if all[k.Epoch] == nil {
		all[k.Epoch] = map[int][]checkpoint{}
	}
	mine := all[k.Epoch][rank]
	put := int64(1)
	if n := len(mine); n > 0 {
		put = mine[n-1].Put + 1
	}
	if again := len(mine) > 0 && key != "" && mine[len(mine)-1].Key == key; !again {
		mine = append(mine[max(0, len(mine)-1):len(mine):len(mine)], checkpoint{put, key, b})
		all[k.Epoch][rank] = mine
	}
	for _, puts := range all[k.Epoch] {
		set.Ranks++
		set.Bytes += int64(len(puts[len(puts)-1].Data))
	}
	return set, int64(len(b)), nil
}

// Checkpoint opens one of the newest set.
func (s *Store) Checkpoint(ctx context.Context, k api.MemberKey, rank int) (io.ReadCloser, int64, error) {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.usable(); err != nil {
		return nil, 0, err
	}
	puts := map[int]int64{}
	for r, list := range d.d.Checkpoints[k.Job][k.Epoch] {
		puts[r] = list[len(list)-1].Put
	}
	want := store.InStep(puts, rank)
	for _, c := range d.d.Checkpoints[k.Job][k.Epoch][rank] {
		if c.Put == want {
			return io.NopCloser(bytes.NewReader(c.Data)), int64(len(c.Data)), nil
		}
	}
	return nil, 0, fmt.Errorf("checkpoint of rank %d in epoch %d of job %d: %w", rank, k.Epoch, k.Job, store.ErrNotFound)
}

// PruneCheckpoints drops all epochs of a job but some.
func (s *Store) PruneCheckpoints(ctx context.Context, job int64, keep []int) error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	all := d.d.Checkpoints[job]
	maps.DeleteFunc(all, func(epoch int, _ map[int][]checkpoint) bool { return !slices.Contains(keep, epoch) })
	if len(all) == 0 {
		delete(d.d.Checkpoints, job)
	}
	return nil
}

// CheckpointJobs names the jobs that have any.
func (s *Store) CheckpointJobs(ctx context.Context) ([]int64, error) {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.d.Checkpoints)), s.usable()
}
