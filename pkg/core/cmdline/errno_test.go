package cmdline

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestErrnoText(t *testing.T) {
	for want, err := range map[string]error{
		"No such file or directory": &fs.PathError{Op: "open", Path: "/x", Err: syscall.ENOENT},
		"Permission denied":         fmt.Errorf("mkdir: %w", syscall.EACCES),
		"Too long":                  errors.New("too long"),
	} {
		if got := ErrnoText(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
