package cli

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"gangd/pkg/nearest"
)

// parseSignal reads USR1, SIGUSR1, usr1 or 10, and gives the name without SIG.
func parseSignal(s string) (string, error) {
	if n, err := strconv.Atoi(s); err == nil {
		name := unix.SignalName(unix.Signal(n))
		if name == "" {
			return "", Usagef("invalid value %q for --signal: signals are 1 to 31", s)
		}
		return strings.TrimPrefix(name, "SIG"), nil
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	if unix.SignalNum("SIG"+name) != 0 {
		return name, nil
	}
	if near := nearest.Of(name, signalNames()); near != "" {
		return "", Usagef("unknown signal %q: did you mean %s?", s, near)
	}
	return "", Usagef("unknown signal %q: give a name as in kill -l, or a number", s)
}

// signalNames is every signal of this system, without SIG.
func signalNames() []string {
	var names []string
	for n := unix.Signal(1); n < 32; n++ {
		if name := unix.SignalName(n); name != "" {
			names = append(names, strings.TrimPrefix(name, "SIG"))
		}
	}
	return names
}
