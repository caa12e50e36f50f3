package store

import (
	"context"
	"errors"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/gang"
)

// ErrFull: the disk has no room for the batch; nothing of it was written. A batch without
// new jobs may be tried again as it is; one with new jobs is to be refused to its clients.
var ErrFull = errors.New("state disk full")

// ErrNewerSchema: the file was written by a newer gangd.
var ErrNewerSchema = errors.New("store has a newer schema")

// ErrLocked: another process has this store open.
var ErrLocked = errors.New("store is locked by another process")

// ErrFailed: a commit failed in a way that leaves the disk's state unknown. Every call but
// Close gives it from then on.
var ErrFailed = errors.New("store failed")

// ErrClosed: the store was closed.
var ErrClosed = errors.New("store is closed")

// ErrExists: a backup would overwrite a file.
var ErrExists = errors.New("file exists")

// Store is implemented by sqlitestore, and checked by storetest.
type Store interface {
	Checkpoints
	Releases
	History
	Runs
	// Load reads what the controller needs in memory: jobs that have not ended, or ended
	// after keep, by id, nodes by name, the submission keys of these jobs, counters. Of more than
	// [gang.MostEnded] that ended after keep those that ended last are read, and of the others the keys.
	Load(ctx context.Context, keep time.Time) (*gang.Snapshot, error)
	// Commit writes one batch durably and gives its lineage number. It is not interrupted
	// by ctx once it has begun. A batch without anything to store is no commit and gives
	// the number of the last one.
	Commit(ctx context.Context, ch *gang.Changes) (lineage uint64, err error)
	Lineage() uint64
	// Advance raises the lineage and the smallest id never given out, durably: a person has
	// accepted a store that is older than what nodes have seen. Neither may go back.
	Advance(ctx context.Context, lineage uint64, nextID int64) error
	// Room is ErrFull while a batch with new jobs would be refused for want of space, so
	// that a submission is refused before it is taken in. It costs under a microsecond.
	Room() error
	// Spec reads a specification whole, by its hash. ErrNotFound when no job has it. Load, Job and
	// Jobs give none of its texts. It waits for none of the other reads.
	Spec(ctx context.Context, hash string) (*api.Spec, error)
	// Job reads a job, ended and purged ones too. ErrNotFound when there is none, or none any more.
	Job(ctx context.Context, id int64) (*gang.Job, error)
	// Jobs reads ended jobs, the one that ended last first.
	Jobs(ctx context.Context, f HistoryFilter) ([]*gang.Job, error)
	// Newest are the ids of the newest n submissions of a user that have ended, the newest first. An array counts once, by its id, from
	// the first of its elements that has ended on.
	Newest(ctx context.Context, user string, n int) ([]int64, error)
	// Epochs reads the attempts of a job, oldest first.
	Epochs(ctx context.Context, job int64) ([]gang.EpochRow, error)
	// Steps reads the steps of a job that have ended, oldest first.
	Steps(ctx context.Context, job int64) ([]api.Step, error)
	// Measures reads what members of a job used, by epoch and member.
	Measures(ctx context.Context, job int64) ([]gang.MeasureRow, error)
	// Ledger sums up the ledger as a query says, by key.
	Ledger(ctx context.Context, q *api.LedgerQuery) ([]api.LedgerRow, error)
	// Events reads events with a Seq above since, of one job or (job 0) of all, oldest
	// first, at most limit (0: all).
	Events(ctx context.Context, job, since int64, limit int) ([]api.Event, error)
	// SiteEvents reads the newest limit events of no job, oldest first.
	SiteEvents(ctx context.Context, limit int) ([]api.Event, error)
	// Verify recounts what can be recounted and names each disagreement.
	Verify(ctx context.Context) ([]string, error)
	// Backup writes a consistent copy to a path that must not exist.
	Backup(ctx context.Context, path string) error
	Close() error
}

// ErrNotFound: no such row.
var ErrNotFound = errors.New("not found")

// HistoryFilter selects ended jobs; zero fields select all. "After" excludes the instant.
type HistoryFilter struct {
	User           string
	EndedAfter     time.Time
	SubmittedAfter time.Time
	ArrayID        int64
	Limit          int
}
