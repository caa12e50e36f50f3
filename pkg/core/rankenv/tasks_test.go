package rankenv

import (
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
	"github.com/google/go-cmp/cmp"
)

// A task has what is its own, on the first node as on others, and nothing of the program that ran srun.
func TestTasksSpeakByTheirOwn(t *testing.T) {
	reply := &api.StepReply{JobID: 7, StepID: 4, Tasks: 3, Nodes: []api.StepNode{{Name: "n1", Tasks: []int{0}}, {Name: "n2", Index: 1, Tasks: []int{1, 2}}},
		Allocation: api.Allocation{Nodes: []api.StepNode{{Name: "n1"}, {Name: "n2"}}}}
	outer := []string{"NOTIFY_SOCKET=/outer", "GANG_SOCKET=/outer", "WATCHDOG_USEC=1", "WATCHDOG_PID=7", "GANG_CHECKPOINT_FILE=/outer", "CHECKPOINT_DATA=b3V0ZXI="}
	want := []map[string]string{
		{"NOTIFY_SOCKET": "/m/n0", "GANG_SOCKET": "/m/g0", "WATCHDOG_USEC": "90000000", "GANG_CHECKPOINT_FILE": "/m/c0", "CHECKPOINT_DATA": "YQ==", "GANG_CHECKPOINT_DIR": "/w/.gang/7"},
		{"NOTIFY_SOCKET": "/m/n1", "GANG_SOCKET": "/m/g1", "WATCHDOG_USEC": "90000000", "GANG_CHECKPOINT_FILE": "/m/c1", "GANG_CHECKPOINT_DIR": "/w/.gang/7"},
		{"GANG_CHECKPOINT_DIR": "/w/.gang/7"},
	}
	task := 0
	for part := range reply.Nodes {
		s := Step{Reply: reply, Part: part, Env: outer, Watchdog: 90 * time.Second, CheckpointDir: "/w/.gang/7",
			Checkpoints: map[int]Checkpoint{0: {File: "/m/c0", Data: []byte("a")}, 1: {File: "/m/c1"}},
			Sockets: func(task int) (string, string) {
				if task == 2 {
					return "", ""
				}
				return "/m/n" + string(rune('0'+task)), "/m/g" + string(rune('0'+task))
			}}
		for _, env := range s.Environ() {
			got := map[string]string{}
			for _, kv := range env {
				name, value, _ := strings.Cut(kv, "=")
				if strings.HasSuffix(name, "_SOCKET") || strings.HasPrefix(name, "WATCHDOG") || strings.Contains(name, "CHECKPOINT") {
					got[name] = value
				}
			}
			if diff := cmp.Diff(want[task], got); diff != "" {
				t.Errorf("task %d: -want +got\n%s", task, diff)
			}
			task++
		}
	}
}

// TestTasksOn: tasks of a node are those that were asked for, else what its CPUs are for.
func TestTasksOn(t *testing.T) {
	for _, c := range []struct {
		name        string
		asked       *api.Asked
		size        int
		ranks, cpus []int
		want        string
	}{
		{"by --size", nil, 3, []int{2, 1}, []int{2, 1}, "2,1"},
		{"nobody said, whole nodes", &api.Asked{ByWords: true, TasksLeft: true}, 2, []int{1, 1}, []int{8, 4}, "8,4"},
		{"nobody said, CPUs of a task", &api.Asked{ByWords: true, TasksLeft: true, CPUsPerTask: 2}, 2, []int{1, 1}, []int{8, 8}, "4(x2)"},
		{"nobody said, fewer CPUs than one task wants", &api.Asked{ByWords: true, TasksLeft: true, CPUsPerTask: 4}, 1, []int{1}, []int{2}, "1"},
		{"said, whole nodes", &api.Asked{ByWords: true}, 2, []int{1, 1}, []int{8, 8}, "1(x2)"},
		{"more tasks than CPUs", &api.Asked{ByWords: true, Tasks: 20}, 2, []int{1, 1}, []int{1, 1}, "10(x2)"},
		{"of a client before", &api.Asked{Tasks: 20}, 2, []int{1, 1}, []int{1, 1}, "1(x2)"},
		{"cards apart", &api.Asked{ByWords: true, TasksLeft: true, Spread: true}, 8, []int{4, 4}, []int{4, 4}, "1(x2)"},
		{"fewer tasks than cards", &api.Asked{ByWords: true, Tasks: 2}, 3, []int{2, 1}, []int{2, 1}, "1(x2)"},
	} {
		if got := api.PerNode(TasksOn(c.asked, c.size, c.ranks, c.cpus)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestToldByWords: of a job that was asked for in Slurm's words the script is told these, and nothing that was derived.
func TestToldByWords(t *testing.T) {
	m := member()
	m.Spec.Launch, m.Spec.RanksPerNode, m.Spec.CPUsPerRank, m.Spec.MemoryPerNode = api.LaunchBatch, 3, 4, 1<<30
	m.Spec.Asked = &api.Asked{ByWords: true, TasksLeft: true, Told: []string{"SLURM_HINT=nomultithread"}}
	m.Body.Nodes[0].CPUs = 16
	list := m.Environ()[0]
	for name, want := range map[string]string{"SLURM_HINT": "nomultithread", "SLURM_CPUS_ON_NODE": "16", "SLURM_JOB_CPUS_PER_NODE": "16,4", "SLURM_TASKS_PER_NODE": "16,4"} {
		if got, _ := lookup(list, name); got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_NODE", "SLURM_OVERCOMMIT"} {
		if v, ok := lookup(list, name); ok {
			t.Errorf("%s=%s, which nobody asked for", name, v)
		}
	}
}
