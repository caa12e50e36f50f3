package slurm

import (
	"os"
	"strings"
)

// Own is a job's id as somebody wrote it, and where it is the caller's own and that of the array that the caller is an element of,
// the element's: 12 is 12_0 within it. Here the first element of an array has the array's id, in Slurm the last one; a script that
// requeues, changes or cancels $SLURM_JOB_ID means itself. From any other job the id is all of the array, and so is
// 12_[0-4] everywhere.
func Own(id string) string {
	job, step, stepped := strings.Cut(id, ".")
	index := os.Getenv("SLURM_ARRAY_TASK_ID")
	if index == "" || job == "" || job != os.Getenv("SLURM_JOB_ID") || job != os.Getenv("SLURM_ARRAY_JOB_ID") {
		return id
	}
	if job += "_" + index; stepped {
		return job + "." + step
	}
	return job
}
