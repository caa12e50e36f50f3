package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"gangd/pkg/node/proc"
)

// Login is what a program of a user that is no rank starts with: the import of an image, say.
type Login struct {
	Credentials
	Limits []proc.Rlimit `json:"limits,omitempty"`
	Nice   int           `json:"nice,omitempty"`
}

// Command is what a gshim is started with, as root, that becomes a program of the user's.
func (l *Login) Command(argv []string) []string {
	b, err := json.Marshal(l)
	if err != nil {
		panic("a login does not marshal: " + err.Error())
	}
	return append([]string{"as", string(b)}, argv...)
}

// As is `gshim as LOGIN PROGRAM ARG...`. It ends by becoming the program, or says why it does not.
func As(args []string) int {
	runtime.LockOSThread() // whose niceness and CPUs these are
	var l Login
	if err := json.Unmarshal([]byte(args[0]), &l); err != nil {
		return fail(err)
	}
	if err := proc.LeaveDaemon(); err != nil {
		return fail(err)
	}
	if l.Nice != 0 {
		if err := proc.SetNice(l.Nice); err != nil {
			return fail(fmt.Errorf("nice: %w", err))
		}
	}
	proc.Limited(l.Limits) // for good
	if err := l.become(); err != nil {
		return fail(err)
	}
	proc.LimitStarted(0, l.Limits)
	return fail(fmt.Errorf("start %s: %w", args[1], syscall.Exec(args[1], args[1:], os.Environ())))
}
