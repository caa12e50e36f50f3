// Package completion makes the bash completion of Slurm's names from the commands' own
// option tables: what a command refuses is not offered, and an option that comes or goes is
// so here at once. Names of jobs, nodes and partitions come from the commands themselves,
// when the key is pressed.
//
// The script needs bash 4 and nothing else: no package of completions. A controller that does
// not answer gives no names, and no error in the line that is being typed.
package completion

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"gangd/pkg/client/grun"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/slurm/sacct"
	"gangd/pkg/slurm/sbatch"
	"gangd/pkg/slurm/scancel"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
)

// command is one that is completed. words is what its arguments are, see script.
type command struct {
	name, words string
	options     cmdline.Lists
}

func commands() []command {
	return []command{
		{"sbatch", "file", sbatch.Lists()},
		{"srun", "command", grun.Lists()},
		{"salloc", "command", grun.Lists()},
		{"squeue", "", squeue.Lists()},
		{"scancel", "job", scancel.Lists()},
		{"sinfo", "", sinfo.Lists()},
		{"scontrol", "scontrol", scontrol.Lists()},
		{"sacct", "", sacct.Lists()},
	}
}

// kinds are the options whose values have names, by what they are called in all commands.
var kinds = map[string]string{
	"partition": "partition", "partitions": "partition", "jobs": "job", "jobid": "job", "step": "step", "steps": "step",
	"nodelist": "node", "exclude": "node", "user": "user", "users": "user", "uid": "user", "state": "state", "states": "state",
	"reservation": "reservation", "output": "file", "error": "file", "input": "file", "chdir": "file", "batch": "file",
	"time": "none", "job-name": "none", "comment": "none",
}

// kind is what the values of an option are; empty: nothing that could be completed.
func kind(c *command, o *cmdline.Kept) string {
	switch {
	case o.Name == "nodes" && c.name != "sbatch" && c.name != "srun" && c.name != "salloc":
		return "node"
	case o.Name == "state" && c.name == "sinfo", o.Name == "states" && c.name == "sinfo":
		return "nodestate"
	case o.Name == "jobid" && !o.Value:
		return ""
	}
	return kinds[o.Name]
}

// Write writes the script.
func Write(w io.Writer) error {
	var b strings.Builder
	b.WriteString(head)
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
		writeCommand(&b, &c)
	}
	b.WriteString(tail)
	keywords := scontrol.Keywords()
	fmt.Fprintf(&b, "_gangd_slurm_keywords=%q\n_gangd_slurm_entities=%q\n", strings.Join(offered(keywords[0]), " "),
		strings.Join(offered(keywords[1]), " "))
	fmt.Fprintf(&b, "complete -F _gangd_slurm %s\n", strings.Join(names, " "))
	_, err := io.WriteString(w, b.String())
	return err
}

// writeCommand writes what differs between the commands: a case of the two functions.
func writeCommand(b *strings.Builder, c *command) {
	var words []string
	byKind := map[string][]string{}
	for i := range c.options.Options {
		o := &c.options.Options[i]
		if o.List == cmdline.Refused {
			continue
		}
		word := "--" + o.Name
		if o.Value {
			word += "="
			k := cmp.Or(kind(c, o), "none")
			byKind[k] = append(byKind[k], "--"+o.Name)
			if o.Short != 0 {
				byKind[k] = append(byKind[k], "-"+string(o.Short))
			}
		}
		words = append(words, word)
	}
	slices.Sort(words)
	fmt.Fprintf(b, "\t%s)\n\t\t_options=%q\n\t\t_words=%s\n\t\tcase $2 in\n", c.name, strings.Join(slices.Compact(words), " "),
		cmp.Or(c.words, "none"))
	for _, k := range []string{"file", "job", "node", "nodestate", "none", "partition", "reservation", "state", "step", "user"} {
		if all := byKind[k]; len(all) > 0 {
			slices.Sort(all)
			fmt.Fprintf(b, "\t\t%s) _kind=%s ;;\n", strings.Join(slices.Compact(all), "|"), k)
		}
	}
	b.WriteString("\t\tesac\n\t\t;;\n")
}

// offered is what of a list is not refused.
func offered(c cmdline.Lists) []string {
	var out []string
	for _, o := range c.Options {
		if o.List != cmdline.Refused {
			out = append(out, o.Name)
		}
	}
	return out
}
