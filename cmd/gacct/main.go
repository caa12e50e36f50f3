// Command gacct shows the attempts of jobs; see man/gacct.1.
package main

import (
	"gangd/pkg/cli"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sacct"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"sacct": sacct.Run}

func main() {
	slurm.Main(bySlurmsName)
	cli.Main(cli.NewGacct())
}
