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

// TestUsersPass: a directory is open to users by its own mode and by those above it, to all or to those of one group of the site's.
func TestUsersPass(t *testing.T) {
	base, err := os.MkdirTemp("/tmp", "users-pass-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	site := os.Getegid() // a group that this process may give directories to
	if os.Geteuid() == 0 {
		site = 12345
	}
	dir := filepath.Join(base, "a", "run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		base, above, dir os.FileMode
		gid              int // of dir
		closed           string
	}{
		{0o755, 0o755, 0o755, -1, ""},
		{0o711, 0o711, 0o711, -1, ""},
		{0o755, 0o755, 0o700, -1, dir},
		{0o755, 0o755, 0o750, -1, dir}, // a umask of 027: the group is this process's own
		{0o755, 0o700, 0o755, -1, filepath.Dir(dir)},
		{0o700, 0o755, 0o700, -1, base},
		{0o755, 0o755, 0o750, site, ""},
		{0o755, 0o755, 0o740, site, dir},
		{0o755, 0o755, 0o754, -1, dir},
	} {
		if c.gid == site && os.Geteuid() != 0 {
			continue
		}
		if err := errors.Join(os.Chown(dir, -1, max(c.gid, os.Getegid())), os.Chmod(base, c.base), os.Chmod(filepath.Dir(dir), c.above), os.Chmod(dir, c.dir)); err != nil {
			t.Fatal(err)
		}
		for _, way := range []string{dir, link} {
			err := UsersPass(way)
			if c.closed == "" && err != nil || c.closed != "" && (err == nil || !strings.HasPrefix(err.Error(), "users can't pass "+c.closed+" (mode ") || !strings.Contains(err.Error(), "chmod o+x "+c.closed+",")) {
				t.Errorf("%+v by %s: %v", c, way, err)
			}
		}
	}
	if err := UsersPass(filepath.Join(base, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of one that is not there: %v", err)
	}
}
