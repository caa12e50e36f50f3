package cmdline

import (
	"errors"
	"strings"
	"syscall"
)

// ErrnoText is an error of the kernel's as libc writes it, and Slurm with it: "No such file or directory". Of other errors it is their own text.
func ErrnoText(err error) string {
	no, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return err.Error()
	}
	text := no.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
