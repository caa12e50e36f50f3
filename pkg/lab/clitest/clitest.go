package clitest

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"gangd/pkg/api"
	"gangd/pkg/cli/fake"
	"gangd/pkg/table/jobfield"
)

// Main runs the tests, or the command by whose name a script called the test binary.
func Main(m testscript.TestingM, commands map[string]func()) {
	jobfield.Now = func() time.Time { return fake.Now }
	jobfield.GroupName = func(uint32) string { return "users" }
	time.Local = time.UTC
	api.Version = "1.2.3"
	testscript.Main(m, commands)
}

// Scripts plays the scripts of dir, with update also writing what they expect anew.
func Scripts(t *testing.T, dir string, update bool) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       update,
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
			frozen, err := freeze(filepath.Join(env.WorkDir, "frozen"))
			if err != nil {
				return err
			}
			env.Defer(func() { _ = frozen.Close() })
			env.Setenv("FROZEN", filepath.Join(env.WorkDir, "frozen"))
			env.Values["controller"] = c
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": status, "asked": asked},
	})
}

// freeze is a controller that was stopped: calls reach its socket, and nobody answers.
func freeze(dir string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o755); err != nil {
		return nil, err
	}
	return net.Listen("unix", filepath.Join(dir, "run", "gangd.sock"))
}

// Serve starts a controller that commands of this process find, until the end of the test.
func Serve(t testing.TB, c *fake.Controller) {
	t.Helper()
	dir := t.TempDir()
	if err := c.Start(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	t.Setenv("GANG_DIR", dir)
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
