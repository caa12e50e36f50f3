package mutate

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// TestBinary builds the tests of a package with other source in place of some files of the
// tree, and files that the tree does not have. Source is by absolute path; dir is for the
// other source, and binary is what is made.
func TestBinary(pkg string, source map[string][]byte, dir, binary string) error {
	return compile(source, dir, "test", "-c", "-o", binary, pkg)
}

// Compile compiles packages, and what they are made of, with such source, and makes nothing of it.
func Compile(source map[string][]byte, dir string, packages ...string) error {
	return compile(source, dir, append([]string{"build"}, packages...)...)
}

// compile is a command of go with an overlay.
func compile(source map[string][]byte, dir string, command ...string) error {
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
	args := append([]string{command[0], "-overlay", overlay}, command[1:]...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
