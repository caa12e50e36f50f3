package slurm_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
	"gangd/pkg/slurm"
	"gangd/pkg/slurm/jobfield"
	"gangd/pkg/slurm/sbatch"
	"gangd/pkg/slurm/scancel"
	"gangd/pkg/slurm/sinfo"
	"gangd/pkg/slurm/squeue"
)

var update = flag.Bool("update", false, "write the scripts' golden files anew")

// TestMain makes this test binary the commands themselves, by Slurm's names.
func TestMain(m *testing.M) {
	jobfield.Now = func() time.Time { return fake.Now }
	jobfield.GroupName = func(uint32) string { return "users" }
	time.Local = time.UTC
	api.Version = "1.2.3"
	mains := map[string]func(){}
	for name, run := range map[string]slurm.Runner{"squeue": squeue.Run, "scancel": scancel.Run, "sinfo": sinfo.Run, "sbatch": sbatch.Run} {
		mains[name] = func() { os.Exit(run(os.Args[1:], slurm.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})) }
	}
	testscript.Main(m, mains)
}

// TestScripts runs each command as scripts do; every script has a controller of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			c := fake.Small()
			dir := filepath.Join(env.WorkDir, "cluster")
			if err := c.Start(dir); err != nil {
				return err
			}
			env.Defer(c.Stop)
			env.Setenv("GANG_DIR", dir)
			env.Setenv("NOWHERE", filepath.Join(env.WorkDir, "nowhere"))
			env.Values["controller"] = c
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "asked": asked},
	})
}

// status runs "status N command args..." and checks the exit status.
func status(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if got != args[0] {
		ts.Fatalf("%s ended with status %s, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// asked checks that the controller was sent something.
func asked(ts *testscript.TestScript, neg bool, args []string) {
	c := ts.Value("controller").(*fake.Controller)
	c.Lock()
	defer c.Unlock()
	if all := strings.Join(c.Asked, "\n"); strings.Contains(all, args[0]) == neg {
		ts.Fatalf("controller was asked:\n%s", all)
	}
}
