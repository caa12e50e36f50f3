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
