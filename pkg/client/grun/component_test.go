package grun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/api"
)

// shape is what each component of a call runs, as "tasks@group program args".
func (r *run) shape() string {
	var out []string
	for _, c := range append([]component{{r.ask, r.args}}, r.more...) {
		group := "-"
		if c.step.Group != nil {
			group = fmt.Sprint(*c.step.Group)
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d@%s %s", c.step.Tasks, group, strings.Join(c.args, " "))))
	}
	return strings.Join(out, " | ")
}

func TestComponentsOfACall(t *testing.T) {
	het := map[string]string{"SLURM_HET_SIZE": "3", "SLURM_NTASKS": "9", "SLURM_NTASKS_HET_GROUP_0": "1", "SLURM_NTASKS_HET_GROUP_1": "4", "SLURM_LABELIO": "1"}
	for _, c := range []struct {
		name, line string
		env        map[string]string
		want       string // or the refusal
	}{
		{"srun", "-n1 server -p 1 : -n4 client", nil, "1@- server -p 1 | 4@- client"},
		{"srun", "-n1 : -n4 client", nil, "1@- client | 4@- client"},
		{"srun", "-n1 client : -n4", nil, "1@- | 4@-"},
		{"salloc", "-n1 : -n4 sh -c :", nil, "1@- sh -c : | 4@- sh -c :"},
		{"srun", "prog", het, "1@0 prog"},
		{"srun", "--het-group=1 prog", het, "4@1 prog"},
		{"srun", "--pack-group=0,1 prog a", het, "1@0 prog a | 4@1 prog a"},
		{"srun", "--het-group=0-2 -n2 prog", het, "2@0 prog | 2@1 prog | 2@2 prog"},
		{"srun", "a : b", het, "1@0 a | 4@1 b"},
		{"srun", "--het-group=2 a : --het-group=0 b", het, "0@2 a | 1@0 b"},
		{"srun", "--het-group=3 prog", het, "error: Requested het-group offset exceeds highest hetjob index (3 > 2)"},
		{"srun", "--het-group=0,7 prog", het, "error: Attempt to run a job step with het group value of 7, but the job allocation has maximum value of 2"},
		{"srun", "a : b : c : d", het, "error: Attempt to run a job step with het group value of 3, but the job allocation has maximum value of 2"},
		{"srun", "--het-group=0,1 a : b", het, "error: component 0: one component of a step runs on one of the job: --het-group=N"},
		{"srun", "--het-group=1 prog", nil, "error: Requested het-group offset exceeds highest hetjob index (1 > 0)"},
	} {
		t.Run(c.name+" "+c.line, func(t *testing.T) {
			t.Setenv("SLURM_HET_SIZE", "")
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			r := &run{name: c.name}
			err := r.read(strings.Fields(c.line))
			if err == nil {
				err = r.group()
			}
			got := r.shape()
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if c.env != nil && err == nil && !r.label {
				t.Error("a variable that is no component's was not read")
			}
		})
	}
}

// What is handed down holds for later components until they say otherwise; the rest does not.
func TestComponentsHandDown(t *testing.T) {
	r := &run{name: "srun"}
	if err := r.read(strings.Fields("-n3 -l -t 5 a : -c2 b : -t 7 c")); err != nil {
		t.Fatal(err)
	}
	want := "--ntasks=3 --time=5 : --time=5 --cpus-per-task=2 --ntasks=1 : --time=7 --ntasks=1"
	if got := strings.Join(slices.DeleteFunc(r.words(), func(w string) bool { return strings.HasPrefix(w, "--no-") || strings.HasPrefix(w, "--output") }), " "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if len(r.more) != 2 || !r.more[1].label || r.more[0].step.TimeLimit != r.ask.step.TimeLimit || r.more[0].step.Tasks != 0 {
		t.Errorf("%+v", r.more)
	}
	if err := (&run{name: "srun"}).read(strings.Fields(strings.Repeat("a : ", api.MaxRoles) + "b")); err == nil {
		t.Error("more components than a gang has roles")
	}
}

// Each component of a step has the output, the directory and the environment that are asked for it.
func TestComponentsHaveTheirOwn(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KEPT", "yes")
	var std bytes.Buffer
	r := &run{name: "srun", out: &std, err: &std}
	if err := r.read(strings.Fields("-o a.txt prog : -D / -o b.txt --export=W=w prog")); err != nil {
		t.Fatal(err)
	}
	o, err := r.options(api.JobRef{ID: 7, Index: -1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	closers, err := r.stdio(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, c := range closers {
			_ = c.Close()
		}
	}()
	m := &o.More[0]
	if o.Body.Dir != dir || m.Body.Dir != "/" {
		t.Errorf("they run in %q and %q", o.Body.Dir, m.Body.Dir)
	}
	if !slices.Contains(o.Body.Env, "KEPT=yes") || slices.Contains(m.Body.Env, "KEPT=yes") || !slices.Contains(m.Body.Env, "W=w") {
		t.Errorf("the second has %q", m.Body.Env)
	}
	for name, w := range map[string]io.Writer{"a.txt": o.Stdout, "b.txt": m.Stdout} {
		if f, ok := w.(*os.File); !ok || f.Name() != name {
			t.Errorf("output is not %s: %v", name, w)
		}
	}
}

// TestTasksOfAllComponents: what is told of all of them together, where each has a number of tasks.
func TestTasksOfAllComponents(t *testing.T) {
	of := func(i, n int) string { return fmt.Sprintf("SLURM_NTASKS_HET_GROUP_%d=%d", i, n) }
	for _, c := range []struct {
		told []string
		want string
	}{
		{[]string{of(0, 1), "SLURM_NTASKS_PACK_GROUP_0=1", of(1, 2)}, "SLURM_NTASKS=3 SLURM_NPROCS=3"},
		{[]string{of(0, 1)}, ""},
		{[]string{"SLURM_JOB_ID_HET_GROUP_0=1"}, ""},
	} {
		if got := strings.Join(tasksOfAll(c.told, 2), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.told, got, c.want)
		}
	}
}
