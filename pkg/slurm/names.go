package slurm

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gangd/pkg/api"
)

// Compatible is the Slurm whose words are spoken.
const Compatible = "22.05.8"

// Cluster is what gangd answers where Slurm has the name of a cluster.
const Cluster = "gangd"

// Command is a command of Slurm's and the program of gangd that answers to its name.
type Command struct {
	Name    string // as Slurm calls it
	Program string // the program in bin/
}

// Commands is every name that gangd answers to. `gangd slurm-links` makes a link of each.
var Commands = []Command{
	{"sbatch", "gsubmit"},
	{"squeue", "gqueue"},
	{"scancel", "gcancel"},
	{"sinfo", "ginfo"},
	{"scontrol", "gctl"},
	{"sacct", "gacct"},
	{"sacctmgr", "gacct"},
	{"sshare", "gacct"},
	{"sprio", "gacct"},
	{"sstat", "gacct"},
	{"srun", "grun"},
	{"salloc", "grun"},
	{"sattach", "gattach"},
}

// Streams is what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Runner is a command of Slurm's: it takes the arguments behind the name and gives the exit
// status.
type Runner func(args []string, s Streams) int

// Called is the command by whose name a program was called, empty: by its own.
func Called(argv0 string) string {
	base := filepath.Base(argv0)
	for _, c := range Commands {
		if c.Name == base {
			return base
		}
	}
	return ""
}

// Main ends the process with the command of Slurm's by whose name it was called. It returns
// when it was called by a name of gangd's own.
func Main(commands map[string]Runner) {
	name := Called(os.Args[0])
	if name == "" {
		return
	}
	s := Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	run := commands[name]
	if run == nil {
		s.Errorf(name, "this program does not answer to %s; make the links again: gangd slurm-links -f %s", name, filepath.Dir(os.Args[0]))
		os.Exit(1)
	}
	os.Exit(run(os.Args[1:], s))
}

// Version is what --version prints under every name. Programs that look for a version read
// the word behind "slurm " and the numbers at its head.
func Version() string {
	return "slurm " + Compatible + "-compatible (gangd " + api.Version + ")"
}

// Errorf prints "squeue: error: text", as Slurm's log does.
func (s Streams) Errorf(name, format string, args ...any) {
	fmt.Fprintf(s.Err, name+": error: "+format+"\n", args...)
}
