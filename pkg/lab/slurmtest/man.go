package slurmtest

import (
	"os"
	"strings"
	"testing"

	"gangd/pkg/core/cmdline"
)

// Manual checks that a page names every option of the lists with what is said of it, and that
// the page is sound: escaped dashes, no line that roff would take for a request of its own.
func Manual(t *testing.T, page string, all ...cmdline.Lists) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`\-`, "-", `\fB`, "", `\fR`, "", `\fI`, "", `\&`, "").Replace(string(b))
	for _, l := range all {
		for _, o := range l.Options {
			if !strings.Contains(text, o.Name) {
				t.Errorf("%s does not name %s of %s", page, o.Name, l.Name)
			}
			if o.List != cmdline.Exact && !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(o.Text), " ")) {
				t.Errorf("%s does not say of %s %s: %s", page, l.Name, o.Name, o.Text)
			}
		}
	}
	for i, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, "'") {
			t.Errorf("%s:%d begins with a quote, which roff takes for a request", page, i+1)
		}
	}
}
