package man

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPagesRender: no page makes groff or mandoc say anything.
func TestPagesRender(t *testing.T) {
	pages, err := filepath.Glob("*.[1-8]")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, tool := range [][]string{{"groff", "-ww", "-man", "-Tutf8", "-z"}, {"mandoc", "-T", "lint", "-W", "warning"}} {
		t.Run(tool[0], func(t *testing.T) {
			if _, err := exec.LookPath(tool[0]); err != nil {
				t.Skipf("%s is not installed (apt install %s)", tool[0], tool[0])
			}
			for _, page := range pages {
				if out, err := exec.Command(tool[0], append(tool[1:], page)...).CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%v %s: %v\n%s", tool, page, err, out)
				}
			}
		})
	}
}
