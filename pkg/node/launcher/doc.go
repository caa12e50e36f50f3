// Package launcher is the program gstep: the part of a step on one node. gshim starts it
// inside the member's containment, as the user; it gets what to run from the client of the
// step (grun), over the connection that it opens, and is the parent of the tasks.
//
// Life: told by the shim -> connected -> body -> tasks run -> all ended, what they left is
// ended, all output sent -> the last word to the shim -> exit.
//
// Invariants:
//   - Nothing of the step outlives the launcher: it is the child subreaper of all that its tasks
//     start, and goes when it has no child. Where it is killed itself the shim ends what carries
//     the step's mark, and the containment holds what is left to the member's end.
//   - No signal ends it: what is sent to everybody in the containment is meant for the tasks.
//   - The client's end, the shim's end and an order to stop are one thing: TERM, the grace, KILL.
//     While the whole member is being stopped no task is started, and what tasks leave may use the
//     member's grace.
//   - One frame of each stream is held, no more: a client that does not read stops the tasks.
//
// Failure rules: a client that can't be reached, or that says nothing, is a step that failed,
// with a reason. A task that can't be started ends with the number of the error, as in Slurm.
//
// Begin with Main. It must not know the controller, the command line of grun or other nodes.
package launcher
