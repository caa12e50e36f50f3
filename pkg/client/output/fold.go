package output

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// pageWidth is how wide a page of help is where there is no terminal: that of most.
const pageWidth = 80

// Width is how many columns the terminal has that w is; 0: it is none.
func Width(w io.Writer) int {
	f, ok := File(w)
	if !ok {
		return 0
	}
	return width(f)
}

func width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil:
		return 0
	case size.Col == 0:
		return pageWidth // a serial line or a pseudo terminal that nobody has sized
	}
	return int(size.Col)
}

// Page is a page of help as w has room for it: folded at the terminal's width, elsewhere at 80 columns.
func Page(w io.Writer, text string) string {
	columns := Width(w)
	if columns == 0 {
		columns = pageWidth
	}
	return Fold(text, columns)
}

// Fold breaks the lines of a text that are longer than width between words. What goes on below hangs: behind the gap of two blanks or
// more that sets a description off, where the line has one in its left two thirds, else two columns behind the line's own beginning. A
// word longer than that stays whole. 0 is no width: nothing is folded.
func Fold(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		body, end := strings.CutSuffix(line, "\n")
		foldLine(&out, body, width)
		if end {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

func foldLine(out *strings.Builder, line string, width int) {
	if utf8.RuneCountInString(line) <= width {
		out.WriteString(line)
		return
	}
	first := len(line) - len(strings.TrimLeft(line, " "))
	hang := first
	if first > 0 {
		hang += 2
	}
	if gap := strings.Index(line[first:], "  "); gap >= 0 {
		if at := first + gap + len(line[first+gap:]) - len(strings.TrimLeft(line[first+gap:], " ")); at <= width*2/3 {
			hang = at
		}
	}
	used := utf8.RuneCountInString(line[:hang])
	out.WriteString(line[:hang])
	begun := false
	for word := range strings.SplitSeq(line[hang:], " ") {
		n := utf8.RuneCountInString(word)
		if begun && used+1+n > width {
			out.WriteString("\n" + strings.Repeat(" ", hang))
			used, begun = hang, false
		}
		if begun {
			out.WriteByte(' ')
			used++
		}
		out.WriteString(word)
		used, begun = used+n, true
	}
}

// Paragraphs puts the lines of each paragraph of prose in one, so that it can be folded anew; lines that begin with a blank stay.
func Paragraphs(text string) string {
	var out strings.Builder
	open := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		prose := line != "" && line[0] != ' '
		switch {
		case open && prose:
			out.WriteByte(' ')
		case open:
			out.WriteByte('\n')
		}
		out.WriteString(line)
		if open = prose; !prose {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
