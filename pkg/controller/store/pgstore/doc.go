// Package pgstore keeps the state of several controllers in one PostgreSQL database, 14 or newer.
//
// States of a [Store]: follower -> leader (TakeOver) -> fenced, resigned or failed -> closed. Only the
// leader writes.
//
// Invariants:
//   - A write is one transaction whose last statement raises a counter from the number that this
//     process knows, where the term is its own; where it isn't, the transaction fails whole.
//     Commits count in meta, what is written beside them in beside.
//   - A write whose outcome is not known (its connection broke) is settled before anything
//     else is written: a transaction that waits for the same row tells whether the counter
//     was raised, and is itself durable, so that on a synchronous standby so is what it saw.
//   - Nothing relies on a session: no advisory lock beyond a transaction, no prepared statement,
//     no LISTEN, no SET. So a pooler in transaction mode may stand between.
//   - A batch is one round trip: rows go as arrays, a statement a table.
//
// Failure rules: while the database is away Commit and the writes beside it wait; reads give
// [store.ErrAway]. A full disk is [store.ErrFull], nothing was written. A term that is not the
// newest any more ([store.ErrFenced]), commits that are gone ([store.ErrWentBack]) and errors
// that nothing explains make the store refuse everything but Close.
//
// Begin with Open, TakeOver and once.
//
// It must not know who should lead or what a row means: leader and gang do.
package pgstore
