// Package sched decides which gangs start where, and which are preempted for others.
// [Planner.Make] is a function of a view: same view, same plan, whatever the machine, the
// hour, or the plans made before.
//
// States: none that matters. What one plan must know of the one before, its backfills, is part
// of the [View]; what a [Planner] remembers (classes of nodes, what fits on each) only saves
// work, and a property test compares it with a new one.
//
// Order: tier, priority, and then as [order.Policy].Order says ([order.Queue] keeps it). A gang that
// waited [order.Policy].GuardAfter, or in order of service four times its time limit, goes to the
// front of its tier, within a part of the cards; one of half of all cards that waited so starts
// where it fits, see package guard. A gang starts whole or not at all, as soon as
// it fits and is not in the way of a backfill.
//
// Invariants:
//   - Applying the starts of a plan in order by [cluster.Node.Take] never fails on the
//     nodes of its view. The engine does so again on the newest ones.
//   - If any placement of the first gang in the queue exists, one is found: see layout.
//   - The first [order.Policy].BackfillDepth gangs that can't start hold a backfill: places which others
//     leave alone, but those that end before the taker can have them, by time limits.
//     When that is not known, those do that have a time limit. In orders other than that of service a
//     gang with a backfill starts at the latest when all has ended that ran when it was made, and what
//     with a time limit started before it was known when that is, under
//     any load of gangs behind it. In order of service those that come later and need less are
//     ahead of it: while it has not waited for four times what it is expected to run, they may
//     start on its places if they run shorter, and one with a backfill of its own may move that backfill
//     there at any time. What bounds its wait is going to the front, see package guard. Those that
//     need less in all, but run as long, do not start there: see kept/giveway.go. With
//     [order.PreemptService] a backfill does not keep off gangs that lose nothing by being stopped, until
//     the taker has waited too long and its turn in the guarded part of the cards has come:
//     they make room when they need much more than it.
//   - A gang is preempted only in a move that lets its taker start as a whole and that needs
//     this victim; never with a rank done, nor inside its minimum run, nor when it may not
//     run again. The places are kept for the taker until it runs. victims.Victims that were not told yet are not
//     when the taker goes.
//   - Nobody who is not of a reservation ([Reservation]) starts on its nodes unless it has ended
//     before; who is of it is kept off by no backfill of others.
//   - A waiting gang has a reason, in Slurm's word and in numbers; an ask that is named as
//     one that would start now has been planned with the whole queue.
//
// Choice among placements: fewest nodes; least expected stranding of cards by what the site
// asks for (see fit/strand.go); where the site names its switches, below the lowest and the fewest
// of them (see fit/topology.go); no nodes with cards for gangs without; the card model with the
// least VRAM that is enough; cards that are shared already before others; the node that is
// left fullest; ties by name.
//
// Cost: a plan costs what is different, not what there is. Four kinds of equals are worked out
// once: a node class is the nodes that are alike to every ask; an ask class is the asks that say
// the same; a job class is the candidates that follow each other only by age, of which one that
// stays speaks for the others; a backfill class is the nodes that are alike now and would be
// alike without their gangs.
//
// Failure rules: an ask that can't be read waits with the reason BadConstraints; nothing
// else can fail.
//
// Whose a rule is: a plan is made of what it is given (package given) by owners of which each knows those before it: who waits, in
// which order and by which policy (order), where gangs fit (fit), what is kept for whom and what ends when (kept), the bounds of
// users, accounts and pools (bounds), who goes to the front (guard), who makes room (victims), and the words for people (why). The
// planner (make.go, visit.go) has these, and decides nothing that one of them could.
//
// Begin with sched.go (the plan) and Planner.Make. It must not know how a gang lives:
// it says what to start and to stop, and gang checks it again.
package sched
