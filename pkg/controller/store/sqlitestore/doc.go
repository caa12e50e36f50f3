// Package sqlitestore keeps the state of a controller in one SQLite database.
//
// A state directory holds state.db (with -wal and -shm while it is open), the lock file
// and the reserve file. One process has it open at a time, on a local disk.
//
// States of a [Store]: usable -> failed (a commit left the disk unknown) -> closed.
//
// Invariants:
//   - One connection writes, one transaction a commit; readers have connections of their
//     own and each of their answers is of one commit.
//   - Every commit adds one to meta.lineage and is synced before it is acknowledged.
//   - A row is written whole; columns beside data repeat what queries select by.
//
// Failure rules: SQLITE_FULL rolls back and is [store.ErrFull]. SQLite reports it from a
// write, and the page that makes a transaction count is the last one written, so nothing
// of the batch is there. Any other error of a commit or a checkpoint, an fsync's above
// all, makes the store refuse everything but Close.
//
// Begin with Open and Store.Commit. It must not know what a row means, sessions or other controllers.
package sqlitestore
