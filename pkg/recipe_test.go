package pkg

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// optionRecipe is how CONTRIBUTING adds an option of a job that is only carried and shown: in each file, beside which line
// the new one goes.
var optionRecipe = []struct{ file, beside, line string }{
	{"api/spec.go", "\tComment string `json:\"comment,", "\tProbe string `json:\"probe,omitempty\" bound:\"len=1024 text\"`"},
	{"core/script/table.go", "\t{Long: \"comment\",", "\t{Long: \"probe\", Kind: Value, Arg: \"TEXT\", Group: groupFiles, Help: \"a text\", " +
		"Set: func(a *Ask, v string) error { return noteInto(&a.Spec.Probe, v) }},"},
	{"client/grun/table.go", "\t{Long: \"comment\",", "\t{Long: \"probe\", Kind: value, Arg: \"TEXT\", Group: groupAlloc, Alloc: true, Help: \"a text\", Note: allocNote},"},
	{"core/table/jobfield/note.go", "\t{\"Comment\", true,", "\t{\"Probe\", true, \"\", func(j *api.Job) string { return j.Probe }},"},
}

// probe is a test of the changed tree: what is asked for is shown.
const probe = `package jobfield

import (
	"testing"
	"time"

	"gangd/pkg/api"
	"gangd/pkg/core/script"
)

func TestProbe(t *testing.T) {
	flags, _, err := script.Flags([]string{"--probe=seen", "-n1"})
	if err != nil {
		t.Fatal(err)
	}
	req, _, err := script.Build(flags, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := Note("Probe", &api.Job{AsAsked: req.Spec.AsAsked}); got != "seen" {
		t.Errorf("shown as %q", got)
	}
}
`

// TestOptionByTheRecipe adds an option to a copy of the tree as CONTRIBUTING says, in as many files as it says, and tries it.
// With GANG_RECIPE=1 (make recipe) it builds all programs of that tree.
func TestOptionByTheRecipe(t *testing.T) {
	dir := t.TempDir()
	replace := map[string]string{}
	put := func(file, text string) {
		path, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		replace[path] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range optionRecipe {
		data, err := os.ReadFile(r.file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, r.beside) })
		if at < 0 {
			t.Fatalf("%s has no line that begins with %s", r.file, r.beside)
		}
		put(r.file, strings.Join(slices.Insert(lines, at, r.line), "\n"))
	}
	if most := recipeFiles(t); len(replace) > most || most > 6 {
		t.Errorf("an option takes %d files, CONTRIBUTING says %d, and at most 6 are allowed", len(replace), most)
	}
	put("core/table/jobfield/probe_test.go", probe)
	overlay := filepath.Join(dir, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, data, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("test", "-overlay", overlay, "-run", "TestProbe|TestTextsAsAskedAreNotes", "./core/table/jobfield")
	if os.Getenv("GANG_RECIPE") != "" {
		run("build", "-overlay", overlay, "../...")
	}
}

// recipeFiles is in how many files CONTRIBUTING says that such an option goes.
func recipeFiles(t *testing.T) int {
	data, err := os.ReadFile("../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^\| an option of a job that is only carried and shown \| (\d+) files:`).FindSubmatch(data)
	if m == nil {
		t.Fatal("CONTRIBUTING.md does not say in how many files an option goes")
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}
