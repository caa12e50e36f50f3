package scontrol

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/slurm"
)

// Slurm's words for what can go wrong, by its number.
var slurmErrors = map[int]string{
	1800: slurm.NoController,
	2000: "Invalid partition name specified",
	2002: slurm.AccessDenied,
	2009: "Invalid node name specified",
	2017: slurm.InvalidJob,
	2021: "Job has already finished",
	2051: "Job is pending execution",
	2056: slurm.Disabled,
}

// The numbers of those that gangd gives.
const (
	errPartition = 2000
	errNode      = 2009
	errJob       = 2017
	errFinished  = 2021
	errPending   = 2051
)

// words are what Slurm says of an error; what Slurm has no words for is said in gangd's.
func words(err error) string {
	if api.CodeOf(err) == api.CodeAlreadyEnded {
		return slurmErrors[errFinished]
	}
	return slurm.Words(err)
}

// inSlurmsWords is an error of this side that Slurm has words for.
type inSlurmsWords struct{ text string }

func (e *inSlurmsWords) Error() string { return e.text }

// slurms: Slurm has words for it; else gangd's stand alone, behind the command's name.
func slurms(err error) bool {
	var refused *api.Error
	return !errors.As(err, &refused) || words(err) != refused.Error()
}

// failed says that a call as a whole came to nothing.
func (c *call) failed(what string, err error) int {
	c.say("%s: %s", what, words(err))
	return 1
}

// forOperators words what is refused to all but operators, of nodes and partitions.
func forOperators(err error) error {
	if api.CodeOf(err) == api.CodePermission {
		return &inSlurmsWords{notOwner}
	}
	return err
}

// errnumstr names an error by its number.
func (c *call) errnumstr(args []string) int {
	n, err := strconv.Atoi(args[0])
	if text := slurmErrors[n]; err == nil && text != "" {
		fmt.Fprintln(c.Out, text)
		return 0
	}
	c.errorf("no error of gangd's has the number %q; those that have are %v", args[0], slices.Sorted(maps.Keys(slurmErrors)))
	return 1
}
