package store

import (
	"context"
	"time"
)

// ForgetBatch is how many jobs one call of Forget is given at most: with their indexes they
// are as much to delete as the few hundred rows of their parts that a call takes.
const ForgetBatch = 32

// End is a place among the jobs that have ended, in the order of their ends; the zero value is before all.
type End struct {
	At time.Time
	ID int64
}

// History is how a store forgets ended jobs. Nothing of it is a commit: the number of the
// last commit does not change, and after a crash at any moment what was to be forgotten is
// either there whole or not seen any more.
//
// All elements of an array go together: as long as one of them is to stay, all stay, and the
// first, by whose id people and dependencies name the array, goes first.
type History interface {
	// EndedNth gives when the nth newest of the ended jobs ended (from 1); the zero time when
	// there are fewer.
	EndedNth(ctx context.Context, n int) (time.Time, error)
	// Due gives up to limit jobs that ended before a time, by their end, in the order in which
	// they are to be forgotten. keep says which have to stay; nil: none has to.
	Due(ctx context.Context, before time.Time, keep func(id int64) bool, limit int) ([]int64, error)
	// Forget drops ended jobs with all that hangs on them: ranks, attempts, events,
	// checkpoints, releases, and specs that no other job has. A job that has not ended stays.
	// From this call on no other finds the jobs. Their parts go in this and in later calls, in
	// each so few that a commit which comes meanwhile hardly waits: more says that some are
	// left, also from before a crash. jobs may be empty.
	Forget(ctx context.Context, jobs []int64) (more bool, err error)
	// DropTexts drops what jobs would have run with, scripts, arguments, environments and the mounts of containers, where only jobs
	// have it that have ended before a time and never had an attempt, unless keep says of one that it has to stay as it is. A call looks
	// at some hundred jobs that ended after the last one that was looked at, and gives the last of them; more says that there are more.
	// A job that is submitted with the same brings it back.
	DropTexts(ctx context.Context, after End, before time.Time, keep func(id int64) bool) (last End, more bool, err error)
	// ForgetNodeEvents drops up to limit of the events of no job from before a time, oldest
	// first, and gives how many.
	ForgetNodeEvents(ctx context.Context, before time.Time, limit int) (int, error)
}
