// Package slurmtest holds tests of commands by Slurm's names against files: a file has calls
// ("$ sacct -j 12"), what each wrote, behind "! " what it wrote on stderr, and "? N" where its
// exit status is N and not 0. Blanks at line ends count and are written as "~" there. "$ asked" is
// what the controller was sent since the last time, "$ as grace" makes her the caller.
//
// It also holds the lists of a command against the recorded options of Slurm 22.05.
//
// Begin with Files. It must not know how a command gets its answer.
package slurmtest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gangd/pkg/core/cmdline"
	"gangd/pkg/lab/sitetest"
	"gangd/pkg/slurm"
)

// Files runs every file of calls below dir; each has a small site of its own, with more scenes, found by
// GANG_DIR. With update the files are written anew.
func Files(t *testing.T, pattern string, update bool, more []sitetest.Scene, commands map[string]slurm.Runner) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s, %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			s := sitetest.Small(t, more...)
			s.Found()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir()) // for what a call leaves behind; the file was read by then
			got := play(t, string(b), commands, s)
			if got == string(b) {
				return
			}
			if update {
				if err := os.WriteFile(filepath.Join(origin, file), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s (run with -update to accept):\n%s", file, cmp.Diff(string(b), got))
		})
	}
}

// origin is where the test's files are.
var origin, _ = os.Getwd()

// play runs the calls of a file and writes it as it would have to be.
func play(t *testing.T, text string, commands map[string]slurm.Runner, s *sitetest.Site) string {
	var out strings.Builder
	seen := 0 // of what was asked
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			out.WriteString(line + "\n")
		case line == "$ as grace":
			out.WriteString(line + "\n")
			s.As(sitetest.Grace)
		case line == "$ as ada":
			out.WriteString(line + "\n")
			s.As(sitetest.Ada)
		case line == "$ asked": // what the controller was asked to do since the last time
			out.WriteString(line + "\n")
			read, all := false, s.Asked()
			for _, a := range all[seen:] {
				if strings.HasPrefix(a, "{") && !read || strings.Contains(a, "/nodes/") {
					out.WriteString(a + "\n")
				}
				read = a == "POST /v1/query" || a == "POST /v1/history"
			}
			seen = len(all)
		case strings.HasPrefix(line, "$ "):
			out.WriteString(line + "\n")
			words := split(t, line[2:])
			run := commands[words[0]]
			if run == nil {
				t.Fatalf("no command %q", words[0])
			}
			var stdout, stderr bytes.Buffer
			status := run(words[1:], cmdline.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
			out.WriteString(visible(stdout.String(), "") + visible(stderr.String(), "! "))
			if status != 0 {
				out.WriteString("? " + strconv.Itoa(status) + "\n")
			}
		}
	}
	return out.String()
}

// visible writes lines with a mark before each, and a mark for blanks at their ends.
func visible(s, mark string) string {
	if s == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	var b strings.Builder
	for _, l := range lines {
		bare := strings.TrimRight(l, " ")
		b.WriteString(mark + bare + strings.Repeat("~", len(l)-len(bare)) + "\n")
	}
	if !strings.HasSuffix(s, "\n") {
		b.WriteString(mark + "(no line end)\n")
	}
	return b.String()
}

// split cuts a line into words, with "..." and '...'.
func split(t *testing.T, s string) []string {
	var words []string
	var b strings.Builder
	quote, open := byte(0), false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			b.WriteByte(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == ' ':
			if open || b.Len() > 0 {
				words = append(words, b.String())
			}
			b.Reset()
			open = false
		default:
			b.WriteByte(c)
		}
	}
	if quote != 0 {
		t.Fatalf("a quote is open in %q", s)
	}
	if open || b.Len() > 0 {
		words = append(words, b.String())
	}
	return words
}

// Lists holds the lists of a command against the recorded options of 22.05, and those that later ones have beside
// them: each option is in one list with a text, is read by the grammar as Slurm reads it, and none is there that
// Slurm does not have.
func Lists[T any](t *testing.T, file string, c *cmdline.Command[T]) {
	l := c.Lists()
	recorded := map[string]cmdline.Kind{}
	listed := map[string]bool{} // by a manual page, and so to be in a list here
	for _, version := range []string{"unlisted", "22.05", "23.11", "24.11"} {
		name := strings.Replace(file, "22.05", version, 1)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) < 2 || f[0] != l.Name {
				continue
			}
			long := strings.TrimPrefix(f[len(f)-1], "--")
			arg := cmdline.None
			if name, ok := strings.CutSuffix(long, "[="); ok {
				long, arg = name, cmdline.Optional
			} else if name, ok := strings.CutSuffix(long, "="); ok {
				long, arg = name, cmdline.Required
			}
			recorded[long] = arg
			listed[long] = listed[long] || version != "unlisted"
		}
	}
	for long, arg := range recorded {
		read := false
		for i := range c.Options {
			o := &c.Options[i]
			read = read || slices.Contains(o.Spellings(), long) && o.Kind == arg
		}
		if !read {
			t.Errorf("%s --%s is not read as Slurm reads it", l.Name, long)
		}
	}
	if len(recorded) == 0 {
		t.Fatalf("%s has no options of %s", file, l.Name)
	}
	Texts(t, l)
	for _, o := range l.Options {
		if _, ok := recorded[o.Name]; !ok {
			t.Errorf("%s --%s is in a list, but Slurm has no such option", l.Name, o.Name)
		}
		delete(recorded, o.Name)
	}
	for name := range recorded {
		if listed[name] {
			t.Errorf("%s --%s is in no list", l.Name, name)
		}
	}
}

// Texts checks that what differs or is refused says how or why.
func Texts(t *testing.T, l cmdline.Lists) {
	for _, o := range l.Options {
		if o.List == cmdline.Own || o.List != cmdline.Exact && o.Text == "" {
			t.Errorf("%s %s: no list or no text", l.Name, o.Name)
		}
	}
}
