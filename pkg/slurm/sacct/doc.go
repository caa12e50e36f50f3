// Package sacct answers as Slurm's sacct and sstat do.
//
// Purpose: scripts and workflow engines ask sacct how a job ended, by fixed columns and
// states. What sacct has in a database is here the controller's own history (POST /v1/history):
// a job, its attempts, the steps of each.
//
// One record is one line: an attempt of a job, or a step of an attempt. A job that waits has a
// record without an attempt. Without --duplicates only the newest record of a job is shown,
// with its steps.
//
// Invariants:
//   - Columns, widths, header, states, exit codes and errors are 22.05's. A column that gangd
//     can't know is empty and stands in the list as partial; a name that 22.05 does not have
//     is refused as it refuses it.
//   - Nothing is ignored in silence: what an option asks for and gangd has not is refused, or
//     selects nothing where it would in a Slurm that has the feature off.
//
// Failure rules: a controller that can't be reached is "sacct: error: ..." and exit status 1.
//
// Begin with Run and record.go. It must not know the store: the history comes from the controller.
package sacct
