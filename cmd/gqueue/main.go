// Command gqueue shows the queue; see man/gqueue.1.
package main

import (
	"runtime/debug"

	"gangd/pkg/client/cli"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/squeue"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"squeue": squeue.Run}

// garbage is how many times what is in use may be made before it is collected. A queue of ten
// thousand jobs is shown and done with before the first time: collecting it while it is read
// took a third of that.
const garbage = 8

func main() {
	debug.SetGCPercent(100 * garbage)
	slurm.Main(bySlurmsName)
	cli.Main(cli.NewGqueue())
}
