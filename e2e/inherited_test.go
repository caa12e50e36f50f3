package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gangd/e2e/trial"
	"gangd/pkg/api"
)

// TestInheritedFilesReachNoJob: a file that whoever started the daemons had open is not open in
// jobs, and neither daemon would give it to a hook.
func TestInheritedFilesReachNoJob(t *testing.T) {
	t.Parallel()
	c := unstarted(t, trial.Bin(t))
	secret := filepath.Join(c.tmp, "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const left = 77
	begin := exec.Command("bash", "-c", fmt.Sprintf(`exec %d<"$1"; exec "$2" dev --detach --dir="$3" --nodes=1`, left), "bash", secret, filepath.Join(c.bin, "gangd"), c.dir)
	if out, err := begin.CombinedOutput(); err != nil {
		t.Fatalf("gangd dev: %v\n%s", err, out)
	}
	for _, name := range []string{"gangd", "n1"} {
		if !closesOnExec(t, c.pid(name), left) {
			t.Errorf("%s gives descriptor %d to what it starts", name, left)
		}
	}
	id := c.submit("-o", "fds", c.script("fds.sh", "#!/bin/bash\nls -l /proc/self/fd\n"))
	c.wait(id, api.JobCompleted)
	if fds, err := os.ReadFile(filepath.Join(c.tmp, "fds")); err != nil || strings.Contains(string(fds), secret) {
		t.Errorf("open in the job: %s%v", fds, err)
	}
}

// closesOnExec reads from the kernel what becomes of a descriptor of another process.
func closesOnExec(t *testing.T, pid, fd int) bool {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		t.Fatalf("the daemon did not inherit it: %v", err)
	}
	_, text, _ := strings.Cut(string(b), "flags:")
	text, _, _ = strings.Cut(text, "\n")
	flags, err := strconv.ParseInt(strings.TrimSpace(text), 8, 64)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_CLOEXEC != 0
}
