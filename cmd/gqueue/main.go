// Command gqueue shows the queue; see man/gqueue.1.
package main

import (
	"gangd/pkg/cli"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/squeue"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"squeue": squeue.Run}

func main() {
	slurm.Main(bySlurmsName)
	cli.Main(cli.NewGqueue())
}
