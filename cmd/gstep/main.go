// Command gstep is started by gshim, for the tasks of one step on one node. See package launcher.
package main

import (
	"fmt"
	"os"

	"gangd/pkg/step/launcher"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: gstep is started by gshim and takes no arguments")
		os.Exit(2)
	}
	os.Exit(launcher.Main())
}
