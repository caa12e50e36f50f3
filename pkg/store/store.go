// Package store keeps what was accepted. One [Store] has one writer; a commit is one
// batch of whole rows exactly as Step produced them: there is no state rule in here.
//
// Invariants: a commit is on the disk, whole, when Commit returns nil, or not at all; the
// lineage number grows by one with each commit; ids once given out are never given again,
// because NextID is written in the same commit as the jobs that used it.
//
// Failure rules: after an error of Commit the store refuses everything but Close: the
// state of the disk is not known and the process has to end. The one exception is
// [ErrFull], which is reported before anything was written.
package store

import (
	"context"
	"errors"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/gang"
)

// ErrFull: the disk has no room for the batch; nothing of it was written.
var ErrFull = errors.New("state disk full")

// ErrNewerSchema: the file was written by a newer gangd.
var ErrNewerSchema = errors.New("store has a newer schema")

// ErrLocked: another process has this store open.
var ErrLocked = errors.New("store is locked by another process")

// Store is implemented by sqlitestore and memstore, and checked by storetest.
type Store interface {
	// Load reads what the controller needs in memory: jobs that have not ended, or ended
	// after keep, nodes, submission keys, counters.
	Load(ctx context.Context, keep time.Time) (*gang.Saved, error)
	// Commit writes one batch durably and gives its lineage number.
	Commit(ctx context.Context, ch *gang.Changes) (lineage uint64, err error)
	Lineage() uint64
	// Job reads a job, ended and purged ones too. ErrNotFound when there is none.
	Job(ctx context.Context, id int64) (*gang.Job, error)
	// Jobs reads ended jobs, newest first.
	Jobs(ctx context.Context, f HistoryFilter) ([]*gang.Job, error)
	// Epochs reads the attempts of a job, oldest first.
	Epochs(ctx context.Context, job int64) ([]gang.EpochRow, error)
	// Events reads events with a Seq above since, of one job or (job 0) of all, oldest
	// first, at most limit (0: all).
	Events(ctx context.Context, job, since int64, limit int) ([]api.Event, error)
	// Verify recounts what can be recounted and names each disagreement.
	Verify(ctx context.Context) ([]string, error)
	// Backup writes a consistent copy to a path that must not exist.
	Backup(ctx context.Context, path string) error
	Close() error
}

// ErrNotFound: no such row.
var ErrNotFound = errors.New("not found")

// HistoryFilter selects ended jobs; zero fields select all.
type HistoryFilter struct {
	User           string
	EndedAfter     time.Time
	SubmittedAfter time.Time
	ArrayID        int64
	Limit          int
}
