// Command gcp puts a copy of a file on every node of a job, see gcp(1).
package main

import (
	"os"

	"gangd/pkg/client/grun"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
)

func main() {
	if cmdline.Called(os.Args[0]) == "srun" { // the step that it becomes
		os.Exit(grun.Main())
	}
	program.Main(grun.NewCopy())
}
