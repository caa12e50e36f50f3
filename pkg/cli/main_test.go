package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
	"gangd/pkg/slurm/jobfield"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain makes this test binary the commands themselves, for the scripts.
func TestMain(m *testing.M) {
	jobfield.Now = func() time.Time { return fake.Now }
	jobfield.GroupName = func(uint32) string { return "users" }
	time.Local = time.UTC
	api.Version = "1.2.3"
	mains := map[string]func(){}
	for _, cmd := range programs() {
		mains[cmd.Name()] = func() { Main(cmd) }
	}
	testscript.Main(leakTested{m}, mains)
}

// leakTested is goleak around all tests of the package.
type leakTested struct{ m *testing.M }

func (l leakTested) Run() int {
	code := l.m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			return 1
		}
	}
	return code
}

// TestScripts runs each command as people do; every script has a controller of its own.
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status, "asked": asked,
		},
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
	all := strings.Join(c.Asked, "\n")
	if strings.Contains(all, args[0]) == neg {
		ts.Fatalf("controller was asked:\n%s", all)
	}
}

// run runs a command in this process against a controller.
func run(t *testing.T, c *fake.Controller, cmd *cobra.Command, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if c != nil {
		dir := t.TempDir()
		if err := c.Start(dir); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Stop)
		t.Setenv("GANG_DIR", dir)
	}
	var out, errs bytes.Buffer
	code = Run(cmd, args, &out, &errs)
	return out.String(), errs.String(), code
}

// golden compares text with a file of testdata/golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", path, diff)
	}
}
