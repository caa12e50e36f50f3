// Package scontrol answers as Slurm's scontrol does.
//
// Purpose: scripts read `scontrol show job`, expand host lists with `scontrol show hostnames`,
// and hold, release, requeue and update jobs and nodes by scontrol's words.
//
// A command line is options, a keyword, and its arguments; options may stand anywhere. Every
// keyword and every parameter of update stands in a table with how it is kept; what gangd has
// not is refused with the reason, or answered as a Slurm answers where the feature is off.
//
// Invariants:
//   - The fields of show, their order, blanks at line ends, errors and exit statuses are
//     22.05's. A field that gangd has nothing for says what a Slurm says that has the feature
//     off (QOS=(null), Power=).
//   - An update is asked for as a whole: what one parameter of a job is refused for changes
//     nothing of it.
//
// Failure rules: errors of the controller are given in Slurm's words where they are one of
// Slurm's, else as gangd says them, behind "scontrol: error: ". Exit status 1.
//
// Begin with Run and keywords.go. It must not know which changes are allowed: the controller says so.
package scontrol
