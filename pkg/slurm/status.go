package slurm

import (
	"os"
	"strconv"
)

// ErrorStatus is the exit status of an error of sbatch's, srun's, salloc's or sattach's own: what SLURM_EXIT_ERROR says in place of it.
func ErrorStatus(status int) int {
	if asked, err := strconv.Atoi(os.Getenv("SLURM_EXIT_ERROR")); status != 0 && err == nil {
		return asked
	}
	return status
}
