package script

import (
	"slices"
	"strings"
	"time"

	"gangd/pkg/api"
)

// parts is which part of a spec an option is of, where that can be changed alone.
var parts = map[string]api.SpecPart{"account": api.PartAccount, "reservation": api.PartReservation, "output": api.PartOutput,
	"error": api.PartError,
	"input": api.PartInput, "chdir": api.PartWorkDir, "mail-type": api.PartNotify, "mail-user": api.PartNotify, "notify": api.PartNotify,
	"requeue": api.PartRequeue, "no-requeue": api.PartRequeue, "max-time-total": api.PartRequeue, "time-min": api.PartTimeMin}

// Changeable reports whether what an option says, by its main name, can be changed while a job waits.
func Changeable(long string) bool { return IsResource(long) || parts[long] != "" }

// Change is what a job that was asked for in these words asks for with other options, each --NAME=VALUE or
// --NAME; an empty value takes an option back. The spec counts in the parts that are named.
func Change(words, options []string, now time.Time) (*Request, []api.SpecPart, []Warning, error) {
	changed, _, err := SlurmFlags(options)
	if err != nil {
		return nil, nil, nil, err
	}
	was, _, err := Flags(words)
	if err != nil {
		return nil, nil, nil, err
	}
	var which []api.SpecPart
	for i := range changed {
		s := &changed[i]
		part := parts[s.Option.Long]
		if IsResource(s.Option.Long) {
			part = api.PartResources
		}
		if part == "" {
			return nil, nil, nil, s.refuse(s.String()+": it can't be changed", "submit the job once more")
		}
		if !slices.Contains(which, part) {
			which = append(which, part)
		}
		taken := append([]string{s.Option.Long}, against(s.Option.Long)...)
		was = slices.DeleteFunc(was, func(old Setting) bool { return slices.Contains(taken, old.Option.Long) })
	}
	empty := func(s Setting) bool { return s.Unset || s.Given && s.Value == "" }
	settings := append(was, slices.DeleteFunc(changed, empty)...)
	req, warn, err := Build(settings, now)
	if err != nil {
		return nil, nil, nil, err
	}
	if slices.Contains(which, api.PartResources) && words == nil {
		return nil, nil, nil, &Error{Msg: "how this job was asked for is not known any more, so that its size and resources stay",
			Hint: "submit it once more"}
	}
	return req, which, warn, nil
}

// against are the options that say the same thing as one otherwise: with one of them the others say nothing any more.
func against(long string) (out []string) {
	for _, group := range []string{"mem mem-per-cpu mem-per-gpu mem-per-rank", "gpus gres gpus-per-node gpus-per-rank",
		"cpus-per-task cpus-per-gpu"} {
		if words := strings.Fields(group); slices.Contains(words, long) {
			out = append(out, words...)
		}
	}
	return out
}
