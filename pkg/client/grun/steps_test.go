package grun

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
)

func taken(t *testing.T, words ...string) *ask {
	t.Helper()
	cmd, _, err := parse(words)
	if err != nil {
		t.Fatal(err)
	}
	a, err := take("srun", 0, cmd)
	if err != nil {
		t.Fatalf("%v: %v", words, err)
	}
	return a
}

// What says how much a task takes leaves the rest to other steps.
func TestWhatImpliesExact(t *testing.T) {
	for words, want := range map[string]bool{
		"": false, "-n2": false, "--mem=50M": false, "-c1": true, "--cpus-per-task=2": true, "--threads-per-core=1": true, "--exact": true,
		"--exclusive": true, "-c1 --whole": false, "--whole -c1": false,
	} {
		if got := taken(t, strings.Fields(words)...).step.Exact; got != want {
			t.Errorf("%q: exact %t, want %t", words, got, want)
		}
	}
	t.Setenv("SRUN_CPUS_PER_TASK", "2")
	if !taken(t).step.Exact {
		t.Error("SRUN_CPUS_PER_TASK does not imply it")
	}
}

// SLURM_HOSTFILE has a node for each task; what is on the command line comes before it.
func TestHostFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("# a node a line\nn3\nn1*2\nn[5-6]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(hostFile, file)
	for words, want := range map[string]string{
		"":                         "5 n3 n1 n1 n5 n6 arbitrary",
		"-n2":                      "2 n3 n1 arbitrary",
		"-m cyclic":                "5 n3 n1 n1 n5 n6 arbitrary",
		"-w n2,n2":                 "0 n2 ",
		"-w n2 -n3":                "3 n2 ",
		"-w n2,n2,n1 -m arbitrary": "3 n2 n2 n1 arbitrary",
	} {
		s := taken(t, strings.Fields(words)...).step
		if got := fmt.Sprint(s.Tasks, " ", strings.Join(s.NodeList, " "), " ", s.Distribution); got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
	cmd, _, _ := parse([]string{"-n6"})
	if _, err := take("srun", 0, cmd); err == nil || !strings.HasPrefix(err.Error(), "error: Too few NodeNames in Slurm Hostfile\nsrun: error: Failure getting NodeNames from hostfile") {
		t.Errorf("six tasks: %v", err)
	}
}

func TestWhichCardsATaskSees(t *testing.T) {
	for value, want := range map[string]string{
		"map_gpu:1,0": "[[1] [0]]", "map_gpu:0*2,1": "[[0] [0] [1]]", "mask_gpu:3,4": "[[0 1] [2]]", "mask_gpu:0xC*2": "[[2 3] [2 3]]", "verbose,map_gpu:0x2": "[[2]]",
		"none": "[]", "closest": "[]",
	} {
		if got := fmt.Sprint(taken(t, "--gpu-bind="+value).cardsOf); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

// Names of files: what the caller fills in before and after the step has its number, and what is left to the nodes.
func TestFileNames(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "12")
	t.Setenv("USER", "")
	r := &run{ask: &ask{name: "n"}}
	me, _ := r.shared('u', api.JobRef{ID: 12, Index: -1}, -1)
	if me == "" {
		t.Error("no user")
	}
	for _, c := range []struct{ pattern, early, late, nodes string }{
		{"x.%j", "x.12", "x.12", "x.12"},
		{"x.%J.%s", "x.12.%s", "x.12.3.3", "x.12.%s.%s"},
		{"%u.%x.%A", me + ".n.12", me + ".n.12", me + ".n.12"},
		{"%a", "4294967294", "4294967294", "4294967294"},
		{"100%%.%t%%t", "100%.%t%t", "100%.%t%t", "100%%.%t%%t"},
		{"%", "%", "%", "%"},
	} {
		ref := api.JobRef{ID: 12, Index: -1}
		if got := []string{r.jobPattern(c.pattern, ref, -1), r.jobPattern(c.pattern, ref, 3), r.nodePattern(c.pattern, ref)}; !slices.Equal(got, []string{c.early, c.late, c.nodes}) {
			t.Errorf("%s: %q, want %q", c.pattern, got, []string{c.early, c.late, c.nodes})
		}
	}
}

// A step that begins at a node of its allocation behind which there are too few.
func TestRelativeNodes(t *testing.T) {
	t.Setenv("SLURM_JOB_NUM_NODES", "4")
	for words, want := range map[string]string{
		"-r3 -N1": "", "-r2 -N2": "", "-r0": "", "-N2 -r3": "error: --relative and --nodes option incompatible with count of allocated nodes (3+2>4)",
		"-r4": "error: --relative and SLURM_JOB_NUM_NODES option incompatible with count of allocated nodes (4+4>4)",
	} {
		r := &run{ask: taken(t, strings.Fields(words)...), name: "srun"}
		err := r.defaults()
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s: %v, want %q", words, err, want)
		}
	}
}

// PMIx is taken under each of its names, and where nothing is said the site says it.
func TestMPIIsTaken(t *testing.T) {
	for v, want := range map[string]string{"pmix": "pmix", "pmix_v3": "pmix", "pmix_v4": "pmix", "pmi2": "pmi2", "none": "none", "openmpi": "none"} {
		if a := taken(t, "--mpi="+v); a.mpi != want {
			t.Errorf("%s: %q, want %q", v, a.mpi, want)
		}
	}
	if a := taken(t, "-n1"); a.mpi != "" {
		t.Errorf("nothing said: %q", a.mpi)
	}
}

// As many tasks as the CPUs of the job's nodes hold, where CPUs of a task are asked for and nobody says how many tasks.
func TestTasksOfCPUs(t *testing.T) {
	for line, want := range map[string]int{
		"-c2": 7, "-c4": 0, "-c8": 0, "-c16": 0, "": 0, "-c2 -n3": 3, "-c2 --ntasks-per-node=1": 0, "-c2 -N1": 4, "-c2 -N1-2": 6, "-c2 -N2": 6, "-c1 --exclusive": 14,
		"-c2 --overlap": 7, "-c2 -m arbitrary -w n1": 1,
	} {
		r := &run{ask: taken(t, strings.Fields(line)...), name: "srun"}
		if r.fillCPUs([]int{8, 4, 2}); r.ask.step.Tasks != want {
			t.Errorf("%s: %d tasks, want %d", line, r.ask.step.Tasks, want)
		}
	}
	r := &run{ask: taken(t, "-c2"), name: "grun"}
	if r.ask.slurms = false; r.ask.step.Tasks != 0 {
		t.Errorf("grun: %d tasks", r.ask.step.Tasks)
	}
	if r.fillCPUs([]int{8}); r.ask.step.Tasks != 0 {
		t.Errorf("grun: %d tasks of 8 CPUs", r.ask.step.Tasks)
	}
}
