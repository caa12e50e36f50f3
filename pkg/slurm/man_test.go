package slurm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
)

// TestManPage: the page names every command that there is a link of, and every variable that
// the commands read, and no other.
func TestManPage(t *testing.T) {
	b, err := os.ReadFile("../../man/gangd-slurm.7")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, c := range cmdline.Names {
		if !strings.Contains(page, c.Name) {
			t.Errorf("man/gangd-slurm.7 lacks %s", c.Name)
		}
	}
	name := regexp.MustCompile(`\b(SQUEUE|SCANCEL|SINFO)_[A-Z0-9_]+`)
	read := map[string]bool{}
	for _, dir := range []string{"squeue", "scancel", "sinfo"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range name.FindAllString(string(src), -1) {
				read[v] = true
			}
		}
	}
	in := map[string]bool{}
	for _, v := range name.FindAllString(page, -1) {
		in[v] = true
		if !read[v] {
			t.Errorf("man/gangd-slurm.7 has %s, which nothing reads", v)
		}
	}
	for v := range read {
		if !in[v] {
			t.Errorf("man/gangd-slurm.7 lacks %s", v)
		}
	}
}
