package sitehook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gangd/pkg/wire/trusted"
)

// Programs are those of a hook: the file itself, or, of a directory, its files by name. Hidden files
// and what editors and package managers leave beside a file are none. An error names what can't be run, or what
// others could change: nothing of the hook is run then.
func Programs(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, runnable(path)
	}
	if err := trusted.File(path); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if leftover(e.Name()) {
			continue
		}
		file := filepath.Join(path, e.Name())
		if err := runnable(file); err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}

// leftover is a file that nobody means to be run.
func leftover(name string) bool {
	for _, end := range []string{"~", ".bak", ".orig", ".rpmnew", ".rpmsave", ".rpmorig", ".dpkg-old", ".dpkg-dist", ".dpkg-new", ".swp"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return name[0] == '.'
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s can't be executed: chmod +x %s", path, path)
	}
	return trusted.File(path)
}
