package script

import (
	"io"

	"gangd/pkg/core/cmdline"
)

// Usage is the one line of usage.
const Usage = "gsubmit [OPTION]... {SCRIPT [ARG]... | --wrap=COMMAND | < SCRIPT}"

// first are the options that one screen of help shows. Of 31 scripts with directives that a search of
// public repositories for training, several nodes and arrays brought up, 21 set an output, 20 a
// partition, 20 a name, 18 cards, 15 CPUs, 14 an array, 13 a time limit, 13 nodes, 13 tasks (size here)
// and 10 memory; no other option is in 10 of them.
var first = []string{"size", "nodes", "gpus-per-rank", "cpus-per-task", "mem", "time", "partition", "array", "job-name", "output"}

// WriteHelp writes the options that do something, by group.
func WriteHelp(w io.Writer) {
	cmdline.WriteHelp(w, Options, func(o *Option) bool { return o.List != Refused && o.Group != groupHints && o.Group != groupNot }, first...)
}

// SlurmLists is how each option of sbatch is kept.
func SlurmLists() cmdline.Lists { return cmdline.ListsOf("sbatch", Options) }
