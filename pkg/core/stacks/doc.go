// Package stacks compares where the processes of a gang are and finds the one that the others wait for. It is pure:
// what was read of threads comes in, groups and names go out; no clock, no I/O.
//
// The parts, and who runs them:
//
//	gshim    [Seen]     of a thread: what its state, its system call and the kernel's function say that it does
//	         [PySpy], [Faulthandler], [Native]   frames out of what debuggers and programs write
//	         [Frame]    one form for a function, whoever says it
//	         [Join]     several looks at one thread are one: what stayed the same
//	         [Tells]    which variables of its calls are worth reading
//	         [Pack]     processes in the same place are one group, within a bound
//	gangd    [Compare]  groups of all members: who is where, and who is named
//
// A rank or task stands for itself with its leading processes: a shell, a launcher and who waits for a child are
// represented by their children.
//
// Invariants:
//   - Somebody is named only where at least three are compared, one group has at least half of them, and those outside of
//     the large groups are at most a third. All alike, two halves, and everybody elsewhere name nobody.
//   - What is not known tells nobody apart: a process without frames is compared by what it does, one that moves by
//     the calls that it stayed in.
//   - Lines, and then tags, count where functions name nobody; those of threads that were not seen to stand still are not known.
//   - Who was not seen is said to be missing, and is not named.
//   - Of different roles, and of different steps, nobody is compared.
//
// Failure rules: there are none; texts that make no sense are no frames.
//
// Begin with Compare. It must not know how a process is looked at, nor what is done about what it finds.
package stacks
