package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gangd/pkg/api"
	"gangd/pkg/lab/tool"
)

// gtop on a terminal of tmux, at both sizes: the queue, why, output, cards, a filter, a cancel; a gangd that dies and
// comes back; and the terminal as it was at the end.
func TestTop(t *testing.T) {
	t.Parallel()
	chaos(t)
	tool.Need(t, "tmux")
	c := start(t, "--nodes=2", "--gpus=4x80G")
	run := c.submit("--size=2", "--gpus-per-rank=4", "-J", "runs", "-o", filepath.Join(c.tmp, "out"), "--wrap", "echo hello from here; sleep 600")
	c.wait(run, api.JobRunning)
	wait := c.submit("--size=1", "--gpus-per-rank=1", "-J", "waits", "-o", "/dev/null", "--wrap", "sleep 600")
	for _, size := range [][2]int{{80, 24}, {200, 50}} {
		sock := filepath.Join(t.TempDir(), "s")
		tmux := func(args ...string) string {
			cmd := exec.Command("tmux", append([]string{"-S", sock}, args...)...)
			cmd.Env = append(os.Environ(), "GANG_DIR="+c.dir, "NO_COLOR=1", "TERM=xterm", "TMUX=", "LC_ALL=C.UTF-8")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("tmux %v: %v %s", args, err, out)
			}
			return string(out)
		}
		tmux("new-session", "-d", "-x", strconv.Itoa(size[0]), "-y", strconv.Itoa(size[1]), "sh", "-c", "echo before; "+filepath.Join(c.bin, "gtop")+"; echo after; sleep 600")
		t.Cleanup(func() { _ = exec.Command("tmux", "-S", sock, "kill-server").Run() })
		see := func(what string) {
			t.Helper()
			c.until("gtop shows "+what, func() bool { return strings.Contains(tmux("capture-pane", "-p"), what) })
		}
		keys := func(k ...string) { tmux(append([]string{"send-keys"}, k...)...) }
		see("(Resources)")
		see("cards 8/8")
		keys("/")
		see("/_")
		keys("waits", "Enter")
		see("matching waits")
		keys("w")
		see("why job " + strconv.FormatInt(wait, 10) + " waits")
		keys("Escape", "/", "BSpace", "BSpace", "BSpace", "BSpace", "BSpace", "runs", "Enter")
		see("matching runs")
		keys("l")
		see("hello from here")
		keys("Escape", "n")
		see("job " + strconv.FormatInt(run, 10))
		keys("?")
		see("hold it, or release it")
		keys("Escape")
		keys("Enter")
		see("attempt 1")
		keys("Escape", "c")
		see("cancel job " + strconv.FormatInt(run, 10) + "? y/n")
		keys("n")
		c.kill("gangd")
		see("does not answer since")
		c.must("gangd", "dev", "--restart=gangd", "--dir="+c.dir)
		see("cards 8/8")
		keys("q")
		see("after")
		if text := tmux("capture-pane", "-p"); !strings.Contains(text, "before") {
			t.Errorf("the screen is not as it was:\n%s", text)
		}
	}
}
