package shim

import (
	"fmt"
	"os"
	"time"
)

// logged tells that something had to be said of this member, which ends a shim's reuse.
var logged bool

// logf writes a line to [LogFile] of the directory that the shim is in. The file is made
// by the first line: most members never have one, and a file costs 0.1 ms to make and remove.
func logf(format string, args ...any) {
	logged = true
	f, err := os.OpenFile(LogFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	fmt.Fprintf(f, time.Now().Format(time.RFC3339)+" "+format+"\n", args...)
	_ = f.Close()
}
