package sbatch

import (
	"errors"
	"fmt"

	"gangd/pkg/api"
	"gangd/pkg/client"
	"gangd/pkg/cmdline"
	"gangd/pkg/script"
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
		why, before, detail := words(err)
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
	case "time", "time-min", "mem", "mem-per-cpu", "mem-per-gpu", "signal", "exclusive", "open-mode", "tmp", "mail-type", "distribution", "uid", "gid":
		s.Errorf("sbatch", "Invalid --%s specification", name)
		return unreadable
	case "begin", "deadline":
		fmt.Fprintf(s.Err, "Invalid time specification (pos=0): %s\n", value)
		s.Errorf("sbatch", "Invalid --%s specification", name)
		return unreadable
	case "ntasks", "cpus-per-task", "ntasks-per-node", "cpus-per-gpu", "mincpus", "ntasks-per-core", "ntasks-per-socket", "ntasks-per-gpu", "switches", "threads-per-core", "sockets-per-node", "cores-per-socket":
		s.Errorf("sbatch", "Invalid numeric value \"%s\" for --%s.", value, name)
		return cmdline.Status(1)
	case "nodes":
		s.Errorf("sbatch", "\"%s\" is not a valid node count", value)
		return unreadable
	case "array":
		return failed(s, "Invalid job array specification")
	case "dependency":
		return failed(s, "Job dependency problem")
	case "gres":
		s.Errorf("sbatch", "Invalid generic resource (gres) specification")
		return cmdline.Status(1)
	case "gpus", "gpus-per-node", "gpus-per-task":
		return failed(s, slurm.NotSatisfied)
	}
	return nil
}

func failed(s cmdline.Streams, why string) error {
	s.Errorf("sbatch", "Batch job submission failed: %s", why)
	return cmdline.Status(1)
}

// refusals is what Slurm says of what gangd's controller refuses.
var refusals = map[api.Reason]string{
	api.ReasonPartition:        "Invalid partition name specified",
	api.ReasonNode:             "Invalid node name specified",
	api.ReasonFeature:          slurm.BadFeature,
	api.ReasonPreferredFeature: "Invalid preferred feature specification",
	api.ReasonDependency:       "Job dependency problem",
}

// words is Slurm's line about an error of the controller's, what Slurm says before it, and what
// there is to say beside it: gangd's own sentence with the figures.
func words(err error) (why, before, detail string) {
	var refused *api.Error
	if !errors.As(err, &refused) {
		return slurm.NoController, "", err.Error()
	}
	detail = refused.Error()
	if refused.Reason == api.ReasonPartition {
		if refused.Subject == "" {
			return "No partition specified or system default partition", "", detail
		}
		before = "invalid partition specified: " + refused.Subject
	}
	if why, ok := refusals[refused.Reason]; ok {
		return why, before, detail
	}
	switch {
	case refused.Code == api.CodeUnsatisfiable:
		if refused.Reason == api.ReasonMemory {
			before = "Memory specification can not be satisfied"
		}
		return slurm.NotSatisfied, before, detail
	case refused.Code == api.CodeUnavailable, refused.Code == api.CodeOnHold:
		return slurm.NoController, "", detail
	case refused.Code == api.CodePermission:
		return slurm.AccessDenied, "", detail
	}
	return refused.Error(), "", ""
}
