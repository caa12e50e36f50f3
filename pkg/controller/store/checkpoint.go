package store

import (
	"context"
	"io"

	"gangd/pkg/api"
)

// CheckpointPiece is how much of a checkpoint a store takes at a time.
const CheckpointPiece = 256 << 10

// OfRanks stands for a step where there is none: a gang's ranks, or a batch script.
const OfRanks = -1

// SetKey names a set of checkpoints: of the ranks of an epoch, or of the tasks of one of its steps.
type SetKey struct {
	api.MemberKey
	Step int // or [OfRanks]
}

// CheckpointSet is what is stored of a set.
type CheckpointSet struct {
	Ranks int   // that have put one
	Bytes int64 // of the newest of each
}

// Checkpoints keep what ranks and tasks put: opaque bytes by set and rank. Two are kept of each
// rank and set. They are no part of a commit's batch, which stays small; the number of the
// last commit does not change with them.
type Checkpoints interface {
	// PutCheckpoint reads r to its end and keeps it; when it returns the bytes are durable.
	// A put with the key of the rank's last one is the same put. Beyond
	// [api.MaxCheckpointBytes] it gives an *api.Error of code too_large, and an error of r as it is.
	PutCheckpoint(ctx context.Context, k SetKey, rank int, key string, r io.Reader) (CheckpointSet, int64, error)
	// Checkpoint opens the checkpoint of a rank in the newest complete state of a set. Where the
	// ranks are in step (none has put more than one more than another) that is the last put that
	// all of them have made, so that no rank is handed a later step than the others; else it is the
	// newest of each. [ErrNotFound] when there is none.
	Checkpoint(ctx context.Context, k SetKey, rank int) (io.ReadCloser, int64, error)
	// PruneCheckpoints drops what a job has of sets that are not to be kept: of its ranks, or of
	// the tasks of all its steps.
	PruneCheckpoints(ctx context.Context, job int64, tasks bool, keep []SetKey) error
	// DropCheckpoints drops all that a job has.
	DropCheckpoints(ctx context.Context, job int64) error
	// CheckpointJobs names the jobs that have any, ascending.
	CheckpointJobs(ctx context.Context) ([]int64, error)
}

// InStep gives which put of a rank belongs to the newest set: puts are how many each rank
// has made. See [Checkpoints.Checkpoint].
func InStep(puts map[int]int64, rank int) int64 {
	least, most := puts[rank], puts[rank]
	for _, n := range puts {
		least, most = min(least, n), max(most, n)
	}
	if most-least <= 1 {
		return least
	}
	return puts[rank]
}
