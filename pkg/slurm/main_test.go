package slurm

import (
	"bytes"
	"fmt"
	"testing"

	"gangd/pkg/core/cmdline"
)

// --help=slurm of a program tells of every name that it answers to.
func TestListsOfAProgram(t *testing.T) {
	says := func(what string, status int) Runner {
		return func(args []string, s cmdline.Streams) int {
			fmt.Fprintln(s.Out, what, args[0])
			return status
		}
	}
	for _, c := range []struct {
		of     map[string]Runner
		out    string
		status int
	}{
		{map[string]Runner{"squeue": says("q", 0)}, "q --help=slurm\n", 0},
		{map[string]Runner{"sstat": says("t", 0), "sacct": says("a", 0)}, "sacct:\na --help=slurm\n\nsstat:\nt --help=slurm\n", 0},
		{map[string]Runner{"sinfo": says("i", 3)}, "i --help=slurm\n", 3},
	} {
		var out bytes.Buffer
		if status := listsOf(c.of, cmdline.Streams{Out: &out}); status != c.status || out.String() != c.out {
			t.Errorf("status %d\n%s\nwant %d\n%s", status, out.String(), c.status, c.out)
		}
	}
}
