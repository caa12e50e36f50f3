// Command gacct shows the attempts of jobs; see man/gacct.1.
package main

import (
	"gangd/pkg/client/cli"
	"gangd/pkg/client/drawn"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sacct"
	"gangd/pkg/slurm/sacctmgr"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{
	"sacct": sacct.Run, "sstat": sacct.Sstat, "sacctmgr": sacctmgr.Run, "sshare": sacctmgr.Sshare, "sprio": sacctmgr.Sprio,
	"seff": sacct.Seff, "reportseff": sacct.Reportseff,
}

func main() {
	slurm.Main(bySlurmsName)
	cli.Drawer = drawn.Draw
	cli.Main(cli.NewGacct())
}
