package mutate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// TestBinary builds the tests of a package with other source in place of some files of the
// tree, and files that the tree does not have. Source is by absolute path; dir is for the
// other source, and binary is what is made.
func TestBinary(pkg string, source map[string][]byte, dir, binary string) error {
	return compile(pkg, source, dir, binary, "test", "-c")
}

// compile is go build, or go test -c, with an overlay.
func compile(pkg string, source map[string][]byte, dir, binary string, command ...string) error {
	replace := map[string]string{}
	for i, path := range sorted(source) {
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(path)))
		if err := os.WriteFile(to, source[path], 0o644); err != nil {
			return err
		}
		replace[path] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o644); err != nil {
		return err
	}
	if out, err := exec.Command("go", append(command, "-overlay", overlay, "-o", binary, pkg)...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s %s: %w\n%s", command[0], pkg, err, out)
	}
	return nil
}
