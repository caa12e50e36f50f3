package cli

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"gangd/pkg/core/table/column"
)

// maxDrawnRows is up to where tablewriter draws: it takes 20-27 us a row, the plain writer
// 6, and nobody looks at more rows than this.
const maxDrawnRows = 1000

// tableColumn is one column of a table.
type tableColumn struct {
	head  string
	width int  // at least so wide; 0: as its content
	right bool // right-justified
	keep  bool // never shortened, even where the terminal is too narrow
	cut   bool // exactly width wide: longer text is cut, as squeue does with -o '%.8j'
	spare int  // above 0: left out where the terminal is too narrow for all, the highest first
	wrap  bool // a sentence: where it has to be narrower and a Drawer is there it goes on below, whole
	// suffix stands behind the column; one blank when empty.
	suffix string
}

// table is rows of text under a header.
type table struct {
	prefix   string // stands before each line
	cols     []tableColumn
	rows     [][]string
	noHeader bool
	// style gives the colour of a cell; nil: none.
	style func(row, col int) style
}

// write puts the table on a screen: shortened to fit a terminal, whole anywhere else.
func (t *table) write(s *screen) error {
	t.sanitise()
	if s.terminal {
		t.leaveOut(s.width)
	}
	widths := t.widths()
	if s.terminal {
		t.fit(widths, s.width)
	}
	if s.terminal && Drawer != nil && len(t.rows) <= maxDrawnRows && t.uniform() {
		return t.draw(s, widths)
	}
	return t.print(s, widths)
}

// sanitise replaces control characters: a job's name must not move the reader's cursor.
func (t *table) sanitise() {
	for _, row := range t.rows {
		for i, cell := range row {
			row[i] = column.Printable(cell)
		}
	}
}

// uniform reports whether one blank separates all columns, which is what draw does.
func (t *table) uniform() bool {
	if t.prefix != "" {
		return false
	}
	for i, c := range t.cols {
		if c.suffix != "" && c.suffix != " " || c.cut && c.suffix == "" && i < len(t.cols)-1 {
			return false
		}
	}
	return true
}

func (t *table) widths() []int {
	widths := make([]int, len(t.cols))
	for i, c := range t.cols {
		widths[i] = c.width
		if !c.cut && !t.noHeader {
			widths[i] = max(c.width, textWidth(c.head))
		}
	}
	for _, row := range t.rows {
		for i, cell := range row {
			if !t.cols[i].cut {
				widths[i] = max(widths[i], textWidth(cell))
			}
		}
	}
	return widths
}

// leastSentence is how narrow a sentence may become before columns that can be spared go.
const leastSentence = 20

// leaveOut takes columns away that can be spared until the others have room.
func (t *table) leaveOut(room int) {
	shown := make([]int, len(t.cols)) // which column of before each is
	for i := range shown {
		shown[i] = i
	}
	for {
		need, at := len(t.cols)-1, -1
		for i, c := range t.cols {
			switch {
			case c.keep:
				need += t.contentWidth(i)
			case c.wrap:
				need += min(t.contentWidth(i), leastSentence)
			default:
				need += max(c.width, textWidth(c.head))
			}
			if c.spare > 0 && (at < 0 || c.spare > t.cols[at].spare) {
				at = i
			}
		}
		if need <= room || at < 0 {
			break
		}
		t.cols, shown = slices.Delete(slices.Clone(t.cols), at, at+1), slices.Delete(shown, at, at+1)
		for r, row := range t.rows {
			t.rows[r] = slices.Delete(slices.Clone(row), at, at+1)
		}
	}
	if before := t.style; before != nil {
		t.style = func(row, col int) style { return before(row, shown[col]) }
	}
}

// fit makes the table as narrow as the terminal: first blank room goes, from the left;
// then text, from the widest column; the last column then takes what is left, but never
// less than 8.
func (t *table) fit(widths []int, room int) {
	total := max(len(widths)-1, 0)
	for _, w := range widths {
		total += w
	}
	for i := range widths {
		spare := max(min(widths[i]-t.contentWidth(i), total-room), 0)
		widths[i] -= spare
		total -= spare
	}
	for ; total > room; total-- {
		most, at := 0, -1
		for i, c := range t.cols {
			floor := max(c.width, textWidth(c.head))
			if excess := widths[i] - floor; !c.keep && !c.cut && excess > most {
				most, at = excess, i
			}
		}
		if at < 0 {
			break
		}
		widths[at]--
	}
	if last := len(widths) - 1; last >= 0 && total > room && !t.cols[last].keep && !t.cols[last].cut {
		widths[last] = max(widths[last]-(total-room), 8)
	}
}

// contentWidth is how wide a column must be to show all of itself.
func (t *table) contentWidth(i int) int {
	if t.cols[i].cut {
		return t.cols[i].width
	}
	w := 0
	if !t.noHeader {
		w = textWidth(t.cols[i].head)
	}
	for _, row := range t.rows {
		w = max(w, textWidth(row[i]))
	}
	return w
}

// print is the plain writer, for pipes and for very long tables.
func (t *table) print(s *screen, widths []int) error {
	out := bufio.NewWriterSize(s.w, 64<<10)
	line := make([]byte, 0, 256)
	put := func(row int, cell func(int) string) {
		line = append(line[:0], t.prefix...)
		for i := range t.cols {
			line = t.appendCell(s, line, row, i, cell(i), widths[i])
		}
		// Blanks at the end of a line only wrap narrow windows.
		line = bytes.TrimRight(line, " ")
		out.Write(append(line, '\n'))
	}
	if !t.noHeader {
		put(-1, func(i int) string { return t.cols[i].head })
	}
	for r, row := range t.rows {
		put(r, func(i int) string { return row[i] })
	}
	return out.Flush()
}

func (t *table) appendCell(s *screen, line []byte, row, i int, cell string, width int) []byte {
	c := &t.cols[i]
	w := textWidth(cell)
	if width > 0 && w > width {
		cell = shorten(cell, width, s.terminal && !c.cut)
		w = textWidth(cell)
	}
	pad := max(width-w, 0)
	if c.right {
		line = appendBlanks(line, pad)
	}
	if s.colour && row >= 0 && t.style != nil {
		line = append(line, s.paint(t.style(row, i), cell)...)
	} else {
		line = append(line, cell...)
	}
	last := i == len(t.cols)-1
	if !c.right && (!last || c.suffix != "") {
		line = appendBlanks(line, pad)
	}
	switch {
	case c.suffix != "":
		line = append(line, c.suffix...)
	case !c.cut && !last:
		line = append(line, ' ')
	}
	return line
}

func appendBlanks(b []byte, n int) []byte {
	const blanks = "                                "
	for ; n > len(blanks); n -= len(blanks) {
		b = append(b, blanks...)
	}
	return append(b, blanks[:n]...)
}

// Drawer draws cells for a terminal; nil: they are printed here. The programs that people look at set it to
// that of package drawn; those that scripts call in loops do not pay the millisecond that its module takes to load.
var Drawer func(w io.Writer, header []string, rows [][]string) error

// draw hands the table to the Drawer, each cell as wide as its column, one blank between columns.
func (t *table) draw(s *screen, widths []int) error {
	var header []string
	if !t.noHeader {
		header = t.padded(s, -1, widths)
	}
	rows := make([][]string, len(t.rows))
	for r := range t.rows {
		rows[r] = t.padded(s, r, widths)
	}
	var drawn bytes.Buffer
	if err := Drawer(&drawn, header, rows); err != nil {
		return err
	}
	return writeTrimmed(s, drawn.Bytes())
}

// padded is a row with every cell exactly as wide as its column, so that no later opinion
// about widths (tablewriter's, of colours and wide letters) can move a column.
func (t *table) padded(s *screen, row int, widths []int) []string {
	cells := make([]string, len(t.cols))
	for i, c := range t.cols {
		cell := c.head
		if row >= 0 {
			cell = t.rows[row][i]
		}
		lines := []string{cell}
		if textWidth(cell) > widths[i] {
			if c.wrap {
				lines = wrapped(cell, widths[i])
			} else {
				lines[0] = shorten(cell, widths[i], !c.cut)
			}
		}
		for l, line := range lines {
			blanks := strings.Repeat(" ", max(widths[i]-textWidth(line), 0))
			if row >= 0 && t.style != nil {
				line = s.paint(t.style(row, i), line)
			}
			if c.right {
				lines[l] = blanks + line
			} else {
				lines[l] = line + blanks
			}
		}
		cells[i] = strings.Join(lines, "\n")
	}
	return cells
}

// wrapped breaks text between words into lines of at most width columns; a longer word is cut, behind a comma where it has one.
func wrapped(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for textWidth(word) > width && width > 0 {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			part := shorten(word, width, false)
			if part == "" { // a letter that is wider than the column
				break
			}
			if comma := strings.LastIndexByte(part, ','); comma >= 0 { // a list without blanks
				part = part[:comma+1]
			}
			lines, word = append(lines, part), word[len(part):]
		}
		switch {
		case line == "":
			line = word
		case textWidth(line)+1+textWidth(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

func writeTrimmed(s *screen, text []byte) error {
	out := bufio.NewWriter(s.w)
	for line := range bytes.Lines(text) {
		out.Write(bytes.TrimRight(line, " \n"))
		out.WriteByte('\n')
	}
	return out.Flush()
}

// textWidth is how many columns a terminal takes for s.
func textWidth(s string) int {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return displaywidth.String(s)
		}
	}
	return len(s)
}

// shorten cuts s to width columns, with an ellipsis where a person reads it.
func shorten(s string, width int, ellipsis bool) string {
	tail := ""
	if ellipsis && width > 1 {
		tail, width = "…", width-1
	}
	used := 0
	for i, r := range s {
		used += textWidth(string(r))
		if used > width {
			return s[:i] + tail
		}
	}
	return s
}

// bars writes the table whole with a bar between the cells. A bar or a line end inside a cell
// would shift every column behind it, so both become a question mark.
func (t *table) bars(w io.Writer) error {
	var b strings.Builder
	line := func(n int, cell func(i int) string) {
		for i := range n {
			if i > 0 {
				b.WriteByte('|')
			}
			b.WriteString(strings.ReplaceAll(column.Printable(cell(i)), "|", "?"))
		}
		b.WriteByte('\n')
	}
	if !t.noHeader {
		line(len(t.cols), func(i int) string { return t.cols[i].head })
	}
	for _, row := range t.rows {
		line(len(row), func(i int) string { return row[i] })
	}
	_, err := io.WriteString(w, b.String())
	return err
}
