package slurm

import (
	"fmt"

	"gangd/pkg/script"
)

// clashes is what Slurm's commands say of words for cards that break a rule together.
var clashes = map[script.Clash]string{
	script.ClashCPUs:        "--cpus-per-gpu is mutually exclusive with --cpus-per-task",
	script.ClashSockets:     "--gpus-per-socket option requires --sockets-per-node specification",
	script.ClashSocketCount: "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of sockets differ from --sockets-per-node.",
	script.ClashOrder:       "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket",
	script.ClashTasksOfNode: "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-task requested number of tasks per node differ from --ntasks-per-node.",
	script.ClashTasks:       "Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.",
	script.ClashFewer:       "Failed to validate job spec, --gpus < -N",
	script.ClashPartOfNode:  "Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task",
	script.ClashNotByNode:   "Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node",
	script.ClashTasksOfCard: "--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU",
	script.ClashTasksByNode: "--ntasks-per-node is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU",
	script.ClashNotByTask:   "Failed to validate job spec, --gpus not multiple of --gpus-per-task",
}

// Clash is Slurm's line about them, empty where it has none: its controller refuses the job then
// ([NotSatisfied]), or there is no such rule in it.
func Clash(e *script.Error) string {
	if n := e.Nodes; e.Clash == script.ClashNodes {
		return fmt.Sprintf("Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (%d) doesn't fall between min_nodes (%d) and max_nodes (%d) boundaries.", n.Nodes, n.Min, n.Max)
	}
	return clashes[e.Clash]
}
