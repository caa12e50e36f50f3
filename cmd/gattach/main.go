// Command gattach shows what a running step writes, see gattach(1); as sattach, too.
package main

import (
	"gangd/pkg/client/grun"
	"gangd/pkg/client/program"
	"gangd/pkg/slurm"
)

func main() {
	slurm.Main(map[string]slurm.Runner{"sattach": grun.Sattach})
	program.Main(grun.NewAttach())
}
