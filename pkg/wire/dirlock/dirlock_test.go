package dirlock

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is its own second process.
func TestMain(m *testing.M) {
	if dir := os.Getenv("DIRLOCK_HOLD"); dir != "" {
		f, err := Take(dir)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		defer f.Close()
		fmt.Println("held")
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

func hold(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DIRLOCK_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the holder said %q", line)
	}
	return cmd
}

func TestLiveHolderIsNamedAtOnce(t *testing.T) {
	dir := t.TempDir()
	cmd := hold(t, dir)
	began := time.Now()
	_, err := Take(dir)
	if want := fmt.Sprintf("%s is in use by process %d", dir, cmd.Process.Pid); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if time.Since(began) > patience/2 {
		t.Error("a live holder was waited for")
	}
}

func TestKilledHolderIsNoObstacle(t *testing.T) {
	for range 20 {
		dir := t.TempDir()
		cmd := hold(t, dir)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		// Not waited for: it may still be dying, and stays a zombie.
		f, err := Take(dir)
		for errors.As(err, new(*HeldError)) { // KILL is delivered when the holder next runs
			f, err = Take(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
}

func TestPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "a", "state")
	for range 2 { // made, then found
		if err := Private(dir); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Fatalf("%v, %v", info.Mode(), err)
		}
	}
	for _, mode := range []os.FileMode{0o755, 0o710, 0o701} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := Private(dir); err == nil || !strings.Contains(err.Error(), "chmod 0700 "+dir) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}
