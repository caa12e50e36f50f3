package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gangd/pkg/client/gcron"
	"gangd/pkg/client/grun"
	"gangd/pkg/client/program"
	"gangd/pkg/core/table/jobfield"
)

// page is a manual page without the marks that would hide a word from a search.
func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "man", name))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\\f[BIR]`).ReplaceAllString(strings.ReplaceAll(string(b), `\-`, "-"), "")
}

// TestManPagesMatchTheFlags holds each page to its command: every option is described
// under a .TP of its own, with its short form, and no page describes one that is not.
func TestManPagesMatchTheFlags(t *testing.T) {
	described := regexp.MustCompile(`(?m)^\.TP\n(?:(-\w), )?--([\w-]+)`)
	for _, cmd := range append(programs(), gcron.New(), grun.NewCopy()) {
		t.Run(cmd.Name(), func(t *testing.T) {
			prepare(cmd)
			want := map[string]string{}
			program.Each(cmd, func(c *cobra.Command) {
				c.Flags().VisitAll(func(f *pflag.Flag) {
					if f.Hidden {
						return // another page has it
					}
					if f.Shorthand != "" {
						want[f.Name] = "-" + f.Shorthand
					} else if want[f.Name] == "" {
						want[f.Name] = ""
					}
				})
			})
			got := map[string]string{}
			for _, m := range described.FindAllStringSubmatch(page(t, cmd.Name()+".1"), -1) {
				got[m[2]] = m[1]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("man/%s.1 and the options differ (-options +page):\n%s", cmd.Name(), diff)
			}
		})
	}
}

// TestManPagesHaveTheirParts: examples come first, and the exit status is written down.
func TestManPagesHaveTheirParts(t *testing.T) {
	for _, cmd := range programs() {
		text := page(t, cmd.Name()+".1")
		var sections []string
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, ".SH "); ok {
				sections = append(sections, strings.TrimSpace(name))
			}
		}
		if len(sections) < 2 || sections[0] != "NAME" || sections[1] != "EXAMPLES" || !slices.Contains(sections, "EXIT STATUS") {
			t.Errorf("man/%s.1 has sections %v: want NAME, EXAMPLES, ... and EXIT STATUS", cmd.Name(), sections)
		}
		if !strings.Contains(text, cmd.Name()+" - "+cmd.Short) {
			t.Errorf("man/%s.1 does not open with %q", cmd.Name(), cmd.Name()+" - "+cmd.Short)
		}
	}
}

// TestManPageKnowsTheFields: each letter and name of gqueue stands in its page.
func TestManPageKnowsTheFields(t *testing.T) {
	text := page(t, "gqueue.1")
	for i := range jobfield.Gqueue.Fields {
		f := &jobfield.Gqueue.Fields[i]
		first := strings.Join(f.Names[:min(len(f.Names), 1)], "")
		if f.Letter != 0 && !strings.Contains(text, "%"+string(f.Letter)+" "+first) {
			t.Errorf("man/gqueue.1 lacks %%%c %s", f.Letter, first)
		}
		for _, name := range f.Names {
			if f.Letter == 0 && !regexp.MustCompile(`\b`+name+`\b`).MatchString(text) {
				t.Errorf("man/gqueue.1 lacks the field %s", name)
			}
		}
	}
}

// TestHelpStartsWithExamples: three real ones, that call commands and options that exist.
func TestHelpStartsWithExamples(t *testing.T) {
	for _, root := range programs() {
		prepare(root)
		program.Each(root, func(c *cobra.Command) {
			lines := strings.Split(strings.TrimSpace(c.Example), "\n")
			if len(lines) != 3 {
				t.Errorf("%s has %d examples, want 3", c.CommandPath(), len(lines))
			}
			for _, line := range lines {
				for _, name := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(line, -1) {
					if !flagExists(name[1]) {
						t.Errorf("%s: the example %q uses an option that is not there", c.CommandPath(), line)
					}
				}
			}
			if c.Short == "" {
				t.Errorf("%s says nothing about itself", c.CommandPath())
			}
		})
	}
}

func flagExists(name string) bool {
	found := false
	for _, root := range programs() {
		prepare(root)
		program.Each(root, func(c *cobra.Command) { found = found || c.Flags().Lookup(name) != nil })
	}
	return found
}

// TestHelpFits: no line of any --help is wider than a terminal.
func TestHelpFits(t *testing.T) {
	for _, root := range programs() {
		program.Each(root, func(c *cobra.Command) {
			args := append(strings.Fields(c.CommandPath())[1:], "--help")
			out, errs, code := run(t, nil, command(root.Name()), args...)
			if code != 0 || errs != "" {
				t.Errorf("%s --help: status %d, %s", c.CommandPath(), code, errs)
			}
			for line := range strings.Lines(out) {
				if n := textWidth(strings.TrimRight(line, "\n")); n > 80 {
					t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
				}
			}
		})
	}
}
