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
// are prepared is known from their nodes alone. What people see is derived from them by [JobState]. Every gang state against every event is
// a table in
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
// # Parts
//
// World is cut into parts. A part has state of its own, or a matter that it decides, and its first fields are those that
// it knows; what it does not name it can't touch. In an order in which most is read before it is used:
//
//	job.go, words.go          a job by itself, and what is said of it
//	clock (timers.go)         the moment of the step, and what becomes due
//	record (record.go)        events, attempts, measures; their letters: the outbox (letter.go), which knows nobody
//	jobs (jobs.go)            those in memory; who writes to one gets it there
//	nodes (nodes.go)          those known, what they shall have (desired.go), ports (ports.go)
//	site (site.go)            partitions (partition.go, entry.go), reservations, cron tables (cron.go), pools, caps of users (holding.go)
//	specs (specs.go)          what jobs ask for, kept once
//	queue (queue.go)          who may be admitted next; arrays
//	books (ledger.go)         bookings; the ledger itself knows nobody
//	deps (depend.go)          who waits for whom
//	memory (memory.go)        who stays in memory, for how long
//
// and those that know each other, as a life goes round:
//
//	launches    admission, roll back: admit.go; the ready gate: ready.go; a refusal, strikes, whose fault it is: blame.go;
//	            the pause before a run again: backoff.go; deadlines: deadline.go
//	stops       drain, acks, force: drain.go; who ended an epoch: culprit.go; verdict, budgets: verdict.go; late results: late.go
//	steps       step.go, stepplace.go
//	watchdogs   watchdog.go (the rules: package watchdog), joined: stacks.go
//	fleet       nodes lost, fenced, back: node.go; cards: card.go; what is left there: left.go; emptied by a time: clear.go
//	reports     what nodes say: report.go; checkpoints, stale epochs: checkpoint.go
//	control     cancel, hold, release, requeue: control.go; after the time limit: resume.go; changes: update.go; names: named.go
//	submissions keys, arrays: submit.go; lines of a cron table: recur.go
//
// What follows from a job, its settings and the time alone is a function, and no part's.
//
// Begin with types.go (what goes in and comes out) and [World.Step]. It must not know stores, sessions,
// or how a plan is made: a plan comes in as an event.
package gang
