package store

import "context"

// KeptRuns is how many runs of a controller are remembered: a node that was away for longer
// is believed by its commit number alone.
const KeptRuns = 1000

// Run is one process of the controller that had this store.
type Run struct {
	Name  string // random, so that no two processes have the same, of whatever copy
	Began uint64 // number of the last commit before its first
}

// Runs tell the commits of one process from those of another that had a copy of the store: their
// numbers alone say nothing, because both count on from the same.
type Runs interface {
	// Begin notes that a process begins at the last commit, and gives what is known of
	// processes, oldest first, this one included. It is no commit. Advance forgets all but
	// the newest. [ErrFull]: nothing was noted.
	Begin(ctx context.Context, name string) ([]Run, error)
}
