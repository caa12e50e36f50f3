package slurm

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SignalName reads USR1, SIGUSR1, usr1 or 10 and gives the name without SIG.
func SignalName(s string) (name string, ok bool) {
	if n, err := strconv.Atoi(s); err == nil {
		name = strings.TrimPrefix(unix.SignalName(unix.Signal(n)), "SIG")
		return name, n > 0 && name != ""
	}
	name = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	return name, unix.SignalNum("SIG"+name) != 0
}

// SignalNumber is the number of a signal's name, in decimal.
func SignalNumber(name string) string { return strconv.Itoa(int(unix.SignalNum("SIG" + name))) }
