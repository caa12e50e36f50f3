// Package slurm is the commands of Slurm by their own names: which programs answer to them,
// how a program finds out by which name it was called, and what all of them print alike.
//
// Purpose: a script or a tool that was written for Slurm calls squeue, sbatch, scancel
// ... and reads their text, widths, errors and exit statuses. `gangd slurm-links DIR` makes
// symbolic links of these names to the programs of gangd; a program that is called by one of
// them speaks as Slurm does and not as itself. The commands are in packages below this one
// (squeue, sinfo, scancel, sbatch ...), each with one entry
//
//	func Run(args []string, s slurm.Streams) int
//
// that main registers with [Main]. Nothing here asks a controller.
//
// Invariants:
//   - What is printed on stdout and the exit status are those of the Slurm that is spoken ([Spoken]), taken from the real
//     programs of 22.05 and, where later ones differ, from their sources (e2e/beside compares them, and says of each difference why it is).
//     What Slurm has and
//     gangd has not is refused by name or answered as Slurm answers where the feature is off;
//     nothing is ignored in silence.
//   - Every option of every command stands in a table of its package with the list it is
//     in (exact, partial, refused); the parser accepts what the table has and nothing else.
//
// Failure rules: an error is "squeue: error: text" on stderr; no usage error of pflag, no
// exit status of gangd's own (2, 3, 4) is seen under these names.
//
// Begin with Main and version.go. It must not know what one command shows or does.
package slurm
