// Package sched decides which gangs start where. [Make] is a pure function of a snapshot:
// same view, same plan, whatever the machine or the hour.
//
// States: none is kept. What one plan must know of the one before, its claims, is part of
// the [View].
//
// Order: priority, then the larger gang, then the earlier submission, then the smaller id
// ([Less], kept by [Queue]). A gang starts whole or not at all, as soon as it fits and is
// not behind a claim on the same places.
//
// Invariants:
//   - Applying the starts of a plan in order by [cluster.Node.Take] never fails on the
//     nodes of its view. The engine does so again on the newest ones.
//   - If any placement of the first gang in the queue exists, one is found: see layout.
//   - The first [Policy].Claims gangs that can't start hold a claim: places over the whole
//     of the ready nodes which lower gangs leave alone. A claim stays where it is as long
//     as its nodes are in service. So a gang that would run on the empty cluster starts at
//     the latest when all has ended that ran when its claim was made, under any load of
//     gangs behind it.
//   - A waiting gang has a reason, in Slurm's word and in numbers; an ask that is named as
//     one that would start now has been planned with the whole queue.
//
// Choice among placements: fewest nodes; no nodes with cards for gangs without; the card
// model with the least VRAM that is enough; cards that are shared already before others;
// the node that is left fullest; ties by name.
//
// Failure rules: an ask that can't be read waits with the reason BadConstraints; nothing
// else can fail.
package sched
