// Package kept is what a plan keeps for gangs that can't start: their backfills ([Backfills]), on the nodes as each other gang sees
// them beside those that it would be in the way of, and what ends when.
//
// States: a backfill of the plan before stands where it is while it holds, and is made anew or given up when it does not. A
// [Memory] has between plans what takes long to find: the ends of all that runs, and which nodes are alike to a backfill.
//
// Invariants: a gang that ends before a backfill is to start may use its places; no other may, but those that [Backfills.StepAside] or a
// reservation let. Within a plan backfills and starts only take room: what did not fit does not fit later. Nothing that is decided
// depends on a [Memory].
//
// Failure rules: nothing here fails. Places of which nobody knows when they are free are kept without a time.
//
// Begin with kept.go (keep, make) and ends.go. It must not know who makes room for whom, or why somebody stays: these are packages
// victims and why.
package kept
