package sbatch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/api/rlimit"
	"gangd/pkg/client"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/cmdline/when"
	"gangd/pkg/core/script"
	"gangd/pkg/slurm"
)

// explain prints an error in Slurm's words and gives the status.
func explain(err error, s cmdline.Streams) error {
	var status cmdline.Status
	var bare cmdline.Bare
	var mistake *script.Error
	var refused *api.Error
	var unreachable *client.UnreachableError
	switch {
	case err == nil, errors.As(err, &status):
		return err
	case errors.As(err, &bare):
		fmt.Fprintln(s.Err, bare)
	case errors.As(err, &mistake):
		return explainScript(mistake, s)
	case errors.As(err, &refused), errors.As(err, &unreachable):
		why, before, detail := slurm.Refusal(err)
		if before != "" {
			s.Errorf("sbatch", "%s", before)
		}
		s.Errorf("sbatch", "Batch job submission failed: %s", why)
		beside(s, detail)
	default:
		s.Errorf("sbatch", "%s", err)
	}
	return cmdline.Status(1)
}

// beside says what gangd knows more than Slurm's line tells, on a line of its own.
func beside(s cmdline.Streams, detail string) {
	if detail != "" {
		fmt.Fprintf(s.Err, "sbatch: gangd: %s\n", detail)
	}
}

// explainScript words a mistake in an option, wherever it was written.
func explainScript(e *script.Error, s cmdline.Streams) error {
	if e.Getopt != "" {
		fmt.Fprintf(s.Err, "sbatch: %s\nTry \"sbatch --help\" for more information\n", e.Getopt)
		return unreadable
	}
	if e.Stray != "" {
		s.Errorf("sbatch", "Invalid directive found in batch script: %s", e.Stray)
		beside(s, e.Error())
		return unreadable
	}
	if e.Clash != script.NoClash {
		line, early := slurm.Clash(e)
		var status error = cmdline.Status(1)
		switch {
		case early:
			fmt.Fprintf(s.Err, "sbatch: fatal: %s\n", line)
		case line == "": // its controller finds it
			status = failed(s, slurm.NotSatisfied)
		default:
			s.Errorf("sbatch", "%s", line)
			s.Errorf("sbatch", "%s", slurm.BadGres)
		}
		beside(s, e.Error())
		return status
	}
	if e.Bad == nil {
		s.Errorf("sbatch", "%s", e)
		return cmdline.Status(1)
	}
	status := badValue(e, s)
	if status == nil { // nothing of Slurm's to say
		s.Errorf("sbatch", "%s", e)
		return cmdline.Status(1)
	}
	beside(s, e.Error())
	return status
}

// badValue words a wrong value of an option as sbatch does, which knows several manners; nil
// when it has none for this one.
func badValue(e *script.Error, s cmdline.Streams) error {
	name, value := e.Bad.Option.SlurmName(), e.Bad.Value
	switch name {
	case "time", "time-min", "mem", "mem-per-cpu", "mem-per-gpu", "signal", "exclusive", "open-mode", "tmp", "mail-type", "distribution",
		"kill-on-invalid-dep":
		s.Errorf("sbatch", "Invalid --%s specification", name)
		return unreadable
	case "begin", "deadline":
		if value != "" {
			_, err := when.Parse(value, time.Unix(0, 0), when.Future) // where it goes wrong is the same at all times
			fmt.Fprintln(s.Err, cmp.Or(err, error(&when.Error{Text: value})))
		}
		s.Errorf("sbatch", "Invalid --%s specification", name)
		return unreadable
	case "ntasks", "cpus-per-task", "ntasks-per-node", "cpus-per-gpu", "mincpus", "ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu",
		"switches", "threads-per-core", "sockets-per-node", "cores-per-socket":
		s.Errorf("sbatch", "Invalid numeric value \"%s\" for --%s.", value, name)
		return cmdline.Status(1)
	case "partition":
		if value == "" {
			value = "(null)"
		}
		s.Errorf("sbatch", "invalid partition specified: %s", value)
		return cmdline.Status(1)
	case "extra-node-info":
		for i, part := range strings.Split(value, ":") {
			if least, _, _ := strings.Cut(part, "-"); i < len(ordinals) && least != "" && least != "*" && !positive().MatchString(least) {
				s.Errorf("sbatch", "Invalid numeric value \"%s\" for %s arg of -B.", part, ordinals[i])
				return cmdline.Status(1)
			}
		}
		return nil
	case "nodes":
		if hugeCount().MatchString(value) {
			return failed(s, "Node count specification invalid")
		}
		if m := nodeRange().FindStringSubmatch(value); m != nil {
			s.Errorf("sbatch", "Maximum node count %s is less than minimum node count %s", cmp.Or(m[2], "-1"), m[1])
			return unreadable
		}
		s.Errorf("sbatch", "\"%s\" is not a valid node count", value)
		return unreadable
	case "nodefile":
		if f, err := os.Open(value); err == nil {
			f.Close()
		} else {
			s.Errorf("sbatch", "slurm_allocate_resources error opening file %s, %s", value, cmdline.ErrnoText(err))
		}
		s.Errorf("sbatch", "Invalid --nodefile node file")
		return unreadable
	case "export-file":
		s.Errorf("sbatch", "Could not open user environment file %s", value)
		return cmdline.Status(1)
	case "uid", "gid":
		if os.Getuid() != 0 {
			s.Errorf("sbatch", "--%s only permitted by root user", name)
		} else {
			s.Errorf("sbatch", "Invalid --%s specification", name)
		}
		return unreadable
	case "clusters":
		s.Errorf("sbatch", "%s", cmdline.NoCluster("sbatch", value))
		return cmdline.Status(1)
	case "propagate":
		for word := range strings.SplitSeq(value, ",") {
			if _, err := (rlimit.Soft{}).Choose(word); err != nil || word == rlimit.All || word == rlimit.None {
				s.Errorf("sbatch", "Bad rlimit name: %s", word)
				break
			}
		}
		s.Errorf("sbatch", "--propagate=%s is not valid.", value)
		return cmdline.Status(1)
	case "licenses":
		return failed(s, "Invalid license specification")
	case "hint":
		s.Errorf("sbatch", "unrecognized --hint argument \"%s\", see --hint=help", value)
		return cmdline.Status(1)
	case "array":
		return failed(s, "Invalid job array specification")
	case "dependency":
		return failed(s, "Job dependency problem")
	case "gres":
		s.Errorf("sbatch", "%s", slurm.BadGres)
		return cmdline.Status(1)
	case "gpus", "gpus-per-node", "gpus-per-task":
		return failed(s, slurm.NotSatisfied)
	}
	return nil
}

// ordinals are the parts of -B.
var ordinals = []string{"first", "second", "third"}

var positive = pattern(`^[0-9]*[1-9][0-9]*$`)

// nodeRange is a range that can be read; what is wrong with it is its order, or that it has no end.
var nodeRange = pattern(`^(\d+)-(\d*)$`)

// hugeCount is a number of nodes that can be read and is above all that there may be.
var hugeCount = pattern(`^([0-9]{5,}|[0-9]+[kKmM])(-[0-9]+[kKmM]?)?$`)

// pattern is made when it is asked for: gsubmit, which is this program too, starts a thousand times in a loop.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

func failed(s cmdline.Streams, why string) error {
	s.Errorf("sbatch", "Batch job submission failed: %s", why)
	return cmdline.Status(1)
}
