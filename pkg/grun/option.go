package grun

import (
	"strings"

	"gangd/pkg/nearest"
	"gangd/pkg/program"
	"gangd/pkg/script"
)

// Option is one row of [Options]. Kind and List are those of gsubmit's table.
type Option struct {
	Long    string
	Short   byte
	Aliases []string
	Kind    script.Kind
	Arg     string
	Default string // value of MayValue without one
	List    script.List
	Group   string
	Help    string
	Note    string   // Partial: what differs. Refused: why
	Use     string   // Refused: what to use instead
	Env     []string // variables that give it a value, the first that is set counts
	Alloc   bool     // outside an allocation it is passed on to the submission

	set func(a *ask, v string) error
}

// Names lists every long name.
func (o *Option) Names() []string { return append([]string{o.Long}, o.Aliases...) }

// byName finds an option by one of its long names, or by an unambiguous beginning of one, as
// getopt does.
func byName(name string) (*Option, error) {
	var found []*Option
	var names []string
	for i := range Options {
		for _, n := range Options[i].Names() {
			if n == name {
				return &Options[i], nil
			}
			if strings.HasPrefix(n, name) && (len(found) == 0 || found[len(found)-1] != &Options[i]) {
				found = append(found, &Options[i])
			}
			names = append(names, n)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if near := nearest.Of(name, names); near != "" {
			return nil, program.Usagef("unrecognized option '--%s'; did you mean --%s?", name, near)
		}
		return nil, program.Usagef("unrecognized option '--%s'", name)
	}
	return nil, program.Usagef("option --%s could be --%s or --%s", name, found[0].Long, found[1].Long)
}

func byShort(c byte) (*Option, error) {
	for i := range Options {
		if Options[i].Short == c {
			return &Options[i], nil
		}
	}
	return nil, program.Usagef("invalid option -- '%c'", c)
}

// given is an option as it was written.
type given struct {
	o     *Option
	value string
	env   string // the variable that it came from, empty: the command line
}

// parse takes options off the front of a command line; the first word that is none begins
// the program.
func parse(args []string) (all []given, rest []string, err error) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case a == "--":
			return all, args[1:], nil
		case strings.HasPrefix(a, "--"):
			var g given
			if g, args, err = parseLong(args); err != nil {
				return nil, nil, err
			}
			all = append(all, g)
		case len(a) > 1 && a[0] == '-':
			var more []given
			if more, args, err = parseShort(args); err != nil {
				return nil, nil, err
			}
			all = append(all, more...)
		default:
			return all, args, nil
		}
	}
	return all, nil, nil
}

func parseLong(args []string) (given, []string, error) {
	name, value, inline := strings.Cut(args[0][2:], "=")
	o, err := byName(name)
	if err != nil {
		return given{}, nil, err
	}
	args = args[1:]
	switch {
	case o.Kind == script.NoValue && inline:
		return given{}, nil, program.Usagef("option --%s takes no value", o.Long)
	case o.Kind == script.Value && !inline:
		if len(args) == 0 {
			return given{}, nil, program.Usagef("option --%s needs a value: %s", o.Long, o.Arg)
		}
		value, args = args[0], args[1:]
	case o.Kind == script.MayValue && !inline:
		value = o.Default
	}
	return given{o: o, value: value}, args, nil
}

// parseShort reads -lN4, -n 3, -K1.
func parseShort(args []string) (all []given, rest []string, err error) {
	word := args[0][1:]
	args = args[1:]
	for word != "" {
		o, err := byShort(word[0])
		if err != nil {
			return nil, nil, err
		}
		word = word[1:]
		g := given{o: o}
		switch {
		case o.Kind == script.NoValue:
		case word != "":
			g.value, word = strings.TrimPrefix(word, "="), ""
		case o.Kind == script.MayValue:
			g.value = o.Default
		case len(args) == 0:
			return nil, nil, program.Usagef("option -%c needs a value: %s", o.Short, o.Arg)
		default:
			g.value, args = args[0], args[1:]
		}
		all = append(all, g)
	}
	return all, args, nil
}

// The words of the table.
const (
	noValue  = script.NoValue
	value    = script.Value
	mayValue = script.MayValue

	exact       = script.Exact
	partial     = script.Partial
	refusedList = script.Refused
)
