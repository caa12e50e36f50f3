package proc

import (
	"strconv"
	"strings"
	"syscall"
)

var signals = map[string]syscall.Signal{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10,
	"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17, "CONT": 18, "STOP": 19,
	"TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28,
	"IO": 29, "PWR": 30, "SYS": 31,
}

// Signal reads "USR1", "SIGUSR1" or "10"; ok is false for anything else.
func Signal(name string) (sig syscall.Signal, ok bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return syscall.Signal(n), n > 0 && n <= 64
	}
	sig, ok = signals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
	return sig, ok
}
