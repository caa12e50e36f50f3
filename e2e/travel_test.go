package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// travels is what a process hands to the processes that are started for it, each by how it is set for the caller and how the
// one that was started shows what came of it.
var travels = []struct {
	thing, set, show string
	want             string
	own              string // what gsubmit's job shows, where it is something else
}{
	{"bytes of a variable", `export LATIN=$(printf 'v\xe9')`, `printf %s "$LATIN" | od -An -tx1`, "76 e9", ""},
	{"bytes of a directory", `d=$(printf 'd\xe9'); mkdir -p "$d"; cd "$d"`, `basename "$PWD" | od -An -tx1`, "64 e9 0a", ""},
	{"open files", "ulimit -S -n 777", "ulimit -S -n", "777", "node"},
	{"stack", "ulimit -S -s 2048", "ulimit -S -s", "2048", "node"},
	{"mask", "umask 027", "umask", "0027", ""},
	{"HOSTNAME", "export HOSTNAME=login1", "echo $HOSTNAME", "n1", ""},
	{"TMPDIR", "export TMPDIR=/nonexistent/u", "echo $TMPDIR", "/tmp", "/nonexistent/u"},
}

// TestTravels is one table of what travels: to the script of sbatch, to a task of srun by itself, to one of salloc's srun, to one of
// srun in a job, and to a rank of gsubmit, which has the limits of its node, unless --propagate says otherwise.
func TestTravels(t *testing.T) {
	t.Parallel()
	c := start(t, "--nodes=1", "--cpus=4")
	c.slurmNames()
	for _, x := range travels {
		t.Run(x.thing, func(t *testing.T) {
			dir := t.TempDir()
			show := filepath.Join(dir, "show")
			if err := os.WriteFile(show, []byte("#!/bin/bash\n"+x.show+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			step := filepath.Join(dir, "step")
			if err := os.WriteFile(step, []byte("#!/bin/bash\nsrun -Q "+show+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, by := range []struct{ name, command string }{
				{"sbatch", "sbatch -Q -W -o out " + show + "; cat out"},
				{"srun", "srun -Q -n1 " + show},
				{"salloc", "salloc -Q -n1 srun -Q " + show},
				{"step", "sbatch -Q -W -o out " + step + "; cat out"},
				{"gsubmit", c.bin + "/gsubmit -Q --wait -o out " + show + "; cat out"},
				{"gsubmit --propagate", c.bin + "/gsubmit -Q --wait --propagate -o out " + show + "; cat out"},
			} {
				want := x.want
				if strings.HasPrefix(by.name, "gsubmit") && x.own != "" && (x.own != "node" || by.name == "gsubmit") {
					want = x.own
				}
				out := c.tool("bash", "-c", fmt.Sprintf("cd %s && mkdir -p 'by %s' && cd 'by %s' && { %s; }; %s", dir, by.name, by.name, x.set, by.command))
				lines := strings.Split(strings.TrimSpace(out), "\n")
				got := strings.TrimSpace(lines[len(lines)-1])
				switch {
				case want == "node" && got == x.want:
					t.Errorf("%s: %q, want the node's", by.name, got)
				case want != "node" && got != want:
					t.Errorf("%s: %q, want %q", by.name, out, want)
				}
			}
		})
	}
}
