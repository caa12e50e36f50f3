// Command gstep is started by gshim, for the tasks of one step on one node. See package launcher.
package main

import (
	"fmt"
	"os"

	"gangd/pkg/node/launcher"
	"gangd/pkg/node/sitehook"
	"gangd/pkg/wire/hold"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "hold" {
		os.Exit(hold.Main())
	}
	if len(os.Args) > 2 {
		os.Exit(sitehook.TaskMain(os.Args[1:]))
	}
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: gstep is started by gshim, and gstep hold by the job of an allocation")
		os.Exit(2)
	}
	os.Exit(launcher.Main())
}
