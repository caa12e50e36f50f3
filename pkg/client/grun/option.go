package grun

import (
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/nearest"
)

// Option is one row of the table.
type Option = cmdline.Option[ask]

// given is an option as it was written.
type given struct {
	o     *Option
	value string
	env   string // the variable that it came from, empty: the command line
}

// parse takes options off the front of a command line; the first word that is none begins
// the program.
func parse(args []string) (all []given, rest []string, err error) {
	g := cmdline.Grammar[ask]{Options: options, Stop: true, Equals: true}
	settings, rest, err := g.Parse(args)
	if err != nil {
		return nil, nil, unreadable(err.(*cmdline.Error))
	}
	for _, s := range settings {
		all = append(all, given{o: s.Option, value: s.Value})
	}
	return all, rest, nil
}

// unreadable says in words of ours what can't be read.
func unreadable(e *cmdline.Error) error {
	switch e.Fault {
	case cmdline.Unknown:
		var names []string
		for i := range options {
			names = append(names, options[i].Spellings()...)
		}
		if near := nearest.Of(e.Name, names); near != "" {
			return program.Usagef("unrecognized option '--%s'; did you mean --%s?", e.Name, near)
		}
		return program.Usagef("unrecognized option '--%s'", e.Name)
	case cmdline.Ambiguous:
		return program.Usagef("option --%s could be --%s or --%s", e.Name, e.Fits[0], e.Fits[1])
	case cmdline.Superfluous:
		return program.Usagef("option --%s takes no value", e.Name)
	case cmdline.Missing:
		name := "--" + e.Name
		if e.Letter != 0 {
			name = "-" + string(rune(e.Letter))
		}
		return program.Usagef("option %s needs a value: %s", name, e.Arg)
	}
	return program.Usagef("%w", e)
}

// The words of the table.
const (
	noValue  = cmdline.None
	value    = cmdline.Required
	mayValue = cmdline.Optional

	exact       = cmdline.Exact
	partial     = cmdline.Partial
	refusedList = cmdline.Refused
)
