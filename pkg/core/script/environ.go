package script

import (
	"sort"
	"strings"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/nearest"
)

// envPrefix begins our own variables: GSUBMIT_GPUS_PER_RANK is --gpus-per-rank.
const envPrefix = "GSUBMIT_"

// notOptions are variables that sbatch puts into a job's environment itself. A job that
// submits another one has them; they set nothing.
var notOptions = map[string]bool{
	"SBATCH_MEM_BIND": true, "SBATCH_MEM_BIND_LIST": true, "SBATCH_MEM_BIND_PREFER": true,
	"SBATCH_MEM_BIND_SORT": true, "SBATCH_MEM_BIND_TYPE": true, "SBATCH_MEM_BIND_VERBOSE": true,
	"SBATCH_CPU_BIND": true, "SBATCH_CPU_BIND_LIST": true, "SBATCH_CPU_BIND_TYPE": true, "SBATCH_CPU_BIND_VERBOSE": true,
}

// Environ reads GSUBMIT_*, SBATCH_*, PYXIS_CONTAINER_*, SLURM_HINT and SLURM_CLUSTERS of environ (NAME=value each), in the order of their
// names. A variable of that form which means nothing is named in a warning.
func Environ(environ []string) ([]Setting, []Warning, error) {
	var ours []string
	for _, kv := range environ {
		if strings.HasPrefix(kv, envPrefix) || strings.HasPrefix(kv, "SBATCH_") || strings.HasPrefix(kv, "PYXIS_CONTAINER_") ||
			strings.HasPrefix(kv, "SLURM_HINT=") || strings.HasPrefix(kv, "SLURM_CLUSTERS=") {
			ours = append(ours, kv)
		}
	}
	sort.Strings(ours)
	var out []Setting
	var warn []Warning
	for _, kv := range ours {
		name, value, _ := strings.Cut(kv, "=")
		if notOptions[name] {
			continue
		}
		if name == envSwitchWait {
			// A part of --switches: it goes behind the count, which comes first by name.
			if n := len(out); n > 0 && value != "" && out[n-1].Pos.Env == envSwitches && !strings.Contains(out[n-1].Value, "@") {
				out[n-1].Value += "@" + value
			}
			continue
		}
		o, source := byEnv(name)
		if o == nil {
			text := "this variable sets no option"
			prefix, rest, _ := strings.Cut(name, "_")
			if n := nearest.Of(rest, envNames(prefix+"_")); n != "" {
				text += "; did you mean " + prefix + "_" + n + "?"
			}
			warn = append(warn, Warning{Pos{Env: name}, text})
			continue
		}
		s := Setting{Setting: cmdline.Setting[Ask]{Option: o, Name: o.Long, Value: value, Given: value != ""}, Source: source,
			Pos: Pos{Env: name}}
		if o.Kind == NoValue {
			// sbatch looks only at whether the variable is there; "0" and "no" are read as
			// people mean them.
			switch strings.ToLower(value) {
			case "0", "no", "false":
				continue
			}
			s.Value, s.Given = "", false
		} else if value == "" {
			if o.Kind == Value {
				continue // SBATCH_PARTITION= in a profile switches it off
			}
			s.Value = o.Default
		}
		out = append(out, s)
	}
	return out, warn, nil
}

// sbatch has two variables for --switches=N@TIME.
const (
	envSwitches   = "SBATCH_REQ_SWITCH"
	envSwitchWait = "SBATCH_WAIT4SWITCH"
)

func byEnv(name string) (*Option, Source) {
	for i := range Options {
		o := &Options[i]
		for _, n := range o.Env {
			if n == name {
				return o, FromSbatchEnv
			}
		}
		if o.List != Refused && !o.OnLine && envName(o) == name {
			return o, FromEnv
		}
	}
	return nil, 0
}

// envNames are the variables of one prefix, without it.
func envNames(prefix string) []string {
	var out []string
	for i := range Options {
		o := &Options[i]
		names := o.Env
		if o.List != Refused && !o.OnLine {
			names = append([]string{envName(o)}, o.Env...)
		}
		for _, n := range names {
			if rest, ok := strings.CutPrefix(n, prefix); ok {
				out = append(out, rest)
			}
		}
	}
	return out
}
