package column

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

type pair struct {
	name string
	n    int
}

var set = Set[*pair]{Fields: []Field[*pair]{
	{Letter: 'j', Names: []string{"name"}, Head: "NAME", Text: func(p *pair) string { return p.name }},
	{Letter: 'n', Names: []string{"number", "num"}, Head: "NUMBER", Text: func(p *pair) string { return fmt.Sprint(p.n) },
		Compare: func(a, b *pair) int { return cmp.Compare(a.n, b.n) }},
	{Letter: 'N', Names: []string{"nodes"}, Head: "NODELIST", Wide: true, WideHead: true, Text: func(p *pair) string { return p.name }},
	{Letter: 'M', Names: []string{"time"}, Head: "TIME", Wide: true, Text: func(p *pair) string { return p.name }},
}}

// TestFormats holds what squeue 22.05 prints for the same formats.
func TestFormats(t *testing.T) {
	rec := &pair{"run1", 12}
	for _, c := range []struct{ format, head, line, bad string }{
		{"%j", "NAME", "run1", ""},
		{"foo", "foo", "foo", ""},
		{"a %j\\n%n", "a NAME\\nNUMBER", "a run1\\n12", ""},
		{"%.2j|%2j|%6j|%.6j|", "NA|NA|NAME  |  NAME|", "ru|ru|run1  |  run1|", ""},
		{"%.2N|%2N|", "NODELIST|NO|", "run1|ru|", ""},
		{"%.2M|%2M|", "TI|TI|", "run1|ru|", ""},
		{"%j %% %n", "NAME % NUMBER", "run1 % 12", " "},
		{"%%", "", "", ""},
		{"%_ %j", "%_ NAME", "%_ run1", "_"},
		{"%j %", "NAME ", "run1 ", ""},
		{"%5", "%5", "%5", ""},
		{"%-5j|", "%-5j|", "%-5j|", "-"},
		{"%05j|", "NAME |", "run1 |", ""},
		{"%0j|%.j|", "NAME|NAME|", "run1|run1|", ""},
		{"", "", "", ""},
		{"%", "", "", ""},
		{"%all", "NAME|NUMBER|TIME|NODELIST", "run1|12|run1|run1", ""},
	} {
		var bad []string
		l := set.Letters(c.format, func(w string) { bad = append(bad, w) })
		head, line := string(l.AppendHead(nil)), string(l.Append(nil, rec))
		if head != c.head || line != c.line || strings.Join(bad, ",") != c.bad {
			t.Errorf("%q: %q %q %q, want %q %q %q", c.format, head, line, bad, c.head, c.line, c.bad)
		}
	}
}

func TestNames(t *testing.T) {
	rec := &pair{"run1", 12}
	for _, c := range []struct{ format, line, bad string }{
		{"name", "run1                ", ""},
		{"NAME:5,Num:.10|", "run1         12|", ""},
		{"name:,number", "run112                  ", ""},
		{"name ,number", "12                  ", "name "},
		{"name:5x:6,nosuch,num:0", "run1 x:612", "nosuch"},
		{"nosuch:9#,num:3#,this:.8", "#12 #", "nosuch,this"}, // its place is kept
		{"", "", ""},
	} {
		var bad []string
		l := set.Names(c.format, func(w string) { bad = append(bad, w) })
		if line := string(l.Append(nil, rec)); line != c.line || strings.Join(bad, ",") != c.bad {
			t.Errorf("%q: %q %q, want %q %q", c.format, line, bad, c.line, c.bad)
		}
	}
}

func TestOrder(t *testing.T) {
	recs := []*pair{{"b", 10}, {"a", 9}, {"a", 100}}
	keys, bad := set.Keys("j,-n")
	if bad != "" {
		t.Fatal(bad)
	}
	Sort(recs, keys)
	if got := fmt.Sprint(*recs[0], *recs[1], *recs[2]); got != "{a 100} {a 9} {b 10}" {
		t.Error(got)
	}
	if _, bad := set.Keys("j,@"); bad != "@" {
		t.Error(bad)
	}
}

// TestWidths: a column is exactly as wide as was asked for, whatever is in it, unless it is one
// that pushes; and no letter is torn apart.
func TestWidths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zäöü€ ]{0,20}`).Draw(t, "text")
		width := rapid.IntRange(1, 30).Draw(t, "width")
		right := rapid.Bool().Draw(t, "right")
		got := string(cell(nil, text, width, right, false))
		switch {
		case len(got) != width:
			t.Fatalf("%q in %d: %q is %d bytes", text, width, got, len(got))
		case !utf8.ValidString(got):
			t.Fatalf("%q in %d: %q is torn", text, width, got)
		case !strings.HasPrefix(text, strings.TrimRight(strings.TrimLeft(got, " "), " ")) && !strings.Contains(text, strings.TrimSpace(got)):
			t.Fatalf("%q in %d: %q is other text", text, width, got)
		}
		if wide := string(cell(nil, text, width, true, true)); !strings.HasSuffix(wide, text) || len(wide) != max(width, len(text)) {
			t.Fatalf("%q in %d: %q", text, width, wide)
		}
	})
}

// TestAnyFormat: whatever stands in a format, the text between the fields is kept and head and
// lines have the same shape.
func TestAnyFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.StringMatching(`(%?\.?[0-9]{0,6}[jnNM_ |%.]){0,8}`).Draw(t, "format")
		l := set.Letters(format, nil)
		rec := &pair{"x", 1}
		if got := string(l.Append(nil, rec)); strings.ContainsAny(got, "\n\r") {
			t.Fatalf("%q: %q", format, got)
		}
		if got := l.Append(nil, rec); len(got) > (len(l.Columns)+1)*MaxWidth {
			t.Fatalf("%q: a line of %d", format, len(got))
		}
	})
}

// TestControlCharacters: a name can't break a line in two nor speak to the terminal.
func TestControlCharacters(t *testing.T) {
	l := set.Letters("%j|%n", nil)
	if got := string(l.Append(nil, &pair{"a\nb\x1b[2J\x7f", 1})); got != "a?b?[2J?|1" {
		t.Errorf("%q", got)
	}
}

// TestSortKeepsTies: two calls show the same order.
func TestSortKeepsTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SliceOfN(rapid.IntRange(0, 3), 0, 20).Draw(t, "n")
		var recs []*pair
		for i, v := range n {
			recs = append(recs, &pair{fmt.Sprintf("%03d", i), v})
		}
		keys, _ := set.Keys("n")
		Sort(recs, keys)
		if !slices.IsSortedFunc(recs, func(a, b *pair) int { return cmp.Or(cmp.Compare(a.n, b.n), strings.Compare(a.name, b.name)) }) {
			t.Fatal("ties changed places")
		}
	})
}
