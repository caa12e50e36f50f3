package pkg

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every line of the tables of docs/security.md names what holds it, and that exists: a test in the
// file that is linked, or tries under the heading there.
func TestSecurityPageIsHeld(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\[(Test\w+|attack: [^\]]+)\]\(([^)]+_test\.go)\)`)
	for _, m := range link.FindAllStringSubmatch(string(page), -1) {
		source, err := os.ReadFile(filepath.Join("../docs", m[2]))
		if err != nil {
			t.Error(err)
			continue
		}
		want := "func " + m[1] + "("
		if heading, tries := strings.CutPrefix(m[1], "attack: "); tries {
			want = `try{"` + heading + `"`
		}
		if !strings.Contains(string(source), want) {
			t.Errorf("%s has no %s", m[2], m[1])
		}
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.Contains(line, "| held by |") {
			continue
		}
		if rows++; !link.MatchString(line) {
			t.Errorf("nothing holds: %s", line)
		}
	}
	if rows < 20 {
		t.Errorf("%d lines were found", rows)
	}
}
