package auth

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Everybody calls there, whatever the umask of who starts the daemon; what was there before
// keeps its mode.
func TestSocketIsForAll(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	top, err := os.MkdirTemp("", "as")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	path := filepath.Join(top, "run", "gangd", "g.sock")
	for n := range 3 {
		if n == 2 { // one that a crash has left half way
			if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := ListenUnix(path)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	for p, want := range map[string]os.FileMode{top: 0o700, filepath.Dir(filepath.Dir(path)): 0o755, filepath.Dir(path): 0o755, path: 0o666} {
		if st, err := os.Stat(p); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", p, st.Mode(), err)
		}
	}
}
