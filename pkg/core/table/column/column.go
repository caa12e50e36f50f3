// Package column lays records out in columns as squeue and sinfo do: their format strings,
// their padding and cutting, their order.
//
// A column is as wide as the format says, whatever is in it: shorter text is padded with
// blanks (also at the end of a line), longer text is cut. A few fields are never cut when
// they are right-justified; they push the rest of the line to the right ([Field.Wide]).
// Widths count bytes, as the C library does; a letter of several bytes is not torn apart,
// blanks stand for what was left of it.
//
// The package is pure: it sees formats and records, and gives lines.
//
// Begin with Set and Line. It must not know jobs or nodes.
package column

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Field is one thing that can be shown of a record R.
type Field[R any] struct {
	Letter byte     // of -o; 0: by name only
	Names  []string // of -O, lower case; none: by letter only
	Head   string
	Text   func(R) string
	// Wide is text that is not cut where it is right-justified: times and lists of nodes.
	Wide bool
	// WideHead: nor is its heading.
	WideHead bool
	// Compare orders by value where the text would order wrongly; nil: by text.
	Compare func(a, b R) int
}

// Column is a field in a format.
type Column[R any] struct {
	*Field[R]
	Width  int // 0: as its text
	Right  bool
	Suffix string // stands behind it
}

// Line is a whole format.
type Line[R any] struct {
	Prefix  string // stands before the first column
	Columns []Column[R]
}

// AppendHead appends the line of headings, without its end.
func (l *Line[R]) AppendHead(b []byte) []byte {
	b = append(b, l.Prefix...)
	for i := range l.Columns {
		c := &l.Columns[i]
		b = cell(b, c.Head, c.Width, c.Right, c.Wide && c.WideHead)
		b = append(b, c.Suffix...)
	}
	return b
}

// Append appends the line of a record, without its end.
func (l *Line[R]) Append(b []byte, r R) []byte {
	b = append(b, l.Prefix...)
	for i := range l.Columns {
		c := &l.Columns[i]
		b = cell(b, Printable(c.Text(r)), c.Width, c.Right, c.Wide)
		b = append(b, c.Suffix...)
	}
	return b
}

// cell appends text in a column.
func cell(b []byte, text string, width int, right, wide bool) []byte {
	if width == 0 {
		return append(b, text...)
	}
	width = min(width, MaxWidth)
	if len(text) > width && !(right && wide) {
		n := width
		for n > 0 && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	if right {
		b = blanks(b, width-len(text))
		return append(b, text...)
	}
	return blanks(append(b, text...), width-len(text))
}

func blanks(b []byte, n int) []byte {
	const some = "                                "
	for ; n > len(some); n -= len(some) {
		b = append(b, some...)
	}
	if n > 0 {
		b = append(b, some[:n]...)
	}
	return b
}

// Printable is s with a question mark for each character that shows nothing and does something: controls, the ends of
// lines and paragraphs, and what turns the direction of writing around. A job's name must not move the reader's
// cursor, break a line in two, or have what stands behind it read in another order.
func Printable(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return strings.Map(func(r rune) rune {
				if unicode.IsControl(r) || r == utf8.RuneError || unicode.Is(turning, r) {
					return '?'
				}
				return r
			}, s)
		}
	}
	return s
}

// turning are the marks of direction (Unicode's Bidi_Control, with those that once were), the separators of lines and
// paragraphs, annotations, and tags, which nobody sees.
var turning = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x061c, Hi: 0x061c, Stride: 1}, {Lo: 0x200e, Hi: 0x200f, Stride: 1}, {Lo: 0x2028, Hi: 0x202e, Stride: 1},
		{Lo: 0x2066, Hi: 0x206f, Stride: 1}, {Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, {Lo: 0xfff9, Hi: 0xfffb, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0xe0000, Hi: 0xe007f, Stride: 1}},
}

// Lines is Printable of each line of a text of several.
func Lines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
