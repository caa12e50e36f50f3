// Command gcancel cancels or signals jobs; see man/gcancel.1.
package main

import (
	"gangd/pkg/client/cli"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/scancel"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"scancel": scancel.Run}

func main() {
	slurm.Main(bySlurmsName)
	cli.Main(cli.NewGcancel())
}
