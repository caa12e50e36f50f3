// Command gsubmit submits a script as a gang of ranks, see gsubmit(1).
package main

import (
	"gangd/pkg/client/program"
	"gangd/pkg/client/submit"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sbatch"
)

// bySlurmsName is what answers when the program is called by one of Slurm's names.
var bySlurmsName = map[string]slurm.Runner{"sbatch": sbatch.Run}

func main() {
	slurm.Main(bySlurmsName)
	program.Main(submit.New())
}
