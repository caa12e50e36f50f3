package man

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConfigurationPage holds gangd.toml(5) to docs/configuration.md, which pkg/controller/config makes: the same keys, in the
// same order, with the same defaults, and the same said of when a change counts.
func TestConfigurationPage(t *testing.T) {
	ref, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("gangd.toml.5")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`\\f[BIR]`).ReplaceAllString(strings.ReplaceAll(string(b), `\-`, "-"), "")
	var want, got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]* \\| ([^|]*) \\| (live|next job|restart) \\|").FindAllStringSubmatch(string(ref), -1) {
		want = append(want, m[1]+" "+strings.ReplaceAll(strings.TrimSpace(m[2]), "`", "")+" "+m[3])
	}
	for _, m := range regexp.MustCompile(`(?m)^\.TP\n([a-z_]+) = .*\n(.*)`).FindAllStringSubmatch(text, -1) {
		text, value, _ := strings.Cut(m[2], " Default: ")
		when := "live"
		switch {
		case strings.HasSuffix(text, " A change takes a restart."):
			when = "restart"
		case strings.HasSuffix(text, " A change counts from the next job on."):
			when = "next job"
		}
		got = append(got, m[1]+" "+strings.TrimSuffix(value, ".")+" "+when)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("gangd.toml.5 and docs/configuration.md differ (-config +page):\n%s", diff)
	}
}

// TestPagesOpenWithExamples: what a reader came for stands first.
func TestPagesOpenWithExamples(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !regexp.MustCompile(`\.[1-8]$`).MatchString(f.Name()) {
			continue
		}
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		var sections []string
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(strings.ToUpper(line), ".SH "); ok {
				sections = append(sections, strings.TrimSpace(name))
			}
		}
		examples := slices.IndexFunc(sections, func(s string) bool { return s == "EXAMPLES" || s == "FIRST EXAMPLES" })
		description := slices.Index(sections, "DESCRIPTION")
		if examples < 0 || examples > description {
			t.Errorf("%s has sections %v: want EXAMPLES before DESCRIPTION", f.Name(), sections)
		}
	}
}
