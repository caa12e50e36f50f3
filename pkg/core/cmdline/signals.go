package cmdline

import (
	"slices"
	"strconv"
	"strings"
)

// SignalNames are the signals of Linux by number from 1 (the same on every architecture that
// CUDA runs on), without SIG.
var SignalNames = strings.Fields(`HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD
	CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS`)

// SignalName reads USR1, SIGUSR1, usr1 or 10 and gives the name without SIG.
func SignalName(s string) (name string, ok bool) {
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > len(SignalNames) {
			return "", false
		}
		return SignalNames[n-1], true
	}
	name = strings.TrimPrefix(strings.ToUpper(s), "SIG")
	return name, slices.Contains(SignalNames, name)
}

// SignalNumber is the number of a signal's name, in decimal; 0 of one that there is not.
func SignalNumber(name string) string { return strconv.Itoa(slices.Index(SignalNames, name) + 1) }

// SignalOf is the name of a signal by its number, empty: there is none.
func SignalOf(n int) string {
	if n < 1 || n > len(SignalNames) {
		return ""
	}
	return SignalNames[n-1]
}
