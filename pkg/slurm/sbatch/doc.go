// Package sbatch is sbatch of Slurm 22.05 by its own name, over gsubmit's machinery: the
// options are pkg/core/script's one table, the checks and the submission are pkg/client/submit's.
//
// What differs from gsubmit: the script runs once, on the first node, unless #GANG lines or
// gangd's own options say otherwise; the output goes to slurm-%j.out; errors and exit statuses
// are Slurm's (1, and 255 for options that can't be read). What gangd knows beside Slurm's one
// line about a refusal (the figures, what to ask for instead) stands on a line before it.
//
// Begin with Run and errors.go. It must not know how a job is checked or sent: script and submit do.
package sbatch
