// Package gang is the life of a gang as a pure state machine: [World.Step] takes one
// event and the reading of the clocks, changes the world, and says whether the event was
// applied, ignored (and why) or refused (with a code). No I/O, clock, goroutine, logger,
// randomness or map order: the same events give the same changes, in gangd, in the
// simulator and in a replay.
//
// # States
//
// A rank is blocked, reserved, running, preempting, preempted, done, failed or cancelled
// ([api.RankState]). A member (the ranks of a gang on one node) is preparing, starting,
// running, stopping, stopped or fenced ([MemberState]); which of those that are preparing
// are prepared is known from their nodes alone. What people see is derived from them by [JobState]. Every gang state against every event is a table in
// statetable_test.go, which is printed in docs/state-table.md and walked by a test.
//
//	blocked --Admit----> reserved --all ready--> running --last rank done, all stopped--> ended
//	   ^                    |                       |
//	   |<-----roll back-----+                       +--trigger--> draining --last ack or force--> verdict
//	   |<---------------------------------------------------------------------budget left-----------+
//
// # Invariants
//
//   - All or nothing: the ranks of a gang are all blocked, or all of them have a node in
//     the same epoch. Epochs only grow; what a node says of another epoch changes nothing.
//   - A grant is held from the reservation until the member is known gone. A member that
//     its gang does not wait for any more is a [Left] of its node: the grant stays, and if
//     it may have run (its gate was opened) its gang is not admitted again before it is gone.
//   - A gang has at most one drain. What people wanted is charged, if at all, when it starts; an
//     accident is judged and charged once, when the drain is complete: the first report began it.
//   - After a cancel was answered no new epoch starts. A verdict is set once.
//   - What [World.Take] gave out is never changed: Step clones before it writes, once
//     between two Takes, so that an event on a large gang does not copy it each time.
//
// [World.Verify] recounts all of it.
//
// # Not proven dead
//
//	left      its epoch is over, its node has not said that it is gone; the grant stays
//	fenced    left by force: a drain could not wait for it any longer
//	lost      its shim died, its node killed what it ran
//	vanished  known gone without a word about how it ended
//	stray     counted gone, and alive on a node that came back: nothing new is placed there
//
// docs/glossary.md has who says each, and what becomes of cards and gang.
//
// # Failure rules
//
// Step is total: it never panics on an event, whatever a node claims; what makes no sense
// is ignored with a reason. A node that says something of an epoch which is not current is
// answered by the desired set, in which that member is missing. A broken invariant is the
// caller's to act on: gangd ends.
//
// # Cost
//
// An event costs what it touches: a rank's exit one rank, a reservation its members.
// Timers are a heap; a Tick fires at most [maxFire] of them. Nothing walks the queue.
//
// # Where a rule stands
//
//	admission, roll back           admit.go; a refusal, strikes and whose fault it is: blame.go
//	drain, acks, force             drain.go
//	who ended an epoch             culprit.go
//	verdict, budgets, charging     verdict.go; the pause before a run again: backoff.go
//	cancel, hold, release, requeue control.go; of a job that has ended: requeue.go; after its
//	                               time limit: resume.go; of a line of a cron table: cron.go
//	submission, keys, arrays       submit.go; dependencies: depend.go; caps of a user: holding.go
//	nodes lost, fenced, back       node.go; what they leave: left.go; late results: late.go
//	a node's or card's fitness     card.go (what a card may be used for: package cluster)
//	a node to be emptied by a time clear.go; reservations: reservation.go
//	watchdogs, joined              watchdog.go (the rules: package watchdog)
//	checkpoints, stale epochs      checkpoint.go
//	what a node shall have         desired.go; what it says: report.go
//
// Begin with types.go (what goes in and comes out) and World.Step. It must not know stores, sessions,
// or how a plan is made: a plan comes in as an event.
package gang
