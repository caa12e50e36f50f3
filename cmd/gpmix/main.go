// Command gpmix is started by gstep, to serve PMIx to the tasks of one step on one node. See package pmixserver.
package main

import (
	"fmt"
	"os"

	"gangd/pkg/node/pmixserver"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintln(os.Stderr, "usage: gpmix is started by gstep")
		os.Exit(2)
	}
	os.Exit(pmixserver.Main())
}
