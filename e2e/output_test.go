package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
)

// printing has, for each program and each of Slurm's names, command lines that print something. JOB is a
// job that runs.
var printing = map[string][]string{
	"gsubmit":  {"--output=/dev/null --wrap=true", "--parsable --output=/dev/null --wrap=true", "--test-only --wrap=true", "--help=slurm", "--help"},
	"gqueue":   {"", "--json", "--why JOB", "-h -o %i"},
	"gcancel":  {"--signal=CONT JOB", "--version"},
	"ginfo":    {"", "--json", "--lost --json"},
	"gctl":     {"show job JOB", "show job JOB --json", "ping", "ping --json", "events JOB", "rerun JOB", "completion bash"},
	"gacct":    {"", "--json", "-P", "-e -j JOB"},
	"glog":     {"JOB"},
	"grun":     {"echo hi"},
	"gattach":  {"--help"},
	"greport":  {"usage", "usage --format=csv"},
	"gcron":    {"-l"},
	"gcp":      {"--help"},
	"gtop":     {"--help"},
	"gckpt":    {"--help"},
	"gbarrier": {"--help"},
	"gangd":    {"--help", "--version", "slurm-links LINKS"},
	"gnoded":   {"--help"},
	"gangsim":  {"--help"},

	"sbatch":     {"--output=/dev/null --wrap=true", "--parsable --output=/dev/null --wrap=true", "--version", "--help", "--usage"},
	"squeue":     {"", "--json", "-h -o %i", "--version"},
	"scancel":    {"--version", "--help"},
	"sinfo":      {"", "-N", "--version"},
	"scontrol":   {"show job JOB", "show node", "show config", "ping"},
	"sdiag":      {""},
	"strigger":   {"--version"},
	"sacct":      {"", "-p -j JOB", "--json"},
	"sacctmgr":   {"show user", "list cluster"},
	"sshare":     {""},
	"sprio":      {"--version"},
	"sstat":      {"-a -j JOB"},
	"seff":       {"JOB"},
	"reportseff": {"JOB"},
	"sreport":    {"cluster utilization"},
	"srun":       {"echo hi"},
	"salloc":     {"--version"},
	"sbcast":     {"--version"},
	"sattach":    {"--version"},
	"scrontab":   {"-l"},
}

// silent are programs that no person calls for what they print.
var silent = map[string]bool{"gshim": true, "gstep": true, "gadopt": true, "gpmix": true}

// TestFullStandardOutput has every command write to a full disk: each says so, in one line, and none
// ends as if all were well.
func TestFullStandardOutput(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1")
	names := c.slurmNames()
	job := c.submit("--wrap=echo here; sleep 600")
	c.wait(job, "RUNNING")
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	with := strings.NewReplacer("JOB", strconv.FormatInt(job, 10), "LINKS", filepath.Join(c.tmp, "links"))
	look := func(dir, name string) {
		rows := printing[name]
		if len(rows) == 0 && !silent[name] {
			t.Errorf("%s has no line in the table of this test", name)
		}
		for _, row := range rows {
			cmd := exec.Command(filepath.Join(dir, name), strings.Fields(with.Replace(row))...)
			var errs strings.Builder
			cmd.Dir, cmd.Stdout, cmd.Stderr = c.tmp, full, &errs
			cmd.Env = append(os.Environ(), "GANG_DIR="+c.dir)
			err := cmd.Run()
			said := strings.Count(errs.String(), "no space left on device")
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() <= 0 || cmd.ProcessState.ExitCode() != 1 && name != "srun" && name != "grun" || said == 0 || said > 1 && row != "completion bash" {
				t.Errorf("%s %s > /dev/full: %v, and on stderr\n%s", name, row, err, errs.String())
			}
			if (name == "gsubmit" || name == "sbatch") && strings.Contains(row, "--output") || row == "rerun JOB" {
				if !strings.Contains(errs.String(), "is submitted") {
					t.Errorf("%s %s > /dev/full: the id is nowhere: %s", name, row, errs.String())
				}
			}
		}
	}
	programs, err := os.ReadDir(c.bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range programs {
		if strings.HasPrefix(p.Name(), "g") && p.Type().IsRegular() {
			look(c.bin, p.Name())
		}
	}
	for _, n := range cmdline.Names {
		look(names, n.Name)
	}
}
