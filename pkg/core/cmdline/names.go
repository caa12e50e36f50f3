package cmdline

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Cluster is what gangd answers where Slurm has the name of a cluster.
const Cluster = "gangd"

// Alias is a command of Slurm's and the program of gangd that answers to its name.
type Alias struct {
	Name    string // as Slurm calls it
	Program string // the program in bin/
}

// Names is every name that gangd answers to. `gangd slurm-links` makes a link of each.
var Names = []Alias{
	{"sbatch", "gsubmit"},
	{"squeue", "gqueue"},
	{"scancel", "gcancel"},
	{"sinfo", "ginfo"},
	{"scontrol", "gctl"},
	{"sdiag", "gctl"},
	{"strigger", "gctl"},
	{"sacct", "gacct"},
	{"sacctmgr", "gacct"},
	{"sshare", "gacct"},
	{"sprio", "gacct"},
	{"sstat", "gacct"},
	{"seff", "gacct"},
	{"reportseff", "gacct"},
	{"sreport", "greport"},
	{"srun", "grun"},
	{"salloc", "grun"},
	{"sbcast", "grun"},
	{"sattach", "gattach"},
	{"scrontab", "gcron"},
}

// Streams is what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Called is the command by whose name a program was called, empty: by its own.
func Called(argv0 string) string {
	base := filepath.Base(argv0)
	for _, c := range Names {
		if c.Name == base {
			return base
		}
	}
	return ""
}

// Errorf prints "squeue: error: text", as Slurm's log does. Where somebody wants to know of which errors a command has told, he
// hears of those among args.
func (s Streams) Errorf(name, format string, args ...any) {
	if t, ok := s.Err.(interface{ Tells(error) }); ok {
		for _, a := range args {
			if err, ok := a.(error); ok {
				t.Tells(err)
			}
		}
	}
	fmt.Fprintf(s.Err, name+": error: "+format+"\n", args...)
}

// Short reports whether a word is a name cut short, though not to fewer letters than that, in any case of them.
func Short(word, name string, letters int) bool {
	return len(word) >= min(letters, len(name)) && len(word) <= len(name) && strings.EqualFold(word, name[:len(word)])
}
