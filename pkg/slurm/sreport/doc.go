// Package sreport answers as Slurm's sreport does: what was used of the cluster, by accounts and users, from the
// ledger (GET /v1/ledger), and by the sizes of jobs, from the history.
//
// Invariants:
//   - Heads, columns, widths, units and errors are 22.05's. A figure that nothing keeps (nodes that were down, what
//     was planned) is an empty column, as Slurm prints one that it does not know, and never 0.
//   - The ledger counts by days of UTC. A window is brought to whole days, as Slurm brings it to whole hours, and
//     the head of a report says which it is.
//
// Failure rules: a controller that can't be reached is "sreport: error: ..." and exit status 1.
//
// Begin with Run. It must not know how the ledger is kept: the controller gives sums.
package sreport
