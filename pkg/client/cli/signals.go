package cli

import (
	"strconv"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/nearest"
)

// parseSignal reads USR1, SIGUSR1, usr1 or 10, and gives the name without SIG.
func parseSignal(s string) (string, error) {
	name, ok := cmdline.SignalName(s)
	if ok {
		return name, nil
	}
	if _, err := strconv.Atoi(s); err == nil {
		return "", Usagef("invalid value %q for --signal: signals are 1 to 31", s)
	}
	if near := nearest.Of(name, cmdline.SignalNames); near != "" {
		return "", Usagef("unknown signal %q: did you mean %s?", s, near)
	}
	return "", Usagef("unknown signal %q: give a name as in kill -l, or a number", s)
}
