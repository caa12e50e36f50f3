package e2e

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/lab/tool"
)

// TestClients asks what public clients ask, in their own command lines (testdata/clients.txt), and looks at what
// they look at in the answers.
func TestClients(t *testing.T) {
	t.Parallel()
	if os.Getenv("GANG_E2E_CHAOS") == "" {
		t.Skip("make chaos runs this")
	}
	tool.Need(t, "python3")
	c := start(t, "--nodes=1", "--gpus=2x80G", "--set", "cpus=8")
	names := c.slurmNames()
	env := append(os.Environ(), "GANG_DIR="+c.dir, "PATH="+names+":"+os.Getenv("PATH"), "HOME="+c.tmp)
	ask := func(line string) (out string, status int, errs string) {
		cmd := exec.Command("timeout", "60", "bash", "-c", line)
		cmd.Dir, cmd.Env = c.tmp, env
		var e strings.Builder
		cmd.Stderr = &e
		b, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return string(b), exit.ExitCode(), e.String()
		} else if err != nil {
			t.Fatal(err)
		}
		return string(b), 0, e.String()
	}
	for _, line := range []string{
		"sbatch -J blip -n1 --gpus=1 -o /dev/null --wrap 'until [ -e go ]; do sleep .2; done'",
		"until squeue -h -j 1 -o %T | grep -qx RUNNING; do sleep .05; done",
		"sbatch -J done -n1 -o /dev/null --wait --wrap true",
		"sbatch -J wait -n1 --gpus=2 --array=0-1 -o /dev/null --wrap true",
	} {
		if out, status, errs := ask(line); status != 0 {
			t.Fatalf("%s: %s%s", line, out, errs)
		}
	}
	me, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join("testdata", "clients.txt"))
	if err != nil {
		t.Fatal(err)
	}
	client, line, out, want, status, errs, left := "", "", "", "", 0, "", 0
	settle := func() {
		if line != "" && status != left {
			t.Errorf("%s\n$ %s: status %d, want %d\n%s%s", client, line, status, left, out, errs)
		}
		line, left = "", 0
	}
	for text := range strings.Lines(string(b)) {
		text = strings.TrimSuffix(text, "\n")
		switch {
		case strings.HasPrefix(text, "== "):
			settle()
			client = text[3:]
		case strings.HasPrefix(text, "$ "):
			settle()
			line = text[2:]
			out, status, errs = ask(line)
		case strings.HasPrefix(text, "~"):
			want = strings.ReplaceAll(strings.TrimPrefix(text[1:], " "), "ROOT", regexp.QuoteMeta(me.Username))
			if !regexp.MustCompile(`^(?s:` + want + `)$`).MatchString(out) {
				t.Errorf("%s\n$ %s\n%q%s\nwant %s", client, line, out, errs, want)
			}
		case strings.HasPrefix(text, "? "):
			if left, err = strconv.Atoi(text[2:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle()
	ask("touch go")
}
