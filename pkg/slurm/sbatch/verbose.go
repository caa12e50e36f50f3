package sbatch

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/script"
)

// verbosity is how often -v was given; else what SBATCH_DEBUG says.
func verbosity(flags []script.Setting) int {
	n := 0
	for i := range flags {
		if flags[i].Option.Long == "verbose" {
			n++
		}
	}
	if v, err := strconv.Atoi(os.Getenv("SBATCH_DEBUG")); n == 0 && err == nil {
		return v
	}
	return n
}

// tell is sbatch's table of what was asked for, by option, wherever it was written; with more
// than one -v also the place of each.
func tell(req *script.Request, verbose int, s cmdline.Streams) {
	line := func(format string, args ...any) { fmt.Fprintf(s.Err, "sbatch: "+format+"\n", args...) }
	const rule = "--------------------"
	line("defined options")
	line("%s %s", rule, rule)
	used := slices.Clone(req.Used)
	slices.SortStableFunc(used, func(a, b script.Setting) int { return cmp.Compare(a.Option.SlurmName(), b.Option.SlurmName()) })
	for i := range used {
		value := used[i].Value
		switch name := used[i].Option.SlurmName(); {
		case name == "verbose":
			continue
		case name == "time" || name == "time-min":
			if d, err := script.ParseTime(value); err == nil {
				value = when.Span(d)
			}
			fallthrough
		default:
			line("%-20s: %s", name, strings.ReplaceAll(cmp.Or(value, "set"), "\n", " "))
		}
	}
	line("%-20s: %d", "verbose", verbose)
	line("%s %s", rule, rule)
	line("end of defined options")
	if verbose < 2 {
		return
	}
	for i := range req.Used {
		line("debug:  %s from %s", req.Used[i].String(), cmp.Or(req.Used[i].Pos.String(), "command line"))
	}
}
