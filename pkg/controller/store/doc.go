// Package store keeps what was accepted. One [Store] has one writer; a commit is one
// batch of whole rows exactly as Step produced them: there is no state rule in here.
//
// What is kept of a job:
//   - its header with the members of the current epoch, one row;
//   - its ranks, one row each. A rank without a row is blocked and has never been
//     anything else, so queueing a gang of any size writes no rank at all;
//   - its spec, once for each hash. All elements of an array share one *api.Spec after a Load,
//     which is without texts: script, arguments and environment are read when a node needs them;
//   - its attempts and its events, which only grow until the job is forgotten whole
//     ([History]).
//
// Invariants: a commit is on the disk, whole, when Commit returns nil, or not at all; the
// lineage number grows by one with each commit; ids and event numbers once given out are
// never given again, because NextID and NextSeq are written in the same commit as the
// rows that used them and never go back.
//
// Failure rules: after an error of Commit the store refuses everything but Close with
// [ErrFailed]: the state of the disk is not known and the process has to end. The
// exception is [ErrFull]: nothing of the batch was written and the store stays usable.
// When room gets short, batches with new jobs are refused first, so that the ends of
// those already accepted can still be recorded.
//
// Begin with Store; sqlitestore is for one controller, Shared for several on one database, storetest what each has to do.
//
// It must not know SQL, or which change of a job is allowed.
package store
