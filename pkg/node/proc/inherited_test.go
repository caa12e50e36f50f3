package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKeepFiles: what is open reaches no child, by the kernel's call and where it has none.
func TestKeepFiles(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	seen := func() bool {
		out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return strings.Contains(string(out), secret)
	}
	for name, keep := range map[string]func() error{"kernel": KeepFiles, "each": keepEach} {
		fd, err := unix.Open(secret, unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !seen() {
			t.Fatalf("%s: a child does not have the file that it should lose", name)
		}
		if err := keep(); err != nil {
			t.Fatal(err)
		}
		if seen() {
			t.Errorf("%s: a child has the file", name)
		}
		_ = unix.Close(fd)
	}
}
