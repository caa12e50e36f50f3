// Package sim is a cluster in a box: the controller's engine, core, scheduler and SQLite
// store (in memory), the two halves of a node's session, what the node daemon decides about
// its members, and the shim's stop sequence, all of them the production code, under a
// virtual clock, a seeded network, and daemons, machines and processes that fail.
//
// # A run
//
// [Run] plays one [Scenario] and gives a [Result]: what was violated, how much happened, and
// a hash of everything that happened, in order. The same scenario gives the same hash: there
// is one goroutine, one queue of events, and every delay is drawn from Scenario.Seed.
//
// A scenario is data: nodes, jobs (when submitted, what they ask, how their processes
// behave) and faults. People are faults too: a cancel or a node drain at a bad moment is a
// [Fault] with another [Kind]. A fault happens at a time, or at a [Point]:
//
//	sim.Fault{At: 3 * time.Second, Do: sim.CrashNoded, Node: "n2", For: time.Second}
//	sim.Fault{When: sim.Point{On: sim.AtCommit, N: 12}, Do: sim.CrashGangd, For: time.Second}
//	sim.Fault{When: sim.Point{On: sim.AtSend, N: 7, After: true}, Do: sim.CrashSender, For: time.Second}
//	sim.Fault{When: sim.OnEvent(api.EventDrainStarted, 0, 1), At: time.Second, Do: sim.Cancel, Job: 0}
//
// With a point, At is the delay after it, and a crash without delay happens exactly there:
// before the commit or the sending is done, or directly after.
//
//   - Random schedules: [Random] makes the scenario of a seed; [Sweep] runs many.
//   - Crash points: [CrashPoints] are the variants of a scenario with a crash at each of its
//     commits and sendings, [AtEach] those with another fault there.
//   - Known bugs: the tests build themselves once more from source with the bugs in it (a copy:
//     the tree has none of them) and run scenarios, one bug on, until one has a violation.
//   - Directed tests: [Shrink] drops what a violation does not need, [Scenario.Literal]
//     prints what is left as Go.
//
// When the last fault is over (or at Scenario.Calm) everything is healed: lines up, daemons
// running, disks empty, nodes back in service, held jobs released. From then on all jobs have to
// come to their end within a bound, whatever was done to them.
//
// # Several controllers
//
// With Scenario.Controllers above 1 as many processes share the store, the row of who leads and the
// list of controllers, over a network of its own. What they decide is package leader's. A leader's
// commit is a turn in two halves, with the ways to the database and back between them. What a node
// asks the others, and what it learns from their ends, is modelled after package session's client.
//
// # Invariants
//
// The truth is what simulated processes do, not what the controller believes. After every
// event:
//
//	I1  no two processes of one rank live, nor of two epochs of one job
//	I2  no gang runs in part for longer than reservation timeout + lease + grace + slack
//	I3  an acknowledged submission is in the store, under the same id for the same key, for ever
//	I4  a job ends once; each exit is recorded once, and with the code that the process had
//	I5  what processes really use never exceeds a node or a card
//	I6  epochs grow; no process of an epoch starts after a newer one was admitted, or before
//	    every member of its epoch was prepared
//	I7  after the faults everything ends in bounded time
//	I8  after an acknowledged cancel no new epoch starts
//	I9  when an attempt is over no process of it lives, but where the controller says so
//	    nothing is sent to a node, and no submission answered, before its commit
//	I12 nobody who is not of a reservation, and was admitted after it was made, lives on its nodes
//	    in its time
//	I13 no two gangs with processes on a node were told the same port
//	I14 a process gets one stop signal, whoever ends it; who only waits for others gets none
//	I15 nobody gets KILL who was not told to end, or before the promised grace is over
//	I16 nobody gets a notice without a handler for it, twice, or after the stop
//	I17 the nodes of an allocation are free soon after its last process has ended, whatever its lead
//	I18 a set of tasks' checkpoints is complete when every task of the widest step has put one; a
//	    step starts from a whole set of as many tasks
//	I19 one that hangs is found, whoever beats beside it
//	I20 an allocation completes when its script has returned 0, and not otherwise
//	I21 what was committed under a term is followed by nothing of a lower one
//	I22 no renewal of a lease dates from after a take-over, unless that leader gave it
//	I23 who is charged with a crash has not left because another had, unless it is said that nobody knows
//	I24 what a member had is not used before the site's epilog after it is over, nor is another epoch of its job there
//	I26 no epoch of which a rank was started goes back as one that never did
//	I25 gangs with processes never use more licences than the site has, but for who was left out of reach
//	I11 a controller on an older store than its nodes have seen starts nothing and kills nothing
//
// [gang.World.Verify] is asked after every turn, the store's at each opening and at the end.
//
// # What is modelled
//
// The WebSocket (an ordered line with delay, cuts and resets on which silence is noticed),
// the goroutines of the daemon (each member looks at its mailbox in an event of its own), the
// shell of the shim around package supervise (its loop, its state file), files (durable, or
// lost with the machine), and processes. A process to which KILL was delivered never runs
// again, even when it does not go away: it counts for I5 and I9, not for I1. A machine that is
// suspended runs nothing; what was due is done when it wakes, in the order in which it came.
//
// Of a step its client, its launchers and the connections between them are modelled after the
// packages step/client and step/launcher, and so is what the shim does with launchers. Who is told
// of an end, and what becomes of what tasks say and keep, the production code decides.
//
// Begin with Scenario and Run. It must have no rule of its own about gangs: all decisions are those
// of the production packages.
package sim
