package proc

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestMain lets this program be one that waits, and has a child that works.
func TestMain(m *testing.M) {
	if os.Getenv("PROC_TEST_WAITS") == "" {
		os.Exit(m.Run())
	}
	if err := MarkWaiting(); err != nil {
		os.Exit(1)
	}
	c := exec.Command("sh", "-c", "echo $$; exec cat")
	c.Stdin, c.Stdout = os.Stdin, os.Stdout
	if c.Run() != nil {
		os.Exit(1)
	}
}

// A waiter is known by its mark, whatever file it was started from and what became of that.
func TestWaits(t *testing.T) {
	copied := filepath.Join(t.TempDir(), "copy")
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, b, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(copied)
	c.Env = append(os.Environ(), "PROC_TEST_WAITS=1")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(copied); err != nil { // as an upgrade does
		t.Fatal(err)
	}
	if !Waits(c.Process.Pid) {
		t.Error("the one that waits is not known")
	}
	if child, err := strconv.Atoi(strings.TrimSpace(line)); err != nil || Waits(child) {
		t.Errorf("its child %d is taken for one that waits (%v)", child, err)
	}
	if Waits(os.Getpid()) || Waits(-1) {
		t.Error("who has no mark is taken for one that waits")
	}
}
