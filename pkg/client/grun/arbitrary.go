package grun

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"gangd/pkg/api"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/hostlist"
	"gangd/pkg/core/script"
)

// hostFile is the variable that names a file with a node for each task.
const hostFile = "SLURM_HOSTFILE"

// arbitrate settles where tasks go that have a node each (--distribution=arbitrary): from --nodelist, in which a node may stand
// several times, or from the file of SLURM_HOSTFILE, of which a step takes as many as it has tasks.
func (a *ask) arbitrate(command string) error {
	path := os.Getenv(hostFile)
	if path != "" && len(a.step.NodeList) == 0 {
		names, err := script.TaskNodes(path, func(file string) (string, error) {
			b, err := os.ReadFile(file)
			return string(b), err
		})
		if err != nil {
			return failure("error: slurm_allocate_resources error opening file %s, %s\n%s: error: Failure getting NodeNames from hostfile",
				path, cmdline.ErrnoText(err), command)
		}
		if n := a.step.Tasks; n > len(names) {
			return failure("error: Too few NodeNames in Slurm Hostfile\n%s: error: Failure getting NodeNames from hostfile", command)
		} else if n > 0 {
			names = names[:n]
		}
		a.step.NodeList, a.step.Distribution = names, api.Arbitrary
		a.alloc = append(a.alloc, "--nodelist="+hostlist.Compress(once(names)))
	}
	if a.step.Distribution != api.Arbitrary {
		a.step.NodeList = once(a.step.NodeList)
		return nil
	}
	n := len(a.step.NodeList)
	switch {
	case n == 0:
		return failure("error: --distribution=arbitrary names no nodes: use --nodelist, or the file that %s names", hostFile)
	case a.step.Tasks > 0 && a.step.Tasks != n:
		return failure("error: You asked for %d tasks but hostlist specified %d nodes", a.step.Tasks, n)
	}
	a.step.Tasks, a.step.TasksPerNode = n, 0
	a.alloc = append(a.alloc, "--ntasks="+strconv.Itoa(n))
	return nil
}

// once drops repeats.
func once(names []string) (out []string) {
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func failure(format string, args ...any) error {
	return &program.ExitError{Status: 1, Err: fmt.Errorf(format, args...)}
}

// contradiction finds nodes that are asked for and excluded.
func (a *ask) contradiction(command string) error {
	for _, n := range a.step.NodeList {
		if slices.Contains(a.step.Exclude, n) {
			return failure("error: Requested node %s is also in the excluded list.\n%s: error: Job not submitted.", n, command)
		}
	}
	return nil
}
