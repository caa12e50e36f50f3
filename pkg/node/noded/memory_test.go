package noded

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSweepLeavesWhatIsOwned(t *testing.T) {
	base, state := t.TempDir(), t.TempDir()
	for name, owner := range map[string]string{"kept": state, "gone": filepath.Join(state, "no"), "full": filepath.Join(state, "no"), "unwritten": ""} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, name+ownerSuffix), []byte(owner), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(base, "full", "1.1"), 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(base)
	for name, want := range map[string]bool{"kept": true, "gone": false, "full": true, "unwritten": true} {
		if _, err := os.Stat(filepath.Join(base, name)); (err == nil) != want {
			t.Errorf("%s: there is %v, want %v", name, err == nil, want)
		}
	}
}

func TestUsableIsOursAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root keeps members in memory")
	}
	base := filepath.Join("/dev/shm", "gnoded-test-usable")
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if !usable(base) {
		t.Skip("/dev/shm is no tmpfs with room here")
	}
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	if usable(base) {
		t.Error("a directory that others may write is used")
	}
	if err := os.Chmod(base, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(base, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if usable(base) {
		t.Error("a directory of somebody else is used")
	}
}
