// Package rankenv makes the environment of a rank: what the person had when submitting,
// and over it what gangd, the frameworks (torch and its like) and Slurm's users expect to
// find. The list is design page 04's; MASTER_PORT is added by the shim when the gate opens,
// because only then it is known.
//
// Invariants:
//   - What an outer job left in the environment (a job may submit jobs) never reaches the
//     rank: every name under SLURM_, and every GANG_ name that speaks of one job.
//   - Each name occurs once. The order is that of the submit environment, then fixed.
//   - Equal members have equal environments on every node: nothing is read from the host
//     but what [Member] says.
//
// The package is pure.
//
// Begin with Member.Environ and, for tasks of steps, Step.Environ. It must not know files,
// processes or the controller.
package rankenv
