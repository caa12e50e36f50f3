package man

import (
	"os/exec"
	"path/filepath"
	"testing"

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
