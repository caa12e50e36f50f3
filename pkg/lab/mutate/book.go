package mutate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// Book keeps what became of drawn mutants, package by package, over several runs.
type Book struct {
	Seed     uint64
	Drawn    int
	Possible int
	Packages map[string]*Chapter

	path string
}

// Chapter is what became of the mutants of one package.
type Chapter struct {
	Possible int
	Seconds  int
	Killed   int
	TimedOut int // of those killed
	Equal    []Survivor
	Left     []Survivor
}

// Survivor is a mutant that no test noticed.
type Survivor struct {
	Fate     Fate
	File     string
	Line     int
	Func     string
	Operator Operator
	What     string
	Key      string
	Reason   string // why it is equal
}

// OpenBook reads what is kept of the same draw, or begins anew.
func OpenBook(path string, seed uint64, n int) (*Book, error) {
	b := &Book{path: path}
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(raw, b); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if b.Packages == nil || b.Seed != seed || b.Drawn != n {
		b = &Book{path: path, Seed: seed, Drawn: n, Packages: map[string]*Chapter{}}
	}
	return b, nil
}

// Save writes the book.
func (b *Book) Save() error {
	raw, err := json.MarshalIndent(b, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.path, raw, 0o644)
}

// Begin forgets what was known of a package.
func (b *Book) Begin(pkg string, possible int) { b.Packages[pkg] = &Chapter{Possible: possible} }

// End notes how long a package took.
func (b *Book) End(pkg string, took time.Duration) {
	b.Packages[pkg].Seconds = int(took.Round(time.Second).Seconds())
}

// Add notes what became of a mutant, and says whether it is known to change nothing.
func (b *Book) Add(pkg string, r Result) bool {
	c := b.Packages[pkg]
	if r.Fate == Killed || r.Fate == TimedOut {
		c.Killed++
		if r.Fate == TimedOut {
			c.TimedOut++
		}
		return false
	}
	m := r.Mutant
	s := Survivor{Fate: r.Fate, File: m.File, Line: m.Line, Func: m.Func, Operator: m.Operator, What: m.What, Key: m.Key(),
		Reason: equals[m.Key()]}
	if s.Reason != "" {
		c.Equal = append(c.Equal, s)
		return true
	}
	c.Left = append(c.Left, s)
	return false
}

// Table is the rates by package.
func (b *Book) Table() string {
	var out strings.Builder
	out.WriteString("| package | mutants | drawn | killed | equal | survived | not reached | killed of those not equal | seconds " +
		"|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	var sum Chapter
	unseen := 0
	for _, name := range sorted(b.Packages) {
		c := b.Packages[name]
		u := c.unseen()
		row(&out, name, c, u)
		sum.Possible += c.Possible
		sum.Killed += c.Killed
		sum.TimedOut += c.TimedOut
		sum.Seconds += c.Seconds
		sum.Equal = append(sum.Equal, c.Equal...)
		sum.Left = append(sum.Left, c.Left...)
		unseen += u
	}
	row(&out, "all", &sum, unseen)
	return out.String()
}

func (c *Chapter) unseen() int {
	n := 0
	for _, s := range c.Left {
		if s.Fate == Unseen {
			n++
		}
	}
	return n
}

func row(out *strings.Builder, name string, c *Chapter, unseen int) {
	rate := "-"
	if n := c.Killed + len(c.Left); n > 0 {
		rate = fmt.Sprintf("%.1f %%", 100*float64(c.Killed)/float64(n))
	}
	fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %s | %d |\n", name, c.Possible, c.Killed+len(c.Equal)+len(c.Left), c.Killed,
		len(c.Equal),
		len(c.Left)-unseen, unseen, rate, c.Seconds)
}

// Report writes the part of a document about drawn mutants.
func (b *Book) Report(path string) error {
	var out strings.Builder
	fmt.Fprintf(&out, "Seed %d, %d drawn; `make mutants SEED=%d MUTANTS=%d` draws the same from the same source.\n\n", b.Seed, b.Drawn, b.Seed,
		b.Drawn)
	out.WriteString(b.Table())
	b.survivors(&out, "Survivors", "fate", func(c *Chapter) []Survivor { return c.Left }, func(s Survivor) string { return string(s.Fate) })
	b.survivors(&out, "Equal: no test can tell them from the source", "why", func(c *Chapter) []Survivor { return c.Equal },
		func(s Survivor) string { return s.Reason })
	return WritePart(path, "drawn", out.String())
}

func (b *Book) survivors(out *strings.Builder, title, last string, of func(*Chapter) []Survivor, why func(Survivor) string) {
	fmt.Fprintf(out, "\n### %s\n\n| where | function | change | of | %s |\n|---|---|---|---|---|\n", title, last)
	for _, name := range sorted(b.Packages) {
		list := slices.Clone(of(b.Packages[name]))
		slices.SortFunc(list, func(a, b Survivor) int {
			if d := strings.Compare(a.File, b.File); d != 0 {
				return d
			}
			return a.Line - b.Line
		})
		for _, s := range list {
			fmt.Fprintf(out, "| %s:%d | `%s` | %s | `%s` | %s |\n", s.File, s.Line, s.Func, s.Operator, strings.ReplaceAll(s.What, "|", "\\|"),
				why(s))
		}
	}
}

// WritePart replaces the part of a document between two marks that carry its name.
func WritePart(path, part, text string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	from, to := "<!-- "+part+" -->\n", "<!-- end of "+part+" -->\n"
	before, rest, ok := strings.Cut(string(raw), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no part between %q and %q", path, strings.TrimSpace(from), strings.TrimSpace(to))
	}
	return os.WriteFile(path, []byte(before+from+text+to+after), 0o644)
}
