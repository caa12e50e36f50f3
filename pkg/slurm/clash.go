package slurm

import (
	"fmt"

	"gangd/pkg/core/script"
)

// clash is what Slurm's commands say of words for cards that break a rule together.
type clash struct {
	text string
	// early: sbatch sees it before it looks at cards, and ends with this line alone.
	early bool
}

var clashes = map[script.Clash]clash{
	script.ClashCPUs:    {"--cpus-per-gpu is mutually exclusive with --cpus-per-task", false},
	script.ClashSockets: {"--gpus-per-socket option requires --sockets-per-node specification", false},
	script.ClashSocketCount: {"Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of " +
		"sockets differ from --sockets-per-node.", false},
	script.ClashOrder: {"Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket", false},
	script.ClashTasksOfNode: {"Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of " +
		"tasks per node differ from --ntasks-per-node.", false},
	script.ClashTasks: {"Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from " +
		"-n/--ntasks.", false},
	script.ClashFewer:       {"Failed to validate job spec, --gpus < -N", false},
	script.ClashPartOfNode:  {"Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task", false},
	script.ClashNotByNode:   {"Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node", false},
	script.ClashTasksOfCard: {"--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU", true},
	script.ClashTasksByNode: {"--ntasks-per-node is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU", true},
	script.ClashNotByTask:   {"Failed to validate job spec, --gpus not multiple of --gpus-per-task", false},
}

// Clash is Slurm's line about them, empty where it has none: its controller refuses the job then
// ([NotSatisfied]), or there is no such rule in it. Early: it is all that sbatch says.
func Clash(e *script.Error) (line string, early bool) {
	if n := e.Nodes; e.Clash == script.ClashNodes {
		return fmt.Sprintf("Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (%d) doesn't fall "+
			"between min_nodes (%d) and max_nodes (%d) boundaries.", n.Nodes, n.Min, n.Max), false
	}
	c := clashes[e.Clash]
	return c.text, c.early
}
