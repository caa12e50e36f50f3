package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"gangd/pkg/cli/fake"
	"gangd/pkg/lab/clitest"
	"gangd/pkg/program"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestMain makes this test binary the commands themselves, for the scripts.
func TestMain(m *testing.M) {
	mains := map[string]func(){}
	for _, cmd := range programs() {
		mains[cmd.Name()] = func() { Main(cmd) }
	}
	clitest.Main(leakTested{m}, mains)
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
func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata/script", *update) }

// run runs a command in this process against a controller.
func run(t *testing.T, c *fake.Controller, cmd *cobra.Command, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	if c != nil {
		clitest.Serve(t, c)
	}
	var out, errs bytes.Buffer
	code = program.Run(cmd, args, &out, &errs)
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
