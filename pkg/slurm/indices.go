package slurm

import (
	"os"
	"strconv"
)

// IndexLength is how many bytes a list of array indices has at most, 0 for any number, and whether the caller asked for it.
func IndexLength() (most int, asked bool) {
	v := os.Getenv("SLURM_BITSTR_LEN")
	most, err := strconv.Atoi(v)
	if err != nil || most < 0 {
		most = 0
	}
	return most, v != ""
}
