package slurm_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gangd/pkg/client/gcron"
	"gangd/pkg/client/grun"
	"gangd/pkg/client/program"
	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/sacct"
	"gangd/pkg/slurm/sacctmgr"
	"gangd/pkg/slurm/sbatch"
	"gangd/pkg/slurm/scancel"
	"gangd/pkg/slurm/scontrol"
	"gangd/pkg/slurm/sdiag"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
	"gangd/pkg/slurm/sreport"
)

// programs is every program of Slurm's that has a list in testdata.
var programs = map[string]slurm.Runner{"sbatch": sbatch.Run, "squeue": squeue.Run, "sinfo": sinfo.Run, "scancel": scancel.Run,
	"scontrol": scontrol.Run, "sacct": sacct.Run, "sstat": sacct.Sstat, "sacctmgr": sacctmgr.Run, "sshare": sacctmgr.Sshare,
	"sprio": sacctmgr.Sprio, "sreport": sreport.Run, "sdiag": sdiag.Run, "strigger": sdiag.Strigger, "scrontab": gcron.Scrontab,
	"sbcast": grun.Sbcast, "sattach": grun.Sattach, "srun": byName("srun"), "salloc": byName("salloc")}

// byName is grun by another name, which is that of its process.
func byName(name string) slurm.Runner {
	return func(args []string, s cmdline.Streams) int {
		defer func(was string) { os.Args[0] = was }(os.Args[0])
		os.Args[0] = name
		return program.Run(grun.New(), args, s.Out, s.Err)
	}
}

// said runs a program and gives what it wrote on both streams.
func said(t *testing.T, words ...string) (text string, status int) {
	t.Helper()
	run := programs[words[0]]
	if run == nil {
		t.Fatalf("no program %s", words[0])
	}
	var out, errs bytes.Buffer
	status = run(words[1:], cmdline.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	return errs.String() + out.String(), status
}

// lines are those of a file of testdata, each in its words.
func lines(t *testing.T, pattern string) (all [][]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no file, %v", pattern, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
				all = append(all, f)
			}
		}
	}
	return all
}

// unknown is what a program says of a word that it does not have.
var unknown = regexp.MustCompile(`(?i)unrecognized|invalid option|unknown (option|condition|field|parameter|report|entity)|ambiguous|could be --|` +
	`takes no value|doesn't allow an argument|needs a value|requires an argument|invalid keyword|invalid entity|not supported|no valid entity|` +
	`invalid field|not valid report`)

// values are of options whose values are words, by the name of the option; of the others a 1 is one.
var values = map[string]string{"endtime": "now", "starttime": "now", "state": "CD", "states": "all", "units": "M", "tres": "cpu", "t": "Hours",
	"sort": "Name", "cpu_bind": "none", "cpu-bind": "none"}

// TestEveryOption gives each program every option of the Slurms that are spoken, by its name and by its letter, with and without a value as
// Slurm takes it. What is taken leads to the version, which is asked for behind it; what is refused is refused by its name.
func TestEveryOption(t *testing.T) {
	t.Setenv("GANG_SLURM_VERSION", "24.11")
	s := sitetest.Empty(t)
	s.Found()
	all := lines(t, "options-*.txt")
	t.Chdir(t.TempDir())
	seen := map[string]int{}
	for _, f := range all {
		option := f[len(f)-1]
		name := strings.TrimRight(option, "[=")
		seen[f[0]]++
		bare := strings.TrimLeft(name, "-")
		value := cmp.Or(values[bare], "1")
		given := []string{name}
		switch {
		case !strings.HasPrefix(name, "--") && strings.HasSuffix(option, "="):
			given = []string{name + value, name + " " + value}
		case strings.HasSuffix(option, "[="):
			given = []string{name, name + "=" + value}
		case strings.HasSuffix(option, "="):
			given = []string{name + "=" + value, name + " " + value}
		}
		if len(f) == 3 {
			letter := f[1]
			if strings.HasSuffix(option, "=") {
				letter += value
			}
			given = append(given, letter)
		}
		for _, g := range given {
			args := append(append([]string{f[0]}, strings.Fields(g)...), "--version")
			text, status := said(t, args...)
			switch {
			case unknown.MatchString(text):
				t.Errorf("%s: status %d\n%s", strings.Join(args, " "), status, text)
			case status != 0 && !strings.Contains(strings.ToLower(text), strings.ToLower(bare)):
				t.Errorf("%s: refused, and not by its name: status %d\n%s", strings.Join(args, " "), status, text)
			case status == 0 && text == "":
				t.Errorf("%s: says nothing", strings.Join(args, " "))
			}
		}
	}
	for name := range programs {
		if seen[name] < 3 {
			t.Errorf("%d options of %s in testdata", seen[name], name)
		}
	}
}

// TestEveryWord: commands, entities, parameters, reports.
func TestEveryWord(t *testing.T) {
	t.Setenv("GANG_SLURM_VERSION", "24.11")
	s := sitetest.Small(t)
	s.Found()
	all := lines(t, "words.txt")
	t.Chdir(t.TempDir())
	for _, f := range all {
		var args []string
		switch what := f[0] + " " + f[1]; {
		case f[1] == "command", f[1] == "report":
			args = append([]string{f[0]}, f[2:]...)
		case f[1] == "show", what == "sacctmgr entity":
			args = []string{f[0], "show", f[2]}
		case what == "scontrol update":
			subject := map[string]string{"job": "JobId=13", "partition": "PartitionName=none", "reservation": "ReservationName=none",
				"node": "NodeName=n1", "frontend": "FrontendName=f1", "step": "StepId=12.0"}[f[2]]
			args = []string{"scontrol", "update", subject, f[3] + "=1"}
			if key, _, _ := strings.Cut(subject, "="); key == f[3] {
				args = args[:3]
			}
		case what == "sacctmgr format":
			args = []string{"sacctmgr", "show", f[2], "format=" + f[3]}
		case what == "sacctmgr condition":
			args = []string{"sacctmgr", "show", f[2], f[3] + "=1"}
		case what == "sacctmgr flag":
			args = []string{"sacctmgr", "show", f[2], f[3]}
		case what == "sreport condition":
			args = []string{"sreport", f[2], f[3], f[4] + "=1"}
		case what == "sreport flag":
			args = []string{"sreport", f[2], f[3], f[4]}
		case what == "sreport field":
			args = []string{"sreport", f[2], f[3], "format=" + f[4]}
		}
		text, status := said(t, args...)
		if unknown.MatchString(text) {
			t.Errorf("%s: status %d\n%s", strings.Join(args, " "), status, text)
		}
	}
}

// sources are where a program's variables are read that stand for no option of its table.
var sources = map[string]string{"squeue": "squeue", "sinfo": "sinfo", "scancel": "scancel", "scontrol": "scontrol", "sacct": "sacct",
	"sstat": "sacct", "srun": "../client/grun", "salloc": "../client/grun", "sattach": "../client/grun", "sbatch": "../core/script",
	"scrontab": "../client/gcron"}

// unread are variables that nothing reads, each with its reason.
var unread = map[string]string{
	"SLURM_CONF":                      "there is no slurm.conf",
	"SLURM_DEBUG_FLAGS":               "there are no flags of debugging",
	"SLURM_CONF_OUT":                  "there is no slurm.conf that could be written",
	"SLURM_TOPO_LEN":                  "no line of a topology is cut",
	"SLURM_UMASK":                     "the umask of the caller travels",
	"PMI_FANOUT":                      "processes are told of others by their node, not by each other",
	"PMI_FANOUT_OFF_HOST":             "processes are told of others by their node, not by each other",
	"PMI_TIME":                        "processes are told of others by their node, at any pace",
	"SLURM_PMI_KVS_NO_DUP_KEYS":       "keys are never searched twice",
	"SLURM_TEST_EXEC":                 "the node says that a program is not there",
	"SLURM_STEP_KILLED_MSG_NODE_ID":   "the first node says that a step is killed",
	"SLURM_SRUN_REDUCE_TASK_EXIT_MSG": "ends of tasks that are alike are one message",
}

// TestEveryVariable: each variable that a program of Slurm's reads is read by it here, or has a reason why not.
func TestEveryVariable(t *testing.T) {
	for _, f := range lines(t, "variables.txt") {
		name := f[1]
		if unread[name] != "" || slices.Contains(readBy(t, f[0]), name) {
			continue
		}
		t.Errorf("%s does not read %s", f[0], name)
	}
}

var quoted = regexp.MustCompile(`"([A-Z][A-Z0-9_]+)"`)

// readBy are the variables that the source of a program names.
func readBy(t *testing.T, program string) (names []string) {
	t.Helper()
	dirs := []string{cmp.Or(sources[program], program)}
	switch program {
	case "sbatch":
		dirs = append(dirs, "../client/submit", "sbatch")
	case "sprio", "sshare":
		dirs = []string{"sacctmgr"}
	case "sbcast":
		dirs = []string{"../client/grun"}
	case "strigger":
		dirs = []string{"sdiag"}
	}
	for _, dir := range append(dirs, ".", "../core/cmdline") {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range quoted.FindAllSubmatch(b, -1) {
				names = append(names, string(m[1]))
			}
		}
	}
	return names
}
