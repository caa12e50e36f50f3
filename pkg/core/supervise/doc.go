// Package supervise is the stop sequence of one member as a pure state machine: what the
// shim must do when ranks exit, when a stop is ordered, when the time limit or the lease
// runs out. It has no clock and does no I/O: the instant comes with every input, the
// answer is a list of acts.
//
// States and what moves between them:
//
//	holding --Go--> running --order, limit, lease--> leading --lead over--> stopping --grace over--> killing --Empty--> stopped
//	   |               |                                                       |                        ^
//	   |               +--every rank exited, containment occupied--------------|------------------------+
//	   +--order: nothing runs yet, only the proof is missing-------------------+--Empty--> stopped
//
// The end of a batch script while steps run is a stop as well, without a cause: its result is
// the script's. With the last step it is over, and what else is left gets KILL.
//
// An order with Dump has a lead of its own kind: it lasts until the ranks' stacks are
// written, and no longer than it says.
//
// Invariants:
//   - From the decision to stop (the stop signal) to Kill at most the grace passes, and
//     never less unless an order with a shorter grace came: a repeated order never
//     restarts a clock.
//   - The stop signal is sent once, the notice is sent once, Start is given once, Finish
//     is given once and is the last act.
//   - The first cause stays; a later order can only make the end come sooner.
//   - Limits run on the monotonic clock. The lease runs on the boot clock, which goes on
//     while the machine sleeps: the controller's clock did too.
//   - A lead lasts as long as there is somebody to use it: a member ends with its last
//     process.
//
// Failure rules: inputs that make no sense in a state (a second Go, an exit that was
// reported before) change nothing. What KILL does not end is reported as Stuck after
// [StuckAfter] and looked at for ever.
//
// Begin with Machine.Step; targets.go says which processes get a signal. It must not know files,
// sockets or the controller, and sends nothing itself: it is told, and answers with acts.
package supervise
