// Package beside runs the same command lines on gangd, under Slurm's names, and on a real
// Slurm of this machine, and compares what a person or a tool sees of each: standard
// output, standard error, exit status, and what jobs wrote.
//
// The cases are one table, cases.txt. A case is a bash script that is run once on each
// system, in an empty directory, with a few helpers (prelude.sh). What must differ between
// any two runs is made equal first: ids count from the case's first job, times, directories
// and the like become words. A case may say what else differs and why:
//
//	=== title                    a case; its area is the nearest "## area" above
//	@norm /RE/TEXT/              what differs between two runs of one system, too
//	@ignore /RE/ WHY             lines that one of the two has, or has otherwise
//	@differs stdout,exit WHY     whole streams that differ
//	(@norm and @ignore right below an area hold for all its cases)
//	@slow                        left out of the bounded run, which plays one in five of the others
//	@accounting                  needs a Slurm with its database
//	@bound                       played on two systems of one node with two CPUs, to which tasks are bound
//	(@bound right below an area holds for all its cases, too)
//
// States of a case: same; differs, justified; differs, unjustified, which fails; and
// justified but same after all, which fails too, so that no justification outlives its
// difference. The justified ones are listed in docs/slurm-differences.md, which is made
// from the table.
//
// Failure rules: without an installed Slurm the comparison skips and says what is missing;
// the table and the document are checked all the same.
package beside
