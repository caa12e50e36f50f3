// Package shim is the program gshim: one small process per (job, epoch, node) that owns
// the containment, starts the ranks, holds every timer of their end, and writes what
// happened to disk before it tells anyone. It outlives gnoded. The package also holds the
// node daemon's side: [Pool], [Attach], [Conn], [ReadState].
//
// Life: prepare (containment, working directory, output files) -> ready or refused; Go ->
// running; the ranks' end, a [Command] or a timer -> stopped (or stuck until what KILL did
// not end has gone); its result on disk, else Bye or a bounded wait -> exit, or [Spare]: waiting
// for the next member, one at a time. What leads from running to stopped is
// decided by package supervise; this package only does what it says.
//
// Invariants:
//   - A process serves another member only when nothing is left of the one before, by the
//     kernel's word: containment removed, no child, no open file; and nothing odd was seen.
//     All that belongs to a member hangs on one value that is made anew; an empty directory for checkpoints
//     may become the next one's.
//   - No process of the script exists before Go.
//   - Nothing depends on gnoded: connections come and go through [SocketFile], each new one
//     is told the whole state first.
//   - One goroutine, locked to the main thread, does everything: it polls, forks, reaps
//     (wait4 on everything; nobody else waits), signals and writes. So a pid that is
//     signalled can't have been reaped by someone else, and there is nothing to lock.
//   - The root shim touches no path that a user can influence: working directory, output
//     and input are opened by a process that is already the user and handed over as open
//     files; chdir and exec of a rank happen after the change of user.
//
// Durability: a result (exits, stopped) is written to a temporary name, renamed and synced
// before it is told. Ready and running are written in place without a sync: processes die
// with the machine, and the boot id in the file tells that it was another run of it.
//
// Failure rules: what can't be prepared is refused with a reason and nothing is left. A
// rank that can't be started has ended with 127 or 126 and says why. A state that can't be
// written (full disk) is told all the same and tried again until it is: the ranks' end
// must not wait for a disk. TERM, INT and HUP to the shim do nothing. A waiting process that
// died or hangs costs its member a fresh one, never a refusal.
//
// Begin with Main. It must not know the controller, HTTP or other members.
package shim
