package man

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var linked = regexp.MustCompile(`\]\(([^)#\s]+)`)

// Every link of a page to another file of the tree leads to one that a checkout has.
func TestLinksOfPages(t *testing.T) {
	tracked, err := exec.Command("git", "-C", "..", "ls-files").Output()
	if err != nil {
		t.Skip("no git checkout")
	}
	have := map[string]bool{}
	for _, file := range strings.Fields(string(tracked)) {
		for ; file != "."; file = filepath.Dir(file) {
			have[file] = true
		}
	}
	for page := range have {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
			if to := filepath.Join(filepath.Dir(page), m[1]); !strings.Contains(m[1], ":") && !have[to] {
				t.Errorf("%s links to %s, which is no file of the tree", page, m[1])
			}
		}
	}
}
