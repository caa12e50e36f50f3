// Package hostlist reads and writes Slurm's lists of names: n[1-3,7],gpu-[01-04].
//
// Invariants:
//   - [Expand] gives each name once, in the order written; [Compress] sorts naturally
//     (n2 before n10), so Expand(Compress(x)) is x sorted, without repeats.
//   - Zero padding is part of the name: 01 and 1 are different hosts.
//   - No text, however short, expands to more than [MaxHosts] names.
//
// Failure rules: an error names the text, the column and what was expected there. The
// package is pure.
//
// Begin with Expand and Compress. It must not know nodes: it sees names.
package hostlist
