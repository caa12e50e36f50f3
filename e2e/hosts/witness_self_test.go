package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A witness sees what it is there to see: another epoch that lives, itself twice, a process
// that escaped.
func TestWitness(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, tmp: t.TempDir()}
	rank := func(epoch string, args ...string) *exec.Cmd {
		cmd := exec.Command(self, args...)
		cmd.Dir, cmd.Env = l.tmp, append(os.Environ(), role+"=rank", "GANG_JOB_ID=7", "GANG_RANK=0", "GANG_EPOCH="+epoch)
		return cmd
	}
	first := rank("1", "done", "3")
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	l.until("the first runs", func() bool { s := l.witnesses(7)[key{7, 1, 0}]; return s != nil && s.starts == 1 && s.last > 0 })
	for _, epoch := range []string{"2", "1"} {
		if err := rank(epoch, "20", "0").Run(); err != nil {
			t.Fatal(err)
		}
	}
	l.touch("done")
	_ = first.Wait()
	w := l.witnesses(7)
	got := strings.Join(overlaps(w), "; ")
	for _, want := range []string{"epoch 2 rank 0 with epoch 1 rank 0", "epoch 1 rank 0 with itself", "epoch 1 rank 0 started 2 times"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not seen: %s", want, got)
		}
	}
	if len(l.living()) != 0 {
		t.Errorf("alive: %v", l.living())
	}
	escape := rank("3", "20", "5", "escape")
	if err := escape.Run(); escape.ProcessState.ExitCode() != 5 {
		t.Fatal(err)
	}
	if got := l.living(); len(got) != 1 || got[0] != "7.3.0" {
		t.Errorf("the process that escaped is not seen: %v", got)
	}
	end(t, filepath.Join(l.tmp, "7.3.0.lock"))
	l.within(10*time.Second, "it is gone", func() bool { return len(l.living()) == 0 })
}

// end kills who holds a file open.
func end(t *testing.T, path string) {
	t.Helper()
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && to == path {
			_ = syscall.Kill(atoi(strings.Split(fd, "/")[2]), syscall.SIGKILL)
		}
	}
}
