package rankenv

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gangd/pkg/api"
)

var update = flag.Bool("update", false, "write the table in man/gsubmit.1 anew")

// ofShim are those that gshim adds when it starts a rank.
var ofShim = []string{"GANG_STATUS_FILE", "GANG_CHECKPOINT_DIR", "MASTER_PORT"}

// TestVariablesAreThoseOfARank: what a rank finds and what the manual says it finds are the same.
func TestVariablesAreThoseOfARank(t *testing.T) {
	own := func(name string) bool {
		return aboutOneJob[name] && name != "WATCHDOG_PID" || strings.HasPrefix(name, "GANG_") || name == "PYTHONUNBUFFERED" || name == "CUDA_DEVICE_ORDER"
	}
	found := map[string]bool{}
	for _, name := range ofShim {
		found[name] = true
	}
	for i, change := range []func(m *Member){
		func(*Member) {},
		func(m *Member) {
			m.Commands, m.Body.Ports, m.Watchdog = "/run/gangd/relay.sock", "12000-12003", time.Minute
			m.Spec.Container = &api.Container{Image: "image"}
			m.Spec.Roles = []api.Role{{Name: "worker", Count: 4}}
			m.CardNames = map[string]string{"GPU-a": "0"}
			m.Sockets = func(int) (string, string) { return "/n", "/h" }
			m.Checkpoints = map[int]Checkpoint{0: {File: "/c", Data: []byte("x")}}
		},
	} {
		m := member()
		change(m)
		mine := map[string]bool{}
		for _, kv := range m.Environ()[0] {
			name, _, _ := strings.Cut(kv, "=")
			if strings.HasPrefix(name, rolePeers) {
				name = rolePeers + "ROLE"
			}
			if own(name) {
				found[name], mine[name] = true, true
			}
		}
		for _, v := range Variables {
			if i == 0 && v.When == "" && !mine[v.Name] && !slices.Contains(ofShim, v.Name) && v.Name != "GANG_SOCKET" && v.Name != "NOTIFY_SOCKET" {
				t.Errorf("%s is always there, says the manual, and is not", v.Name)
			}
		}
	}
	var told []string
	for _, v := range Variables {
		told = append(told, v.Name)
	}
	slices.Sort(told)
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, told) {
		t.Errorf("a rank finds\n%v\nand the manual has\n%v", got, told)
	}
}

// TestEnvironmentOfARankInTheManual holds the table of gsubmit(1) to [Variables].
func TestEnvironmentOfARankInTheManual(t *testing.T) {
	const page, begin, end = "../../../man/gsubmit.1", ".Ss Environment of a rank\n", ".\\\" end of the environment of a rank\n"
	var b strings.Builder
	b.WriteString(".\\\" made by go test ./pkg/core/rankenv -update\nEvery rank finds, beside what was submitted:\n.Bl -tag -width Ds -compact\n")
	for _, v := range Variables {
		fmt.Fprintf(&b, ".It Ev %s\n%s\n", v.Name, strings.ReplaceAll(v.Text, ". ", ".\n"))
		if v.When != "" {
			fmt.Fprintf(&b, ".Pq %s\n", v.When)
		}
	}
	b.WriteString(".El\n")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no section for the table", page)
	}
	want := before + begin + b.String() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the table of %s is not that of Variables: go test ./pkg/core/rankenv -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestAskedOfSteps: what a person asks of srun by a variable reaches the srun in his script, and none of those is one that a job or a
// step sets itself, so that nothing of a job around comes by it.
func TestAskedOfSteps(t *testing.T) {
	m := member()
	m.Spec.Env = []string{"SLURM_JOB_ID=3", "SLURM_NTASKS=9", "SLURM_LABELIO=1"}
	before := map[string]bool{}
	for _, kv := range m.Environ()[0] {
		name, _, _ := strings.Cut(kv, "=")
		before[name] = true
	}
	for name := range askedOfSteps {
		if before[name] {
			t.Errorf("a job sets %s itself", name)
		}
		m.Spec.Env = append(m.Spec.Env, name+"=x")
	}
	after := m.Environ()[0]
	for name := range askedOfSteps {
		if !slices.Contains(after, name+"=x") {
			t.Errorf("%s does not travel", name)
		}
	}
	if slices.Contains(after, "SLURM_NTASKS=9") || slices.Contains(after, "SLURM_LABELIO=1") {
		t.Error("what an outer job was told travels")
	}
	if !AskedOfSteps("SLURM_KILL_BAD_EXIT") || AskedOfSteps("SLURM_NTASKS") || AskedOfSteps("PATH") {
		t.Error("which are asked of steps")
	}
}
