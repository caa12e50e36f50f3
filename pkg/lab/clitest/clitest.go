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
	"gangd/pkg/core/table/jobfield"
	"gangd/pkg/lab/sitetest"
)

// Main runs the tests, or the command by whose name a script called the test binary.
func Main(m testscript.TestingM, commands map[string]func()) {
	jobfield.Now = func() time.Time { return sitetest.Now }
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
			s := sitetest.Small(t)
			env.Defer(s.Close)
			dir := filepath.Join(env.WorkDir, "cluster")
			s.Serve(dir)
			env.Setenv("GANG_DIR", dir)
			env.Setenv("NOWHERE", filepath.Join(env.WorkDir, "nowhere"))
			frozen, err := freeze(filepath.Join(env.WorkDir, "frozen"))
			if err != nil {
				return err
			}
			env.Defer(func() { _ = frozen.Close() })
			env.Setenv("FROZEN", filepath.Join(env.WorkDir, "frozen"))
			env.Values["site"] = s
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
	s := ts.Value("site").(*sitetest.Site)
	all := strings.Join(s.Asked(), "\n")
	for end := time.Now().Add(20 * time.Second); !neg && !strings.Contains(all, args[0]) &&
		time.Now().Before(end); time.Sleep(time.Millisecond) {
		all = strings.Join(s.Asked(), "\n") // by a command that still runs
	}
	if strings.Contains(all, args[0]) == neg {
		ts.Fatalf("controller was asked:\n%s", all)
	}
}
