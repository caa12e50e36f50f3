package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// launcher is a program that labs start their work with: a script with the lines that it writes, what else it does, and what has to
// come of it.
type launcher struct {
	name  string
	state api.JobState
	ask   func(l *launched) // what it asks from outside, before the end
	check func(l *launched)
}

// launched is one that has been submitted.
type launched struct {
	*cluster
	id int64
}

// has says what a file of the launcher's lacks.
func (l *launched) has(name string, lines ...string) {
	l.t.Helper()
	all, _ := filepath.Glob(filepath.Join(l.tmp, name))
	var text []string
	for _, at := range all {
		b, _ := os.ReadFile(at)
		text = append(text, strings.Split(string(b), "\n")...)
	}
	for _, want := range lines {
		if !slices.Contains(text, want) {
			l.t.Errorf("%s lacks %q:\n%s", name, want, strings.Join(text, "\n"))
		}
	}
}

var launchers = []launcher{
	{"nemo-run", api.JobCompleted, nil, func(l *launched) {
		l.has("log_lab-nemo.train_*_0.out", "/nemo_run/code") // the first rank that fails ends the others
		for rank := range 4 {
			l.has("log_lab-nemo.train_*_1.out", "/nemo_run/code", fmt.Sprintf("rank %d of 4, cards 0,1, head known", rank))
		}
		if j := l.job(l.id); j.RestartCount != 1 {
			l.t.Errorf("%d restarts", j.RestartCount)
		}
		l.has("sbatch_*", "job exited with code 0")
	}},
	{"nemo-rl", api.JobCompleted, func(l *launched) {
		l.until("the way in", func() bool { _, err := os.Stat(filepath.Join(l.tmp, "attach.sh")); return err == nil })
		if out := l.tool("COMMAND=cat /etc/ray; pwd", "bash", "attach.sh"); out != "head\n"+l.tmp+"\nworker\n"+l.tmp+"\n" {
			l.t.Errorf("attached: %q", out)
		}
		l.create("logs/ENDED")
	}, func(l *launched) {
		l.has("logs/ray-head.log", "head on 4096 files, 8 CPUs")
		l.has("logs/ray-worker-0.log", "worker 0,1")
	}},
	{"nvrx", api.JobCompleted, nil, func(l *launched) {
		l.has("nvrx_*_0.out", "0: element 0 of 4", "spares released", "all released")
		l.has("nvrx_*_1.out", "0: element 1 of 4")
		if all, _ := filepath.Glob(filepath.Join(l.tmp, "nvrx_*_[23].out")); len(all) > 0 {
			l.t.Errorf("spares ran: %q", all)
		}
	}},
	{"srt-slurm", api.JobCompleted, nil, func(l *launched) {
		l.has("worker_0_*.out", "role 0 uid 0 cards 0,1")
		l.has("worker_1_*.out", "role 1 uid 0 cards 0")
		l.has("sweep_*.log", "served")
	}},
	{"skypilot", api.JobCompleted, nil, func(l *launched) {
		l.has("sky-*.out", "set up by 0, uid 0, 0", "set up by 0, uid 0, 1")
	}},
	{"monarch", api.JobCancelled, func(l *launched) {
		id := fmt.Sprint(l.id)
		l.until("its workers", func() bool { return strings.Count(l.read("slurm_"+id+"_monarch_lab.out"), "worker ") == 2 })
		var said struct {
			Jobs []struct {
				State     []string `json:"job_state"`
				Resources struct {
					Nodes any `json:"nodes"`
				} `json:"job_resources"`
			} `json:"jobs"`
		}
		if err := json.Unmarshal([]byte(l.tool("squeue", "--job", id, "--json")), &said); err != nil || len(said.Jobs) != 1 ||
			!slices.Contains(said.Jobs[0].State, "RUNNING") || said.Jobs[0].Resources.Nodes == nil {
			l.t.Errorf("squeue --json: %+v, %v", said, err)
		}
		l.tool("scancel", id)
	}, func(*launched) {}},
	{"prime-rl", api.JobCompleted, nil, func(l *launched) {
		l.has("job_*.log", "sync 0", "sync 1", "clean 0 of 2", "clean 1 of 2", "trainer stopped", "launch 143")
	}},
	{"cloudai", api.JobCompleted, nil, func(l *launched) {
		l.has("stdout.txt", "test 4 0", "test 4 1")
		for _, n := range l.job(l.id).Nodes {
			l.has("node-"+n+".toml", "name = "+n)
		}
		if out := l.tool("sacct", "-j", fmt.Sprint(l.id), "-p", "--noheader", "-X", "--format=NodeList"); !strings.Contains(out, "n") {
			l.t.Errorf("sacct: %q", out)
		}
	}},
}

// TestLaunchers plays what launchers of labs write, as they write it, with small programs in the place of theirs.
func TestLaunchers(t *testing.T) {
	t.Parallel()
	tool.Need(t, "python3", "pkill", "hostname")
	image, mounts := machineImage(t, "lab")
	if err := os.Mkdir(filepath.Join(image, "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := start(t, "--nodes=4", "--gpus=2x80G", "--cpus=8", "--set", "containers=true", "--set", "retry_backoff=50ms", "--set", "grace=5s")
	c.slurmNames()
	var all []launched
	for i := range launchers {
		own := *c
		own.tmp = t.TempDir()
		script, err := filepath.Abs(filepath.Join("testdata/launchers", launchers[i].name+".sh"))
		if err != nil {
			t.Fatal(err)
		}
		var id int64
		out := own.tool("CONTAINER="+image, "MOUNTS="+mounts+","+own.tmp+":/nemo_run/code", "sbatch", "--parsable", script)
		if _, err := fmt.Sscan(out, &id); err != nil {
			t.Fatalf("%s: sbatch printed %q", launchers[i].name, out)
		}
		all = append(all, launched{&own, id})
	}
	for i := range launchers { // two hold their nodes until somebody asks something of them
		if ask := launchers[i].ask; ask != nil {
			ask(&all[i])
		}
	}
	for i := range launchers {
		t.Run(launchers[i].name, func(t *testing.T) {
			l, did := &launchers[i], &all[i]
			did.t = t
			if l.name == "nvrx" {
				did.until("the end of its array", func() bool { return did.tool("squeue", "-h", "-j", fmt.Sprint(did.id)) == "" })
			} else {
				did.wait(did.id, l.state)
			}
			l.check(did)
			if t.Failed() {
				t.Logf("%s\n%s", did.story(did.id), did.everyFile())
			}
		})
	}
}
