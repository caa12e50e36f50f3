// Package tally counts what end-to-end tests have done to a cluster and what they have found,
// over several packages and processes, for the table that `make chaos` prints.
//
// Each count, and each test skipped for what the machine lacks, is a line appended to the file that GANG_E2E_TABLE names, written at once,
// so
// that a run that is cut short has counted what it did; scripts/chaos-table sums them up.
// Without that variable nothing is written.
package tally

import (
	"fmt"
	"os"
	"testing"

	"gangd/pkg/lab/tool"
)

// Did counts something that was done.
func Did(what string, n int) { line("did", what, n) }

// Checked says that a property was looked at, and fails the test for each violation.
func Checked(t *testing.T, property string, violations ...string) {
	t.Helper()
	line("found", property, len(violations))
	const most = 20
	for i, v := range violations {
		if i == most {
			t.Errorf("%s: and %d more", property, len(violations)-i)
			return
		}
		t.Errorf("%s: %s", property, v)
	}
}

// Skip skips a test that needs what this machine lacks, and says so in the table.
func Skip(t *testing.T, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	line("skipped", t.Name()+": "+why, 1)
	t.Skip(why)
}

// Need skips a test that needs programs which this machine lacks, as [tool.Need] does, and says so in the table.
func Need(t *testing.T, names ...string) {
	t.Helper()
	if why := tool.Lacks(t, names...); why != "" {
		Skip(t, "%s", why)
	}
}

// Lack does so for a test that has looked for a program itself.
func Lack(t *testing.T, name string) {
	t.Helper()
	Skip(t, "%s", tool.Reason(t, name))
}

// Lacks says in the table what a test that goes on can't do on this machine.
func Lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	line("skipped", t.Name()+": "+why, 1)
	t.Log(why)
}

func line(kind, what string, n int) {
	path := os.Getenv("GANG_E2E_TABLE")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s\t%s\t%d\n", kind, what, n)
		f.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
