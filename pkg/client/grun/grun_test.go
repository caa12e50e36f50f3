package grun

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/wire/stepwire"
)

// TestEveryOptionOfSrun holds the table against the recorded options of Slurm: nothing
// is missing, and each takes a value as Slurm's does.
func TestEveryOptionOfSrun(t *testing.T) {
	var b []byte
	for _, version := range []string{"22.05", "23.11", "24.11"} {
		more, err := os.ReadFile("../../slurm/testdata/options-" + version + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, more...)
	}
	kinds := map[string]string{} // the latest version's
	seen := 0
	for _, m := range regexp.MustCompile(`(?m)^srun (?:-(.) )?--([a-z0-9-]+)(=|\[=)?\s*$`).FindAllStringSubmatch(string(b), -1) {
		seen++
		o := byName(m[2])
		if o == nil {
			t.Errorf("--%s: not in the table", m[2])
			continue
		}
		if m[1] != "" && (o.Short != m[1][0]) {
			t.Errorf("--%s is -%s in srun, -%c here", m[2], m[1], o.Short)
		}
		if m[2] == "help" { // of ours --help=slurm
			continue
		}
		kinds[m[2]] = m[3]
	}
	for long, kind := range kinds {
		if want := map[string]cmdline.Kind{"": noValue, "=": value, "[=": mayValue}[kind]; byName(long) != nil && byName(long).Kind != want {
			t.Errorf("--%s%s has kind %d here", long, kind, byName(long).Kind)
		}
	}
	if seen < 100 {
		t.Fatalf("%d options of srun in the record", seen)
	}
}

// TestNothingIsSilent: an option without effect says so in its note, a refused one says why.
func TestNothingIsSilent(t *testing.T) {
	for i := range options {
		o := &options[i]
		switch {
		case o.List == refusedList && (o.Note == "" || o.Set != nil):
			t.Errorf("--%s is refused without a reason, or does something", o.Long)
		case o.List == partial && o.Note == "":
			t.Errorf("--%s differs and does not say how", o.Long)
		case o.Set == nil && !o.Alloc && o.List == exact:
			t.Errorf("--%s does nothing and claims to be exact", o.Long)
		}
	}
	if c := Lists(); len(c.Options) < 100 {
		t.Errorf("%d options listed", len(c.Options))
	}
}

// byName is the row of a long name.
func byName(name string) *Option {
	for i := range options {
		if slices.Contains(options[i].Spellings(), name) {
			return &options[i]
		}
	}
	return nil
}

func TestManPageHasEveryOption(t *testing.T) {
	b, err := os.ReadFile("../../../man/grun.1")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(string(b), `\-`, "-")
	for i := range options {
		for _, n := range options[i].Spellings() {
			if !strings.Contains(page, `\fB--`+n+`\fR`) {
				t.Errorf("man/grun.1 lacks --%s", n)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:\\fB-.\\fR, )?\\fB--([a-z0-9-]+)\\fR`).FindAllStringSubmatch(page, -1) {
		if byName(m[1]) == nil {
			t.Errorf("man/grun.1 has --%s, which is no option", m[1])
		}
	}
}

func TestParse(t *testing.T) {
	cases := []struct {
		line string
		want string // NAME=VALUE..., then | and the rest
		err  string
	}{
		{line: "-n4 -N 2 --label hostname -x", want: "ntasks=4 nodes=2 label= | hostname -x"},
		{line: "-lK0 -n=3 -- -odd", want: "label= kill-on-bad-exit=0 ntasks=3 | -odd"},
		{line: "--kill-on-bad-exit --immediate=5 true", want: "kill-on-bad-exit=1 immediate=5 | true"},
		{line: "--ntasks-per-n=2 x", want: "ntasks-per-node=2 | x"},
		{line: "--tasks-per-node 3 x", want: "ntasks-per-node=3 | x"},
		{line: "--unbufferd x", err: "unrecognized option '--unbufferd'; did you mean --unbuffered?"},
		{line: "--zzzzzz x", err: "unrecognized option '--zzzzzz'"},
		{line: "--label=1 x", err: "option --label takes no value"},
		{line: "--nodes", err: "option --nodes needs a value: MIN[-MAX]"},
		{line: "-?", err: "invalid option -- '?'"},
	}
	for _, c := range cases {
		all, rest, err := parse(strings.Fields(c.line))
		if err != nil || c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: error %v, want %s", c.line, err, c.err)
			}
			continue
		}
		var words []string
		for _, g := range all {
			words = append(words, g.o.Long+"="+g.value)
		}
		if got := strings.Join(append(append(words, "|"), rest...), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.line, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-n4\x00--label\x00x")
	f.Add("--time=1\x00--\x00x")
	f.Fuzz(func(t *testing.T, s string) {
		all, _, err := parse(strings.Split(s, "\x00"))
		if err == nil {
			_, _ = take("srun", 0, all)
		}
	})
}

func TestEnvironmentGivesDefaults(t *testing.T) {
	t.Setenv("SLURM_NTASKS", "8")
	t.Setenv("SLURM_NNODES", "2")
	t.Setenv("SLURM_KILL_BAD_EXIT", "1")
	t.Setenv("SLURM_JOB_ID", "12")
	cmd, _, err := parse([]string{"-n", "3"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := take("srun", 0, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if a.step.Tasks != 3 || a.step.MinNodes != 2 || !a.killOnBad || a.job != "12" || len(a.alloc) != 1 {
		t.Errorf("%+v", a)
	}
}

// What is asked for by card, and the reservation, is asked of the job around the step.
func TestAskedOfTheJobAround(t *testing.T) {
	asked := []string{"--gpus=2", "--cpus-per-gpu=3", "--mem-per-gpu=1G", "--reservation=night"}
	cmd, _, err := parse(asked)
	if err != nil {
		t.Fatal(err)
	}
	a, err := take("srun", 0, cmd)
	if err != nil || !slices.Equal(a.alloc, asked) {
		t.Errorf("%q, %v", a.alloc, err)
	}
}

// Whether one task that fails ends the step: by its own name yes, as srun no, until said.
func TestWhoEndsWithWhom(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want bool
	}{
		{"grun", nil, true}, {"grun", []string{"-K0"}, false}, {"srun", nil, false}, {"srun", []string{"-K"}, true}, {"salloc", nil, false},
	} {
		cmd, _, err := parse(append(c.args, "true"))
		if err != nil {
			t.Fatal(err)
		}
		if a, err := take(c.name, 0, cmd); err != nil || a.killOnBad != c.want || a.killSet != (c.args != nil) || a.firstCode != (c.name == "grun") {
			t.Errorf("%s %v: %+v %v", c.name, c.args, a, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for line, want := range map[string]string{
		"--bcast=/tmp/x":            "--bcast: files are not copied to nodes; use a shared directory, or cp in a step before",
		"--mpi=pmix_vx":             "--mpi: pmix_vx is not offered: pmix serves Open MPI, pmi2 serves MPICH, MVAPICH and Intel MPI, or use --mpi=none",
		"--gres=fpga:1":             `--gres: "fpga:1": only gpu is a resource here`,
		"-n0":                       `--ntasks: "0" is not a number from 1`,
		"-m arbitrary":              "error: --distribution=arbitrary names no nodes: use --nodelist, or the file that SLURM_HOSTFILE names",
		"-m arbitrary -n3 -w n3,n1": "error: You asked for 3 tasks but hostlist specified 2 nodes",
		"-m spiral":                 `--distribution: "spiral": want block, cyclic, plane=N or arbitrary`,
		"-w n[1-2] -x n2,n3":        "error: Requested node n2 is also in the excluded list.\nsrun: error: Job not submitted.",
		"--gpu-bind=far":            `--gpu-bind: "far": want none, closest, single:1, per_task:N, map_gpu:LIST or mask_gpu:LIST`,
		"--gpu-bind=map_gpu:1,x":    `--gpu-bind: "1,x": want numbers of cards from 0 to 63 (map_gpu), or masks in hex (mask_gpu), each with *COUNT for so many tasks`,
		"--gpu-bind=map_gpu:64":     `--gpu-bind: "64": want numbers of cards from 0 to 63 (map_gpu), or masks in hex (mask_gpu), each with *COUNT for so many tasks`,
	} {
		cmd, _, err := parse(strings.Fields(line))
		if err == nil {
			_, err = take("srun", 0, cmd)
		}
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", line, err, want)
		}
	}
}

func TestBadValuesInSrunsWords(t *testing.T) {
	for _, c := range []struct {
		name, line, want string
		status           int
	}{
		{"srun", "-n x true", `error: Invalid numeric value "x" for --ntasks.`, 1},
		{"srun", "--tasks-per-node=0 true", `error: Invalid numeric value "0" for --ntasks-per-node.`, 1},
		{"srun", "-t x true", "error: Invalid --time specification", 255},
		{"srun", "--mem=zz true", "error: Invalid --mem specification", 255},
		{"srun", "-N y true", `error: "y" is not a valid node count`, 255},
		{"srun", "--resv-ports=x true", `error: Invalid numeric value "x" for --resv-port.`, 1},
		{"srun", "--mpi=pmi3 true", "error: Invalid MPI type 'pmi3', --mpi=list for acceptable types (pmix serves Open MPI, pmi2 serves MPICH, MVAPICH and Intel MPI)", 1},
		{"grun", "--mpi=pmi3 true", "--mpi: pmi3 is not offered: pmix serves Open MPI, pmi2 serves MPICH, MVAPICH and Intel MPI, or use --mpi=none", 2},
		{"srun", "", "fatal: No command given to execute.", 1},
		{"grun", "-n x true", `--ntasks: "x" is not a number from 1`, 2},
		{"grun", "", "no program was given; usage: " + usage, 2},
	} {
		r := &run{name: c.name}
		err := r.main(strings.Fields(c.line))
		if err == nil || err.Error() != c.want || program.ExitCode(err) != c.status {
			t.Errorf("%s %s: %v, status %d\nwant %s, status %d", c.name, c.line, err, program.ExitCode(err), c.want, c.status)
		}
	}
	t.Setenv("SLURM_MPI_TYPE", "pmi3") // what a site's profile may export for all
	if err := (&run{name: "srun"}).main([]string{"true"}); err == nil || !strings.HasPrefix(err.Error(), "error: Invalid MPI type 'pmi3', ") {
		t.Errorf("from the environment: %v", err)
	}
	t.Setenv("SLURM_MPI_TYPE", "")
	t.Setenv("SLURM_NTASKS", "x")
	if err := (&run{name: "srun"}).main([]string{"true"}); err == nil || err.Error() != `SLURM_NTASKS: "x" is not a number from 1` {
		t.Errorf("from the environment: %v", err)
	}
}

func TestPrograms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "multi")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# who does what\n* worker %t\n0 head 'one word' --peers=%o\n1-2 side\n")
	got, err := readPrograms(path, []string{"-v"}, 5)
	if err != nil {
		t.Fatal(err)
	}
	want := []stepwire.Program{{Tasks: []int{0}, Argv: []string{"head", "one word", "--peers=%o", "-v"}, Expand: true},
		{Tasks: []int{1, 2}, Argv: []string{"side", "-v"}, Expand: true}, {Argv: []string{"worker", "%t", "-v"}, Expand: true}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	// What Slurm makes of the same lines: a backslash joins lines and takes the meaning from a character.
	write("0 echo a \\\n b c\n1 echo x\\y \"a\\\"b\" \\$HOME a\\ b\n2 echo 'a\\b' \"a\\b\" \\\\\n")
	if got, err = readPrograms(path, nil, 3); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"echo|a|b|c", `echo|xy|a"b|$HOME|a b`, `echo|a\b|a\b|\`} {
		if have := strings.Join(got[i].Argv, "|"); have != want {
			t.Errorf("line %d: %s, want %s", i+1, have, want)
		}
	}
	for text, want := range map[string]string{
		"0-1 a\n":        ": no program for task 2; a line with * is for all others",
		"0 a\n0-3 b\n":   ":2: task 0 has a program already",
		"0\n":            ":1: want TASKS PROGRAM [ARG]...",
		"x a\n":          `:1: tasks "x": want 0,2-4 or *`,
		"0 'open end\n ": ":1: want TASKS PROGRAM [ARG]...",
	} {
		write(text)
		if _, err := readPrograms(path, nil, 3); err == nil || err.Error() != path+want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestRootInAContainer: whether tasks are root in it is said for a step that runs in one, by the last word, or by pyxis' variables.
func TestRootInAContainer(t *testing.T) {
	for line, want := range map[string]bool{
		"true": false, "--container-remap-root true": true, "--container-remap-root --no-container-remap-root true": false,
		"--no-container-remap-root --container-remap-root true": true,
	} {
		cmd, _, err := parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		a, err := take("srun", 0, cmd)
		if err != nil || a.remapRoot != want {
			t.Errorf("%s: %v, %v", line, a.remapRoot, err)
		}
		r := &run{name: "srun", ask: a}
		if err := r.contain("/"); (err != nil) != want || want && err.Error() != "--container-remap-root: speaks of a container, and none is asked for; name one: --container-image=IMAGE" {
			t.Errorf("%s without a container: %v", line, err)
		}
		if r.jobsBox = true; r.contain("/") != nil {
			t.Errorf("%s in the container of the job: %v", line, r.contain("/"))
		}
	}
	for value, want := range map[string]bool{"1": true, "yes": false, "0": false} {
		t.Setenv("PYXIS_CONTAINER_REMAP_ROOT", value)
		cmd, _, err := parse([]string{"true"})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := take("srun", 0, cmd); err == nil && a.remapRoot != want || (err != nil) != (value == "yes") {
			t.Errorf("PYXIS_CONTAINER_REMAP_ROOT=%s: %v", value, err)
		}
	}
}
