package grun

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/client/program"
)

// unread are variables of Slurm's that say nothing here, each with its reason.
var unread = map[string]string{
	"PMI_FANOUT":                      "what tasks publish goes through one process",
	"PMI_FANOUT_OFF_HOST":             "what tasks publish goes through one process",
	"PMI_TIME":                        "what tasks publish goes through one process",
	"SLURM_PMI_KVS_NO_DUP_KEYS":       "the last value of a key counts",
	"SLURM_CONF":                      "there is no slurm.conf",
	"SLURM_DEBUG_FLAGS":               "there are no flags of debugging",
	"SLURM_DIST_PLANESIZE":            "SLURM_DISTRIBUTION=plane=N has the size",
	"SLURM_EXIT_ERROR":                "no option: see withStatus",
	"SLURM_EXIT_IMMEDIATE":            "--immediate ends with 1",
	"SLURM_REQ_SWITCH":                "with SLURM_WAIT4SWITCH; --switches",
	"SLURM_WAIT4SWITCH":               "with SLURM_REQ_SWITCH; --switches",
	"SALLOC_REQ_SWITCH":               "see sallocVariables",
	"SALLOC_WAIT4SWITCH":              "with SALLOC_REQ_SWITCH; --switches=N@TIME has both",
	"SLURM_SRUN_REDUCE_TASK_EXIT_MSG": "tasks that end alike are told of in one line anyway",
	"SLURM_STEP_KILLED_MSG_NODE_ID":   "the first node says that a step is killed",
	"SLURM_TEST_EXEC":                 "the node says that a program is not there",
	"SLURM_UMASK":                     "the umask of the caller travels",
	"SLURM_WORKING_DIR":               "written by Slurm, for a debugger",
	"SRUN_CONTAINER_ID":               "with SRUN_CONTAINER",
	"SALLOC_CONTAINER_ID":             "with SALLOC_CONTAINER",
}

// TestVariables: every input variable of the Slurms that are spoken stands for its option, outside of a job, or has a reason why not.
func TestVariables(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "")
	t.Setenv("SLURM_JOBID", "")
	f, err := os.Open("testdata/variables.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Fields(lines.Text())
		if w[0] == "#" {
			continue
		}
		command, name, option := w[0], w[1], w[2]
		if unread[name] != "" {
			continue
		}
		i := slices.IndexFunc(options, func(o Option) bool { return o.Long == option })
		if i < 0 || !slices.Contains(variables(command, &options[i]), name) {
			t.Errorf("%s: %s does not stand for --%s", command, name, option)
		}
	}
	for _, c := range []struct{ name, value, want string }{
		{"SLURM_NTASKS", "2", "--ntasks=2"}, {"SLURM_JOB_NUM_NODES", "3", "--nodes=3"}, {"SLURM_GRES", "gpu:2", "--gres=gpu:2"},
		{"SLURM_CONSTRAINT", "a", "--constraint=a"}, {"SLURM_MEM_PER_NODE", "1G", "--mem=1G"}, {"SLURM_OVERCOMMIT", "1", "--overcommit"},
		{"SLURM_OVERCOMMIT", "yes", "--overcommit"}, {"SLURM_OVERCOMMIT", "0", ""}, {"SLURM_OVERCOMMIT", "true", ""},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			if a := taken(t, "-n1"); strings.Contains(strings.Join(a.alloc, " "), "--nodes") != (c.name == "SLURM_JOB_NUM_NODES") {
				t.Errorf("%q", a.alloc)
			}
			a, err := take("srun", 0, nil)
			if err != nil || strings.Join(a.alloc, " ") != c.want {
				t.Errorf("outside of a job: %q, %v, want %q", a.alloc, err, c.want)
			}
			t.Setenv("SLURM_JOB_ID", "7")
			if a, err = take("srun", 0, nil); err != nil || len(a.alloc) > 0 {
				t.Errorf("inside: %q, %v", a.alloc, err)
			}
		})
	}
}

// TestExitError: an error of srun's own ends with the status that SLURM_EXIT_ERROR says, tasks with theirs.
func TestExitError(t *testing.T) {
	t.Setenv("SLURM_EXIT_ERROR", "99")
	own, tasks := &program.ExitError{Status: 1, Err: os.ErrNotExist}, &program.ExitError{Status: 3}
	for _, c := range []struct {
		name string
		err  error
		want int
	}{{"srun", own, 99}, {"salloc", os.ErrNotExist, 99}, {"srun", tasks, 3}, {"grun", own, 1}, {"srun", nil, 0}} {
		if got := program.ExitCode(withStatus(c.name, c.err)); got != c.want {
			t.Errorf("%s %v: %d, want %d", c.name, c.err, got, c.want)
		}
	}
}
