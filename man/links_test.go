package man

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gangd/pkg/lab/tool"
)

var linked = regexp.MustCompile(`\]\(([^)#\s]+)`)

// tracked is every file of the checkout, and every folder.
func tracked(t *testing.T) map[string]bool {
	t.Helper()
	tool.Need(t, "git")
	files, err := exec.Command("git", "-C", "..", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("no git checkout")
	}
	have := map[string]bool{}
	for _, file := range strings.Fields(string(files)) {
		for ; file != "."; file = filepath.Dir(file) {
			have[file] = true
		}
	}
	return have
}

// linksOf are the files that a page links to.
func linksOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", page))
	if err != nil {
		t.Fatal(err)
	}
	var links []string
	for _, m := range linked.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(m[1], ":") {
			links = append(links, filepath.Join(filepath.Dir(page), m[1]))
		}
	}
	return links
}

// Every page of the tree and every manual is led to from docs/README.md: by itself, or by the list of its folder.
func TestEveryPageIsLedTo(t *testing.T) {
	led := map[string]bool{}
	for _, list := range []string{"docs/README.md", "docs/design/README.md"} {
		led[list] = true
		for _, to := range linksOf(t, list) {
			led[to] = true
		}
	}
	for page := range tracked(t) {
		isPage := strings.HasSuffix(page, ".md") && page != "docs/README.md"
		isManual := filepath.Dir(page) == "man" && strings.Trim(filepath.Ext(page), ".12345678") == ""
		if (isPage || isManual) && !led[page] {
			t.Errorf("nothing leads to %s: give it a line in docs/README.md", page)
		}
	}
}

// Every link of a page to another file of the tree leads to one that a checkout has.
func TestLinksOfPages(t *testing.T) {
	have := tracked(t)
	for page := range have {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		for _, to := range linksOf(t, page) {
			if !have[to] {
				t.Errorf("%s links to %s, which is no file of the tree", page, to)
			}
		}
	}
}
