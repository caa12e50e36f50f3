package pkg

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// mostColumns is how long a line of the product may be: two of them stand beside each other on a wide screen.
const mostColumns = 140

// TestLines: no line of a program or a package is longer, but in tests and in what a program wrote.
func TestLines(t *testing.T) {
	for _, root := range []string{".", "../cmd", "../bench", "../scripts", "../e2e"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || bytes.HasPrefix(text, []byte("// Code generated ")) {
				return err
			}
			n := 0
			for line := range bytes.Lines(text) {
				n++
				if c := utf8.RuneCount(bytes.TrimRight(line, "\n")); c > mostColumns {
					t.Errorf("%s:%d: %d columns: break it at %d", path, n, c, mostColumns)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
