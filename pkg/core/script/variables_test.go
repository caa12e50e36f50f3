package script

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestSlurmsVariables: every input variable of sbatch in the Slurms that are spoken stands for its option, or has a reason why not.
func TestSlurmsVariables(t *testing.T) {
	unread := map[string]string{
		"SBATCH_CONTAINER_ID":           "--container is refused, and so is its variable",
		"SBATCH_MEM_BIND":               "memory is not bound, and what a job around says of it is no wish",
		"SBATCH_WAIT4SWITCH":            "SBATCH_REQ_SWITCH=N@TIME has both",
		"SLURM_CONF":                    "there is no slurm.conf",
		"SLURM_DEBUG_FLAGS":             "there are no flags of debugging",
		"SLURM_EXIT_ERROR":              "no option: the exit status of an error",
		"SLURM_STEP_KILLED_MSG_NODE_ID": "the first node says that a step is killed",
		"SLURM_UMASK":                   "the umask of the caller travels",
		"SBATCH_REQ_SWITCH":             "of --switches",
	}
	f, err := os.Open("../../slurm/testdata/variables.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Fields(lines.Text())
		if len(w) < 3 || w[0] != "sbatch" || unread[w[1]] != "" {
			continue
		}
		if !slices.ContainsFunc(Options, func(o Option) bool {
			return slices.Contains(append(strings.Fields(o.Names), o.Long), w[2]) && slices.Contains(o.Env, w[1])
		}) {
			t.Errorf("%s does not stand for --%s", w[1], w[2])
		}
	}
}
