// Command gcp puts a copy of a file on every node of a job, see gcp(1).
package main

import (
	"os"

	"gangd/pkg/client/grun"
	"gangd/pkg/client/output"
	"gangd/pkg/core/cmdline"
)

func main() {
	if cmdline.Called(os.Args[0]) == "srun" { // the step that it becomes
		os.Exit(grun.Main())
	}
	copies := func(args []string, s cmdline.Streams) int { return grun.Copy("gcp", args, s) }
	os.Exit(output.Run("gcp", copies, os.Args[1:], cmdline.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
