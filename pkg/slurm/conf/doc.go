// Package conf reads Slurm's configuration (slurm.conf, gres.conf, topology.conf) and makes
// gangd's of it: one for the controller and one for each kind of node.
//
// Purpose: a site that moves wants to know what becomes of every line it has written. Each
// is listed as taken, taken with a difference, or without a meaning here, with the reason.
//
// Invariants:
//   - Nothing is silently dropped: every key of every line has exactly one [Entry].
//   - A key that Slurm 22.05 does not know, a value that it would refuse, a range or a time
//     that can't be read, is an error with file and line; all errors are reported together
//     and then nothing is made.
//   - What is made passes gangd's and gnoded's own check (pkg/controller/config): the caller loads it
//     before it puts it in place.
//   - The same input makes the same output, byte by byte.
//
// Failure rules: files are read through a function of the caller; one that can't be read is
// an error at the line that includes it. Nothing is written here.
//
// Begin with Make. It must not know the running controller, or where the files lie.
package conf
