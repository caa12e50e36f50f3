package cmdline

import (
	"errors"
	"strings"
)

// ErrnoText is what the kernel said, which is the cause of an error that wraps it, as libc writes it, and Slurm with it: "No such file
// or directory".
func ErrnoText(err error) string {
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(err) {
		err = cause
	}
	text := err.Error()
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}
