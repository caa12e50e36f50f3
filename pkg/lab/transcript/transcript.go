package transcript

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Transcript is what is written down of one test, a part for each world that it makes. Parts are in the order of their
// text: a test may make its worlds in any.
type Transcript struct {
	parts []*Part
}

// Part is what happens in one world.
type Part struct {
	text  strings.Builder
	lines int
}

// Most is how many lines of a part are kept at most: of a longer one nothing is, for nobody would read it.
const Most = 80

// transcripts are those of the tests that run, by name.
var (
	mu          sync.Mutex
	transcripts = map[string]*Transcript{}
)

// Of is the transcript of a test, which is compared when the test has passed; update: written anew.
func Of(t testing.TB, update bool) *Transcript {
	mu.Lock()
	defer mu.Unlock()
	name := t.Name()
	if tr := transcripts[name]; tr != nil {
		return tr
	}
	tr := &Transcript{}
	transcripts[name] = tr
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		delete(transcripts, name)
		if !t.Failed() && !t.Skipped() {
			tr.compare(t, name, update)
		}
	})
	return tr
}

// Part begins another part.
func (tr *Transcript) Part() *Part {
	p := &Part{}
	tr.parts = append(tr.parts, p)
	return p
}

// Printf adds a line.
func (p *Part) Printf(format string, args ...any) {
	text := fmt.Sprintf(format+"\n", args...)
	p.text.WriteString(text)
	p.lines += strings.Count(text, "\n")
}

// Drop takes the part out.
func (p *Part) Drop() { p.lines = 0 }

func (tr *Transcript) String() string {
	var texts []string
	for _, p := range tr.parts {
		if p.lines > 0 && p.lines <= Most {
			texts = append(texts, p.text.String())
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\n")
}

func (tr *Transcript) compare(t testing.TB, name string, update bool) {
	t.Helper()
	outermost, _, _ := strings.Cut(name, "/")
	path := filepath.Join("testdata", "transcripts", outermost+".txt")
	kept, err := sections(path)
	now := tr.String()
	if update {
		if err != nil {
			t.Fatal(err)
		}
		if kept[name] = now; now == "" {
			delete(kept, name)
		}
		if err := write(path, kept); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil || kept[name] != now {
		t.Errorf("%s, section %s, tells another story (-kept +now); if that is right: go test -run '^%s$' -update\n%s", path, name, outermost,
			cmp.Diff(strings.Split(kept[name], "\n"), strings.Split(now, "\n")))
	}
}

const mark = "=== "

// sections reads a file; none has none.
func sections(path string) (map[string]string, error) {
	out := map[string]string{}
	raw, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return out, nil
	}
	for part := range strings.SplitSeq("\n"+string(raw), "\n"+mark) {
		if name, text, ok := strings.Cut(part, "\n"); ok && name != "" {
			out[name] = strings.TrimSuffix(text, "\n") + "\n"
		}
	}
	return out, err
}

func write(path string, sections map[string]string) error {
	if len(sections) == 0 {
		if err := os.Remove(path); !os.IsNotExist(err) {
			return err
		}
		return nil
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		b.WriteString(mark + name + "\n" + sections[name])
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
