// Package pystack reads where the threads of a CPython process are, out of its memory: it neither stops nor enters it, and needs
// no other program. What it may read is what the kernel lets this process trace; it takes no right of its own.
//
// [Find] finds the interpreter in a process (its program, or libpython), by the symbol that every build exports. [Process.Threads]
// walks from there over threads and frames to the names of functions, their lines, and the numbers in those variables that
// are asked for. Where things lie is a table by version, made of the headers of each; 3.13 says some of it itself.
//
// Invariants:
//   - Every read is bounded, and so is how many there are: a process that runs meanwhile, or that means ill, costs
//     no more than one that stands still.
//   - A code object is believed only where its type is called "code": of a version with another layout, and of memory
//     that changes meanwhile, nothing comes rather than something false.
//
// Failure rules: an error says that there is no such interpreter, or that it may not be read. A thread that
// cannot be followed to its end has no frames.
//
// Begin with Process.Threads.
package pystack
