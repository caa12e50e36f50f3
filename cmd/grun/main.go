// Command grun runs tasks in an allocation, see grun(1); as srun, salloc and sbcast, too.
package main

import (
	"os"

	"gangd/pkg/client/grun"
	"gangd/pkg/client/output"
	"gangd/pkg/core/cmdline"
)

func main() {
	if cmdline.Called(os.Args[0]) == "sbcast" {
		os.Exit(output.Run("sbcast", grun.Sbcast, os.Args[1:], cmdline.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	os.Exit(grun.Main())
}
