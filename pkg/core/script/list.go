package script

import (
	"io"

	"gangd/pkg/core/cmdline"
)

// Usage is the one line of usage.
const Usage = "gsubmit [OPTION]... SCRIPT [ARG]...  |  gsubmit [OPTION]... --wrap=COMMAND  |  gsubmit [OPTION]... < SCRIPT"

// WriteHelp writes the options that do something, by group.
func WriteHelp(w io.Writer) {
	cmdline.WriteHelp(w, Options, func(o *Option) bool { return o.List != Refused && o.Group != groupHints })
}

// SlurmLists is how each option of sbatch is kept.
func SlurmLists() cmdline.Lists { return cmdline.ListsOf("sbatch", Options) }
