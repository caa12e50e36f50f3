package sbatch

import (
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/core/script"
	"gangd/pkg/slurm"
)

// TestWordsOfClashes: what sbatch sees before it looks at cards is all that it says; of the other rules Slurm's line is
// followed by that about the request for cards.
func TestWordsOfClashes(t *testing.T) {
	for c, want := range map[script.Clash]string{
		script.ClashTasksOfCard: "sbatch: fatal: --gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU",
		script.ClashTasksByNode: "sbatch: fatal: --ntasks-per-node is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU",
		script.ClashFewer:       "sbatch: error: Failed to validate job spec, --gpus < -N\nsbatch: error: " + slurm.BadGres,
		script.ClashOnNode:      "sbatch: error: Batch job submission failed: " + slurm.NotSatisfied,
		script.ClashNodes: "sbatch: error: Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes (3) doesn't fall between min_nodes (1) and max_nodes (2) boundaries.\n" +
			"sbatch: error: " + slurm.BadGres,
	} {
		var out strings.Builder
		err := explainScript(&script.Error{Msg: "ours", Clash: c, Nodes: script.ClashText{Nodes: 3, Min: 1, Max: 2}}, cmdline.Streams{Err: &out})
		if got := strings.TrimSuffix(out.String(), "\n"); err != cmdline.Status(1) || got != want+"\nsbatch: gangd: ours" {
			t.Errorf("clash %d: %v\n%s", c, err, got)
		}
	}
}
