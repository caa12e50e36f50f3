// Package grun is the commands that run steps: grun (srun), its form that makes an
// allocation for a shell (salloc, grun --no-shell), and gattach (sattach).
//
// Inside an allocation (SLURM_JOB_ID or --jobid) grun asks the controller for a step and runs
// it, see package step/client. Outside it submits a job that holds an allocation, waits for its
// start, runs the one step, and gives the allocation back; the job lives no longer than this
// process or its connection.
//
// [Options] is every option of grun and every option of Slurm's srun, with what becomes of
// it; the help, the lists and the completion come from it, and a test compares the man page.
//
// Messages have Slurm's words and begin with the name that the command was called by. Exit
// status: the highest of the tasks', 128+signal where one ended it, else 1, 2 for a wrong
// command line, 4 when no controller answers.
//
// It must not know how tasks are started or how output travels: step/launcher and step/client do.
package grun
