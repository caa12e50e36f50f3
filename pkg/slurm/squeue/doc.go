// Package squeue is squeue of Slurm 22.05 by its own name: its options, environment, tables,
// JSON, errors and exit status, over gangd's queue.
//
// What is shown of a job is in pkg/core/table/jobfield, which gqueue prints from too; how lines are
// laid out in pkg/core/table/column.
//
// Failure rules, Slurm's: an unknown letter or name in a format is said on stderr and the rest
// is shown, status 0; an unknown user too; an unknown state, node or job ends it, status 1. A
// single job that nobody knows is "slurm_load_jobs error: Invalid job id specified", several
// of which some are not known are not.
//
// Begin with Run. It must not know how a field of a job is written: table/jobfield does.
package squeue
