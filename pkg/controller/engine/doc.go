// Package engine is the one writer of the controller: it takes what is waiting, steps the
// pure core, plans, commits one batch, and only then publishes, answers and sends.
//
//	requests ─┐                                        ┌─ view (readers)
//	reports  ─┼─> batch ─> Step* ─> Plan ─> Commit ──> ├─ answers
//	timers   ─┘                                        ├─ desired sets (hub.Wake)
//	                                                   └─ events, log lines, metrics
//
// Invariants:
//   - One goroutine owns the world. Nobody sees a state that is not on disk: publishing,
//     answering and sending come after the commit of the batch, in this order.
//   - Group commit by itself: while one batch is being written the next one gathers.
//   - Readers see the published view only; they never wait for the disk.
//
// Failure rules: a commit that fails ends the engine (Run returns the error, the process
// exits): the state of the disk is unknown, and a restart reads what is there. A full disk
// is the exception: nothing was written, so the batch waits and is tried again, while
// submissions are refused.
//
// Here is what the site decides of a call: defaults, limits of partitions, who may ask
// (submit.go, update.go). What a change does to a gang is package gang's, that a repeated
// submission gives the same job too.
//
// Begin with Engine.round. It must not know the network, SQL or files of the configuration.
package engine
