package slurm

import (
	"os"
	"path/filepath"

	"gangd/pkg/cmdline"
)

// Runner is a command of Slurm's: it takes the arguments behind the name and gives the exit
// status.
type Runner func(args []string, s cmdline.Streams) int

// Main ends the process with the command of Slurm's by whose name it was called. It returns
// when it was called by a name of gangd's own.
func Main(commands map[string]Runner) {
	name := cmdline.Called(os.Args[0])
	if name == "" {
		return
	}
	s := cmdline.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	run := commands[name]
	if run == nil {
		s.Errorf(name, "this program does not answer to %s; make the links again: gangd slurm-links -f %s", name, filepath.Dir(os.Args[0]))
		os.Exit(1)
	}
	os.Exit(run(os.Args[1:], s))
}
