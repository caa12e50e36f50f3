package slurm

import (
	"strconv"
	"strings"
)

// CutComponent takes the component off the id of one of a heterogeneous job (12+1), and gives its number,
// -1 where none is named. The components of a job are one gang under one id.
func CutComponent(id string) (job string, component int) {
	job, text, found := strings.Cut(id, "+")
	n, err := strconv.ParseUint(text, 10, 16)
	if !found || err != nil {
		return id, -1
	}
	return job, int(n)
}

// NotOneComponent is what Slurm says of what can only be done to all components of a job together: here
// that is everything.
const NotOneComponent = "Operation not permitted on individual component of heterogeneous job"
