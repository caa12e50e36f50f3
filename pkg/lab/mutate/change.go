package mutate

import (
	"errors"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"strings"
)

// Change is a text that stands in a file exactly once, and what is put in its place. In the
// new text, bug() says whether the bug is on that the change belongs to.
type Change struct {
	File     string // below pkg
	Old, New string
}

// Bugs rewrites source, each bug by its changes, one after the other. The result, by absolute
// path, is for [TestBinary]: which bug is on, the environment variable BUG names. What does not
// fit the source any more is an error for each change.
func Bugs(pkg string, names []string, changes map[string][]Change) (map[string][]byte, error) {
	source := map[string][]byte{}
	var errs []error
	for _, name := range names {
		for _, c := range changes[name] {
			path := filepath.Join(pkg, c.File)
			text, ok := source[path]
			if !ok {
				var err error
				if text, err = os.ReadFile(path); err != nil {
					errs = append(errs, fmt.Errorf("bug %s: %w", name, err))
					continue
				}
			}
			if n := strings.Count(string(text), c.Old); n != 1 {
				errs = append(errs, fmt.Errorf("bug %s: %s has %q %d times, want once: say where the rule is now", name, c.File, c.Old, n))
				continue
			}
			on := strings.ReplaceAll(c.New, "bug()", fmt.Sprintf("bugOn(%q)", name))
			source[path] = []byte(strings.Replace(string(text), c.Old, on, 1))
		}
	}
	for _, path := range sorted(source) {
		if _, err := format.Source(source[path]); err != nil {
			errs = append(errs, fmt.Errorf("%s with its bugs: %w", path, err))
		}
		dir := filepath.Dir(path)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		source[filepath.Join(dir, "bug_switch.go")] = []byte(packageClause(text) + bugSource)
	}
	return source, errors.Join(errs...)
}

// packageClause is the line that names the package of a file.
func packageClause(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "package ") {
			return line
		}
	}
	return ""
}

const bugSource = `
import "os"

var bugActive = os.Getenv("BUG")

func bugOn(name string) bool { return bugActive == name }
`
