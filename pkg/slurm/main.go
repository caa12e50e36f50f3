package slurm

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gangd/pkg/client/output"
	"gangd/pkg/core/cmdline"
)

// Runner is a command of Slurm's: it takes the arguments behind the name and gives the exit
// status.
type Runner func(args []string, s cmdline.Streams) int

const helpSlurm = "--help=slurm"

// listsOf prints what became of the options of each command, in the order of their names.
func listsOf(commands map[string]Runner, s cmdline.Streams) int {
	for i, name := range slices.Sorted(maps.Keys(commands)) {
		if len(commands) > 1 {
			fmt.Fprintf(s.Out, "%s%s:\n", strings.Repeat("\n", min(i, 1)), name)
		}
		if status := commands[name]([]string{helpSlurm}, s); status != 0 {
			return status
		}
	}
	return 0
}

// Main ends the process with the command of Slurm's by whose name it was called. It returns
// when it was called by a name of gangd's own, but for --help=slurm, which is of all that it
// answers to.
func Main(commands map[string]Runner) {
	name := cmdline.Called(os.Args[0])
	s := cmdline.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if name == "" {
		if len(os.Args) == 2 && os.Args[1] == helpSlurm {
			os.Exit(output.Run(filepath.Base(os.Args[0]), func(_ []string, s cmdline.Streams) int { return listsOf(commands, s) }, nil, s))
		}
		return
	}
	run := commands[name]
	if run == nil {
		s.Errorf(name, "this program does not answer to %s; make the links again: gangd slurm-links -f %s", name, filepath.Dir(os.Args[0]))
		os.Exit(1)
	}
	os.Exit(output.Run(name, run, os.Args[1:], s))
}
