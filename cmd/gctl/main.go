// Command gctl shows and changes jobs and nodes; see man/gctl.1.
package main

import (
	"gangd/pkg/client/cli"
	"gangd/pkg/client/drawn"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/sdiag"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"scontrol": scontrol.Run, "sdiag": sdiag.Run, "strigger": sdiag.Strigger}

func main() {
	slurm.Main(bySlurmsName)
	cli.Drawer = drawn.Draw
	cli.Main(cli.NewGctl())
}
