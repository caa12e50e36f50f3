package man

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestFromOthersIsHeld: each line of docs/from-others.md names a test that is there.
func TestFromOthersIsHeld(t *testing.T) {
	text, err := os.ReadFile("../docs/from-others.md")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "-C", "..", "grep", "-hoE", "--untracked", "^func Test[A-Za-z0-9_]+", "--", "*_test.go").Output()
	if err != nil {
		t.Skip("no git checkout")
	}
	have := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		have[strings.TrimSpace(strings.TrimPrefix(line, "func "))] = true
	}
	row := regexp.MustCompile("^\\| .* \\| `(Test\\w+)` \\|$")
	rows := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| there |") {
			continue
		}
		rows++
		if m := row.FindStringSubmatch(line); m == nil || !have[m[1]] {
			t.Errorf("no test holds the line %s", line)
		}
	}
	if rows < 40 {
		t.Errorf("%d lines", rows)
	}
}
