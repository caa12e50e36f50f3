package man

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"gangd/pkg/lab/tool"
)

// TestPagesRender: no page makes groff or mandoc say anything.
func TestPagesRender(t *testing.T) {
	pages, err := filepath.Glob("*.[1-8]")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, program := range [][]string{{"groff", "-ww", "-man", "-Tutf8", "-z"}, {"mandoc", "-T", "lint", "-W", "warning"}} {
		t.Run(program[0], func(t *testing.T) {
			tool.Need(t, program[0])
			for _, page := range pages {
				if out, err := exec.Command(program[0], append(program[1:], page)...).CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%v %s: %v\n%s", program, page, err, out)
				}
			}
		})
	}
}

// macros are what of a page's source must never reach a reader.
var macros = regexp.MustCompile(`(^|\s)(\.[A-Z][A-Za-z]\b|(Ar|Fl|Op|Ic|Cm|Nm|Xr|Pa|Sy) )|\\\\f[BIRP]|\\\\[-&]`)

// TestPagesFit: at the width of a terminal no line of a page is longer than that, and nothing of its source shows.
func TestPagesFit(t *testing.T) {
	tool.Need(t, "groff")
	pages, err := filepath.Glob("*.[1-8]")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, width := range []int{80, 120} {
		for _, page := range pages {
			out, err := exec.Command("groff", "-mandoc", "-Tutf8", "-P-cbou", fmt.Sprintf("-rLL=%dn", width), fmt.Sprintf("-rLT=%dn", width), page).Output()
			if err != nil {
				t.Fatal(page, err)
			}
			for line := range strings.Lines(string(out)) {
				line = strings.TrimRight(line, "\n")
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%s at %d columns has a line of %d: %s", page, width, n, line)
				}
				if macros.MatchString(line) {
					t.Errorf("%s shows its source: %s", page, line)
				}
			}
		}
	}
}
