// Package pmixserver is the program gpmix: a server of PMIx for the tasks of one step on one node. gstep starts it, inside the member's
// containment and as the user, where a step asks for PMIx, and speaks with it on standard input and output, a JSON object a line
// (package pmi). It opens libpmix when it runs: gangd's programs are not linked with it, and are built without its headers.
//
// Life: told the job -> libpmix serves -> told the environment of each task -> fences -> standard input ends -> exit.
//
// Fences go through the client of the step as those of PMI-2 do: libpmix says what the tasks of this node have published when all of
// them are there, and is given what those of all nodes have.
//
// Invariants:
//   - One fence is open at a time: a task can't be at two, and only fences of all tasks are taken.
//   - It never outlives gstep: the end of standard input is its end.
//
// Failure rules: what libpmix can't do here, a fence among some tasks, spawning and publishing names, tasks are told is not supported.
// Where the library isn't there, or too old, gpmix says so in its first line, and ends.
//
// Begin with Main. It must not know of steps or nodes more than what it is told.
package pmixserver
