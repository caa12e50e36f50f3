// Command greport reports what was used from the ledger; see man/greport.1.
package main

import (
	"gangd/pkg/client/cli"
	"gangd/pkg/client/drawn"
	"gangd/pkg/core/plot/html"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sreport"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"sreport": sreport.Run}

func main() {
	slurm.Main(bySlurmsName)
	cli.Drawer = drawn.Draw
	cli.Main(cli.NewGreport(html.Write))
}
