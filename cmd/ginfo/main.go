// Command ginfo shows nodes and cards; see man/ginfo.1.
package main

import (
	"gangd/pkg/client/cli"
	"gangd/pkg/client/drawn"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sinfo"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"sinfo": sinfo.Run}

func main() {
	slurm.Main(bySlurmsName)
	cli.Drawer = drawn.Draw
	cli.Main(cli.NewGinfo())
}
