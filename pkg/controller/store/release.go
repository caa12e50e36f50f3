package store

import (
	"context"
)

// KeptReleases is how many released barriers of the ranks of an epoch, or of a step, are kept. A rank that has not yet
// heard of one holds up every later barrier that it belongs to, and it belongs to all: as
// many can be released after it as the rank waits at the same time, which is one in most programs.
const KeptReleases = 64

// MostReleases bounds those of all steps of an epoch together: the newest.
const MostReleases = 16 * KeptReleases

// Release is a barrier that all ranks, or all tasks of a step, have come to.
type Release struct {
	SetKey
	Name string
	Keys map[int]string // of each rank's arrival
}

// Releases keep which barriers were released, so that a rank which had not heard of it when
// the controller died finds out. Like checkpoints they are no part of a batch.
type Releases interface {
	// PutRelease keeps one; when it returns that is durable. It replaces the last of the same
	// step and name, and what the job has of other epochs.
	PutRelease(ctx context.Context, r Release) error
	// Releases gives what is kept, in the order in which it was put.
	Releases(ctx context.Context) ([]Release, error)
	// DropReleases drops what a job has.
	DropReleases(ctx context.Context, job int64) error
}
